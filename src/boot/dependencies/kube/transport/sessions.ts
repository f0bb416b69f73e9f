/**
 * HTTP/2 to one API server: the requests and watches of all clients of a process share few connections. A connection of its own
 * costs a client some 100 KiB here, as much at the server, and a handshake; a stream costs a few.
 */

import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import { PassThrough, pipeline, type Readable } from 'node:stream';
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
const SUSPECT_TIMEOUT_MS = 5_000;
const CONNECT_TIMEOUT_MS = 30_000;
/** What the server may send before it is read: of one stream, and of all of a connection. */
const STREAM_WINDOW_BYTES = 2 ** 20;
const SESSION_WINDOW_BYTES = 16 * 2 ** 20;
/** MiB of headers and data that Node keeps for a connection. Its default of 10 is too little for hundreds of streams. */
const SESSION_MEMORY_MIB = 256;

interface Session {
  h2: ClientHttp2Session;
  generation: number;
  streams: number;
  /** Rejects where no connection came about. */
  ready: Promise<void>;
  pings: unknown;
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
    const session = this.#roomy(loaded);
    session.streams += 1;
    try {
      await within(session.ready, out.signal);
    } catch (error) {
      session.streams -= 1;
      return { answer: null, error: asError(error), stale: false };
    }
    return this.#sent(session, out);
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
      const stream = session.h2.request({ ':method': method, ':path': path, ...headers }, { endStream: body === undefined, signal });
      stream.once('response', (answered) =>
        resolve({ answer: { code: Number(answered[':status'] ?? 0), headers: answered, body: bodyOf(stream) } }),
      );
      const refused = (): boolean => stream.rstCode === constants.NGHTTP2_REFUSED_STREAM;
      stream.on('error', (error) => resolve({ answer: null, error, stale: refused() && !signal.aborted }));
      stream.once('close', () => {
        session.streams -= 1;
        resolve({ answer: null, error: coded('ECONNRESET', 'the connection ended before the answer'), stale: refused() });
      });
      if (body !== undefined) stream.end(body);
    } catch (error) {
      session.streams -= 1;
      // It was closed since it was chosen.
      resolve({ answer: null, error: asError(error), stale: true });
    }
    return promise;
  }

  /** Fills connections one by one, so that few hold all. */
  #roomy(loaded: Loaded): Session {
    for (const session of this.#live) {
      const { h2, generation, streams } = session;
      if (generation < loaded.generation) h2.close();
      else if (!h2.closed && !h2.destroyed && streams < limitOf(h2)) return session;
    }
    return this.#opened(loaded);
  }

  #opened(loaded: Loaded): Session {
    const { config, clock } = this.#o;
    const { server, tlsServerName, insecure } = config;
    const h2 = connect(server.origin, {
      secureContext: loaded.context,
      rejectUnauthorized: !insecure,
      ...(tlsServerName === null ? {} : { servername: tlsServerName }),
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
      maxSessionMemory: SESSION_MEMORY_MIB,
    });
    const { promise: ready, resolve, reject } = Promise.withResolvers<void>();
    ready.catch(() => {});
    const late = clock.setTimeout(
      () => h2.destroy(coded('ETIMEDOUT', `no connection within ${CONNECT_TIMEOUT_MS} ms`)),
      CONNECT_TIMEOUT_MS,
    );
    const session: Session = { h2, generation: loaded.generation, streams: 0, ready, pings: undefined };
    h2.once('connect', () => {
      clock.clearTimeout(late);
      h2.setLocalWindowSize(SESSION_WINDOW_BYTES);
      this.#pingOn(session);
      resolve();
    });
    h2.on('error', reject);
    h2.once('close', () => {
      clock.clearTimeout(late);
      clock.clearTimeout(session.pings);
      this.#live.delete(session);
      reject(coded('ECONNRESET', 'the connection ended'));
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

  #ping({ h2 }: Session, timeoutMs: number): void {
    if (h2.destroyed || h2.connecting) return;
    const { clock } = this.#o;
    const gone = clock.setTimeout(() => h2.destroy(coded('ETIMEDOUT', `no answer to a ping within ${timeoutMs} ms`)), timeoutMs);
    h2.ping(() => clock.clearTimeout(gone));
  }
}

/** A stream of HTTP/2 says `closed` as soon as its peer has ended, and whoever iterates over it then takes that for a cut. */
function bodyOf(stream: ClientHttp2Stream): Readable {
  return pipeline(stream, new PassThrough(), () => {});
}

function limitOf(h2: ClientHttp2Session): number {
  return Math.min(STREAMS_MAX, h2.remoteSettings?.maxConcurrentStreams ?? STREAMS_AT_FIRST);
}

function coded(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

async function within(ready: Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const gaveUp = Promise.withResolvers<never>();
  const giveUp = (): void => gaveUp.reject(signal.reason);
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    await Promise.race([ready, gaveUp.promise]);
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}
