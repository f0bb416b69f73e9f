/** Peers that connect and never end: a real daemon on loopback answers everybody else all the same. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { get as plainGet } from 'node:http';
import { get as secureGet } from 'node:https';
import { createConnection, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { startNode, type TestNode } from '@actorlet/harness/src/index.ts';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { createNet } from '../../../src/boot/dependencies/net/net.ts';
import { issueCertificate } from '../../../src/boot/process/selfSigned.ts';
import { until } from '../../edge/harness.ts';
import { freePort } from '../../freePort.ts';

const MIB = 1024 * 1024;
/** More than the places there are for those who are not known. */
const SILENT = 560;
let dir: string;
let node: TestNode;
let ports: { healthz: number; https: number; readOnly: number };
let client: { cert: string; key: string };
const held = new Set<Socket>();
let atRest: number;

/** The start of a node does not wait for its health port. */
function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1');
    socket.once('error', () => resolve(false));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
}

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-held-'));
  const keys = () => generateKeyPairSync('rsa', { modulusLength: 2048 });
  const [ca, own] = [keys(), keys()];
  const issuer = { subject: { commonName: 'clients' }, keys: ca };
  const times = { notBeforeMs: Date.now() - 3_600_000, notAfterMs: Date.now() + 3_600_000 };
  const sign = (o: { commonName: string; of: typeof ca; use: 'ca' | 'client' }) =>
    issueCertificate({ ...times, subject: { commonName: o.commonName }, publicKey: o.of.publicKey, use: o.use, issuer });
  writeFileSync(join(dir, 'ca.crt'), sign({ commonName: 'clients', of: ca, use: 'ca' }));
  client = {
    cert: sign({ commonName: 'ann', of: own, use: 'client' }),
    key: String(own.privateKey.export({ type: 'pkcs8', format: 'pem' })),
  };
  const [healthz, https] = [await freePort(), await freePort()];
  node = await startNode({
    runtime: 'hollow',
    readOnlyPort: true,
    startTimeoutMs: 120_000,
    flags: ['--cert-dir', join(dir, 'pki')],
    config: {
      healthzPort: healthz,
      enableServer: true,
      port: https,
      authentication: { x509: { clientCAFile: join(dir, 'ca.crt') }, webhook: { enabled: false }, anonymous: { enabled: false } },
      authorization: { mode: 'AlwaysAllow' },
    },
  });
  ports = { healthz, https, readOnly: Number(new URL(node.url ?? '').port) };
  while (!(await listens(healthz))) await new Promise((resolve) => setTimeout(resolve, 20));
  atRest = socketsOfDaemon();
}, 180_000);
afterEach(async () => {
  for (const socket of held) socket.destroy();
  held.clear();
  await until(() => socketsOfDaemon() <= atRest + 5, 20_000);
});
afterAll(async () => {
  await node?.dispose();
  rmSync(dir, { recursive: true, force: true });
}, 120_000);

/** Keeps its side open whatever the other one does. */
function hold(port: number, first = ''): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ host: '127.0.0.1', port, allowHalfOpen: true });
    held.add(socket);
    socket.once('close', () => held.delete(socket));
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject);
      socket.on('error', () => undefined);
      if (first !== '') socket.write(first);
      resolve(socket);
    });
  });
}
async function holdMany(port: number, n: number, first = ''): Promise<Socket[]> {
  const all: Socket[] = [];
  while (all.length < n) all.push(...(await Promise.all(Array.from({ length: Math.min(100, n - all.length) }, () => hold(port, first)))));
  return all;
}
function answer(url: string, o: object = {}): Promise<{ status: number; ms: number }> {
  const startMs = performance.now();
  return new Promise((resolve, reject) => {
    const get = url.startsWith('https') ? secureGet : plainGet;
    const req = get(url, { agent: false, timeout: 10_000, rejectUnauthorized: false, ...o }, (res) => {
      res.resume();
      res.once('end', () => resolve({ status: res.statusCode ?? 0, ms: performance.now() - startMs }));
    });
    req.once('timeout', () => req.destroy(new Error('no answer')));
    req.once('error', reject);
  });
}
/** Five at once, each on a connection of its own. */
const fine = async (url: string, o: object = {}): Promise<void> => {
  const answers = await Promise.all(Array.from({ length: 5 }, () => answer(url, o)));
  expect(answers.map((a) => a.status)).toEqual([200, 200, 200, 200, 200]);
  expect(Math.max(...answers.map((a) => a.ms))).toBeLessThan(5_000);
};
const residentMib = (): number => Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${node.pid}/status`, 'utf8'))?.[1]) / 1024;
const socketsOfDaemon = (): number => readdirSync(`/proc/${node.pid}/fd`).length;

it('silent ones do not keep /healthz, the read-only port or the API from answering', async () => {
  for (const port of Object.values(ports)) await holdMany(port, SILENT);
  await fine(`http://127.0.0.1:${ports.healthz}/healthz`);
  await fine(`http://127.0.0.1:${ports.readOnly}/healthz`);
  await fine(`https://127.0.0.1:${ports.https}/pods`, client);
  expect(socketsOfDaemon() - atRest).toBeLessThan(3 * 512 + 50);
}, 120_000);

it('silent ones lose their place by time, and those who never finish a request or a handshake too', async () => {
  await holdMany(ports.healthz, 50);
  await holdMany(ports.healthz, 50, 'GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ');
  await holdMany(ports.https, 50);
  // The beginning of a record that never ends.
  await holdMany(ports.https, 50, '\x16\x03\x01\x02\x00\x01');
  // Those that say nothing at all are the kernel's for that time.
  await until(() => socketsOfDaemon() - atRest > 80, 5_000);
  await until(() => socketsOfDaemon() - atRest < 20, 20_000);
}, 60_000);

it('a handshake that gets one byte more now and then ends all the same', async () => {
  const [slow] = await holdMany(ports.https, 1, '\x16\x03\x01\x02\x00\x01');
  const trickle = setInterval(() => slow?.write('\x00'), 500);
  try {
    await until(() => slow?.destroyed === true || socketsOfDaemon() <= atRest, 20_000);
  } finally {
    clearInterval(trickle);
  }
}, 60_000);

it('beginnings of handshakes cost no memory to speak of, and end none that has gone on', async () => {
  const polite = connectTls({ host: '127.0.0.1', port: ports.https, rejectUnauthorized: false });
  held.add(polite);
  polite.on('error', () => undefined);
  await new Promise((resolve) => polite.once('secureConnect', resolve));
  const before = residentMib();
  for (let n = 0; n < 4; n++) await holdMany(ports.https, SILENT, '\x16\x03\x01\x02\x00\x01');
  expect(residentMib() - before).toBeLessThan(30);
  const first = new Promise((resolve) => polite.once('data', (d: Buffer) => resolve(d.toString('latin1').split('\r\n')[0])));
  polite.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  expect(await first).toBe('HTTP/1.1 401 Unauthorized');
}, 60_000);

it('a hello that comes in pieces is understood', async () => {
  const raw = await hold(ports.https);
  const pieces = new Duplex({
    read: () => undefined,
    write(bytes: Buffer, _encoding, done) {
      for (let i = 0; i < bytes.length; i += 50) setTimeout(() => raw.write(bytes.subarray(i, i + 50)), i);
      setTimeout(done, bytes.length + 50);
    },
  });
  raw.on('data', (d) => pieces.push(d));
  const secure = connectTls({ socket: pieces, rejectUnauthorized: false, ...client });
  const first = new Promise((resolve, reject) => {
    secure.once('error', reject);
    secure.once('data', (d: Buffer) => resolve(d.toString('latin1').split('\r\n')[0]));
  });
  secure.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  expect(await first).toBe('HTTP/1.1 200 OK');
  secure.destroy();
}, 60_000);

it('an authenticated one keeps its place, however many come after it', async () => {
  const kept = connectTls({ host: '127.0.0.1', port: ports.https, rejectUnauthorized: false, ...client });
  held.add(kept);
  const statuses: string[] = [];
  kept.on('data', (d: Buffer) => statuses.push(...(d.toString('latin1').match(/^HTTP\/1\.1 \d+/gm) ?? [])));
  const ask = async (n: number) => {
    kept.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await until(() => statuses.length === n, 20_000);
  };
  await ask(1);
  await holdMany(ports.https, SILENT);
  await ask(2);
  expect(statuses).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200']);
}, 60_000);

it('long heads before authentication fill no memory, and one that is too long is 431', async () => {
  const before = residentMib();
  const part = `GET /pods HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(MIB)}`;
  await Promise.all(
    Array.from({ length: SILENT }, async () => {
      const socket = connectTls({ host: '127.0.0.1', port: ports.https, rejectUnauthorized: false });
      held.add(socket);
      socket.on('error', () => undefined);
      await new Promise((resolve) => {
        socket.once('secureConnect', () => socket.write(part, resolve));
        socket.once('close', resolve);
      });
    }),
  );
  expect(residentMib() - before).toBeLessThan(250);
  await fine(`https://127.0.0.1:${ports.https}/pods`, client);
  const tooLong = { ...client, headers: { 'x-long': 'x'.repeat(200 * 1024) } };
  expect((await answer(`https://127.0.0.1:${ports.https}/pods`, tooLong)).status).toBe(431);
}, 120_000);

it('requests that are sent before the answer to the first are answered one after the other, and too many end the connection', async () => {
  const few = await hold(ports.readOnly, 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(5));
  let got = '';
  few.on('data', (d: Buffer) => {
    got += d.toString('latin1');
  });
  await until(() => got.split('HTTP/1.1 200').length === 6, 20_000);
  const many = await hold(ports.readOnly, 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(100));
  await until(() => many.destroyed || many.readableEnded, 20_000);
}, 60_000);

it('answers that nobody takes fill no memory, and hold no place for ever', async () => {
  const body = new Uint8Array(16 * MIB);
  let gone = 0;
  const server = await createNet().serveHttp({ host: '127.0.0.1', port: 0 }, async (req) => {
    req.signal.addEventListener('abort', () => {
      gone += 1;
    });
    return { status: 200, body };
  });
  try {
    const sockets = await holdMany(Number(server.address.split(':')[1]), 20);
    for (const socket of sockets) {
      socket.pause();
      socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    }
    // Room for four of them.
    await until(() => gone >= 14, 20_000);
    expect(gone).toBeLessThan(20);
    await until(() => gone === 20, 50_000);
  } finally {
    await server.close();
  }
}, 120_000);
