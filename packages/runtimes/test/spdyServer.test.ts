/** The server's side of SPDY against clients that are hostile or broken: bounded, and never anybody else's trouble. */
import { once } from 'node:events';
import { createServer, type Server, Socket } from 'node:net';
import { constants, deflateSync } from 'node:zlib';
import { data, HeaderWriter, spdyReader, synStream } from '@actorlet/process/src/spdy.ts';
import { SpdyConnection, type SpdyStream } from '@actorlet/process/src/spdyConnection.ts';
import { afterEach, expect, it } from 'vitest';
import { eventually } from './conformance.ts';

let server: Server | undefined;
const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server?.close();
});

/** A client's socket, and the streams that the server saw. */
async function connected() {
  const streams: SpdyStream[] = [];
  const open: SpdyConnection[] = [];
  server = createServer((socket) => open.push(new SpdyConnection(socket, (stream) => streams.push(stream))));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = new Socket();
  sockets.push(socket);
  socket.on('error', () => undefined);
  socket.connect((server.address() as { port: number }).port, '127.0.0.1');
  await once(socket, 'connect');
  const connection = await eventually('the server has it', () => open[0]);
  return { socket, streams, connection };
}

it.each<[string, Buffer]>([
  ['no SPDY', Buffer.from('GET / HTTP/1.1\r\nhost: here\r\n\r\n'.repeat(10)).fill(0x80, 0, 1)],
  ['a frame of another version', Buffer.from([0x80, 9, 0, 1, 0, 0, 0, 0])],
  ['a control frame that is too long', Buffer.from([0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff])],
  ['a header block that is none', synStream(1, Buffer.from('no zlib at all'))],
  [
    'a header block that ends too early',
    synStream(1, deflateSync(Buffer.from([0, 0, 0, 9, 0, 0, 0, 5]), { finishFlush: constants.Z_SYNC_FLUSH })),
  ],
  ['a stream without an id', Buffer.from([0x80, 3, 0, 1, 0, 0, 0, 2, 1, 2])],
  [
    'a bomb of headers',
    synStream(1, deflateSync(Buffer.alloc(30 * 1024 * 1024), { finishFlush: constants.Z_SYNC_FLUSH, level: 9 }).subarray(0, 60_000)),
  ],
])('ends the connection of a client that sends %s', async (_what, bytes) => {
  const { socket, streams, connection } = await connected();
  socket.resume();
  socket.write(bytes);
  await Promise.all([once(socket, 'close'), connection.closed]);
  expect(streams).toEqual([]);
});

it('refuses a stream beyond the most, and a second one of the same id, and serves the others', async () => {
  const { socket, streams } = await connected();
  const headers = new HeaderWriter();
  const refused: number[] = [];
  const read = spdyReader({
    data: () => undefined,
    end: () => undefined,
    control: (type, payload) => void (type === 3 && refused.push(payload.readUInt32BE(0))),
  });
  socket.on('data', read);
  for (let id = 1; id <= 2 * 1025; id += 2) socket.write(synStream(id, headers.block({ streamtype: 'data' })));
  socket.write(synStream(1, headers.block({ streamtype: 'data' })));
  await eventually('two are refused', () => refused.length === 2 || undefined);
  expect([refused, streams.length]).toEqual([[2049, 1], 1024]);
  socket.write(data(3, Buffer.from('hello')));
  socket.write(data(9999, Buffer.from('nobody')));
  expect(String((await once(streams[1] ?? socket, 'data'))[0])).toBe('hello');
});

it('holds up a client whose stream nobody reads, and drops all with the connection', async () => {
  const { socket, streams, connection } = await connected();
  socket.write(synStream(1, new HeaderWriter().block({ streamtype: 'stdin' })));
  const block = Buffer.alloc(64 * 1024);
  let sent = 0;
  const more = (): void => {
    for (; sent < 64 * 1024 * 1024; sent += block.length) if (!socket.write(data(1, block))) return void socket.once('drain', more);
  };
  more();
  const stream = await eventually('the stream', () => streams[0]);
  await eventually('it is full', () => stream.readableLength >= 1024 * 1024 || undefined);
  const before = sent;
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(stream.readableLength).toBeLessThan(2 * 1024 * 1024);
  expect(before).toBeLessThan(64 * 1024 * 1024);
  socket.destroy();
  await connection.closed;
  expect(stream.destroyed).toBe(true);
});
