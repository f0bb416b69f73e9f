/**
 * WebSocket of Kubernetes on one side, SPDY/3.1 of the runtime's streaming server on the other (KEP-4006): streams of a
 * command as numbered channels (protocol v5), or frames of SPDY in messages.
 */

import type { Duplex } from 'node:stream';
import { COMMAND_HEADERS, type CommandStreams, RemoteCommand } from '@actorlet/process/src/remoteCommand.ts';
import { createWebSocketStream, type RawData, type WebSocket, WebSocketServer } from 'ws';
import { jsonOf } from '../../../machines/shape/lenient.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import type { Translation } from '../../../ports/sockets/net.ts';
import { connectTo, join, type RelayFrom, switchedAt } from './netRelay.ts';

const CHANNELS = 'v5.channel.k8s.io';
const TUNNEL_PREFIX = 'SPDY/3.1+';
const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
const STATUS = 3;
const RESIZE = 4;
/** A message on this channel says which channel ends. */
const CLOSE = 255;
/** Longest message of a client. Clients of Kubernetes send 32 KiB at most. */
const MESSAGE_BYTES_MAX = 4 * 1024 * 1024;
/** More that the client has not read yet, and the runtime is not read. */
const BACKLOG_BYTES_MAX = 1024 * 1024;
/** After the status the client has this long to close. */
const FAREWELL_MS = 5_000;

/** Resolves when the connection is over. */
export async function translate(url: string, how: Translation, from: RelayFrom): Promise<void> {
  from.socket.on('error', () => from.socket.destroy());
  await (how.kind === 'channels' ? channels(url, how.streams, from) : tunnel(url, how.protocols, from));
}

/** Undefined: it is no WebSocket, and was told so. */
function accepted({ req, socket, head }: RelayFrom, protocol: string): Promise<WebSocket | undefined> {
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MESSAGE_BYTES_MAX,
  });
  // Names of Kubernetes' tunnels have a slash, which is no token of HTTP: the library would refuse them.
  delete req.headers['sec-websocket-protocol'];
  server.on('headers', (headers) => headers.push(`Sec-WebSocket-Protocol: ${protocol}`));
  return new Promise((resolve) => {
    socket.once('close', () => resolve(undefined));
    server.handleUpgrade(req, socket, head, resolve);
  });
}

async function channels(url: string, streams: CommandStreams, from: RelayFrom): Promise<void> {
  const ws = await accepted(from, CHANNELS);
  if (ws === undefined) return;
  ws.on('error', () => ws.terminate());
  const closed = new Promise<void>((resolve) => void ws.once('close', () => resolve()));
  const stop = (): void => ws.terminate();
  from.signal.addEventListener('abort', stop, { once: true });
  // Input waits until there is a command to take it.
  ws.pause();
  // An empty message tells the client that the connection stands.
  tell(ws, streams.stdout ? STDOUT : streams.stderr ? STDERR : STATUS, '');
  try {
    const up = await connectTo(url, from, { method: 'POST', headers: { ...COMMAND_HEADERS, 'content-length': 0 } });
    if (up.kind === 'refused') throw new Error(`unable to upgrade connection: ${up.body.trim()}`);
    if (up.head.length > 0) up.socket.unshift(up.head);
    command(ws, up.socket, streams);
  } catch (error) {
    farewell(ws, internalError(messageOf(error)));
  }
  await closed;
  from.signal.removeEventListener('abort', stop);
}

function command(ws: WebSocket, socket: Duplex, streams: CommandStreams): void {
  const running = new RemoteCommand(socket, streams, {
    output: (name, part) => tell(ws, name === 'stdout' ? STDOUT : STDERR, part),
    ended: (status) => farewell(ws, isStatus(status) ? status : internalError(status)),
    broken: (why) => farewell(ws, internalError(why)),
  });
  const hear = (input: 'stdin' | 'resize', bytes: Buffer): void => {
    if (running.write(input, bytes)) return;
    ws.pause();
    socket.once('drain', () => ws.resume());
  };
  ws.on('message', (raw) => {
    const message = bytesOf(raw);
    const [channel, ended] = message;
    if (channel === STDIN) hear('stdin', message.subarray(1));
    else if (channel === RESIZE) hear('resize', message.subarray(1));
    else if (channel === CLOSE && (message.length !== 2 || Number(ended) > RESIZE)) leave(ws);
    else if (channel === CLOSE && ended === STDIN) running.finish('stdin');
  });
  // The client has gone: so does the command's connection.
  ws.once('close', () => running.drop());
  ws.resume();
}

/** A promise where the client is behind: it resolves when this message was taken. */
function tell(ws: WebSocket, channel: number, text: string | Buffer): Promise<void> | undefined {
  const message = Buffer.concat([Buffer.of(channel), typeof text === 'string' ? Buffer.from(text) : text]);
  if (ws.bufferedAmount < BACKLOG_BYTES_MAX) {
    ws.send(message, () => undefined);
    return undefined;
  }
  return new Promise((resolve) => ws.send(message, () => resolve()));
}

/** The last word of a command. */
function farewell(ws: WebSocket, status: string): void {
  void tell(ws, STATUS, status);
  leave(ws);
}
/** What the client still says is not heard. */
function leave(ws: WebSocket): void {
  ws.removeAllListeners('message');
  ws.resume();
  ws.close(1000);
  const timer = setTimeout(() => ws.terminate(), FAREWELL_MS);
  ws.once('close', () => clearTimeout(timer));
}

/** As the API server and the kubelet word it. */
function internalError(why: string): string {
  return JSON.stringify({
    metadata: {},
    status: 'Failure',
    message: `Internal error occurred: ${why}`,
    reason: 'InternalError',
    details: { causes: [{ message: why }] },
    code: 500,
  });
}

function isStatus(text: string): boolean {
  const value = jsonOf(text);
  return typeof value === 'object' && value !== null && 'status' in value;
}

function bytesOf(raw: RawData): Buffer {
  if (Buffer.isBuffer(raw)) return raw;
  return Array.isArray(raw) ? Buffer.concat(raw) : Buffer.from(raw);
}

async function tunnel(url: string, protocols: readonly string[], from: RelayFrom): Promise<void> {
  const headers = { ...COMMAND_HEADERS, 'x-stream-protocol-version': [...protocols], 'content-length': 0 };
  const up = await switchedAt(url, from, { method: 'POST', headers });
  if (up === null) return;
  const chosen = up.res.headersDistinct['x-stream-protocol-version']?.[0] ?? '';
  const ws = await accepted(from, `${TUNNEL_PREFIX}${chosen}`);
  if (ws === undefined) {
    up.socket.destroy();
    return;
  }
  const near = createWebSocketStream(ws);
  near.on('error', () => near.destroy());
  if (up.head.length > 0) up.socket.unshift(up.head);
  await join(near, up.socket, from.signal);
}
