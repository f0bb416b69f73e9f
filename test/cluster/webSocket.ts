/** A WebSocket client of the kubelet's API for tests: TLS, a client certificate, channels as the first byte of each frame. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import type { Duplex } from 'node:stream';
import type { KeyPair } from '../e2e/lab/pki.ts';

export interface Frame {
  channel: number;
  bytes: Buffer;
}
export interface Channels {
  frames: Frame[];
  /** What came on that channel so far. */
  text(channel: number): string;
  send(channel: number, text: string): void;
  close(): void;
  readonly ended: boolean;
}

const BINARY = 2;
const CLOSE = 8;

/** Rejects with the status and body of a refusal. */
export function openChannels(o: { port: number; path: string; client: KeyPair; ca: string; protocol: string }): Promise<Channels> {
  return new Promise((resolve, reject) => {
    const req = request({
      ...{ host: '127.0.0.1', port: o.port, path: o.path, agent: false as const },
      ...{ ca: readFileSync(o.ca), cert: readFileSync(o.client.certFile), key: readFileSync(o.client.keyFile) },
      headers: {
        ...{ connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' },
        ...{ 'sec-websocket-key': randomBytes(16).toString('base64'), 'sec-websocket-protocol': o.protocol },
      },
    });
    req.once('error', reject);
    req.once('response', (res) => {
      let body = '';
      res.on('data', (d: Buffer) => {
        body += d.toString();
      });
      res.once('end', () => reject(new Error(`${res.statusCode} ${body.trim()}`)));
    });
    req.once('upgrade', (_res, socket, head) => resolve(channels(socket, head)));
    req.end();
  });
}

/** The client's end of a connection that was switched. */
export function channels(socket: Duplex, head: Buffer): Channels {
  const frames: Frame[] = [];
  let rest = Buffer.alloc(0);
  let ended = false;
  const read = (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const found = unframe(rest);
      if (found === undefined) return;
      rest = rest.subarray(found.used);
      if (found.opcode === CLOSE) socket.end();
      else frames.push({ channel: found.payload[0] ?? -1, bytes: found.payload.subarray(1) });
    }
  };
  socket.on('data', read);
  socket.on('error', () => undefined);
  socket.once('close', () => {
    ended = true;
  });
  read(head);
  return {
    frames,
    text: (channel) => Buffer.concat(frames.filter((f) => f.channel === channel).map((f) => f.bytes)).toString(),
    send: (channel, text) => void socket.write(masked(Buffer.concat([Buffer.from([channel]), Buffer.from(text)]))),
    close: () => void socket.destroy(),
    get ended() {
      return ended;
    },
  };
}

function unframe(b: Buffer): { opcode: number; payload: Buffer; used: number } | undefined {
  if (b.length < 2) return undefined;
  const short = (b[1] ?? 0) & 0x7f;
  const start = short === 126 ? 4 : short === 127 ? 10 : 2;
  if (b.length < start) return undefined;
  const length = short === 126 ? b.readUInt16BE(2) : short === 127 ? Number(b.readBigUInt64BE(2)) : short;
  if (b.length < start + length) return undefined;
  return { opcode: (b[0] ?? 0) & 0x0f, payload: b.subarray(start, start + length), used: start + length };
}

/** One frame of up to 125 bytes, masked as a client's must be. */
function masked(payload: Buffer): Buffer {
  const mask = randomBytes(4);
  const body = Buffer.from(payload.map((byte, i) => byte ^ (mask[i % 4] ?? 0)));
  return Buffer.concat([Buffer.from([0x80 | BINARY, 0x80 | payload.length]), mask, body]);
}
