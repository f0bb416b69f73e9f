/** The runtime's event stream behind the fault injector: events lost, doubled, late or out of order, and a stream that breaks. */

import type { RuntimeHint } from '@actorlet/kubelet/machines/wire/cri.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { ActiveFaults } from '../activeFaults.ts';
import { pause } from './pause.ts';

export interface HintOptions {
  activeFaults: ActiveFaults;
  clock: Clock;
  /** Where the stream can be broken from while it is read. */
  cuts: Set<(error: Error) => void>;
  /** Lets go of the real stream. */
  close(): void;
}

/** Events waiting for their reader before the stream is no longer read on. */
const WAITING_MAX = 4096;
/** A reordered event that nothing follows is passed on after this long. */
const REORDER_MS = 1_000;

type Entry = { hint: RuntimeHint } | { end: Error | null };

/** Between the stream and its reader. */
class Outbox {
  #entries: Entry[] = [];
  #ended = false;
  #wake: () => void = () => undefined;
  #room: () => void = () => undefined;

  push(hint: RuntimeHint): void {
    if (!this.#ended) this.#add({ hint });
  }
  /** What was pushed before is read first, unless the stream broke. */
  end(error: Error | null): void {
    if (this.#ended) return;
    this.#ended = true;
    if (error !== null) this.#entries = [];
    this.#add({ end: error });
  }
  #add(entry: Entry): void {
    this.#entries.push(entry);
    this.#wake();
  }
  async next(): Promise<Entry> {
    for (;;) {
      const entry = this.#entries.shift();
      if (entry !== undefined) {
        this.#room();
        return entry;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
  async room(): Promise<void> {
    while (!this.#ended && this.#entries.length >= WAITING_MAX) {
      await new Promise<void>((resolve) => {
        this.#room = resolve;
      });
    }
  }
}

export async function* tamperedHints(stream: AsyncIterable<RuntimeHint>, o: HintOptions): AsyncGenerator<RuntimeHint> {
  const out = new Outbox();
  const cut = (error: Error) => out.end(error);
  o.cuts.add(cut);
  void pump(stream, out, o);
  try {
    for (;;) {
      const entry = await out.next();
      if ('hint' in entry) yield entry.hint;
      else if (entry.end === null) return;
      else throw entry.end;
    }
  } finally {
    o.cuts.delete(cut);
    o.close();
  }
}

async function pump(stream: AsyncIterable<RuntimeHint>, out: Outbox, o: HintOptions): Promise<void> {
  let aside: RuntimeHint | null = null;
  const bringBack = (): void => {
    const hint = aside;
    aside = null;
    if (hint !== null) out.push(hint);
  };
  try {
    for await (const hint of stream) {
      await out.room();
      const hit = o.activeFaults.first('hints', hint.kind, (f) => o.activeFaults.match.one(f.select.hints, hint.kind));
      switch (hit?.fault.action) {
        case 'drop':
          continue;
        case 'delay':
          // Later hints overtake it.
          void pause(o.clock, hit.fault.delayMs, { healed: hit.healed }).then(() => out.push(hint));
          continue;
        case 'reorder':
          if (aside !== null) break;
          aside = hint;
          void pause(o.clock, REORDER_MS, { healed: hit.healed }).then(() => {
            if (aside === hint) bringBack();
          });
          continue;
        case 'duplicate':
          out.push(hint);
          break;
        case undefined:
          break;
      }
      out.push(hint);
      bringBack();
    }
    bringBack();
    out.end(null);
  } catch (error) {
    out.end(error instanceof Error ? error : new Error(String(error)));
  }
}
