/** One GET of a probe: own connection, no redirects, TLS taken as it comes, the body cut where enough is known. */

import { constants } from 'node:crypto';
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { codeOf } from '../../../machines/text/errors.ts';
import { PlainAnswerError, type ProbeAnswer, type Prober } from '../../../ports/prober.ts';
import { answerTo } from '../net/answerTo.ts';
import { lookup } from './lookup.ts';
import { type TunnelOf, throughTunnel } from './tunnel.ts';

function message(error: unknown): string {
  // Several addresses of one name that all refuse come as an AggregateError with an empty message.
  const e = error instanceof Error ? error : new Error(String(error));
  return e.message || ('code' in e ? String(e.code) : e.name);
}

/** What OpenSSL says of a first answer that is no TLS record; as a code of its own, or in the words of an EPROTO. */
const NOT_TLS = /wrong.version.number|packet.length.too.long|ssl.http.request/i;

function plain(error: unknown): unknown {
  const code = codeOf(error);
  const what = code === 'EPROTO' && error instanceof Error ? error.message : code;
  return NOT_TLS.test(what) ? new PlainAnswerError('the server answered an HTTPS request without TLS', { cause: error }) : error;
}

/** Some answers have more than Node's 16 KiB. Go's client takes 10 MiB, which a hundred probes at once would make a gigabyte here. */
const HEADER_BYTES_MAX = 1024 * 1024;

/**
 * As Go's client offers them. A server that chooses finite-field Diffie-Hellman with 8,192 bits would take the main thread for
 * 140 ms at each probe.
 */
const PROBE_TLS = {
  rejectUnauthorized: false,
  ecdhCurve: 'X25519:P-256:P-384:P-521',
  ciphers: `${constants.defaultCoreCipherList}:!DHE`,
} as const;

export const probeHttp = async (url: string, o: Parameters<Prober['httpGet']>[1], tunnel: TunnelOf): Promise<ProbeAnswer> => {
  const options: RequestOptions & Partial<typeof PROBE_TLS> = {
    method: 'GET',
    headers: { ...o.headers, ...(o.host === null ? {} : { Host: o.host }), Connection: 'close' },
    signal: o.signal,
    agent: false,
    lookup,
    maxHeaderSize: HEADER_BYTES_MAX,
    // Small servers end their lines with LF alone, which Go takes. Nothing else comes on this connection.
    insecureHTTPParser: true,
  };
  const secure = url.startsWith('https:');
  // A probe asks whether the container answers, not who it is (pod lifecycle 8.3). TLS costs memory: loaded when needed.
  const request = secure ? (await import('node:https')).request : httpRequest;
  if (secure) Object.assign(options, PROBE_TLS);
  const socketPath = tunnel(new URL(url).hostname);
  if (socketPath !== null) await connectThrough(socketPath, { url: new URL(url), options, signal: o.signal });
  const res = await answerTo(request(url, options)).catch((error: unknown) => {
    throw secure ? plain(error) : error;
  });
  return collect(res, o.bytesMax);
};

/** Without an agent, a request asks its options for the connection. */
async function connectThrough(socketPath: string, o: { url: URL; options: RequestOptions; signal: AbortSignal }): Promise<void> {
  const secure = o.url.protocol === 'https:';
  const port = Number(o.url.port || (secure ? 443 : 80));
  const socket = await throughTunnel(socketPath, { host: o.url.hostname, port }, o.signal);
  const tls = secure ? await import('node:tls') : null;
  delete o.options.agent;
  o.options.createConnection = () => tls?.connect({ socket, ...PROBE_TLS }) ?? socket;
}

async function collect(res: IncomingMessage, bytesMax: number): Promise<ProbeAnswer> {
  const chunks: Buffer[] = [];
  let size = 0;
  let bodyError: string | null = null;
  try {
    for await (const chunk of res) {
      const bytes = Buffer.from(chunk);
      chunks.push(bytes);
      size += bytes.length;
      if (size >= bytesMax) break;
    }
  } catch (error) {
    bodyError = message(error);
  }
  res.destroy();
  return {
    status: res.statusCode ?? 0,
    location: res.headers.location ?? null,
    body: Buffer.concat(chunks).subarray(0, bytesMax),
    bodyError,
  };
}
