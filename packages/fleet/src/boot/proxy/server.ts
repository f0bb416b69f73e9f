/** The proxy in front of an API server: HTTP/2 and HTTP/1.1 on one port of loopback, with TLS. */
import { createSecureServer, type Http2SecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { finished } from 'node:stream/promises';
import type { TLSSocket } from 'node:tls';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { Program } from '../../plane/programs.ts';
import type { ApiCalls } from '../../proxy/calls.ts';
import { type ApiRequest, apiRequest, quotedObject } from '../../proxy/request.ts';
import type { ApiTrouble, Refusal, Verdict } from '../../proxy/trouble.ts';
import { answerOf, ask, away, bodyOf, cut, head, isGone, type Req, type Res, refuse, sendHead, staleUrl, type Way } from './exchange.ts';
import { firstOf } from './objects.ts';
import { upgrade } from './upgrade.ts';
import type { Upstream } from './upstream.ts';
import { WatchStream } from './watchStream.ts';

export const LOOPBACK = '127.0.0.1';
const CONNECTIONS_MAX = 2_000;
const STREAMS_MAX = 1_000;
/** Of one connection, in MiB: what its streams hold. */
const SESSION_MEMORY_MAX = 64;
/** Clients of client-go take a connection that was idle for up to 90 s. */
const KEEP_ALIVE_MS = 120_000;
const OBJECT_BYTES_MAX = 8 * 1024 * 1024;
const AGENT_LENGTH_MAX = 512;

export interface ProxyOptions {
  upstream: Upstream;
  trouble: ApiTrouble;
  calls: ApiCalls;
  tls: { cert: string; key: string };
  /** 0: a free one. */
  port: number;
  clock: Clock;
}

const STRANGER: Refusal = {
  code: 401,
  reason: 'Unauthorized',
  message:
    'this proxy passes tokens on, and the client certificate of its own kubeconfig; the one that was shown is another. Take the kubeconfig that the proxy wrote, or a token',
};

/** Listens, for as long as it is meant to. */
export class ApiProxy implements Program {
  readonly name = 'server';
  on = false;
  /** It stays the same when the server begins anew. */
  port: number;
  readonly #o: ProxyOptions;
  #server: Http2SecureServer | undefined;
  #broken = Promise.withResolvers<never>();
  readonly #sockets = new Set<TLSSocket>();

  constructor(o: ProxyOptions) {
    this.#o = o;
    this.port = o.port;
  }

  note({ on = this.on }: { on?: boolean }): void {
    this.on = on;
  }

  async start(): Promise<void> {
    await this.end();
    const server = createSecureServer({
      ...this.#o.tls,
      ...{ minVersion: 'TLSv1.2', requestCert: true, rejectUnauthorized: false },
      ...{ allowHTTP1: true, maxSessionMemory: SESSION_MEMORY_MAX, settings: { maxConcurrentStreams: STREAMS_MAX } },
    });
    this.#broken = Promise.withResolvers<never>();
    this.#broken.promise.catch(() => {});
    server.maxConnections = CONNECTIONS_MAX;
    Object.assign(server, { keepAliveTimeout: KEEP_ALIVE_MS });
    server.on('secureConnection', (socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    // One bad client is that client's trouble.
    server.on('session', (session) => session.on('error', () => session.destroy()));
    server.on('tlsClientError', (_, socket) => socket.destroy());
    server.on('clientError', (_, socket) => socket.destroy());
    server.on('request', (req, res) => void this.#serve(req, res));
    server.on('upgrade', (req, socket, rest) => void upgrade({ req, socket: socket as TLSSocket, rest }, this.#o));
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error) => reject(new Error(`the proxy cannot listen on ${LOOPBACK}:${this.port}: ${messageOf(error)}`)));
      server.listen(this.port, LOOPBACK, resolve);
    });
    server.on('error', (error) => this.#broken.reject(error));
    this.port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  fails(): Promise<never> {
    return this.#broken.promise;
  }

  async end(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async #serve(req: Req, res: Res): Promise<void> {
    for (const it of [req, res]) it.on('error', () => cut(res));
    try {
      await this.#carry(req, res);
    } catch (error) {
      if (res.headersSent) cut(res);
      else refuse(req, res, away(error));
    }
  }

  async #carry(req: Req, res: Res): Promise<void> {
    const { upstream, trouble, calls } = this.#o;
    const url = req.url ?? '';
    if (!url.startsWith('/')) return refuse(req, res, { code: 400, reason: 'BadRequest', message: 'the path must begin with /' });
    const { user, agent } = await upstream.client(req.socket as TLSSocket, req.headers.authorization);
    if (agent === null) return refuse(req, res, STRANGER);
    const userAgent = String(req.headers['user-agent'] ?? '').slice(0, AGENT_LENGTH_MAX);
    const request = apiRequest({ method: req.method ?? '', url, userAgent, user });
    calls.count(request);
    const verdict = trouble.judge(request);
    if (verdict.delayMs !== undefined) await this.#later(res, verdict.delayMs);
    if (isGone(res)) return;
    if (verdict.refusal !== undefined) return refuse(req, res, verdict.refusal);
    const way = { upstream, agent };
    if (verdict.staleVersion !== undefined) return this.#stale({ req, res, request, way }, verdict.staleVersion);
    await this.#forward({ req, res, request, way }, verdict);
  }

  /** Or until the client is gone. */
  #later(res: Res, ms: number): Promise<void> {
    const { clock } = this.#o;
    return new Promise((resolve) => {
      const timer = clock.setTimeout(resolve, ms);
      res.once('close', () => {
        clock.clearTimeout(timer);
        resolve();
      });
    });
  }

  async #forward({ req, res, request, way }: Carried, verdict: Verdict): Promise<void> {
    const from = await answerOf(req, res, ask(req, way));
    if (verdict.loses === true) {
      // The whole answer: until then the write may not be done.
      from.resume();
      await finished(from);
      return cut(res);
    }
    head(res, from);
    if (request.verb === 'watch' && from.statusCode === 200) {
      const { trouble, clock } = this.#o;
      new WatchStream({ request, from, res, trouble, clock }).run(verdict);
      return;
    }
    from.on('error', () => cut(res));
    from.pipe(res as NodeJS.WritableStream);
  }

  /** Of a version that the API server has forgotten, or that the client may not list, the answer is what there is now. */
  async #stale({ req, res, request, way }: Carried, version: string): Promise<void> {
    const { trouble } = this.#o;
    const up = ask(req, way, staleUrl(request, version));
    if (request.verb === 'get') up.removeHeader('accept-encoding');
    const from = await answerOf(req, res, up);
    if (from.statusCode !== 200) {
      from.resume();
      trouble.missed(request, `the API server does not give version ${version} (${from.statusCode}): answered as of now`);
      return this.#forward({ req, res, request, way }, {});
    }
    if (request.verb === 'list') {
      head(res, from);
      from.on('error', () => cut(res));
      from.pipe(res as NodeJS.WritableStream);
      return;
    }
    const type = from.headers['content-type'] ?? '';
    const object = firstOf(type, await bodyOf(from, OBJECT_BYTES_MAX));
    if (object === null) return refuse(req, res, { code: 404, reason: 'NotFound', message: `${quotedObject(request)} not found` });
    sendHead(res, 200, { 'content-type': type, 'content-length': object.length });
    res.end(object);
  }
}

interface Carried {
  req: Req;
  res: Res;
  request: ApiRequest;
  way: Way;
}
