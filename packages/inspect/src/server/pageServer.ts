/**
 * The server of the inspection page: its files and its WebSockets, on one loopback port. What is shown, a running daemon or
 * a recording, is given to it.
 */
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Logger } from '@actorlet/kubelet/ports/ports.ts';
import { type WebSocket, WebSocketServer } from 'ws';
import { VIEWER_FRAME_CHARS_MAX } from '../feed/frames.ts';
import type { Joined, Viewer } from '../feed/viewer.ts';
import { Budget } from './budget.ts';
import { type PageFile, pageFiles } from './files.ts';
import { refusalOf, SECURITY_HEADERS } from './guard.ts';

/** A taken port is tried again this often. */
const LISTEN_AGAIN_MS = 5_000;
/** Frames from viewers are requests of some hundred bytes. */
const FRAME_BYTES_MAX = VIEWER_FRAME_CHARS_MAX * 4;
/** Connections at once, page files included; a browser opens up to 6. */
const CONNECTIONS_MAX = 128;
/** Limit of one viewer, pings included. A key that is held down on the page sends 30 a second. */
export const FRAMES_PER_SECOND_MAX = 100;
/** Limit of all clients together. A browser that opens the page sends 6. */
export const REQUESTS_PER_SECOND_MAX = 200;
/** New ones, of all clients together. */
const CONNECTIONS_PER_SECOND_MAX = 50;
/** After a client asked for too much, new connections are cut for so long: reading what they send would cost more. */
const CLOSED_FOR_MS = 5_000;

/** What a WebSocket is attached to. */
export interface Target {
  readonly figures: object;
  /** Null: too many viewers. */
  join(viewer: Viewer): Joined | null;
  close(): void;
}
export interface PageSource {
  readonly log: Logger;
  /** By name: `feed` is at `/feed`. */
  readonly targets: Readonly<Record<string, Target>>;
  /** By name: `inject` answers `/api/inject` and all below it. */
  readonly api?: Readonly<Record<string, Answers>>;
}
export type Answers = (req: IncomingMessage, res: ServerResponse) => Promise<void>;
export interface ListenAt {
  host: string;
  port: number;
  /** Named in errors. */
  flag: string;
}

export class PageServer implements Disposable {
  readonly #source: PageSource;
  readonly #files: ReadonlyMap<string, PageFile>;
  readonly #http: Server;
  // Pings are answered here: those of a client that does not read would fill the memory.
  readonly #ws = new WebSocketServer({
    noServer: true,
    maxPayload: FRAME_BYTES_MAX,
    perMessageDeflate: false,
    clientTracking: false,
    autoPong: false,
    // One frame in each turn of the event loop: what a client that is let go has sent is not read.
    allowSynchronousEvents: false,
  });
  readonly #connections = new Budget(CONNECTIONS_PER_SECOND_MAX);
  #closedUntilMs = 0;
  readonly #requests = new Budget(REQUESTS_PER_SECOND_MAX);
  /** What was dropped because a client asked for too much. */
  readonly #figures = { connectionsCut: 0, requestsRefused: 0, viewersLetGo: 0 };
  readonly #sockets = new Set<Socket>();
  #again: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(source: PageSource, files: ReadonlyMap<string, PageFile> = pageFiles()) {
    this.#source = source;
    this.#files = files;
    this.#http = createServer((req, res) => {
      if (!this.#affords(req.socket)) return;
      this.#answer(req, res).catch((error: unknown) => {
        source.log.warn({ err: String(error) }, 'inspection page: a request was not answered');
        res.destroy();
      });
    });
    this.#http.maxConnections = CONNECTIONS_MAX;
    this.#http.on('connection', (socket) => {
      if (performance.now() < this.#closedUntilMs || !this.#connections.take()) {
        this.#figures.connectionsCut += 1;
        socket.destroy();
        return;
      }
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    this.#http.on('upgrade', (req, socket, head) => this.#upgrade(req, socket, head));
  }

  /** Resolves when it listens, or when it was found that it cannot yet. `onListen` is told the address. */
  listen(at: ListenAt, onListen: (url: string) => void): Promise<void> {
    return new Promise((resolve) => {
      const attempt = (): void => {
        this.#http.once('error', (error: NodeJS.ErrnoException) => {
          this.#source.log.error(
            { flag: at.flag, err: error.message },
            `inspection page: cannot listen on ${at.host}:${at.port}; it is tried again until it works`,
          );
          if (!this.#closed) this.#again = setTimeout(attempt, LISTEN_AGAIN_MS).unref();
          resolve();
        });
        this.#http.listen(at.port, at.host, () => {
          this.#http.removeAllListeners('error');
          this.#http.on('error', (error) => this.#source.log.warn({ err: error.message }, 'inspection page: the server failed'));
          const { port } = this.#http.address() as AddressInfo;
          const host = at.host.includes(':') ? `[${at.host}]` : at.host;
          if (this.#files.size === 0)
            this.#source.log.warn({}, 'inspection page: it was not built, so its address answers 503. Run: npm run build');
          onListen(`http://${host}:${port}/`);
          resolve();
        });
      };
      attempt();
    });
  }

  /** False: too many requests this second; the connection is cut, an answer would cost more. */
  #affords(socket: Duplex): boolean {
    if (this.#requests.take()) return true;
    this.#figures.requestsRefused += 1;
    this.#closeForAWhile();
    socket.destroy();
    return false;
  }

  /** Viewers that behave stay. */
  #closeForAWhile(): void {
    this.#closedUntilMs = performance.now() + CLOSED_FOR_MS;
  }

  // ---- requests ------------------------------------------------------------------------------------------------------

  async #answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const refused = refusalOf(req.headers, { websocket: false });
    if (refused !== null) return reply(res, 403, `403: ${refused}\n`);
    const path = (req.url ?? '/').split('?', 1)[0] ?? '/';
    const { api = {}, targets } = this.#source;
    const name = /^\/api\/(\w+)(\/|$)/.exec(path)?.[1] ?? '';
    if (Object.hasOwn(api, name)) return api[name]?.(req, res);
    if (req.method !== 'GET' && req.method !== 'HEAD') return reply(res, 405, '405: Method Not Allowed\n');
    if (path === '/api/figures') {
      const ofTargets = Object.entries(targets).map(([name, target]) => [name, target.figures]);
      const figures = Object.fromEntries([['server', this.#figures], ...ofTargets]);
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

  // ---- WebSockets ----------------------------------------------------------------------------------------------------

  #upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy());
    if (!this.#affords(socket)) return;
    const path = (req.url ?? '/').split('?', 1)[0] ?? '/';
    const name = path.slice(1);
    const target = Object.hasOwn(this.#source.targets, name) ? this.#source.targets[name] : undefined;
    const refused = refusalOf(req.headers, { websocket: true });
    if (refused !== null || target === undefined) {
      const status = refused === null ? '404 Not Found' : '403 Forbidden';
      socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    this.#ws.handleUpgrade(req, socket, head, (ws) => this.#attach(ws, target));
  }

  #attach(ws: WebSocket, target: Target): void {
    ws.on('error', () => ws.terminate());
    const joined = target.join({
      backlogBytes: () => ws.bufferedAmount,
      send: (text) => ws.send(text, () => undefined),
      close: (why) => {
        ws.close(1001, why);
        // A client that does not read does not see the farewell either.
        ws.terminate();
      },
    });
    if (joined === null) {
      ws.close(1013, 'too many viewers');
      return;
    }
    const frames = new Budget(FRAMES_PER_SECOND_MAX);
    let left = false;
    /** A frame has come: whether it is looked at. */
    const affords = (): boolean => {
      if (left || frames.take()) return !left;
      left = true;
      this.#figures.viewersLetGo += 1;
      this.#closeForAWhile();
      ws.terminate();
      return false;
    };
    ws.on('message', (data, binary) => void (affords() && joined.message(binary ? '' : String(data))));
    ws.on('ping', (data) => void (affords() && ws.bufferedAmount === 0 && ws.pong(data, false, () => undefined)));
    ws.on('pong', affords);
    ws.on('close', () => joined.leave());
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    if (this.#again !== null) clearTimeout(this.#again);
    for (const target of Object.values(this.#source.targets)) target.close();
    this.#http.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

export function reply(res: ServerResponse, status: number, body: string | Buffer, headers: Readonly<Record<string, string>> = {}): void {
  res.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store', ...SECURITY_HEADERS, ...headers });
  res.end(body);
}
