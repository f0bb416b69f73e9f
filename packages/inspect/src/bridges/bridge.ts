/**
 * One stock inspector's protocol, served read-only to any number of its clients. A client gets every live actor first, some
 * in each turn of the event loop. One that reads too slowly misses frames and gets every live actor again once it has caught
 * up; one that does not is let go.
 */

import type { Inspected } from '@actorlet/kubelet/actors/recorder/source.ts';
import { BACKLOG_BYTES_MAX, type Joined, LAG_MAX_MS, VIEWERS_MAX, type Viewer } from '../feed/viewer.ts';
import { AllActors, type SeenActor } from './allActors.ts';
import { classicWords, statelyWords, type Words } from './words.ts';

/** How often a client that does not read is looked at. */
const CATCH_UP_MS = 500;
const FRAME_CHARS_MAX = 64 * 1024;
/** Actors that one client is told of in one turn: a definition has some 13 kB. */
const SLICE_ACTORS = 16;
const NEXT_SLICE_MS = 1;

export interface BridgeFigures {
  viewers: number;
  serialised: number;
  malformed: number;
  /** Requests to send an event to an actor: none is obeyed. */
  refused: number;
  skipped: number;
}
interface Client {
  viewer: Viewer;
  /** The classic client asks for the registry; the other one just listens. */
  listening: boolean;
  /** Actors that it has not heard of yet, parents first. Nothing else is said of them. */
  owed: Set<SeenActor>;
  /** Since when it does not read; null: it does. */
  stuckSinceMs: number | null;
  /** Frames were left out: it must hear of everything again. */
  missed: boolean;
}

export class Bridge {
  readonly #node: Inspected;
  readonly #words: Words;
  readonly #asks: boolean;
  readonly #clients = new Set<Client>();
  #actors: AllActors | null = null;
  #timer: unknown = null;
  readonly figures: BridgeFigures = { viewers: 0, serialised: 0, malformed: 0, refused: 0, skipped: 0 };

  constructor(kind: 'stately' | 'classic', node: Inspected) {
    this.#node = node;
    this.#asks = kind === 'classic';
    this.#words = kind === 'classic' ? classicWords() : statelyWords(() => node.clock.wallMs());
  }

  /** Null: too many viewers. */
  join(viewer: Viewer): Joined | null {
    if (this.#clients.size >= VIEWERS_MAX) return null;
    const client: Client = { viewer, listening: false, owed: new Set(), stuckSinceMs: null, missed: false };
    this.#clients.add(client);
    this.figures.viewers = this.#clients.size;
    if (!this.#asks) this.#listen(client);
    return { message: (text) => this.#message(client, text), leave: () => this.#leave(client) };
  }

  #leave(client: Client): void {
    if (!this.#clients.delete(client)) return;
    this.figures.viewers = this.#clients.size;
    if (this.#clients.size > 0) return;
    this.#actors?.[Symbol.dispose]();
    this.#actors = null;
    this.#node.clock.clearTimeout(this.#timer);
    this.#timer = null;
  }

  close(): void {
    for (const client of [...this.#clients]) {
      client.viewer.close('the daemon ends');
      this.#leave(client);
    }
  }

  #message(client: Client, text: string): void {
    switch (typeOf(text)) {
      case 'xstate.inspecting':
        this.#listen(client);
        return;
      case 'xstate.event':
        // It would drive the node agent from outside.
        this.figures.refused += 1;
        return;
      default:
        this.figures.malformed += 1;
    }
  }

  #listen(client: Client): void {
    // A client that asks again hears of everything already.
    if (client.listening) return;
    this.#actors ??= new AllActors(this.#node, {
      registered: (a) => this.#registered(a),
      event: (a, e) => this.#tell(a, () => this.#words.event(a, e)),
      snapshot: (a, e) => this.#tell(a, () => this.#words.snapshot(a, e)),
      stopped: (a) => this.#stopped(a),
    });
    client.listening = true;
    client.owed = new Set(this.#actors.all);
    this.#arm(NEXT_SLICE_MS);
  }

  #registered(actor: SeenActor): void {
    for (const client of this.#clients) if (client.owed.size > 0) client.owed.add(actor);
    this.#tell(actor, () => this.#words.register(actor));
  }
  #stopped(actor: SeenActor): void {
    const unheard = [...this.#clients].filter((c) => c.owed.has(actor));
    this.#tell(actor, () => this.#words.stop(actor));
    for (const client of unheard) client.owed.delete(actor);
  }

  #tell(actor: SeenActor, make: () => string | null): void {
    const listeners = [...this.#clients].filter((c) => c.listening && !c.owed.has(actor));
    if (listeners.length === 0) return;
    const text = make();
    if (text === null) return;
    this.figures.serialised += 1;
    for (const client of listeners) {
      if (this.#send(client, text)) continue;
      this.figures.skipped += 1;
      client.missed = true;
    }
  }

  /** False: it does not read, and does not get it. */
  #send(client: Client, text: string): boolean {
    if (client.stuckSinceMs === null && client.viewer.backlogBytes() <= BACKLOG_BYTES_MAX) {
      client.viewer.send(text);
      return true;
    }
    client.stuckSinceMs ??= this.#node.clock.monoMs();
    this.#arm(CATCH_UP_MS);
    return false;
  }

  #arm(ms: number): void {
    const { clock } = this.#node;
    // A wait for one that does not read must not hold up a slice for another.
    if (this.#timer !== null && ms !== NEXT_SLICE_MS) return;
    if (this.#timer !== null) clock.clearTimeout(this.#timer);
    this.#timer = clock.setTimeout(() => this.#turn(), ms);
  }

  /** A fault of the inspector's own must not reach the daemon. */
  #turn(): void {
    this.#timer = null;
    try {
      for (const client of [...this.#clients]) this.#goOn(client);
    } catch (error) {
      this.#node.log.warn({ err: String(error) }, 'xstate inspectors: actors were left out');
    }
  }
  #goOn(client: Client): void {
    if (client.stuckSinceMs !== null && !this.#reads(client)) return;
    let left = SLICE_ACTORS;
    for (const actor of client.owed) {
      if (left === 0) {
        this.#arm(NEXT_SLICE_MS);
        return;
      }
      left -= 1;
      const text = this.#words.register(actor);
      this.figures.serialised += 1;
      if (!this.#send(client, text)) return;
      client.owed.delete(actor);
    }
  }
  /** Whether one that did not read has caught up. */
  #reads(client: Client): boolean {
    const stuckMs = this.#node.clock.monoMs() - (client.stuckSinceMs ?? 0);
    if (client.viewer.backlogBytes() > 0) {
      if (stuckMs <= LAG_MAX_MS) this.#arm(CATCH_UP_MS);
      else {
        client.viewer.close('it did not read what it was sent');
        this.#leave(client);
      }
      return false;
    }
    client.stuckSinceMs = null;
    if (client.missed) client.owed = new Set(this.#actors?.all ?? []);
    client.missed = false;
    return true;
  }
}

function typeOf(text: string): string {
  if (text.length > FRAME_CHARS_MAX) return '';
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && 'type' in value ? String(value.type) : '';
  } catch {
    return '';
  }
}
