/**
 * The connections of one listener, and which of them must go when there are too many. A connection is known once its
 * sender was authenticated; the others share few places, and the address that holds most of them loses its oldest one.
 */
import type { Socket } from 'node:net';

/** Places for connections whose sender is not known. With the longest request head each they hold 64 MiB. */
export const UNKNOWN_CONNECTIONS_MAX = 512;
/**
 * Beside those, with TLS: places for connections whose client has not said hello yet. They push out none that have, whose senders
 * may have to wait for the API server. Each holds 8 KiB, and 4 KiB of a hello at most. With fewer places a flood of them
 * costs more: who loses his place connects again, and that is 0.3 ms of the main thread.
 */
export const SPEECHLESS_CONNECTIONS_MAX = 2048;
/**
 * Connections that the kernel keeps until this process takes them: as Go's net package does, the kernel's own default for
 * `net.core.somaxconn`. In a shorter queue a flood leaves no place, and a caller waits seconds for TCP to ask again.
 */
export const BACKLOG = 4096;
/** Places for those that are known: each exec, attach and port-forward holds one for as long as it lasts. */
const KNOWN_CONNECTIONS_MAX = 3584;
/** A handshake takes as long as the reading of a request's head may. */
export const HANDSHAKE_TIMEOUT_MS = 10_000;
/** Requests on one connection at a time; HTTP/1.1 lets a client send the next before the answer. */
const PIPELINED_MAX = 8;
/** Answers that wait for peers who are not known, in bytes: beyond it the one with most of them is dropped. */
const UNTAKEN_BYTES_MAX = 64 * 1024 * 1024;

export interface Connection {
  /** A request has come. It is handled after `before`, one after the other; `end` is called when its answer has ended. */
  begin(): { before: Promise<void> | undefined; end(): void };
  /** Its sender was authenticated. */
  known(): void;
  /** Nothing is being answered on it. */
  readonly idle: boolean;
  readonly peer: string;
}

class Entry implements Connection {
  readonly peer: string;
  socket: Socket;
  requests = 0;
  #last: Promise<void> | undefined;
  handshake: NodeJS.Timeout | undefined;
  readonly #ledger: Ledger;

  constructor(socket: Socket, ledger: Ledger) {
    this.peer = peerOf(socket.remoteAddress ?? '');
    this.socket = socket;
    this.#ledger = ledger;
  }
  get idle(): boolean {
    return this.requests === 0;
  }
  begin(): ReturnType<Connection['begin']> {
    this.requests += 1;
    if (this.requests > PIPELINED_MAX) this.socket.destroy();
    this.#ledger.begun();
    const before = this.requests > 1 ? this.#last : undefined;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = promise;
    return {
      before,
      end: () => {
        this.requests -= 1;
        resolve();
      },
    };
  }
  known(): void {
    this.#ledger.know(this);
  }
}
interface Ledger {
  begun(): void;
  know(entry: Entry): void;
}

export class Connections {
  readonly #bySocket = new WeakMap<Socket, Entry>();
  readonly #speechless = new Places();
  readonly #unknown = new Places();
  readonly #known = new Set<Entry>();
  readonly #ledger: Ledger = { begun: () => this.#dropUntaken(), know: (entry) => this.#know(entry) };

  /** A connection was accepted. With TLS its handshake is ahead: `greeted` and `secured` tell of its steps. */
  add(socket: Socket, o: { tls: boolean }): void {
    const entry = new Entry(socket, this.#ledger);
    this.#bySocket.set(socket, entry);
    socket.once('close', () => this.#forget(entry));
    // The whole of it: TLS itself begins its time anew at every byte.
    if (o.tls) entry.handshake = setTimeout(() => socket.destroy(), HANDSHAKE_TIMEOUT_MS).unref();
    // The oldest, whatever it has said: those that hold a place by saying much would keep all newcomers out.
    if (o.tls) this.#take(this.#speechless, entry, SPEECHLESS_CONNECTIONS_MAX);
    else this.#take(this.#unknown, entry, UNKNOWN_CONNECTIONS_MAX);
  }

  /** Its client has said hello: the handshake begins. */
  greeted(socket: Socket): void {
    const entry = this.#bySocket.get(socket);
    if (entry === undefined || !this.#speechless.delete(entry)) return;
    this.#take(this.#unknown, entry, UNKNOWN_CONNECTIONS_MAX);
  }

  /** The handshake has ended: `secure` is what requests come from now on. */
  secured(raw: Socket | undefined, secure: Socket): void {
    const entry = raw === undefined ? undefined : this.#bySocket.get(raw);
    if (entry === undefined || raw?.destroyed === true) return void secure.destroy();
    clearTimeout(entry.handshake);
    entry.socket = secure;
    this.#bySocket.set(secure, entry);
    secure.once('close', () => this.#forget(entry));
  }

  of(socket: Socket): Connection | undefined {
    return this.#bySocket.get(socket);
  }

  /**
   * What becomes of a connection on which nothing goes either way. `longer`: its peer has not taken all of an answer, and is known:
   * a person who reads a long log by the page.
   */
  silent(socket: Socket): 'end' | 'wait' | 'longer' {
    const entry = this.#bySocket.get(socket);
    if (entry === undefined || entry.idle) return 'end';
    if (socket.writableLength === 0 && !socket.writableEnded) return 'wait';
    return this.#known.has(entry) ? 'longer' : 'end';
  }

  destroyAll(): void {
    for (const entries of [this.#speechless, this.#unknown, this.#known]) for (const entry of entries) entry.socket.destroy();
  }

  #know(entry: Entry): void {
    if (!this.#unknown.delete(entry)) return;
    this.#known.add(entry);
    if (this.#known.size <= KNOWN_CONNECTIONS_MAX) return;
    // Nobody is interrupted for a newcomer: an idle connection costs its client a new handshake, no more.
    const idle = [...this.#known].find((other) => other.idle);
    (idle ?? entry).socket.destroy();
  }

  #take(places: Places, entry: Entry, max: number): void {
    places.add(entry);
    const oldest = places.size > max ? places.oldest() : undefined;
    if (oldest !== undefined) this.#drop(oldest);
  }

  #forget(entry: Entry): void {
    clearTimeout(entry.handshake);
    this.#speechless.delete(entry);
    this.#unknown.delete(entry);
    this.#known.delete(entry);
  }

  #drop(entry: Entry): void {
    // At once: its 'close' comes only after connections that are being accepted now.
    this.#forget(entry);
    entry.socket.destroy();
  }

  #dropUntaken(): void {
    let bytes = 0;
    let worst: Entry | undefined;
    for (const entry of this.#unknown) {
      const { writableLength } = entry.socket;
      bytes += writableLength;
      if (writableLength > (worst?.socket.writableLength ?? 0)) worst = entry;
    }
    if (bytes > UNTAKEN_BYTES_MAX && worst !== undefined) this.#drop(worst);
  }
}

/** Connections by peer, the oldest first. */
class Places {
  readonly #byPeer = new Map<string, Set<Entry>>();
  size = 0;

  add(entry: Entry): void {
    const siblings = this.#byPeer.get(entry.peer) ?? new Set();
    this.#byPeer.set(entry.peer, siblings.add(entry));
    this.size += 1;
  }
  /** False: it is not here. */
  delete(entry: Entry): boolean {
    const siblings = this.#byPeer.get(entry.peer);
    if (siblings?.delete(entry) !== true) return false;
    this.size -= 1;
    if (siblings.size === 0) this.#byPeer.delete(entry.peer);
    return true;
  }
  /** The oldest of the peer that has most of them. */
  oldest(): Entry | undefined {
    let most = new Set<Entry>();
    for (const siblings of this.#byPeer.values()) if (siblings.size > most.size) most = siblings;
    const [oldest] = most;
    return oldest;
  }
  *[Symbol.iterator](): Iterator<Entry> {
    for (const siblings of this.#byPeer.values()) yield* siblings;
  }
}

/** Connections that are counted together: those of an IPv4 address, or of the network of 64 bits that one site has of IPv6. */
function peerOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined || !address.includes(':')) return mapped ?? address;
  const [head = '', tail] = (address.split('%')[0] ?? '').toLowerCase().split('::');
  const groups = head === '' ? [] : head.split(':');
  const behind = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - behind.length);
  return [...groups, ...Array.from({ length: zeros }, () => '0'), ...behind].slice(0, 4).join(':');
}
