/**
 * HTTP/2 to one API server: the requests and watches of all clients of a process share few connections. A connection of its own
 * costs a client some 100 KiB here, as much at the server, and a handshake; a stream costs a few.
 */

import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import { Readable } from 'node:stream';
import type { Clock } from '../../../../ports/ports.ts';
import type { Loaded } from '../credentials.ts';
import type { KubeConfigFile } from '../kubeconfig.ts';
import type { Exchanged, Outgoing } from './exchange.ts';

/** Streams of one connection; the API server itself allows 100 or 250, by its version and flags. */
const STREAMS_MAX = 200;
/** Until the server has said how many it allows. */
const STREAMS_AT_FIRST = 100;
/** As client-go: a server that says nothing to a ping is gone. */
const PING_EVERY_MS = 30_000;
const PING_TIMEOUT_MS = 15_000;
/** Asked for because calls failed. */
const SUSPECT_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 30_000;
/** What the server may send before it is read: of one stream, and of all of a connection. */
const STREAM_WINDOW_BYTES = 2 ** 20;
const SESSION_WINDOW_BYTES = 16 * 2 ** 20;
/** MiB of headers and data that Node keeps for a connection. Its default of 10 is too little for hundreds of streams. */
const SESSION_MEMORY_MIB = 256;

interface Session {
  h2: ClientHttp2Session;
  /** Only urgent calls are on it. */
  urgent: boolean;
  generation: number;
  /** Calls that chose it; those that wait until it stands too. */
  streams: number;
  /** Calls that are on it. */
  sent: number;
  /** Resolves with null once it stands and its server has said how many streams it allows; with why, where no connection came about. */
  ready: Promise<Error | null>;
  /** It stands. */
  open: boolean;
  pings: unknown;
  /** It is being asked whether it lives. */
  asked: boolean;
}

export interface SessionsOptions {
  config: KubeConfigFile;
  clock: Clock;
}

export class Sessions {
  readonly #o: SessionsOptions;
  readonly #live = new Set<Session>();

  constructor(o: SessionsOptions) {
    this.#o = o;
  }

  /** Connections there are now. */
  get count(): number {
    return this.#live.size;
  }

  /** Never rejects. */
  async send(loaded: Loaded, out: Outgoing): Promise<Exchanged> {
    for (;;) {
      const session = this.#roomy(loaded, out.urgent);
      session.streams += 1;
      const error = out.signal.aborted || !session.open ? await within(session.ready, out.signal) : null;
      // One stream more would wait for the end of another, which of a watch is never.
      if (error === null && (session.sent < limitOf(session.h2) || session.h2.destroyed)) return this.#sent(session, out);
      session.streams -= 1;
      if (error !== null) return { answer: null, error, stale: false };
    }
  }

  /** Calls failed: connections whose server does not answer end, and with them what is under way on them. */
  suspect(): void {
    for (const session of this.#live) this.#ping(session, SUSPECT_TIMEOUT_MS);
  }

  close(): void {
    for (const { h2 } of this.#live) h2.destroy();
  }

  #sent(session: Session, { method, path, headers, body, signal }: Outgoing): Promise<Exchanged> {
    const { promise, resolve } = Promise.withResolvers<Exchanged>();
    try {
      const stream = session.h2.request({ ':method': method, ':path': path, ...headers }, { endStream: body === undefined });
      let answer: AnswerBody | null = null;
      let failed: Error | undefined;
      session.sent += 1;
      // A dead peer keeps the stream from closing: the caller does not wait for that.
      const giveUp = (): void => {
        resolve({ answer: null, error: asError(signal.reason), stale: false });
        stream.close(constants.NGHTTP2_CANCEL);
        answer?.cut(CUT);
      };
      signal.addEventListener('abort', giveUp, { once: true });
      if (signal.aborted) giveUp();
      stream.once('response', (answered) => {
        answer = new AnswerBody(stream);
        resolve({ answer: { code: Number(answered[':status'] ?? 0), headers: answered, body: answer } });
      });
      stream.on('error', (error) => {
        failed = error;
      });
      stream.once('close', () => {
        session.streams -= 1;
        session.sent -= 1;
        signal.removeEventListener('abort', giveUp);
        answer?.cut(failed ?? CUT);
        resolve({ answer: null, error: failed ?? CUT, stale: stream.rstCode === constants.NGHTTP2_REFUSED_STREAM });
      });
      if (body !== undefined) stream.end(body);
    } catch (error) {
      session.streams -= 1;
      // It was closed since it was chosen.
      resolve({ answer: null, error: asError(error), stale: true });
    }
    return promise;
  }

  /** Fills connections one by one, so that few hold all. Urgent calls have their own: they wait behind no answer to others. */
  #roomy(loaded: Loaded, urgent: boolean): Session {
    for (const session of this.#live) {
      const { h2, generation, streams } = session;
      if (generation < loaded.generation) h2.close();
      else if (session.urgent === urgent && !h2.closed && !h2.destroyed && streams < limitOf(h2)) return session;
    }
    return this.#opened(loaded, urgent);
  }

  #opened(loaded: Loaded, urgent: boolean): Session {
    const { config, clock } = this.#o;
    const { server, tlsServerName, insecure } = config;
    const h2 = connect(server.origin, {
      secureContext: loaded.context,
      rejectUnauthorized: !insecure,
      ...(tlsServerName === null ? {} : { servername: tlsServerName }),
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
      maxSessionMemory: SESSION_MEMORY_MIB,
    });
    const { promise: ready, resolve } = Promise.withResolvers<Error | null>();
    const late = clock.setTimeout(
      () => h2.destroy(coded('ETIMEDOUT', `no connection within ${CONNECT_TIMEOUT_MS} ms`)),
      CONNECT_TIMEOUT_MS,
    );
    const session: Session = {
      ...{ h2, urgent, generation: loaded.generation, streams: 0, sent: 0, ready },
      ...{ open: false, pings: undefined, asked: false },
    };
    h2.once('connect', () => {
      // A busy process may give it up in the very turn in which it opens: its `close` follows.
      if (h2.destroyed) return;
      h2.setLocalWindowSize(SESSION_WINDOW_BYTES);
      this.#pingOn(session);
    });
    // The first frame of a server. Until then Node takes 100 streams for its limit.
    h2.once('remoteSettings', () => {
      clock.clearTimeout(late);
      if (h2.destroyed) return;
      session.open = true;
      resolve(null);
    });
    h2.on('error', resolve);
    h2.once('close', () => {
      clock.clearTimeout(late);
      clock.clearTimeout(session.pings);
      this.#live.delete(session);
      session.open = false;
      resolve(coded('ECONNRESET', 'the connection ended'));
    });
    this.#live.add(session);
    return session;
  }

  #pingOn(session: Session): void {
    session.pings = this.#o.clock.setTimeout(() => {
      this.#ping(session, PING_TIMEOUT_MS);
      this.#pingOn(session);
    }, PING_EVERY_MS);
  }

  /**
   * One question at a time: of a thousand clients, all may suspect it in the same moment. A peer that sends anything lives,
   * however late its answer comes behind all that. A busy process reads late: what has come meanwhile is read before it is judged.
   */
  #ping(session: Session, timeoutMs: number): void {
    const { h2 } = session;
    if (h2.destroyed || h2.connecting || session.asked) return;
    const { clock } = this.#o;
    session.asked = true;
    let heard = h2.socket.bytesRead;
    const judge = (): void => {
      if (!session.asked || h2.destroyed) return;
      const now = h2.socket.bytesRead;
      if (now === heard) h2.destroy(coded('ETIMEDOUT', `no answer to a ping within ${timeoutMs} ms`));
      else late = clock.setTimeout(() => setImmediate(judge), timeoutMs);
      heard = now;
    };
    let late = clock.setTimeout(() => setImmediate(judge), timeoutMs);
    h2.ping(() => {
      session.asked = false;
      clock.clearTimeout(late);
    });
  }
}

/** Where the stream does not say more. One for all: most calls end without an error, and to make one takes its stack. */
const CUT = coded('ECONNRESET', 'the connection ended before the answer');

/**
 * A stream of HTTP/2 says `closed` as soon as its peer has ended, and a reader that iterates over it takes that for a cut. A
 * `pipeline` into another stream costs several times what the bytes do.
 */
class AnswerBody extends Readable {
  readonly #stream: ClientHttp2Stream;
  #whole = false;

  constructor(stream: ClientHttp2Stream) {
    super();
    this.#stream = stream;
    stream.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) stream.pause();
    });
    stream.once('end', () => {
      // A stream that is reset ends, too.
      if (stream.aborted || (stream.rstCode ?? 0) !== 0) return;
      this.#whole = true;
      this.push(null);
    });
  }

  /** The stream has closed. */
  cut(why: Error): void {
    if (!this.#whole) this.destroy(why);
  }

  override _read(): void {
    this.#stream.resume();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.#whole) this.#stream.close(constants.NGHTTP2_CANCEL);
    done(error);
  }
}

function limitOf(h2: ClientHttp2Session): number {
  return Math.max(1, Math.min(STREAMS_MAX, h2.remoteSettings?.maxConcurrentStreams ?? STREAMS_AT_FIRST));
}

function coded(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** Waits for a connection. Null: the connection stands; else why not. */
async function within(ready: Promise<Error | null>, signal: AbortSignal): Promise<Error | null> {
  if (signal.aborted) return asError(signal.reason);
  const { promise, resolve } = Promise.withResolvers<Error>();
  const giveUp = (): void => resolve(asError(signal.reason));
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    return await Promise.race([ready, promise]);
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}
