/**
 * The flight recorder: a bounded ring of what the kernel saw last. It keeps types, keys, states, error messages and the
 * text of causes, never the payload of a message, so a dump holds no secret of a pod.
 */

import type { RecorderFilter } from '../../machines/recorder/moment.ts';
import { cutEntry as cut, entryLine, isBelow, type RecorderEntry } from '../../machines/recorder/recorderEntry.ts';
import type { Cause } from '../../machines/supervision/address.ts';
import type { SupervisionEvent } from '../../machines/supervision/observed.ts';

/** Entries kept by default: some seconds of a busy node, hours of a quiet one. */
export const RECORDER_CAPACITY = 4096;
export interface Recorder {
  /** One event of `tree.observe`. Allocates nothing: columns of the ring are overwritten in place. */
  observe(e: SupervisionEvent): void;
  /** A line of its own, for what no event of the kernel tells. */
  note(o: { path: string; what: string; atMs: number }): void;
  /** Oldest first, one line each; the first line tells how many earlier ones the ring has overwritten. */
  dump(filter?: RecorderFilter): string[];
  /** The same as data. */
  read(filter?: RecorderFilter): { entries: RecorderEntry[]; overwritten: number };
  /** Entries from number `from` on that are still there, oldest first; of those the newest `max`. */
  since(from: number, max: number): RecorderEntry[];
  /** The newest `max` entries for which `wanted` answers true, oldest first. */
  last(max: number, wanted: (e: RecorderEntry) => boolean): RecorderEntry[];
  readonly recorded: number;
}

export function createRecorder(capacity: number = RECORDER_CAPACITY): Recorder {
  return new Ring(capacity);
}

/** Entry number `n` is row `n % capacity` of every column. */
class Ring implements Recorder {
  readonly #capacity: number;
  // They grow up to the capacity: of a thousand nodes in a process each has few entries.
  readonly #kinds: RecorderEntry['kind'][] = [];
  readonly #atMs: number[] = [];
  readonly #paths: string[] = [];
  readonly #whats: string[] = [];
  readonly #details: string[] = [];
  /** Of a message who sent it, of a transition the state that it left. */
  readonly #senders: string[] = [];
  /** Of transitions. */
  readonly #reasons: string[] = [];
  readonly #causes: (readonly Cause[] | undefined)[] = [];
  #count = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get recorded(): number {
    return this.#count;
  }

  observe(e: SupervisionEvent): void {
    const row = this.#next(e.kind, e.atMs);
    switch (e.kind) {
      case 'message':
        this.#senders[row] = e.from ?? '';
        this.#causes[row] = e.causes;
        this.#paths[row] = e.to;
        this.#whats[row] = e.type;
        this.#details[row] = e.key ?? '';
        return;
      case 'transition':
        // What is said of it is put together when it is read: few are.
        this.#paths[row] = e.path;
        this.#senders[row] = e.from;
        this.#whats[row] = e.to;
        this.#details[row] = e.event;
        this.#reasons[row] = e.reason;
        return;
      case 'child.started':
        this.#paths[row] = e.path;
        this.#whats[row] = `incarnation ${e.incarnation}`;
        this.#details[row] = '';
        return;
      case 'child.exited':
        this.#paths[row] = e.path;
        this.#whats[row] = exitOf(e.reason);
        this.#details[row] = `incarnation ${e.incarnation}`;
        return;
      case 'child.asleep':
      case 'child.woken':
        this.#paths[row] = e.path;
        this.#whats[row] = e.state === '' ? `incarnation ${e.incarnation}` : `in ${e.state}`;
        this.#details[row] = e.state === '' ? '' : `incarnation ${e.incarnation}`;
        return;
      case 'child.restarting':
        this.#paths[row] = e.path;
        this.#whats[row] = `in ${Math.round(e.delayMs)} ms`;
        this.#details[row] = `${e.restartsInWindow} restarts in the window`;
        return;
      case 'supervisor.escalated':
      case 'quarantined':
        this.#paths[row] = e.path;
        this.#whats[row] = cut(e.error);
        this.#details[row] = '';
        return;
      case 'dead-letter':
        this.#paths[row] = e.letter.to;
        this.#whats[row] = `${e.letter.type} (${e.letter.reason})`;
        this.#details[row] = e.letter.key ?? '';
        return;
      default:
        assertNever(e);
    }
  }

  note(o: { path: string; what: string; atMs: number }): void {
    const row = this.#next('note', o.atMs);
    this.#paths[row] = o.path;
    this.#whats[row] = cut(o.what);
    this.#details[row] = '';
  }

  since(from: number, max: number): RecorderEntry[] {
    const entries: RecorderEntry[] = [];
    for (let n = Math.max(from, this.#count - this.#capacity, this.#count - max, 0); n < this.#count; n++) entries.push(this.#entry(n));
    return entries;
  }

  last(max: number, wanted: (e: RecorderEntry) => boolean): RecorderEntry[] {
    const entries: RecorderEntry[] = [];
    const oldest = Math.max(0, this.#count - this.#capacity);
    for (let n = this.#count - 1; n >= oldest && entries.length < max; n--) {
      const entry = this.#entry(n);
      if (wanted(entry)) entries.push(entry);
    }
    return entries.reverse();
  }

  dump(filter: RecorderFilter = {}): string[] {
    const { entries, overwritten } = this.read(filter);
    const lines = entries.map(entryLine);
    return overwritten > 0 ? [`(${overwritten} earlier entries overwritten)`, ...lines] : lines;
  }

  read({ path, limit = this.#capacity, sinceMs = Number.NEGATIVE_INFINITY }: RecorderFilter = {}): ReturnType<Recorder['read']> {
    const entries = this.last(limit, (e) => e.atMs >= sinceMs && (path === undefined || isBelow(e.path, path)));
    return { entries, overwritten: Math.max(0, this.#count - this.#capacity) };
  }

  /** Takes the oldest row. Its path, what and detail are the caller's to write. */
  #next(kind: RecorderEntry['kind'], atMs: number): number {
    const row = this.#count % this.#capacity;
    this.#count++;
    this.#kinds[row] = kind;
    this.#atMs[row] = atMs;
    this.#senders[row] = '';
    this.#causes[row] = undefined;
    return row;
  }

  #entry(n: number): RecorderEntry {
    const row = n % this.#capacity;
    const kind = this.#kinds[row] ?? 'note';
    const [what = '', detail = '', from = ''] = [this.#whats[row], this.#details[row], this.#senders[row]];
    const entry = {
      n,
      atMs: this.#atMs[row] ?? 0,
      kind,
      path: this.#paths[row] ?? '',
      what,
      detail,
      from,
      causes: this.#causes[row] ?? [],
    };
    if (kind !== 'transition') return entry;
    const reason = this.#reasons[row] ?? '';
    return { ...entry, what: `${from} -> ${what}`, detail: reason === '' ? `on ${detail}` : `on ${detail} (${reason})`, from: '' };
  }
}

function exitOf(reason: Extract<SupervisionEvent, { kind: 'child.exited' }>['reason']): string {
  if (reason.kind === 'error') return `error: ${cut(reason.error.message)}`;
  return reason.kind === 'killed' ? `killed by ${reason.by}` : reason.kind;
}

function assertNever(e: never): void {
  void e;
}
