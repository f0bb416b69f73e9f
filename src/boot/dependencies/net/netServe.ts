/** HTTP servers for the Net port: TCP or a private unix socket, bounded requests, orderly close. */

import { chmod, lstat, mkdir, unlink } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, ServerResponse, STATUS_CODES } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { dirname } from 'node:path';
import type { Duplex } from 'node:stream';
import { messageOf } from '../../../machines/text/errors.ts';
import type { Listening } from '../../../ports/listening.ts';
import type { ClientCertificate, HttpReply, HttpRequest, Net } from '../../../ports/sockets/net.ts';
import { acceptMany } from './acceptMany.ts';
import { listenAt } from './listenAt.ts';
import { BACKLOG, type Connection, Connections } from './netConnections.ts';
import { createTlsServer } from './netTls.ts';

type At = Parameters<Net['serveHttp']>[0];
type Handler = (req: HttpRequest) => Promise<HttpReply>;

/** A request body beyond this is refused with 413 on a private socket unless the server has a smaller limit. */
const REQUEST_BYTES_MAX = 4 * 1024 * 1024;
/** On TCP, where it is read before anybody is known: no request there has a body worth the name. */
const TCP_REQUEST_BYTES_MAX = 64 * 1024;
/** Limit of a request to the API, which has commands in its URL: the kernel's limit of one argument (MAX_ARG_STRLEN). */
const HEADER_BYTES_MAX = 128 * 1024;
/** Limit of a request to a port without TLS: Node's own default. Its paths are short. */
const PLAIN_HEADER_BYTES_MAX = 16 * 1024;
/** Before a request's head has come in, and before the whole of it has. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 60_000;
/** How often those two are looked at. */
const CHECK_MS = 1_000;
/** A peer that takes nothing of its answer for so long, or for twice as long after it took some, gets no more of it. */
const STALLED_MS = 15_000;
/** The same for a peer that is known: as long as an answer of the kubelet may take. */
const KNOWN_STALLED_MS = 4 * 3_600_000;
/** As the reference's: a peer that has gone without a word is noticed within half a minute. */
const TCP_KEEP_ALIVE_MS = 15_000;
/** Idle keep-alive time of the modern kubelet's servers. */
const KEEP_ALIVE_MS = 90_000;
/** What is told to a client whose request could not be read; otherwise 400. */
const UNREADABLE: Readonly<Record<string, number>> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };
/** How long an answer that is being written may go on once the server closes. */
const CLOSE_GRACE_MS = 500;
/** How long a peer may still send after it was told that its connection ends. */
const LINGER_MS = 1000;
/** `sun_path` holds 108 bytes with its final zero byte. */
const SOCKET_PATH_BYTES_MAX = 107;

/** See {@link Net.serveHttp}. Bind errors keep their `code` and name address and port, or the socket path. */
export async function serveHttp(at: At, handler: Handler): Promise<Listening> {
  const inFlight = new Set<AbortController>();
  const limits = {
    maxHeaderSize: 'port' in at && at.tls === undefined ? PLAIN_HEADER_BYTES_MAX : HEADER_BYTES_MAX,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: CHECK_MS,
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
  };
  const connections = new Connections();
  const tls = 'tls' in at && at.tls !== undefined ? await createTlsServer(at.tls, limits, connections) : undefined;
  const server = tls?.server ?? createServer(limits);
  if (tls === undefined) server.on('connection', (socket: Socket) => connections.add(socket, { tls: false }));
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  // Counts from the last byte either way, so it says nothing of a stream that is silent for a while.
  server.setTimeout(STALLED_MS, (socket) => {
    const next = connections.silent(socket);
    if (next === 'longer' && socket.timeout === STALLED_MS) socket.setTimeout(KNOWN_STALLED_MS);
    else if (next !== 'wait') socket.destroy();
  });
  const bodyBytesMax = at.bodyBytesMax ?? ('port' in at ? TCP_REQUEST_BYTES_MAX : REQUEST_BYTES_MAX);
  const begin = (req: IncomingMessage, ended: Duplex | ServerResponse): Answering => {
    const connection = connections.of(req.socket);
    const stop = new AbortController();
    const begun = connection?.begin();
    inFlight.add(stop);
    ended.once('close', () => {
      begun?.end();
      inFlight.delete(stop);
      stop.abort(new Error('the client has gone'));
    });
    const client = tls === undefined ? {} : { client: tls.clientOf(req.socket) };
    return { handler, bodyBytesMax, signal: stop.signal, before: begun?.before, connection, ...client };
  };
  server.on('request', (req: IncomingMessage, res: ServerResponse) => {
    // What throws at once is held too: in a listener it would end the process.
    const serve = async () => answer(req, res, begin(req, res));
    serve().catch(() => res.destroy());
  });
  // Only this server hands connections on; elsewhere a request to switch protocols is answered as an ordinary one.
  if (tls !== undefined) {
    server.on('upgrade', (req: IncomingMessage, socket: Duplex, head: Buffer) => {
      const serve = async () => upgrade(req, { socket, head, o: begin(req, socket) });
      serve().catch(() => socket.destroy());
    });
  }
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const status = UNREADABLE[error.code ?? ''] ?? 400;
    // The answer is sent already; what the client sends on is read and thrown away.
    if (socket.writableEnded) return;
    // Behind an answer that the peer does not take there is no room for another.
    if (!socket.writable || socket.writableLength > 0) return void socket.destroy();
    socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
    endSoon(socket);
  });
  const address = 'socketPath' in at ? await listenUnix(server, at) : await listenTcp(server, at);
  let closing: Promise<void> | undefined;
  return {
    address,
    close() {
      closing ??= closeServer(server, connections, inFlight);
      return closing;
    },
  };
}

/**
 * Ends a connection whether its peer does so or not. What was written is sent first; an end at once would take it away
 * from a peer that still sends.
 */
function endSoon(socket: Duplex): void {
  socket.end();
  const late = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(late));
}

function closeServer(server: Server, connections: Connections, inFlight: Set<AbortController>): Promise<void> {
  return new Promise((resolve) => {
    const force = setTimeout(() => connections.destroyAll(), CLOSE_GRACE_MS);
    server.close(() => {
      clearTimeout(force);
      resolve();
    });
    for (const c of inFlight) c.abort(new Error('the server is closing'));
    server.closeIdleConnections();
  });
}

// ---- listening -----------------------------------------------------------------------------------------------------

function listen(server: Server, target: ReturnType<typeof listenAt> | { path: string }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ ...target, backlog: BACKLOG }, () => {
      server.off('error', reject);
      // A connection that cannot be accepted (no descriptors, no memory) is told here, and would end the process unheard.
      server.on('error', () => {});
      resolve();
    });
  });
}

async function listenTcp(server: Server, at: { host: string; port: number }): Promise<string> {
  const shown = at.host.includes(':') ? `[${at.host}]:${at.port}` : `${at.host}:${at.port}`;
  try {
    await listen(server, listenAt(at));
    acceptMany(server);
  } catch (error) {
    throw bindError(shown, error);
  }
  const bound = server.address() as AddressInfo;
  return bound.family === 'IPv6' ? `[${bound.address}]:${bound.port}` : `${bound.address}:${bound.port}`;
}

async function listenUnix(server: Server, at: { socketPath: string; mode: number }): Promise<string> {
  const path = at.socketPath;
  const bytes = Buffer.byteLength(path);
  if (bytes > SOCKET_PATH_BYTES_MAX) {
    throw Object.assign(
      new Error(`cannot listen on ${path}: a unix socket path holds at most ${SOCKET_PATH_BYTES_MAX} bytes, this one has ${bytes}`),
      {
        code: 'ENAMETOOLONG',
      },
    );
  }
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await removeStale(path);
    await listenWithMode(server, path, at.mode);
  } catch (error) {
    throw bindError(path, error);
  }
  return path;
}

/** Nobody may connect between bind and chmod, so the socket is born with no more rights than it shall have. */
async function listenWithMode(server: Server, path: string, mode: number): Promise<void> {
  const before = process.umask(0o777 & ~mode);
  let listening: Promise<void>;
  try {
    // The bind itself happens inside listen(); only its announcement is asynchronous.
    listening = listen(server, { path });
  } finally {
    process.umask(before);
  }
  await listening;
  await chmod(path, mode);
}

/** Removes a socket file that nobody answers on. A file that is no socket, or a living server, is an error. */
async function removeStale(path: string): Promise<void> {
  const info = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (info === null) return;
  if (!info.isSocket())
    throw Object.assign(new Error('a file that is no socket is in the way; remove it or choose another path'), { code: 'EEXIST' });
  if (await answers(path)) throw Object.assign(new Error('another process is listening on it'), { code: 'EADDRINUSE' });
  await unlink(path);
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    const settle = (alive: boolean) => {
      socket.destroy();
      resolve(alive);
    };
    socket.once('connect', () => settle(true));
    // Refused means: no listener. Anything else (a full backlog, no permission) may hide a living server.
    socket.once('error', (error: NodeJS.ErrnoException) => settle(error.code !== 'ECONNREFUSED' && error.code !== 'ENOENT'));
  });
}

function bindError(where: string, error: unknown): Error {
  const e = error as NodeJS.ErrnoException;
  const why = e.code === 'EADDRINUSE' && e.syscall === 'listen' ? 'the address is already in use' : e.message;
  return Object.assign(new Error(`cannot listen on ${where}: ${why}`, { cause: error }), { code: e.code ?? 'EIO' });
}

// ---- one request ---------------------------------------------------------------------------------------------------

interface Answering {
  handler: Handler;
  bodyBytesMax: number;
  signal: AbortSignal;
  /** Ends when the answer to the request before it has. */
  before: Promise<void> | undefined;
  connection: Connection | undefined;
  client?: ClientCertificate;
}

async function answer(req: IncomingMessage, res: ServerResponse, o: Answering): Promise<void> {
  const reply = await replyTo(req, o);
  // Nothing to hand on: the client did not ask to switch protocols.
  const sent = reply.relay === undefined ? reply : { status: 400, body: 'Upgrade request required\n' };
  await write(res, sent, { headOnly: req.method === 'HEAD', signal: o.signal });
}

async function replyTo(req: IncomingMessage, o: Answering): Promise<HttpReply> {
  try {
    await o.before;
    o.signal.throwIfAborted();
    const parsed = await parse(req, o);
    return 'status' in parsed ? parsed : await o.handler(parsed);
  } catch (error) {
    // Handlers report what they can; what arrives here is a defect of ours, so say what it was.
    return { status: 500, body: `internal server error: ${messageOf(error)}\n` };
  }
}

async function upgrade(req: IncomingMessage, c: { socket: Duplex; head: Buffer; o: Answering }): Promise<void> {
  const { socket, head, o } = c;
  socket.on('error', () => socket.destroy());
  const reply = await replyTo(req, o);
  if (socket.destroyed) return;
  if (reply.relay !== undefined) {
    const from = { req, socket, head, signal: o.signal };
    if (reply.translated !== undefined) {
      const { translate } = await import('./netWebSocket.ts');
      return translate(reply.relay, reply.translated, from);
    }
    const { relay } = await import('./netRelay.ts');
    return relay(reply.relay, from);
  }
  // Not switched: an ordinary answer, after which the connection ends, since its next bytes may be of the other protocol.
  const res = new ServerResponse(req);
  res.shouldKeepAlive = false;
  res.assignSocket(req.socket);
  res.once('finish', () => {
    res.detachSocket(req.socket);
    endSoon(socket);
  });
  await write(res, reply, { headOnly: req.method === 'HEAD', signal: o.signal });
}

async function parse(req: IncomingMessage, o: Answering): Promise<HttpRequest | HttpReply> {
  const raw = req.url ?? '/';
  const cut = raw.indexOf('?');
  let path: string;
  try {
    path = decodeURIComponent(cut < 0 ? raw : raw.slice(0, cut));
  } catch {
    return { status: 400, body: '400: Bad Request\n' };
  }
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of req.iterator({ destroyOnReturn: false })) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > o.bodyBytesMax) {
      return { status: 413, headers: { connection: 'close' }, body: `request body is larger than ${o.bodyBytesMax} bytes\n` };
    }
    chunks.push(bytes);
  }
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(req.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return {
    method: req.method ?? 'GET',
    path,
    query: new URLSearchParams(cut < 0 ? '' : raw.slice(cut + 1)),
    headers,
    body: Buffer.concat(chunks),
    signal: o.signal,
    peer: o.connection?.peer ?? '',
    authenticated: () => o.connection?.known(),
    ...(o.client === undefined ? {} : { client: o.client }),
  };
}

async function write(res: ServerResponse, reply: HttpReply, o: { headOnly: boolean; signal: AbortSignal }): Promise<void> {
  const headers: Record<string, string> = { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' };
  for (const [name, value] of Object.entries(reply.headers ?? {})) headers[name.toLowerCase()] = value;
  res.writeHead(reply.status, STATUS_CODES[reply.status], headers);
  if (o.headOnly) {
    res.end();
    return;
  }
  if (typeof reply.body === 'string' || reply.body instanceof Uint8Array) {
    res.end(reply.body);
    return;
  }
  res.flushHeaders();
  for await (const chunk of reply.body) {
    if (o.signal.aborted) break;
    if (!res.write(chunk)) await drained(res, o.signal);
  }
  res.end();
}

function drained(res: ServerResponse, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      res.off('drain', done);
      signal.removeEventListener('abort', done);
      resolve();
    };
    res.once('drain', done);
    signal.addEventListener('abort', done, { once: true });
    if (signal.aborted) done();
  });
}
