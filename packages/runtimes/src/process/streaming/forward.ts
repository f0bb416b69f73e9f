/** Port-forward of Kubernetes over SPDY/3.1 and WebSocket: a pair of streams, `data` and `error`, for each connection to a port of the pod. */
import type { Duplex } from 'node:stream';
import { finished } from 'node:stream/promises';
import { SpdyConnection, type SpdyStream } from '@actorlet/process/src/spdyConnection.ts';
import type { Channels } from './channels.ts';

export const FORWARD_PROTOCOL = 'portforward.k8s.io';
const PAIR_WITHIN_MS = 30_000;

type Pair = Partial<Record<'data' | 'error', SpdyStream>>;

/** `open` rejects where nobody listens at the port. */
export function serveForward(socket: Duplex, open: (port: number) => Promise<Duplex>): void {
  const pairs = new Map<string, Pair>();
  new SpdyConnection(socket, (stream) => {
    const type = stream.headers.get('streamtype');
    const port = Number(stream.headers.get('port'));
    if ((type !== 'data' && type !== 'error') || !(Number.isInteger(port) && port > 0 && port < 65_536)) return void stream.destroy();
    // Older clients number no requests: they open the error stream, then that of the data.
    const key = stream.headers.get('requestid') ?? `stream ${type === 'error' ? stream.id : stream.id - 2}`;
    const pair = pairs.get(key) ?? {};
    if (pair[type] !== undefined) return void stream.destroy();
    pair[type] = stream;
    pairs.set(key, pair);
    if (type === 'error') stream.resume();
    const { data, error } = pair;
    if (data !== undefined && error !== undefined) {
      pairs.delete(key);
      void carry({ data, error }, { port, open });
      return;
    }
    const timer = setTimeout(() => {
      if (pairs.get(key) === pair) pairs.delete(key);
      if (pair.data === undefined || pair.error === undefined) stream.destroy();
    }, PAIR_WITHIN_MS);
    stream.once('close', () => clearTimeout(timer));
  });
}

/** By numbered channels: a pair for each port, data and error, which begins with the port. The last end is that of the connection. */
export async function serveForwardChannels(
  channels: Channels,
  ports: readonly number[],
  open: (port: number) => Promise<Duplex>,
): Promise<void> {
  const forwarded = ports.map(async (port, i) => {
    const [data, error] = [2 * i, 2 * i + 1];
    const near = channels.open(data);
    for (const channel of [data, error]) channels.tell(channel, Buffer.of(port & 0xff, port >> 8));
    try {
      const inside = await open(port);
      inside.on('error', () => undefined);
      near.once('close', () => inside.destroy());
      near.pipe(inside).pipe(near);
      await finished(inside, { writable: false }).catch(() => undefined);
    } catch (why) {
      channels.tell(error, Buffer.from(`port ${port} of the pod: ${(why as Error).message}`));
    }
  });
  await Promise.race([Promise.all(forwarded), channels.closed]);
  channels.close();
}

async function carry({ data, error }: Required<Pair>, o: { port: number; open(port: number): Promise<Duplex> }): Promise<void> {
  let inside: Duplex;
  try {
    inside = await o.open(o.port);
  } catch (why) {
    error.end(`port ${o.port} of the pod: ${(why as Error).message}`);
    data.end();
    data.resume();
    return;
  }
  inside.on('error', () => data.destroy());
  data.once('close', () => inside.destroy());
  inside.once('close', () => error.end());
  if (data.destroyed) return void inside.destroy();
  data.pipe(inside).pipe(data);
}
