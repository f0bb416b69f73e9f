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
import { accept, agreed, CHANNELS_MAX, isWebSocket } from './channels.ts';
import { serveExec } from './exec.ts';
import { FORWARD_PROTOCOL, serveForward, serveForwardChannels } from './forward.ts';
import { COMMAND_CHANNELS, channelStreams, type RemoteStreams, remoteStreams, SPDY_PROTOCOLS } from './remote.ts';

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

interface Switch {
  req: IncomingMessage;
  socket: Duplex;
  head: Buffer;
}

async function serveCommand(offer: Exclude<Offer, { kind: 'portForward' }>, streams: RemoteStreams | null, how: How): Promise<void> {
  if (streams === null) return;
  if (offer.kind === 'exec') await serveExec(offer.ask, streams, how);
  else await serveAttach(offer.ask, streams);
}

/** Null: none of the client's protocols is spoken. Otherwise what serves it. */
function served(offer: Offer, at: Switch, how: How): (() => Promise<void>) | null {
  if (isWebSocket(at.req)) return byChannels(offer, at, how);
  const protocol = spdyProtocol(at.req, offer);
  if (protocol === null) return null;
  return async () => {
    const { socket, head } = at;
    const version = protocol === '' ? '' : `X-Stream-Protocol-Version: ${protocol}\r\n`;
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n${version}\r\n`);
    if (head.length > 0) socket.unshift(head);
    if (offer.kind === 'portForward') serveForward(socket, offer.open);
    else await serveCommand(offer, await remoteStreams(socket, offer.ask, protocol), how);
  };
}

function byChannels(offer: Offer, at: Switch, how: How): (() => Promise<void>) | null {
  const protocol = agreed(at.req, offer.kind === 'portForward' ? 'forward' : 'command');
  const count = offer.kind === 'portForward' ? 2 * offer.ports.length : COMMAND_CHANNELS;
  if (protocol === null || count > CHANNELS_MAX) return null;
  return async () => {
    const channels = await accept(at, protocol, count);
    if (channels === undefined) return;
    if (offer.kind === 'portForward') await serveForwardChannels(channels, offer.ports, offer.open);
    else await serveCommand(offer, channelStreams(channels, offer.ask, protocol), how);
  };
}

/** The first of the client's that is spoken; '' where it names none, null for none of them. */
function spdyProtocol(req: IncomingMessage, { kind }: Offer): string | null {
  if ((req.headers.upgrade ?? '').toLowerCase() !== 'spdy/3.1') return null;
  const spoken = kind === 'portForward' ? [FORWARD_PROTOCOL] : Object.keys(SPDY_PROTOCOLS);
  const offered = (req.headersDistinct['x-stream-protocol-version'] ?? []).flatMap((v) => v.split(',')).map((v) => v.trim());
  return offered.length === 0 ? '' : (offered.find((name) => spoken.includes(name)) ?? null);
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
    res.end('this address speaks SPDY/3.1 and WebSocket\n');
  });
  server.on('upgrade', (req, socket, head) => {
    socket.on('error', () => undefined);
    const token = /^\/(?:exec|attach|portForward)\/([0-9a-f]+)$/.exec(req.url ?? '')?.[1] ?? '';
    const found = offers.get(token);
    if (found === undefined) return refuse(socket, '404 Not Found', 'the offer has expired; try again');
    const serve = served(found.offer, { req, socket, head }, o);
    if (serve === null) return refuse(socket, '403 Forbidden', 'this address speaks none of the protocols that the client names');
    offers.delete(token);
    clearTimeout(found.timer);
    serve().catch(() => socket.destroy());
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
