/** One request to the API server and its answer, whatever carries them. */
import type { IncomingHttpHeaders } from 'node:http';
import { type Agent, request as httpsRequest } from 'node:https';
import type { Readable } from 'node:stream';

export interface Outgoing {
  method: string;
  /** With the query. */
  path: string;
  headers: Readonly<Record<string, string>>;
  body: Buffer | undefined;
  signal: AbortSignal;
}

export interface Answer {
  code: number;
  headers: IncomingHttpHeaders;
  body: Readable;
}

/** `stale`: the connection had ended before the request was heard, so a read may be sent again. */
export type Exchanged = { answer: Answer } | { answer: null; error: Error; stale: boolean };

/** Over HTTP/1.1, on a connection of the agent. Never rejects. */
export function exchangeOn(agent: Agent, server: URL, out: Outgoing): Promise<Exchanged> {
  return new Promise((resolve) => {
    const req = httpsRequest(
      {
        agent,
        method: out.method,
        hostname: server.hostname.replace(/^\[|\]$/g, ''),
        port: server.port === '' ? 443 : Number(server.port),
        path: out.path,
        headers: out.headers,
        signal: out.signal,
      },
      (res) => resolve({ answer: { code: res.statusCode ?? 0, headers: res.headers, body: res } }),
    );
    req.on('error', (error: NodeJS.ErrnoException) => {
      const stale = req.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE') && !out.signal.aborted;
      resolve({ answer: null, error, stale });
    });
    req.end(out.body);
  });
}
