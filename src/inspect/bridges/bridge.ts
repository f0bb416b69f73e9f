/**
 * One stock inspector's protocol, served read-only to any number of its clients. A client gets every live actor first; one
 * that reads too slowly misses frames and gets every live actor again once it has caught up.
 */
import { BACKLOG_BYTES_MAX, type Joined, VIEWERS_MAX, type Viewer } from '../feed/hub.ts';
import type { Inspected } from '../source.ts';
import { AllActors } from './allActors.ts';
import { classicWords, statelyWords, type Words } from './words.ts';

/** How often a client that lagged is looked at. */
const CATCH_UP_MS = 500;
const FRAME_CHARS_MAX = 64 * 1024;

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
  lags: boolean;
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
    const client: Client = { viewer, listening: !this.#asks, lags: false };
    this.#clients.add(client);
    this.figures.viewers = this.#clients.size;
    if (client.listening) this.#replay(client);
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
        client.listening = true;
        this.#replay(client);
        return;
      case 'xstate.event':
        // It would drive the node agent from outside.
        this.figures.refused += 1;
        return;
      default:
        this.figures.malformed += 1;
    }
  }

  #replay(client: Client): void {
    const known = this.#actors;
    if (known === null) {
      // Registers everything with everybody who listens, which is this client.
      this.#actors = new AllActors(this.#node, {
        registered: (a) => this.#tell(() => this.#words.register(a)),
        event: (a, e) => this.#tell(() => this.#words.event(a, e)),
        snapshot: (a, e) => this.#tell(() => this.#words.snapshot(a, e)),
        stopped: (a) => this.#tell(() => this.#words.stop(a)),
      });
      return;
    }
    for (const actor of known.all) this.#send(client, this.#text(this.#words.register(actor)));
  }

  #tell(make: () => string | null): void {
    const listeners = [...this.#clients].filter((c) => c.listening);
    if (listeners.length === 0) return;
    const text = make();
    if (text === null) return;
    this.#text(text);
    for (const client of listeners) this.#send(client, text);
  }

  #text(text: string): string {
    this.figures.serialised += 1;
    return text;
  }

  #send(client: Client, text: string): void {
    if (!client.lags && client.viewer.backlogBytes() <= BACKLOG_BYTES_MAX) {
      client.viewer.send(text);
      return;
    }
    this.figures.skipped += 1;
    client.lags = true;
    this.#timer ??= this.#node.clock.setTimeout(() => this.#catchUp(), CATCH_UP_MS);
  }

  #catchUp(): void {
    this.#timer = null;
    for (const client of this.#clients) {
      if (!client.lags) continue;
      if (client.viewer.backlogBytes() === 0) {
        client.lags = false;
        this.#replay(client);
      } else {
        this.#timer ??= this.#node.clock.setTimeout(() => this.#catchUp(), CATCH_UP_MS);
      }
    }
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
