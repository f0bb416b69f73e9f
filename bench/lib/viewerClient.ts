/** One client of the inspection page, in a process of its own: `node viewerClient.ts KIND URL`. It runs until it is killed. */
import { connect, type Socket } from 'node:net';

export const KINDS = ['page', 'slow', 'stuck', 'hostile'] as const;
/** `nobody`: a process like the others that attaches to nothing, for comparison: on few cores its being there costs something. */
export type Kind = (typeof KINDS)[number] | 'nobody';

/** Bytes in each read of the slow client, and how often it reads. */
const SLOW_BYTES = 1_024;
const SLOW_EVERY_MS = 100;
const HOSTILE_AGAIN_MS = 1;

const handshake = (host: string) =>
  `GET /feed HTTP/1.1\r\nhost: ${host}\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`;

/** A masked frame with a mask of zeros: the text as it is. */
function frame(opcode: number, text: string): Buffer {
  const body = Buffer.from(text);
  if (body.length > 125) throw new Error('only short frames');
  return Buffer.concat([Buffer.from([0x80 | opcode, 0x80 | body.length, 0, 0, 0, 0]), body]);
}
const TEXT = 1;
const PING = 9;

function open(host: string, onOpen: (socket: Socket) => void): Socket {
  const [name = '', port = ''] = host.split(':');
  const socket = connect({ port: Number(port), host: name }, () => {
    socket.write(handshake(host));
    onOpen(socket);
  });
  socket.on('error', () => undefined);
  return socket;
}

/** Floods of every sort, over connections that are opened anew as soon as they are cut. */
function hostile(host: string): void {
  const floods = [
    frame(TEXT, '{"t":"watch","actor":"node/sink","decisions":true,"host":true}'),
    frame(TEXT, '{"t":"event","to":"node/sink","event":{"type":"flip"}}'),
    frame(TEXT, ''),
    frame(PING, 'x'.repeat(100)),
    Buffer.from(`GET /api/figures HTTP/1.1\r\nhost: ${host}\r\n\r\n`),
    Buffer.from('\xff\xff\xff\xff', 'latin1'),
  ];
  const flood = (n: number): void => {
    const bytes = floods[n % floods.length] ?? Buffer.alloc(0);
    const many = Buffer.concat(new Array<Buffer>(2_000).fill(bytes));
    const socket = open(host, () => {
      const push = () => {
        if (socket.destroyed) return;
        if (socket.write(many)) setImmediate(push);
        else socket.once('drain', push);
      };
      push();
    });
    // It reads nothing.
    socket.pause();
    socket.on('close', () => setTimeout(() => flood(n), HOSTILE_AGAIN_MS));
  };
  for (let n = 0; n < 2 * floods.length; n++) flood(n);
}

function run(kind: Kind, host: string): void {
  switch (kind) {
    case 'page': {
      const ws = new WebSocket(`ws://${host}/feed`);
      ws.onopen = () => ws.send('{"t":"watch","actor":"node/sink"}');
      ws.onmessage = (e) => void JSON.parse(String(e.data));
      return;
    }
    case 'slow': {
      const socket = open(host, () => socket.write(frame(TEXT, '{"t":"watch","actor":"node/sink"}')));
      socket.pause();
      setInterval(() => socket.read(SLOW_BYTES), SLOW_EVERY_MS);
      return;
    }
    case 'stuck': {
      const socket = open(host, () => socket.write(frame(TEXT, '{"t":"watch","actor":"node/sink"}')));
      socket.pause();
      return;
    }
    case 'nobody':
      setInterval(() => undefined, SLOW_EVERY_MS);
      return;
    case 'hostile':
      hostile(host);
  }
}

if (process.argv[1] === import.meta.filename) run(process.argv[2] as Kind, process.argv[3] ?? '');
