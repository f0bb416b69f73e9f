/** HTTP GET with redirects, one deadline for everything and a bound on the body. */

import { request as httpRequest, type IncomingMessage } from 'node:http';
import { shownUrl } from '../../../machines/text/shownUrl.ts';
import type { Net } from '../../../ports/sockets/net.ts';
import { answerTo } from './answerTo.ts';

type GetOptions = Parameters<Net['httpGet']>[1];
type GetResult = Awaited<ReturnType<Net['httpGet']>>;

/** Redirects followed before giving up: what most HTTP clients, Go's among them, allow. */
const REDIRECTS_MAX = 10;
const REDIRECT_STATUS = new Set([301, 302, 303, 307, 308]);
/** Never sent on to another host. */
const CREDENTIAL_HEADERS = new Set(['authorization', 'cookie', 'proxy-authorization', 'www-authenticate', 'cookie2']);

/**
 * Fetches `url`. Rejects with an error that names the URL (without its user information) and what happened: time-out
 * (code `ETIMEDOUT`), too large a body (`EFBIG`), too many redirects (`ELOOP`), abort, or the connection's own code.
 */
export async function httpGet(url: string, opts: GetOptions): Promise<GetResult> {
  let at = parseUrl(url);
  const deadline = AbortSignal.timeout(opts.timeoutMs);
  const signal = AbortSignal.any([opts.signal, deadline]);
  let headers = opts.headers;
  try {
    for (let hop = 0; hop <= REDIRECTS_MAX; hop++) {
      const res = await once(at, headers, signal);
      const location = res.headers.location;
      if (location === undefined || !REDIRECT_STATUS.has(res.statusCode ?? 0)) return await collect(res, opts.bytesMax);
      res.destroy();
      const next = parseUrl(location, at);
      if (next.host !== at.host) {
        headers = Object.fromEntries(Object.entries(headers).filter(([name]) => !CREDENTIAL_HEADERS.has(name.toLowerCase())));
      }
      at = next;
    }
    throw coded(`more than ${REDIRECTS_MAX} redirects`, 'ELOOP');
  } catch (error) {
    throw named(at, error, opts, deadline);
  }
}

function parseUrl(text: string, base?: URL): URL {
  const url = URL.parse(text, base?.href);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw coded(`not an http or https URL: ${JSON.stringify(shownUrl(text).slice(0, 200))}`, 'ERR_INVALID_URL');
  }
  return url;
}

async function once(url: URL, headers: Record<string, string[]>, signal: AbortSignal): Promise<IncomingMessage> {
  // TLS is loaded only when an https URL is really used: it costs several MiB that most nodes never need.
  const request = url.protocol === 'https:' ? (await import('node:https')).request : httpRequest;
  return answerTo(request(url, { method: 'GET', headers, signal, agent: false }));
}

async function collect(res: IncomingMessage, bytesMax: number): Promise<GetResult> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of res) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > bytesMax) {
      res.destroy();
      throw coded(`answer is larger than ${bytesMax} bytes`, 'EFBIG');
    }
    chunks.push(bytes);
  }
  return { status: res.statusCode ?? 0, body: Buffer.concat(chunks) };
}

function coded(message: string, code: string): Error {
  return Object.assign(new Error(message), { code });
}

function named(url: URL, error: unknown, opts: GetOptions, deadline: AbortSignal): Error {
  const shown = `${url.protocol}//${url.host}${url.pathname}`;
  if (opts.signal.aborted) return Object.assign(new Error(`GET ${shown}: aborted`, { cause: error }), { code: 'ABORT_ERR' });
  if (deadline.aborted) {
    return Object.assign(new Error(`GET ${shown}: no complete answer within ${opts.timeoutMs} ms`, { cause: error }), {
      code: 'ETIMEDOUT',
    });
  }
  const e = error instanceof Error ? error : new Error(String(error));
  // A refused connection to a name with several addresses arrives as an AggregateError with an empty message.
  const code = 'code' in e && typeof e.code === 'string' ? e.code : 'EIO';
  return Object.assign(new Error(`GET ${shown}: ${e.message || code}`, { cause: e }), { code });
}
