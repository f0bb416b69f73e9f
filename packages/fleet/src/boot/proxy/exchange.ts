/** One request of a client, on its way to the API server and back. */
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { type Agent, request as httpsRequest } from 'node:https';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { ApiRequest } from '../../proxy/request.ts';
import type { Refusal } from '../../proxy/trouble.ts';
import { statusOf } from './status.ts';
import type { Upstream } from './upstream.ts';

export type Req = IncomingMessage | Http2ServerRequest;
export type Res = ServerResponse | Http2ServerResponse;

/** Headers of one connection, which is not the one behind. */
const OF_CONNECTION = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
  'host',
  'te',
  'trailer',
  'http2-settings',
]);

export interface Way {
  upstream: Upstream;
  agent: Agent;
}

/** What goes on, without what belongs to a connection. */
export function headersOf(headers: IncomingHttpHeaders, upstream: Upstream): OutgoingHttpHeaders {
  const host = upstream.host.includes(':') ? `[${upstream.host}]` : upstream.host;
  return { ...passedOn(headers), host: `${host}:${upstream.port}` };
}

function passedOn(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  return Object.fromEntries(
    Object.entries(headers).filter(([name, value]) => !name.startsWith(':') && !OF_CONNECTION.has(name) && value !== undefined),
  );
}

/** To the API server, with the body of the client where there is one. */
export function ask(req: Req, { upstream, agent }: Way, path = req.url ?? '/'): ClientRequest {
  const headers = headersOf(req.headers, upstream);
  if (hasBody(req) && headers['content-length'] === undefined) headers['transfer-encoding'] = 'chunked';
  const { host, port, prefix } = upstream;
  return httpsRequest({ host, port, path: `${prefix}${path}`, method: req.method ?? 'GET', headers, agent });
}

function hasBody(req: Req): boolean {
  if ('stream' in req) return !req.stream.endAfterHeaders;
  return req.headers['transfer-encoding'] !== undefined || Number(req.headers['content-length'] ?? 0) > 0;
}

/** Goes out at once. The body is the caller's. */
export function sendHead(res: Res, code: number, headers: OutgoingHttpHeaders): void {
  if ('stream' in res) res.writeHead(code, headers);
  else {
    res.writeHead(code, headers);
    res.flushHeaders();
  }
}

/** The head of the API server's answer. */
export function head(res: Res, from: IncomingMessage): void {
  sendHead(res, from.statusCode ?? 502, passedOn(from.headers));
}

export function refuse(req: Req, res: Res, refusal: Refusal): void {
  // What it still sends is read, else some clients never look for the answer.
  req.resume();
  if (res.headersSent || isGone(res)) return;
  const body = statusOf(refusal);
  const { retryAfter } = refusal;
  sendHead(res, refusal.code, {
    'content-type': 'application/json',
    'content-length': body.length,
    ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
  });
  res.end(body);
}

/** The client waits for no answer any more. */
export function isGone(res: Res): boolean {
  // An answer of HTTP/2 does not know it, and its stream does.
  return 'stream' in res ? res.stream?.destroyed !== false : res.destroyed;
}

/** As when the connection broke. */
export function cut(res: Res): void {
  if ('stream' in res) res.stream?.close(INTERNAL_ERROR);
  else res.destroy();
}
const INTERNAL_ERROR = 2;

/** The answer of the API server, or the client's end. @throws Error where the API server gives none. */
export function answerOf(req: Req, res: Res, up: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    up.once('response', resolve);
    // For as long as it lasts: a connection may also break behind the head of the answer.
    up.on('error', reject);
    // The client is gone: nobody waits for the rest.
    res.once('close', () => up.destroy());
    if (isGone(res)) up.destroy(new Error('the client has gone'));
    else if (hasBody(req)) req.pipe(up);
    else up.end();
  });
}

export function away(error: unknown): Refusal {
  return { code: 503, reason: 'ServiceUnavailable', message: `the API server behind this proxy gives no answer: ${messageOf(error)}` };
}

/** The whole of it. @throws Error where it is longer. */
export async function bodyOf(from: IncomingMessage, bytesMax: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of from as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > bytesMax) throw new Error(`the answer of the API server has more than ${bytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Of a read as of that version: of an object it is a list of one. */
export function staleUrl({ path, query, verb, name }: ApiRequest, version: string): string {
  const asked = new URLSearchParams(query);
  asked.set('resourceVersion', version);
  asked.set('resourceVersionMatch', 'Exact');
  if (verb === 'list') return `${path}?${asked}`;
  asked.set('fieldSelector', `metadata.name=${name}`);
  const object = path.replace(/\/status$/, '');
  return `${object.slice(0, object.lastIndexOf('/'))}?${asked}`;
}
