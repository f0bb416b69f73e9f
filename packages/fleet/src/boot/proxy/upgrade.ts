/** exec, attach and port-forward: the connection of a client becomes one of the API server, byte by byte. */
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { headersOf } from './exchange.ts';
import type { Upstream } from './upstream.ts';

export interface Upgrade {
  req: IncomingMessage;
  socket: TLSSocket;
  /** What the client sent already. */
  rest: Buffer;
}

/** Never rejects. */
export async function upgrade({ req, socket, rest }: Upgrade, { upstream }: { upstream: Upstream }): Promise<void> {
  socket.on('error', () => socket.destroy());
  const client = await upstream.client(socket, req.headers.authorization).catch(() => null);
  const agent = client?.agent;
  if (!agent) {
    socket.end(
      `HTTP/1.1 ${client === null ? '503 Service Unavailable' : '401 Unauthorized'}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`,
    );
    return;
  }
  const { host, port, prefix } = upstream;
  const headers = { ...headersOf(req.headers, upstream), connection: 'Upgrade', upgrade: req.headers.upgrade };
  const up = httpsRequest({ host, port, path: `${prefix}${req.url ?? '/'}`, method: req.method ?? 'GET', headers, agent });
  socket.once('close', () => up.destroy());
  up.on('error', () => socket.destroy());
  up.once('upgrade', (answer, other, first) => {
    socket.write(headOf(answer));
    socket.write(first);
    other.write(rest);
    joined(socket, other);
  });
  // The API server, or the node, said no.
  up.once('response', (answer) => {
    socket.write(headOf(answer, { connection: 'close' }));
    answer.pipe(socket);
    // What the client owes of a body would be taken from the next request on that connection.
    const connection = answer.socket;
    answer.once('end', () => connection.destroy());
  });
  if (Number(req.headers['content-length'] ?? 0) > 0) up.write(rest);
  up.end();
}

function joined(a: Duplex, b: Duplex): void {
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const) {
    from.on('error', () => to.destroy());
    from.once('close', () => to.destroy());
    from.pipe(to);
  }
}

function headOf(answer: IncomingMessage, more: Record<string, string> = {}): string {
  const lines = [`HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}`];
  const { rawHeaders } = answer;
  // Node has taken the chunks apart.
  const dropped = new Set([...Object.keys(more), ...('connection' in more ? ['transfer-encoding'] : [])]);
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (!dropped.has((rawHeaders[i] ?? '').toLowerCase())) lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`);
  }
  for (const [name, value] of Object.entries(more)) lines.push(`${name}: ${value}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}
