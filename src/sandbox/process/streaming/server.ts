/**
 * Streams of containers and pods on a unix socket, by the protocols of Kubernetes: exec, attach and port-forward at addresses
 * that are good for one use. Also proxies into the networks of pods, and archives of images to load.
 */
import { randomBytes } from 'node:crypto';
import { chmodSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Isolation } from '../probe.ts';
import type { Oci, Offer, StreamingServer, Tunnel } from '../types.ts';
import { serveAttach } from './attach.ts';
import { serveExec } from './exec.ts';
import { FORWARD_PROTOCOL, serveForward } from './forward.ts';
import { REMOTE_PROTOCOL, remoteStreams } from './remote.ts';

/** An address that was not used within this time is void. */
const TOKEN_MS = 60_000;

interface How {
  isolation: Isolation;
  oci?: Oci | undefined;
}

/** `actorctl image load`: not by CRI, whose image names are the pods' to choose. */
async function serveLoad(oci: Oci | undefined, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const query = new URLSearchParams(req.url?.split('?')[1]);
  const abort = new AbortController();
  res.on('close', () => abort.abort());
  const answer = (status: number, value: object): void =>
    void res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
  if (oci === undefined) return answer(409, { error: 'this runtime runs the built-in images alone: use embedded://oci' });
  try {
    answer(200, { loaded: await oci.load(query.get('path') ?? '', query.get('name') ?? '', abort.signal) });
  } catch (error) {
    answer(400, { error: (error as Error).message });
  }
}

async function serveTunnel(open: Tunnel, { to, socket, head }: { to: string; socket: Duplex; head: Buffer }): Promise<void> {
  socket.on('error', () => undefined);
  const at = /^([\d.]+):(\d{1,5})$/.exec(to);
  try {
    const inside = await open(at?.[1] ?? '', Number(at?.[2] ?? 0));
    if (inside === null) {
      socket.end('HTTP/1.1 404 Not Found\r\n\r\n');
      return;
    }
    inside.on('error', () => socket.destroy());
    socket.on('close', () => inside.destroy());
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
    if (head.length > 0) inside.write(head);
    inside.pipe(socket).pipe(inside);
  } catch (error) {
    socket.end(`HTTP/1.1 502 ${(error as Error).message.replace(/[^ -~]/g, ' ')}\r\n\r\n`);
  }
}

async function serveOffer(offer: Offer, socket: Duplex, how: How): Promise<void> {
  if (offer.kind === 'portForward') return serveForward(socket, offer.open);
  const streams = await remoteStreams(socket, offer.ask);
  if (streams === null) return;
  if (offer.kind === 'exec') await serveExec(offer.ask, streams, how);
  else await serveAttach(offer.ask, streams);
}

/** Which of the client's protocols is spoken; null for none. */
function protocolOf(req: IncomingMessage, { kind }: Offer): string | null {
  const wanted = kind === 'portForward' ? FORWARD_PROTOCOL : REMOTE_PROTOCOL;
  const offered = (req.headersDistinct['x-stream-protocol-version'] ?? []).flatMap((v) => v.split(',')).map((v) => v.trim());
  const isSpdy = (req.headers.upgrade ?? '').toLowerCase() === 'spdy/3.1';
  return isSpdy && offered.includes(wanted) ? wanted : null;
}

function refuse(socket: Duplex, status: string, words: string): void {
  const body = `${words}\n`;
  socket.end(
    `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

export async function createStreamingServer(o: How & { socketPath: string }): Promise<StreamingServer> {
  const offers = new Map<string, { offer: Offer; timer: NodeJS.Timeout }>();
  const server: Server = createServer((req, res) => {
    if (req.method === 'POST' && req.url?.startsWith('/load?') === true) return void serveLoad(o.oci, req, res);
    res.writeHead(426, { connection: 'close', upgrade: 'SPDY/3.1', 'content-type': 'text/plain' });
    res.end('this address speaks SPDY/3.1 alone\n');
  });
  server.on('upgrade', (req, socket, head) => {
    socket.on('error', () => undefined);
    const token = /^\/(?:exec|attach|portForward)\/([0-9a-f]+)$/.exec(req.url ?? '')?.[1] ?? '';
    const found = offers.get(token);
    if (found === undefined) return refuse(socket, '404 Not Found', 'the offer has expired; try again');
    const protocol = protocolOf(req, found.offer);
    if (protocol === null) return refuse(socket, '403 Forbidden', `this address speaks ${REMOTE_PROTOCOL} over SPDY/3.1`);
    offers.delete(token);
    clearTimeout(found.timer);
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: ${protocol}\r\n\r\n`,
    );
    if (head.length > 0) socket.unshift(head);
    void serveOffer(found.offer, socket, o);
  });
  let tunnel: Tunnel = () => Promise.resolve(null);
  server.on('connect', (req, socket, head) => void serveTunnel(tunnel, { to: req.url ?? '', socket, head }));
  rmSync(o.socketPath, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(o.socketPath, () => {
      server.on('error', () => {});
      resolve();
    });
  });
  chmodSync(o.socketPath, 0o600);
  return {
    offer(offer) {
      const token = randomBytes(16).toString('hex');
      const timer = setTimeout(() => offers.delete(token), TOKEN_MS);
      timer.unref();
      offers.set(token, { offer, timer });
      return `http+unix://${encodeURIComponent(o.socketPath)}/${offer.kind}/${token}`;
    },
    tunnels(open) {
      tunnel = open;
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
