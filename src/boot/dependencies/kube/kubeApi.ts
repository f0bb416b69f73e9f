/**
 * The real KubeApi port: JSON over HTTPS with keep-alive, one pool of connections and one rate limit per class. The
 * server is verified, unless the kubeconfig says otherwise. Credentials are read again when their files change (`credentials.ts`).
 */

import type { Agent } from 'node:https';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import {
  KUBE_CLASSES,
  type KubeClass,
  type KubeFailure,
  type KubeRequest,
  type KubeResult,
  PATCH_TYPES,
  statusFailure,
} from '../../../machines/kube/request.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import type { KubeApi, KubeCallOptions, KubeWatch } from '../../../ports/kube.ts';
import type { Clock, Logger, Metrics } from '../../../ports/ports.ts';
import { agentThrough, proxyOf } from '../net/proxy.ts';
import { type ClientMetrics, clientMetrics } from './clientMetrics.ts';
import { type Credentials, createCredentials, type Loaded } from './credentials.ts';
import { Deadline } from './deadline.ts';
import type { KubeConfigFile } from './kubeconfig.ts';
import { watchLines } from './lines.ts';
import { createRateLimiter, type RateLimiter, UNLIMITED } from './rateLimit.ts';
import { whyRefused, whyUnverified } from './refusal.ts';
import { createSlots, type Slots } from './slots.ts';
import { type Answer, exchangeOn } from './transport/exchange.ts';
import type { Sessions } from './transport/sessions.ts';

export interface KubeApiOptions {
  config: KubeConfigFile;
  clock: Clock;
  log: Logger;
  /** Sent with every request. */
  userAgent: string;
  kube: { qps: number; burst: number };
  event: { qps: number; burst: number };
  /** Requests are counted in it; none by default. */
  metrics?: Metrics;
  /** Shared with other clients of the same kubeconfig; default: read for this one. */
  credentials?: Credentials;
  /** HTTP/2, shared with other clients of the same kubeconfig; default: connections of its own. A proxy is not gone through. */
  sessions?: Sessions;
  /** Requests are made in the name of this user; who the credentials are of must be allowed to. */
  impersonate?: { user: string; group: string };
  /** See {@link IDLE_MS}. */
  idleMs?: number;
  /** For a credential program, and where `HTTPS_PROXY` stands. */
  env?: Readonly<Record<string, string | undefined>>;
}

/** A larger answer is refused: lists are asked for in pages. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;
/** Connections of one class; watches hold theirs for as long as they last. */
const SOCKETS_MAX = 256;
/** Requests of one class that are under way at once: each needs a connection of its own, and its handshake costs both sides. */
const REQUESTS_MAX = 8;
/** Connections of one class that are kept for later. */
const FREE_SOCKETS_KEPT = 4;
/** What a burst needs beyond them stays until nothing has needed it for so long: opened anew for each wave, it was a handshake a pod. */
const IDLE_MS = 5_000;
/** TCP asks an idle peer for life after this; a dead one is noticed within minutes even where nothing is sent. */
const TCP_KEEP_ALIVE_MS = 15_000;

interface Pool {
  agent: Agent;
  generation: number;
  /** Streams in progress: they end when the credentials they were opened with are replaced. */
  watches: Set<Readable>;
}

export function createKubeApi(o: KubeApiOptions): KubeApi {
  return new HttpsKubeApi(o);
}

class HttpsKubeApi implements KubeApi {
  readonly server: string;
  readonly #o: KubeApiOptions;
  readonly #credentials: Credentials;
  readonly #proxy: URL | null;
  readonly #limits: Record<KubeClass, RateLimiter>;
  readonly #slots: Record<KubeClass, Slots> = {
    kube: createSlots(REQUESTS_MAX),
    event: createSlots(REQUESTS_MAX),
    heartbeat: createSlots(REQUESTS_MAX),
  };
  readonly #pools = new Map<KubeClass, Pool>();
  readonly #metrics: ClientMetrics | undefined;
  #closed = false;
  /** What the newest request was sent with. */
  #sentWith: Loaded | undefined;

  constructor(o: KubeApiOptions) {
    this.#o = o;
    this.server = o.config.server.origin;
    this.#proxy = proxyOf(o.config.server, o.config.proxy, o.env ?? {});
    if (o.config.insecure)
      o.log.warn(
        { server: this.server, kubeconfig: o.config.path },
        'insecure-skip-tls-verify: any server can take the place of this API server',
      );
    this.#credentials = o.credentials ?? createCredentials(o.config, o);
    this.#metrics = o.metrics === undefined ? undefined : clientMetrics(o.metrics, o.config.server.host);
    this.#limits = {
      kube: createRateLimiter({ ...o.kube, clock: o.clock }),
      event: createRateLimiter({ ...o.event, clock: o.clock }),
      heartbeat: UNLIMITED,
    };
  }

  async request(request: KubeRequest, opts: KubeCallOptions): Promise<KubeResult> {
    const deadline = new Deadline(this.#o.clock, opts);
    const of = opts.class ?? 'kube';
    let release: (() => void) | undefined;
    try {
      await this.#turn(of, request.verb, deadline.signal);
      release = await this.#slots[of].take(deadline.signal);
      // Only reads are sent once more on a connection that the server had closed meanwhile: a write may have been heard.
      let sent = await this.#send(request, opts, deadline);
      if (sent.stale && request.verb === 'GET') sent = await this.#again(null, request, opts, deadline);
      sent = await this.#onceMore(sent, request, opts, deadline);
      if (sent.answer === null) return { ok: false, failure: sent.failure };
      return await this.#answer(request, sent.answer, deadline);
    } catch (error) {
      return { ok: false, failure: deadline.failure(error, false) };
    } finally {
      release?.();
      deadline.end();
    }
  }

  async watch(request: Pick<KubeRequest, 'path' | 'query'>, opts: KubeCallOptions): Promise<KubeWatch> {
    const deadline = new Deadline(this.#o.clock, opts);
    const full: KubeRequest = { verb: 'GET', path: request.path, query: { ...request.query, watch: 'true' } };
    let watching = false;
    try {
      const of = opts.class ?? 'kube';
      await this.#turn(of, full.verb, deadline.signal);
      let sent = await this.#send(full, opts, deadline);
      if (sent.stale) sent = await this.#again(null, full, opts, deadline);
      sent = await this.#onceMore(sent, full, opts, deadline);
      if (sent.answer === null) return { ok: false, failure: sent.failure };
      const { code, body } = sent.answer;
      if (code !== 200) {
        const answer = await this.#answer(full, sent.answer, deadline);
        return answer.ok ? { ok: false, failure: statusFailure(answer.body, answer.code) } : answer;
      }
      const pool = this.#pools.get(of);
      pool?.watches.add(body);
      // From here on only the caller's signal ends it.
      deadline.disarm();
      watching = true;
      return {
        ok: true,
        lines: watchLines(body, () => {
          pool?.watches.delete(body);
          deadline.end();
        }),
      };
    } catch (error) {
      return { ok: false, failure: deadline.failure(error, false) };
    } finally {
      if (!watching) deadline.end();
    }
  }

  closeConnections(of: KubeClass): void {
    const { sessions } = this.#o;
    // Others' calls are on these connections, too: one that is dead ends, and its watches with it.
    if (sessions !== undefined && !this.#closed) {
      sessions.suspect();
      return;
    }
    const pool = this.#pools.get(of);
    this.#pools.delete(of);
    pool?.agent.destroy();
    if (sessions === undefined) return;
    for (const body of pool?.watches ?? []) body.destroy(new Error('this client is closed'));
  }

  async reload(): Promise<void> {
    this.#credentials.suspect();
    try {
      this.#retireBut((await this.#credentials.current()).generation);
    } catch (error) {
      this.#o.log.warn({}, messageOf(error));
    }
  }

  close(): void {
    this.#closed = true;
    for (const of of KUBE_CLASSES) this.closeConnections(of);
  }

  #pool(of: KubeClass, loaded: Loaded): Pool {
    const present = this.#pools.get(of);
    if (present !== undefined && present.generation >= loaded.generation) return present;
    const { config } = this.#o;
    // Whichever class notices first: connections of every class go that were made with what was replaced.
    this.#retireBut(loaded.generation);
    const pool: Pool = {
      agent: agentThrough(this.#proxy, {
        secureContext: loaded.context,
        keepAlive: true,
        keepAliveMsecs: TCP_KEEP_ALIVE_MS,
        maxSockets: SOCKETS_MAX,
        maxFreeSockets: REQUESTS_MAX,
        rejectUnauthorized: !config.insecure,
        ...(config.tlsServerName === null ? {} : { servername: config.tlsServerName }),
      }),
      generation: loaded.generation,
      watches: new Set(),
    };
    // The agent's own listener comes first: it takes back the time of a connection that was used again, and ends one that is idle for it.
    pool.agent.on('free', (socket: Socket) => {
      const idle = Object.values(pool.agent.freeSockets).reduce((sum, sockets) => sum + (sockets?.length ?? 0), 0);
      if (idle > FREE_SOCKETS_KEPT) socket.setTimeout(this.#o.idleMs ?? IDLE_MS);
    });
    this.#pools.set(of, pool);
    return pool;
  }

  #retireBut(generation: number): void {
    for (const [of, pool] of this.#pools) {
      if (pool.generation >= generation) continue;
      this.#pools.delete(of);
      retire(pool);
    }
  }

  /** Not carried out for want of credentials that a program can renew: sent once more with new ones. */
  async #onceMore(sent: Sent, request: KubeRequest, opts: KubeCallOptions, deadline: Deadline): Promise<Sent> {
    if (sent.answer?.code !== 401 || !this.#credentials.suspect({ refused: true })) return sent;
    sent.answer.body.resume();
    return this.#again(401, request, opts, deadline);
  }

  /** `code`: of the answer, null where there was none. */
  #again(code: number | null, request: KubeRequest, opts: KubeCallOptions, deadline: Deadline): Promise<Sent> {
    this.#metrics?.retried(request.verb, code);
    return this.#send(request, opts, deadline);
  }

  /** Under the limit of its class; the heartbeat has none. */
  async #turn(of: KubeClass, verb: string, signal: AbortSignal): Promise<void> {
    const limit = this.#limits[of];
    const beganMs = this.#o.clock.monoMs();
    await limit.acquire(signal);
    if (limit !== UNLIMITED) this.#metrics?.limited(verb, (this.#o.clock.monoMs() - beganMs) / 1000);
  }

  /** A program that gives credentials may take longer than the call has. */
  async #loaded(signal: AbortSignal): Promise<Loaded> {
    signal.throwIfAborted();
    const gaveUp = Promise.withResolvers<never>();
    const giveUp = (): void => gaveUp.reject(signal.reason);
    signal.addEventListener('abort', giveUp, { once: true });
    try {
      return await Promise.race([this.#credentials.current(), gaveUp.promise]);
    } catch (error) {
      if (signal.aborted) throw error;
      throw Object.assign(error instanceof Error ? error : new Error(String(error)), { code: 'NoCredentials' });
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  async #send(request: KubeRequest, opts: KubeCallOptions, deadline: Deadline): Promise<Sent> {
    if (this.#closed) throw Object.assign(new Error('this client is closed'), { code: 'ECLOSED' });
    const loaded = await this.#loaded(deadline.signal);
    this.#sentWith = loaded;
    const { agent } = this.#pool(opts.class ?? 'kube', loaded);
    const { config, impersonate } = this.#o;
    const { server } = config;
    const base = server.pathname.replace(/\/+$/, '');
    const query = request.query === undefined ? '' : `?${new URLSearchParams(request.query).toString()}`;
    const body = request.body === undefined ? undefined : Buffer.from(JSON.stringify(request.body));
    const headers: Record<string, string> = {
      accept: 'application/json',
      'user-agent': this.#o.userAgent,
      ...(impersonate === undefined ? {} : { 'impersonate-user': impersonate.user, 'impersonate-group': impersonate.group }),
      ...(loaded.token === '' ? {} : { authorization: `Bearer ${loaded.token}` }),
      ...(body === undefined
        ? {}
        : {
            'content-type': request.patchType === undefined ? 'application/json' : PATCH_TYPES[request.patchType],
            'content-length': String(body.length),
          }),
    };
    const ended = this.#metrics?.began(request.verb, { bodyBytes: body?.length ?? 0, nowMs: () => this.#o.clock.monoMs() });
    const urgent = opts.class === 'heartbeat';
    const out = { method: request.verb, path: `${base}${request.path}${query}`, headers, body, signal: deadline.signal, urgent };
    const { sessions } = this.#o;
    const got = await (sessions === undefined ? exchangeOn(agent, server, out) : sessions.send(loaded, out));
    ended?.(got.answer?.code ?? null);
    if (got.answer !== null) return { ...got, stale: false };
    const failure = deadline.failure(got.error, true);
    const why = whyUnverified(failure.reason, config) ?? viaProxy(this.#proxy, failure.message);
    return { answer: null, stale: got.stale, failure: { ...failure, message: why } };
  }

  async #answer(request: KubeRequest, { code, headers, body: from }: Answer, deadline: Deadline): Promise<KubeResult> {
    let text: string;
    try {
      const bytes = await readBody(from);
      this.#metrics?.answered(request.verb, bytes.length);
      text = bytes.toString('utf8');
    } catch (error) {
      // The status line came, so the request was carried out; only its answer is lost.
      return { ok: false, failure: deadline.failure(error, true) };
    }
    if (code === 401) this.#credentials.suspect();
    let body: unknown;
    try {
      body = text === '' ? undefined : JSON.parse(text);
    } catch {
      const good = code >= 200 && code < 300;
      // Health checks and the like answer in plain text.
      if (good && !/json/.test(String(headers['content-type'] ?? ''))) return { ok: true, code, body: text };
      if (good) {
        const message = `${request.verb} ${request.path} was answered with what is not JSON`;
        return { ok: false, failure: { code: 0, reason: 'MalformedAnswer', message, outcome: 'unknown' } };
      }
      body = undefined;
    }
    if (code >= 200 && code < 300) return { ok: true, code, body };
    const failure = statusFailure(body, code, retryAfterMs(headers['retry-after']));
    if (code !== 401 || this.#sentWith === undefined) return { ok: false, failure };
    const why = whyRefused(this.#sentWith, this.#o.config, this.#o.clock.wallMs());
    return { ok: false, failure: { ...failure, message: `${failure.message}; ${why}` } };
  }
}

/** Without its user and password. */
function viaProxy(proxy: URL | null, message: string): string {
  return proxy === null ? message : `through the proxy ${proxy.origin}: ${message}`;
}

type Sent = { answer: Answer; stale: false } | { answer: null; stale: boolean; failure: KubeFailure };

/** Idle connections go at once, streams end and are opened anew; calls in flight are left to finish. */
function retire(pool: Pool): void {
  for (const sockets of Object.values(pool.agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
  pool.agent.maxFreeSockets = 0;
  for (const body of pool.watches) body.destroy(new Error('the credentials were replaced'));
}

async function readBody(body: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > ANSWER_BYTES_MAX) {
      body.destroy();
      throw Object.assign(new Error(`the answer is larger than ${ANSWER_BYTES_MAX} bytes`), { code: 'EFBIG' });
    }
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

function retryAfterMs(header: string | undefined): number | undefined {
  const seconds = header === undefined ? Number.NaN : Number(header);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : undefined;
}
