/**
 * The WebSocket protocols of Kubernetes that CRI's streaming server speaks: streams are numbered channels. Each message begins
 * with its channel, and is binary or base64.
 */
import type { IncomingMessage } from 'node:http';
import { Duplex, type Readable, type Writable } from 'node:stream';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';

interface Protocol {
  base64: boolean;
  /** How a command ended is told as a Status in JSON. Otherwise a failure in words. */
  status: boolean;
}
type Protocols = Readonly<Record<string, Protocol>>;
/** '': the client names none. */
const COMMAND_PROTOCOLS: Protocols = {
  '': { base64: false, status: false },
  'channel.k8s.io': { base64: false, status: false },
  'base64.channel.k8s.io': { base64: true, status: false },
  'v4.channel.k8s.io': { base64: false, status: true },
  'v4.base64.channel.k8s.io': { base64: true, status: true },
};
const FORWARD_PROTOCOLS: Protocols = {
  '': { base64: false, status: true },
  'v4.channel.k8s.io': { base64: false, status: true },
  'v4.base64.channel.k8s.io': { base64: true, status: true },
};
/** Longest message of a client. */
const MESSAGE_BYTES_MAX = 4 * 1024 * 1024;
/** More that the client has not read yet, and nothing more is read for it. */
const BACKLOG_BYTES_MAX = 1024 * 1024;
/** After the last word the client has this long to close. */
const FAREWELL_MS = 5_000;
const ZERO = '0'.charCodeAt(0);
/** A channel is one byte, or one sign from `0` on. */
export const CHANNELS_MAX = 0x100;

export const isWebSocket = (req: IncomingMessage): boolean => (req.headers.upgrade ?? '').toLowerCase() === 'websocket';

export interface Agreed extends Protocol {
  name: string;
}
/** The first of the client's that is spoken here; null for none of them. */
export function agreed(req: IncomingMessage, kind: 'command' | 'forward'): Agreed | null {
  const spoken = kind === 'command' ? COMMAND_PROTOCOLS : FORWARD_PROTOCOLS;
  const header = req.headers['sec-websocket-protocol'] ?? '';
  const offered = header === '' ? [''] : header.split(',').map((name) => name.trim());
  for (const name of offered) {
    const found = Object.hasOwn(spoken, name) ? spoken[name] : undefined;
    if (found !== undefined) return { name, ...found };
  }
  return null;
}

/** Undefined: it is no WebSocket, and was told so. */
export function accept(
  at: { req: IncomingMessage; socket: Duplex; head: Buffer },
  protocol: Agreed,
  channels: number,
): Promise<Channels | undefined> {
  const { req, socket, head } = at;
  const server = new WebSocketServer({
    ...{ noServer: true, clientTracking: false, perMessageDeflate: false, maxPayload: MESSAGE_BYTES_MAX },
    handleProtocols: () => (protocol.name === '' ? false : protocol.name),
  });
  return new Promise((resolve) => {
    socket.once('close', () => resolve(undefined));
    server.handleUpgrade(req, socket, head, (ws) => resolve(new Channels(ws, protocol, channels)));
  });
}

export class Channels {
  readonly #ws: WebSocket;
  readonly #base64: boolean;
  readonly #streams: (Duplex | undefined)[];
  readonly closed: Promise<void>;

  constructor(ws: WebSocket, { base64 }: Protocol, channels: number) {
    this.#ws = ws;
    this.#base64 = base64;
    this.#streams = Array.from({ length: channels }, () => undefined);
    ws.on('error', () => ws.terminate());
    this.closed = new Promise((resolve) => {
      ws.once('close', () => {
        for (const stream of this.#streams) stream?.destroy();
        resolve();
      });
    });
    ws.on('message', (raw) => this.#hear(bytesOf(raw)));
  }

  /** Asked for once for each channel. What the client says on other channels is dropped. */
  open(channel: number): Duplex {
    const stream = new Duplex({
      read: () => this.#ws.resume(),
      write: (chunk: Buffer, _, done) => this.tell(channel, chunk, done),
    });
    stream.on('error', () => undefined);
    this.#streams[channel] = stream;
    return stream;
  }
  readable(channel: number): Readable {
    return this.open(channel);
  }
  writable(channel: number): Writable {
    return this.open(channel).resume();
  }

  tell(channel: number, chunk: Buffer, done: () => void = () => undefined): void {
    const message = this.#base64
      ? `${String.fromCharCode((ZERO + channel) & 0xff)}${chunk.toString('base64')}`
      : Buffer.concat([Buffer.of(channel), chunk]);
    const full = this.#ws.bufferedAmount >= BACKLOG_BYTES_MAX;
    this.#ws.send(message, () => full && done());
    if (!full) done();
  }

  /** What was told is sent first. */
  close(): void {
    this.#ws.resume();
    this.#ws.close(1000);
    const timer = setTimeout(() => this.#ws.terminate(), FAREWELL_MS);
    this.#ws.once('close', () => clearTimeout(timer));
  }
  cut(): void {
    this.#ws.terminate();
  }

  #hear(message: Buffer): void {
    const first = message[0];
    if (first === undefined) return;
    const channel = this.#base64 ? first - ZERO : first;
    const stream = this.#streams[channel];
    if (stream === undefined || stream.readableEnded) return;
    const bytes = this.#base64 ? decoded(message.toString('latin1', 1)) : message.subarray(1);
    if (bytes.length > 0 && !stream.push(bytes)) this.#ws.pause();
  }
}

/** As Go reads base64, which may be broken into lines. A message that is none is dropped. */
function decoded(text: string): Buffer {
  const whole = text.replace(/[\r\n]/g, '');
  return whole.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(whole) ? Buffer.from(whole, 'base64') : Buffer.alloc(0);
}

function bytesOf(raw: RawData): Buffer {
  if (Buffer.isBuffer(raw)) return raw;
  return Array.isArray(raw) ? Buffer.concat(raw) : Buffer.from(raw);
}
