/** Many connections at once: how they are taken, and which go when there are more of them than places. */
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { describe, expect, test } from 'vitest';
import { ACCEPTS_MAX, acceptMany } from '../../../src/boot/dependencies/net/acceptMany.ts';
import { Connections, SPEECHLESS_CONNECTIONS_MAX, UNKNOWN_CONNECTIONS_MAX } from '../../../src/boot/dependencies/net/netConnections.ts';
import { HELLO_BYTES_MAX, isHello, paced } from '../../../src/boot/dependencies/net/netHello.ts';

class FakeSocket extends EventEmitter {
  bytesRead = 0;
  writableLength = 0;
  writableEnded = false;
  destroyed = false;
  readonly remoteAddress: string;
  constructor(remoteAddress: string) {
    super();
    this.remoteAddress = remoteAddress;
  }
  destroy(): void {
    this.destroyed = true;
    this.emit('close');
  }
}

function bench() {
  const connections = new Connections();
  const open = (n: number, from = '10.0.0.1', o = { tls: false }): FakeSocket[] =>
    Array.from({ length: n }, () => {
      const socket = new FakeSocket(from);
      connections.add(socket as unknown as Socket, o);
      return socket;
    });
  const of = (socket: FakeSocket) => connections.of(socket as unknown as Socket);
  const greeted = (sockets: readonly FakeSocket[]) => {
    for (const socket of sockets) connections.greeted(socket as unknown as Socket);
  };
  const silent = (socket: FakeSocket) => connections.silent(socket as unknown as Socket);
  return { open, of, greeted, silent };
}
const it = test.extend('b', () => bench());
const left = (sockets: readonly FakeSocket[]): number => sockets.filter((s) => !s.destroyed).length;

describe('connections of unknown senders, more than there are places', () => {
  it('lose the oldest, also one that has said much: a newcomer has its time to speak', ({ b }) => {
    const talking = b.open(UNKNOWN_CONNECTIONS_MAX);
    for (const socket of talking) {
      socket.bytesRead = 10_000;
      b.of(socket)?.begin();
    }
    const late = b.open(100);
    expect([left(late), left(talking), left(talking.slice(0, 100))]).toEqual([100, UNKNOWN_CONNECTIONS_MAX - 100, 0]);
  });

  it('take none of the places of another address', ({ b }) => {
    const few = b.open(20, '10.0.0.2');
    const many = b.open(2 * UNKNOWN_CONNECTIONS_MAX);
    expect([left(few), left(many)]).toEqual([20, UNKNOWN_CONNECTIONS_MAX - 20]);
  });

  it('take none of the places of those who have said hello, while they have not', ({ b }) => {
    const [asking, speechless] = [UNKNOWN_CONNECTIONS_MAX, SPEECHLESS_CONNECTIONS_MAX];
    const polite = Array.from({ length: asking / 64 }, () => {
      const some = b.open(64, '10.0.0.1', { tls: true });
      b.greeted(some);
      return some;
    }).flat();
    const silent = b.open(5 * speechless, '10.0.0.1', { tls: true });
    expect([left(polite), left(silent)]).toEqual([asking, speechless]);
    b.greeted(silent.slice(-10));
    expect([left(polite), left(silent)]).toEqual([asking - 10, speechless]);
    for (const socket of silent) socket.destroy();
    expect(left(b.open(speechless, '10.0.0.1', { tls: true }))).toBe(speechless);
  });
});

it('a silent connection ends, unless all of its answer was taken or its sender is known', ({ b }) => {
  const [reader] = b.open(1);
  if (reader === undefined) throw new Error('it was not taken');
  expect(b.silent(reader)).toBe('end');
  const answering = b.of(reader)?.begin();
  expect(b.silent(reader)).toBe('wait');
  reader.writableLength = 1;
  expect(b.silent(reader)).toBe('end');
  b.of(reader)?.known();
  expect(b.silent(reader)).toBe('longer');
  [reader.writableLength, reader.writableEnded] = [0, true];
  expect(b.silent(reader)).toBe('longer');
  answering?.end();
  expect(b.silent(reader)).toBe('end');
});

describe('the beginning of a TLS connection', () => {
  const record = (bytes: number, said = bytes): Buffer => Buffer.from([0x16, 3, 1, bytes >> 8, bytes & 0xff, ...new Uint8Array(said)]);

  it.each([
    ['nothing', Buffer.alloc(0), false],
    ['a part of the head of a record', record(200).subarray(0, 4), false],
    ['a part of a record', record(200, 199), false],
    ['a whole record', record(200), true],
    ['more than a record', Buffer.concat([record(200), record(3, 1)]), true],
    ['the longest hello but one byte', record(HELLO_BYTES_MAX, HELLO_BYTES_MAX - 1), false],
    ['a record that is longer', record(HELLO_BYTES_MAX + 1, 0), true],
    ['plain HTTP', Buffer.from('G'), true],
  ] as const)('is %s', (_, said, whole) => {
    expect(isHello(said)).toBe(whole);
  });

  it('is followed by few handshakes in a turn of the loop, in order', async () => {
    const inTurn = paced(2);
    const done: number[] = [];
    for (let i = 0; i < 5; i++) inTurn(() => done.push(i));
    const perTurn: number[] = [];
    while (perTurn.at(-1) !== 5) {
      perTurn.push(done.length);
      await turn();
    }
    expect(done).toEqual([0, 1, 2, 3, 4]);
    expect([...new Set(perTurn)]).toEqual([2, 4, 5]);
    inTurn(() => done.push(5));
    expect(done.at(-1)).toBe(5);
  });
});

/** In a thread of its own, so that they come while this one is busy. */
const CALLERS = `
  const { get } = require('node:http');
  const { parentPort, workerData: { port, count } } = require('node:worker_threads');
  const call = () => new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, agent: false }, (res) => res.resume().on('end', resolve)).on('error', reject);
  });
  parentPort.postMessage('calling');
  Promise.all(Array.from({ length: count }, call)).then(() => parentPort.postMessage('answered'), (e) => { throw e; });
`;

it.runIf(process.platform === 'linux')('takes many waiting connections in a turn of the loop', async () => {
  const server = createServer((_req, res) => void res.end('ok'));
  const perTurn = new Map<number, number>();
  let turns = 0;
  server.on('connection', () => perTurn.set(turns, (perTurn.get(turns) ?? 0) + 1));
  await once(server.listen({ port: 0, host: '127.0.0.1', backlog: 1024 }), 'listening');
  acceptMany(server);
  const callers = new Worker(CALLERS, { eval: true, workerData: { port: (server.address() as AddressInfo).port, count: 300 } });
  try {
    await once(callers, 'message');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
    const answered = once(callers, 'message');
    let over = false;
    void answered.then(() => {
      over = true;
    });
    while (!over) {
      turns += 1;
      await turn();
    }
    expect(await answered).toEqual(['answered']);
    expect(Math.max(...perTurn.values())).toBe(ACCEPTS_MAX);
    expect(perTurn.size).toBeLessThan(100);
  } finally {
    await callers.terminate();
    server.close();
    server.closeAllConnections();
  }
});

it.runIf(process.platform === 'linux')(
  'leaves connections that say nothing to the kernel, and takes one as soon as it speaks',
  async () => {
    const server = createServer((_req, res) => void res.end('ok'));
    const taken = { count: 0 };
    server.on('connection', () => {
      taken.count += 1;
    });
    await once(server.listen({ port: 0, host: '127.0.0.1' }), 'listening');
    acceptMany(server);
    const { port } = server.address() as AddressInfo;
    const silent = Array.from({ length: 20 }, () => connect({ host: '127.0.0.1', port }));
    try {
      await Promise.all(silent.map((socket) => once(socket, 'connect')));
      expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe('ok');
      expect(taken.count).toBe(1);
      silent[7]?.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      expect(String(await once(silent[7] as Socket, 'data'))).toContain('200 OK');
      expect(taken.count).toBe(2);
    } finally {
      for (const socket of silent) socket.destroy();
      server.close();
      server.closeAllConnections();
    }
  },
);
