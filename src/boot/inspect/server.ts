/**
 * The inspection server: the page, its feed, and the two xstate inspectors' protocols, all on one loopback port. It is no
 * actor: it shows the tree from outside, also while the edge layer restarts. Reading needs nothing but this machine;
 * acting needs fault injection to be on and the token, which only the admin socket (0600) tells.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { Bridge } from '../../inspect/bridges/bridge.ts';
import { VIEWER_FRAME_CHARS_MAX } from '../../inspect/feed/frames.ts';
import { Hub, type Joined, type Viewer } from '../../inspect/feed/hub.ts';
import type { Inspected } from '../../inspect/source.ts';
import { decodeScenario, SCENARIO_BYTES_MAX, scenarioErrorText } from '../../machines/faults/decode.ts';
import type { InjectAnswer, InjectorEvent } from '../../machines/faults/live.ts';
import { addr } from '../../machines/protocol.ts';
import { messageOf } from '../errors.ts';
import type { PageAddress } from '../steps/context.ts';
import { type PageFile, pageFiles } from './files.ts';
import { refusalOf, SECURITY_HEADERS } from './guard.ts';
import { hostFigures } from './host.ts';

/** A taken port is tried again this often. */
const LISTEN_AGAIN_MS = 5_000;
const ASK_TIMEOUT_MS = 5_000;
/** Frames from viewers are requests of some hundred bytes. */
const FRAME_BYTES_MAX = VIEWER_FRAME_CHARS_MAX * 4;
/** Connections at once, page files included; a browser opens up to 6. */
const CONNECTIONS_MAX = 128;

export interface InspectorServer extends Disposable {
  readonly hub: Hub;
}

/** Listens, now or once the port is free. `onListen` is told the address. */
export async function serveInspector(node: Inspected, at: string, onListen: (page: PageAddress) => void): Promise<InspectorServer> {
  const inspector = new Inspector(node, pageFiles());
  const cut = at.lastIndexOf(':');
  const host = at.slice(0, cut).replace(/^\[|\]$/g, '');
  await inspector.listen({ host, port: Number(at.slice(cut + 1)) }, onListen);
  return inspector;
}

class Inspector implements InspectorServer {
  readonly hub: Hub;
  readonly #node: Inspected;
  readonly #files: ReadonlyMap<string, PageFile>;
  readonly #bridges: Readonly<Record<string, Bridge>>;
  readonly #http: Server;
  readonly #ws = new WebSocketServer({ noServer: true, maxPayload: FRAME_BYTES_MAX, perMessageDeflate: false, clientTracking: false });
  readonly #sockets = new Set<Socket>();
  readonly #token = randomBytes(24).toString('base64url');
  #again: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(node: Inspected, files: ReadonlyMap<string, PageFile>) {
    this.#node = node;
    this.#files = files;
    this.hub = new Hub(node, (onFrame) => hostFigures(onFrame, node.log));
    this.#bridges = { '/stately': new Bridge('stately', node), '/classic': new Bridge('classic', node) };
    this.#http = createServer((req, res) => {
      this.#answer(req, res).catch((error: unknown) => {
        node.log.warn({ err: messageOf(error) }, 'inspection page: a request was not answered');
        res.destroy();
      });
    });
    this.#http.maxConnections = CONNECTIONS_MAX;
    this.#http.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    this.#http.on('upgrade', (req, socket, head) => this.#upgrade(req, socket, head));
  }

  listen(at: { host: string; port: number }, onListen: (page: PageAddress) => void): Promise<void> {
    return new Promise((resolve) => {
      const attempt = (): void => {
        this.#http.once('error', (error: NodeJS.ErrnoException) => {
          this.#node.log.error(
            { flag: '--actorlet-inspect', err: error.message },
            `inspection page: cannot listen on ${at.host}:${at.port}; it is tried again until it works`,
          );
          if (!this.#closed) this.#again = setTimeout(attempt, LISTEN_AGAIN_MS).unref();
          resolve();
        });
        this.#http.listen(at.port, at.host, () => {
          this.#http.removeAllListeners('error');
          this.#http.on('error', (error) => this.#node.log.warn({ err: error.message }, 'inspection page: the server failed'));
          const { port } = this.#http.address() as AddressInfo;
          const host = at.host.includes(':') ? `[${at.host}]` : at.host;
          onListen({ url: `http://${host}:${port}/`, token: this.#token });
          resolve();
        });
      };
      attempt();
    });
  }

  // ---- requests ------------------------------------------------------------------------------------------------------

  async #answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const refused = refusalOf(req.headers, { websocket: false });
    if (refused !== null) return reply(res, 403, `403: ${refused}\n`);
    const path = (req.url ?? '/').split('?', 1)[0] ?? '/';
    if (req.method === 'POST' && path === '/api/inject') return this.#inject(req, res);
    if (req.method !== 'GET' && req.method !== 'HEAD') return reply(res, 405, '405: Method Not Allowed\n');
    if (path === '/api/figures') {
      const figures = { feed: this.hub.figures, stately: this.#bridges['/stately']?.figures, classic: this.#bridges['/classic']?.figures };
      return reply(res, 200, JSON.stringify(figures), { 'content-type': 'application/json' });
    }
    const page = this.#files.get(path);
    if (page === undefined) {
      const unbuilt = path === '/' && this.#files.size === 0;
      return reply(res, unbuilt ? 503 : 404, unbuilt ? '503: the page was not built: npm run build\n' : '404: Page Not Found\n');
    }
    const body = await readFile(page.file);
    const cache = page.hashed ? 'public, max-age=31536000, immutable' : 'no-cache';
    reply(res, 200, req.method === 'HEAD' ? '' : body, { 'content-type': page.type, 'cache-control': cache });
  }

  /** A fault scenario, as `POST /inject` of the admin socket takes it; killing or slowing one actor is one, too. */
  async #inject(req: IncomingMessage, res: ServerResponse): Promise<void> {
    if (!this.#node.faultInjection) {
      return reply(res, 403, '403: fault injection is off on this node; it is allowed by --actorlet-fault-injection\n');
    }
    if (req.headers.origin === undefined || !this.#knowsToken(req.headers['x-actorlet-token'])) {
      return reply(res, 403, '403: open the page with `actorctl ui`, which gives it the right to act\n');
    }
    const body = await read(req, SCENARIO_BYTES_MAX);
    if (body === null) return reply(res, 413, `413: a scenario has at most ${SCENARIO_BYTES_MAX} bytes\n`);
    const decoded = decodeScenario(body, 'live');
    if (!decoded.ok) return reply(res, 400, `400: ${decoded.errors.map((e) => scenarioErrorText('scenario', e)).join('\n')}\n`);
    const { scenario } = decoded;
    const answer = await this.#node.tree.registry.ask<InjectorEvent, InjectAnswer>(
      addr.injector,
      (replyTo) => ({ type: 'faults.inject', scenario, replyTo }),
      { timeoutMs: ASK_TIMEOUT_MS },
    );
    if (answer.kind !== 'reply') return reply(res, 503, `503: the fault injector does not answer: ${answer.reason}\n`);
    const { value } = answer;
    if (!value.ok) return reply(res, value.status, `${value.status}: ${value.message}\n`);
    reply(res, 200, JSON.stringify(value), { 'content-type': 'application/json' });
  }

  #knowsToken(given: string | string[] | undefined): boolean {
    const bytes = Buffer.from(typeof given === 'string' ? given : '');
    const own = Buffer.from(this.#token);
    return bytes.length === own.length && timingSafeEqual(bytes, own);
  }

  // ---- WebSockets ----------------------------------------------------------------------------------------------------

  #upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy());
    const path = (req.url ?? '/').split('?', 1)[0] ?? '/';
    const target = path === '/feed' ? this.hub : this.#bridges[path];
    const refused = refusalOf(req.headers, { websocket: true });
    if (refused !== null || target === undefined) {
      const status = refused === null ? '404 Not Found' : '403 Forbidden';
      socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    this.#ws.handleUpgrade(req, socket, head, (ws) => this.#attach(ws, target));
  }

  #attach(ws: WebSocket, target: { join(viewer: Viewer): Joined | null }): void {
    ws.on('error', () => ws.terminate());
    const joined = target.join({
      backlogBytes: () => ws.bufferedAmount,
      send: (text) => ws.send(text, () => undefined),
      close: (why) => {
        ws.close(1001, why);
        // One that does not read does not see the farewell either.
        ws.terminate();
      },
    });
    if (joined === null) {
      ws.close(1013, 'too many viewers');
      return;
    }
    ws.on('message', (data, binary) => joined.message(binary ? '' : String(data)));
    ws.on('close', () => joined.leave());
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    if (this.#again !== null) clearTimeout(this.#again);
    this.hub.close();
    for (const bridge of Object.values(this.#bridges)) bridge.close();
    this.#http.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

function reply(res: ServerResponse, status: number, body: string | Buffer, headers: Readonly<Record<string, string>> = {}): void {
  res.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store', ...SECURITY_HEADERS, ...headers });
  res.end(body);
}

/** Null: too large. */
async function read(req: IncomingMessage, bytesMax: number): Promise<string | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of req as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > bytesMax) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
