/**
 * Hands an upgraded connection on to another server: the request is sent again there, its answer sent back, and after
 * `101 Switching Protocols` bytes go both ways until either side ends. What they say (SPDY, WebSocket) is not looked at.
 */

import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders, type RequestOptions, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { messageOf } from '../../../machines/text/errors.ts';

/** The runtime makes its addresses itself and serves them on this machine. */
const ANSWER_TIMEOUT_MS = 30_000;
/** Once one side has ended, the other has this long to end too. */
const LINGER_MS = 5_000;
const REFUSAL_BYTES_MAX = 64 * 1024;
/** Meant for us, or for one connection only. The next server gets no credentials. */
const NOT_SENT_ON = new Set(['host', 'authorization', 'cookie', 'proxy-authorization', 'content-length', 'transfer-encoding', 'expect']);
/** A WebSocket sub-protocol that carries a bearer token. */
const TOKEN_PROTOCOL = /^base64url\.bearer\.authorization\.k8s\.io\./;

export interface RelayFrom {
  req: IncomingMessage;
  socket: Duplex;
  /** What came after the request's head. */
  head: Buffer;
  signal: AbortSignal;
}

/** Resolves when the connection is over. Failures before the switch are answered with 502; later ones end both sides. */
export async function relay(url: string, from: RelayFrom): Promise<void> {
  const up = await switchedAt(url, from, { method: from.req.method ?? 'GET', headers: headersOf(from.req) });
  if (up === null) return;
  const { socket, head } = from;
  socket.write(headOf(up.res));
  if (up.head.length > 0) socket.write(up.head);
  if (head.length > 0) up.socket.write(head);
  await join(socket, up.socket, from.signal);
}

/** Asks the server to switch protocols. Null: the server did not switch, and the client was told so. */
export async function switchedAt(url: string, from: RelayFrom, ask: Ask): Promise<Switched | null> {
  const { socket } = from;
  socket.on('error', () => socket.destroy());
  try {
    const up = await connectTo(url, from, ask);
    if (up.kind === 'switched') return up;
    refuse(socket, up.status, up.body, up.headers);
  } catch (error) {
    refuse(socket, 502, `the runtime's streaming server did not answer: ${messageOf(error)}\n`);
  }
  return null;
}

/** What the server is asked with. */
export interface Ask {
  method: string;
  headers: OutgoingHttpHeaders;
}
export interface Switched {
  kind: 'switched';
  res: IncomingMessage;
  socket: Duplex;
  head: Buffer;
}
type Upstream = Switched | { kind: 'refused'; status: number; headers: Record<string, string>; body: string };

/** @throws where it does not answer. */
export async function connectTo(url: string, from: RelayFrom, { method, headers }: Ask): Promise<Upstream> {
  const { options, secure } = target(url);
  const request = secure ? (await import('node:https')).request : httpRequest;
  return new Promise((resolve, reject) => {
    const host = String(options.host ?? 'localhost');
    const req = request({ ...options, method, headers: { ...headers, host }, agent: false });
    const stop = () => req.destroy(new Error('the client has gone'));
    from.signal.addEventListener('abort', stop, { once: true });
    from.socket.once('close', stop);
    const done = () => {
      from.signal.removeEventListener('abort', stop);
      from.socket.off('close', stop);
      req.setTimeout(0);
    };
    req.setTimeout(ANSWER_TIMEOUT_MS, () => req.destroy(new Error(`no answer within ${ANSWER_TIMEOUT_MS / 1000} s`)));
    req.once('error', (error) => {
      done();
      reject(error);
    });
    req.once('upgrade', (res, socket, head) => {
      done();
      socket.setTimeout(0);
      resolve({ kind: 'switched', res, socket, head });
    });
    req.once('response', (res) => {
      done();
      collect(res).then((body) => resolve({ kind: 'refused', status: res.statusCode ?? 502, headers: flat(res), body }), reject);
    });
    req.end();
  });
}

function target(url: string): { options: RequestOptions; secure: boolean } {
  const unix = /^http\+unix:\/\/([^/]+)(\/.*)$/.exec(url);
  if (unix !== null)
    return { options: { socketPath: decodeURIComponent(unix[1] ?? ''), path: unix[2] ?? '/', host: 'localhost' }, secure: false };
  const parsed = URL.parse(url);
  if (parsed === null || (parsed.protocol !== 'http:' && parsed.protocol !== 'https:'))
    throw new Error('it gave an address that is no URL');
  const secure = parsed.protocol === 'https:';
  const host = parsed.hostname.replace(/^\[|\]$/g, '');
  const port = parsed.port === '' ? (secure ? 443 : 80) : Number(parsed.port);
  return { options: { host, port, path: `${parsed.pathname}${parsed.search}` }, secure };
}

function headersOf(req: IncomingMessage): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {};
  for (const [name, values] of Object.entries(req.headersDistinct)) {
    if (values === undefined || NOT_SENT_ON.has(name)) continue;
    if (name !== 'sec-websocket-protocol') {
      headers[name] = values;
      continue;
    }
    const protocols = values.flatMap((v) => v.split(',')).map((p) => p.trim());
    const kept = protocols.filter((p) => p !== '' && !TOKEN_PROTOCOL.test(p));
    if (kept.length > 0) headers[name] = kept.join(', ');
  }
  return headers;
}

async function collect(res: IncomingMessage): Promise<string> {
  let body = '';
  for await (const chunk of res) {
    body += String(chunk);
    if (body.length > REFUSAL_BYTES_MAX) break;
  }
  return body.slice(0, REFUSAL_BYTES_MAX);
}

function flat(res: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, values] of Object.entries(res.headersDistinct)) {
    if (values !== undefined && !['connection', 'transfer-encoding', 'content-length', 'keep-alive'].includes(name))
      headers[name] = values.join(', ');
  }
  return headers;
}

function refuse(socket: Duplex, status: number, body: string, headers: Record<string, string> = {}): void {
  const lines = Object.entries({ 'content-type': 'text/plain; charset=utf-8', ...headers }).map(([k, v]) => `${k}: ${v}\r\n`);
  const length = Buffer.byteLength(body);
  if (!socket.writable) return;
  // Not left to the peer to close: it may never do so.
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}connection: close\r\ncontent-length: ${length}\r\n\r\n${body}`,
    () => socket.destroy(),
  );
}

function headOf({ statusCode, statusMessage, rawHeaders: raw }: IncomingMessage): string {
  let answer = `HTTP/1.1 ${statusCode} ${statusMessage}\r\n`;
  for (let i = 0; i + 1 < raw.length; i += 2) answer += `${raw[i]}: ${raw[i + 1]}\r\n`;
  return `${answer}\r\n`;
}

/** Carries bytes both ways until both have ended. */
export function join(near: Duplex, far: Duplex, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    let open = 2;
    let linger: NodeJS.Timeout | undefined;
    const stop = () => {
      near.destroy();
      far.destroy();
    };
    const closed = () => {
      if (--open > 0) return;
      clearTimeout(linger);
      signal.removeEventListener('abort', stop);
      resolve();
    };
    for (const [a, b] of [
      [near, far],
      [far, near],
    ] as const) {
      a.on('error', () => a.destroy());
      // The end goes on to the other side, by pipe; what that one still has to say may follow, but not for ever.
      a.once('end', () => {
        linger ??= setTimeout(stop, LINGER_MS);
      });
      a.once('close', () => {
        // Broken off: there is nothing to wait for.
        if (!a.readableEnded) b.destroy();
        closed();
      });
      a.pipe(b);
    }
    signal.addEventListener('abort', stop, { once: true });
    // Either may have gone while the other was being asked.
    if (signal.aborted || near.destroyed || far.destroyed) stop();
  });
}
