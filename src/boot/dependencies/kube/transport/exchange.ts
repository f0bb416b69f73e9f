/** One request to the API server and its answer, whatever carries them. */
import type { IncomingHttpHeaders } from 'node:http';
import { type Agent, request } from 'node:https';
import type { Readable } from 'node:stream';
import { answerTo } from '../../net/answerTo.ts';

export interface Outgoing {
  method: string;
  /** With the query. */
  path: string;
  headers: Readonly<Record<string, string>>;
  body: Buffer | undefined;
  signal: AbortSignal;
  /** It waits behind no answer to others: leases and the status of the node. */
  urgent: boolean;
}

export interface Answer {
  code: number;
  headers: IncomingHttpHeaders;
  body: Readable;
}

/** `stale`: the connection had ended before the request was heard, so a read may be sent again. */
export type Exchanged = { answer: Answer } | { answer: null; error: Error; stale: boolean };

/** Over HTTP/1.1, on a connection of the agent. Never rejects. */
export async function exchangeOn(agent: Agent, server: URL, out: Outgoing): Promise<Exchanged> {
  const req = request({
    agent,
    method: out.method,
    hostname: server.hostname.replace(/^\[|\]$/g, ''),
    port: server.port === '' ? 443 : Number(server.port),
    path: out.path,
    headers: out.headers,
    signal: out.signal,
  });
  try {
    const res = await answerTo(req, out.body);
    return { answer: { code: res.statusCode ?? 0, headers: res.headers, body: res } };
  } catch (failure) {
    const error = failure as NodeJS.ErrnoException;
    const stale = req.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE') && !out.signal.aborted;
    return { answer: null, error, stale };
  }
}
