/**
 * The questions of the admin socket over TCP, for `actorctl` at the other end of a `kubectl port-forward`. Off unless a flag asks for it,
 * on the loopback alone, with a bearer token, and for reading only.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';

/** Of the admin socket. What acts, opens a debugger or starts a program is not among them. */
const PATHS: ReadonlySet<string> = new Set([
  ...['/statez', '/recorder', '/events', '/why', '/healthz', '/chart', '/timeline', '/deaths', '/death', '/disagreements'],
  ...['/page', '/summary', '/node', '/configz', '/pods'],
]);
const CONNECTIONS_MAX = 32;
const HEADER_BYTES_MAX = 8_192;
const HEADERS_TIMEOUT_MS = 5_000;
const REQUEST_TIMEOUT_MS = 10_000;
const ANSWER_TIMEOUT_MS = 30_000;

export interface ApiOptions {
  host: string;
  port: number;
  token: string;
  /** The admin socket of this observer. */
  socketPath: string;
}
export interface ObserverApi extends Disposable {
  readonly port: number;
}

/** Rejects when it cannot listen. */
export async function serveApi(o: ApiOptions): Promise<ObserverApi> {
  const token = digestOf(o.token);
  const limits = { maxHeaderSize: HEADER_BYTES_MAX, headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS };
  const server = createServer(limits, (req, res) => {
    // A body is not read: nothing that has one is answered.
    req.resume();
    const refused = refusal(req, token);
    if (refused === null) passOn(req, res, o.socketPath);
    else reply(res, ...refused);
  });
  server.maxConnections = CONNECTIONS_MAX;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(o.port, o.host, resolve);
  });
  server.on('error', () => undefined);
  return { port: portOf(server), [Symbol.dispose]: () => end(server) };
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}
function end(server: Server): void {
  server.close();
  server.closeAllConnections();
}

/** Null: it is answered. The token comes first, so that nothing is said to anybody without it. */
function refusal(req: IncomingMessage, token: Buffer): [status: number, words: string] | null {
  const [, given = ''] = /^Bearer +(\S+)$/i.exec(req.headers.authorization ?? '') ?? [];
  if (!timingSafeEqual(digestOf(given), token)) return [401, 'the token is missing, or is not the one of this observer'];
  if (req.method !== 'GET') return [405, 'only questions are answered here: ask on the node for all else'];
  const [path = ''] = (req.url ?? '').split('?', 1);
  return PATHS.has(path) ? null : [404, `${path} is not answered here: ask on the node`];
}

function passOn(req: IncomingMessage, res: ServerResponse, socketPath: string): void {
  const ask = request({ socketPath, path: req.url, method: 'GET', timeout: ANSWER_TIMEOUT_MS, headers: { host: 'actorlet' } }, (answer) => {
    const type = answer.headers['content-type'] ?? 'text/plain';
    res.writeHead(answer.statusCode ?? 502, { 'content-type': type, 'cache-control': 'no-store' });
    answer.on('error', () => res.destroy());
    answer.pipe(res);
  });
  ask.on('timeout', () => ask.destroy(new Error(`no answer within ${ANSWER_TIMEOUT_MS / 1_000} s`)));
  ask.on('error', (error) => {
    if (res.headersSent) res.destroy();
    else reply(res, 503, `the observer does not answer: ${messageOf(error)}`);
  });
  res.on('close', () => ask.destroy());
  ask.end();
}

function reply(res: ServerResponse, status: number, words: string): void {
  const authenticate = status === 401 ? { 'www-authenticate': 'Bearer' } : {};
  res.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', ...authenticate });
  res.end(`${status}: ${words}\n`);
}

/** Of equal length whatever is given. */
function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
