/** One try after another through the real port: HTTP, TCP and gRPC on loopback; commands through a registry that answers. */
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createTcpServer, type Socket, type Server as TcpServer } from 'node:net';
import { Server as GrpcServer, ServerCredentials } from '@grpc/grpc-js';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Attempts } from '../../src/actors/services/probes/attempt.ts';
import type { Registry } from '../../src/actors/supervision/types.ts';
import { createClock } from '../../src/boot/dependencies/clock.ts';
import { createProber } from '../../src/boot/dependencies/prober.ts';
import { selfSignedCertificate } from '../../src/boot/process/selfSigned.ts';
import type { Probe } from '../../src/machines/kube/podTable.ts';
import type { CriEvent, CriResult } from '../../src/machines/runtime/cri/messages.ts';
import type { ReplyTo } from '../../src/machines/supervision/address.ts';
import { PlainAnswerError } from '../../src/ports/prober.ts';
import { freePort } from '../freePort.ts';
import { fakePorts } from '../supervision/fakePorts.ts';
import { target } from './fixtures.ts';

function listen(server: TcpServer): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (s: Socket) => void sockets.add(s));
  onTestFinished(() => {
    for (const s of sockets) s.destroy();
    return new Promise<void>((done) => server.close(() => done()));
  });
  return new Promise((resolve) =>
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    }),
  );
}
const serve = (handler: RequestListener) => listen(createServer(handler));

const noRegistry = { read: () => undefined } as unknown as Registry;
function attempt(probe: Probe, registry: Registry = noRegistry) {
  const ports = fakePorts({ clock: createClock(), prober: createProber() });
  const attempts = new Attempts({ ports, registry, runtimeRequestTimeoutMs: 10_000 });
  return attempts.attempt(target({ timeoutSeconds: 20, ...probe }, { podIP: '127.0.0.1' }), new AbortController().signal);
}
const get = (port: number, more: object = {}): Probe => ({ httpGet: { port, path: '/', scheme: 'HTTP', ...more } });

describe('HTTP', () => {
  it('tells an HTTPS question that was answered without TLS from others that failed', async () => {
    const port = await serve((_, res) => res.end('plain'));
    const closed = await freePort();
    const ask = (at: number) =>
      createProber().httpGet(`https://127.0.0.1:${at}/`, { headers: {}, host: null, bytesMax: 10, signal: new AbortController().signal });
    await expect(ask(port)).rejects.toBeInstanceOf(PlainAnswerError);
    await expect(ask(closed)).rejects.not.toBeInstanceOf(PlainAnswerError);
  });

  it('offers TLS servers no key exchange that would hold this process up, as Go offers none', async () => {
    const { cert, key } = await selfSignedCertificate('127.0.0.1', Date.now());
    for (const [options, kind] of [
      [{ ecdhCurve: 'ffdhe8192', minVersion: 'TLSv1.3' }, 'failure'],
      [{ ecdhCurve: 'ffdhe8192:P-521', minVersion: 'TLSv1.3' }, 'success'],
    ] as const) {
      await using server = createTlsServer({ cert, key, ...options }, (_, res) => res.end('fine'));
      await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
      const at = server.address();
      const port = at !== null && typeof at === 'object' ? at.port : 0;
      expect((await attempt(get(port, { scheme: 'HTTPS' }))).kind).toBe(kind);
    }
  });

  it('sends what the specification says, once', async () => {
    const seen: { url: string | undefined; raw: string[] }[] = [];
    const port = await serve((req, res) => {
      seen.push({ url: req.url, raw: req.rawHeaders });
      res.end('fine');
    });
    const httpHeaders = [
      { name: 'host', value: 'shop.example' },
      { name: 'x-a', value: '1' },
      { name: 'x-a', value: '2' },
    ];
    expect(await attempt(get(port, { path: '/p?q=1', httpHeaders }))).toEqual({ kind: 'success', output: 'fine' });
    expect(seen).toHaveLength(1);
    const raw = seen[0]?.raw ?? [];
    const headers = raw.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${raw[i + 1]}`] : []));
    expect(seen[0]?.url).toBe('/p?q=1');
    expect(headers.sort()).toEqual([
      'Accept: */*',
      'Connection: close',
      'Host: shop.example',
      'User-Agent: kube-probe/1.36',
      'X-A: 1',
      'X-A: 2',
    ]);
  });

  it('takes a switch of protocols that it did not ask for as an answer', async () => {
    const switched = 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nmore';
    const port = await listen(createTcpServer((socket) => void socket.write(switched)));
    expect(await attempt(get(port))).toEqual({ kind: 'failure', output: 'HTTP probe failed with statuscode: 101' });
  });

  it('takes a certificate as it comes', async () => {
    const { cert, key } = await selfSignedCertificate('nobody.test', Date.now());
    const port = await listen(createTlsServer({ cert, key }, (_, res) => res.end('secure')));
    expect(await attempt(get(port, { scheme: 'HTTPS' }))).toEqual({ kind: 'success', output: 'secure' });
  });

  it('follows a redirect to the same host, stops at one to another host with a warning, and gives up on a loop', async () => {
    const hits: string[] = [];
    const port = await serve((req, res) => {
      hits.push(req.url ?? '');
      const location = { '/here': '/end', '/away': 'http://other.test/x', '/loop': '/loop' }[req.url ?? ''];
      if (location === undefined) res.end('the end');
      else res.writeHead(302, { location }).end('moved');
    });
    expect(await attempt(get(port, { path: '/here' }))).toEqual({ kind: 'success', output: 'the end' });
    expect(await attempt(get(port, { path: '/away' }))).toEqual({
      kind: 'warning',
      output: 'Probe terminated redirects, Response body: moved',
    });
    hits.length = 0;
    expect(await attempt(get(port, { path: '/loop' }))).toMatchObject({
      kind: 'failure',
      output: expect.stringContaining('stopped after 10 redirects'),
    });
    expect(hits).toHaveLength(10);
  });

  it('reads no more than 10 KiB, and that is fine', async () => {
    const port = await serve((_, res) => res.end('x'.repeat(1_000_000)));
    const outcome = await attempt(get(port));
    expect([outcome.kind, outcome.output.length]).toEqual(['success', 10 * 1024]);
  });

  it('takes an answer whose lines end with LF alone, and one with long headers, as Go does', async () => {
    const raw = async (text: string) => {
      const server = createTcpServer((socket) => {
        socket.on('error', () => {});
        socket.once('data', () => socket.end(text));
      });
      return attempt(get(await listen(server)));
    };
    expect(await raw('HTTP/1.1 200 OK\nContent-Type: text/plain\n\nfine')).toEqual({ kind: 'success', output: 'fine' });
    expect(await raw(`HTTP/1.1 200 OK\r\nX-Long: ${'x'.repeat(100_000)}\r\n\r\nfine`)).toEqual({ kind: 'success', output: 'fine' });
  });

  it('takes silence for a failure, and a body that breaks off for an error', async () => {
    const silent = await serve(() => {});
    expect(await attempt({ ...get(silent), timeoutSeconds: 1 })).toMatchObject({
      kind: 'failure',
      output: expect.stringContaining('no answer within 1s'),
    });
    const broken = await serve((_, res) => {
      res.writeHead(200, { 'content-length': '100' });
      res.write('half', () => res.destroy());
    });
    expect(await attempt(get(broken))).toMatchObject({ kind: 'error', output: expect.stringContaining('could not be read') });
  });

  it('takes a closed port for a failure, and a port that does not exist in the pod for an error', async () => {
    const port = await freePort();
    expect(await attempt(get(port))).toMatchObject({ kind: 'failure', output: expect.stringContaining('connect: connection refused') });
    expect(await attempt(get(0))).toMatchObject({ kind: 'error' });
  });
});

describe('TCP', () => {
  it('is about the connection only', async () => {
    const server = createTcpServer((s) => s.on('error', () => {}));
    const port = await listen(server);
    expect(await attempt({ tcpSocket: { port } })).toEqual({ kind: 'success', output: '' });
    expect(await attempt({ tcpSocket: { port: await freePort() } })).toMatchObject({ kind: 'failure' });
  });
});

describe('gRPC', () => {
  const raw = (bytes: Buffer) => bytes;
  async function health(answer: (service: string, agent: string) => number | null): Promise<number> {
    const server = new GrpcServer();
    server.addService(
      {
        check: {
          path: '/grpc.health.v1.Health/Check',
          requestStream: false,
          responseStream: false,
          requestSerialize: raw,
          requestDeserialize: raw,
          responseSerialize: raw,
          responseDeserialize: raw,
        },
      },
      {
        check(
          call: { request: Buffer; metadata: { get(name: string): unknown[] } },
          done: (error: { code: number; details: string } | null, answer?: Buffer) => void,
        ) {
          // A tag and one byte of length, or two when the text is longer than 127 bytes.
          const status = answer(
            call.request.subarray(call.request.length > 129 ? 3 : 2).toString(),
            String(call.metadata.get('user-agent')[0]),
          );
          if (status === null) done({ code: 5, details: 'unknown service' });
          else done(null, Buffer.from(status === 0 ? [] : [0x08, status]));
        },
      },
    );
    onTestFinished(() => server.forceShutdown());
    return new Promise((resolve, reject) =>
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
        error === null ? resolve(port) : reject(error),
      ),
    );
  }

  it('asks for the service by name, and says who asks', async () => {
    const agents: string[] = [];
    const port = await health((service, agent) => {
      agents.push(agent);
      return service === 'a'.repeat(200) ? 1 : 2;
    });
    expect(await attempt({ grpc: { port, service: 'a'.repeat(200) } })).toEqual({ kind: 'success', output: 'service healthy' });
    expect(await attempt({ grpc: { port, service: '' } })).toMatchObject({
      kind: 'failure',
      output: expect.stringContaining('NOT_SERVING'),
    });
    expect(agents[0]).toMatch(/^kube-probe\/1\.36/);
  });

  it('takes everything but SERVING for a failure', async () => {
    const port = await health((service) => (service === 'odd' ? 0 : null));
    expect(await attempt({ grpc: { port, service: 'odd' } })).toMatchObject({
      kind: 'failure',
      output: expect.stringContaining('UNKNOWN'),
    });
    expect(await attempt({ grpc: { port, service: 'x' } })).toEqual({ kind: 'failure', output: 'health rpc failed: unknown service' });
    expect(await attempt({ grpc: { port: await freePort() } })).toMatchObject({ kind: 'failure' });
    const other = new GrpcServer();
    onTestFinished(() => other.forceShutdown());
    const bound = await new Promise<number>((resolve) =>
      other.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (_, p) => resolve(p)),
    );
    expect(await attempt({ grpc: { port: bound } })).toMatchObject({
      kind: 'failure',
      output: expect.stringContaining('does not implement'),
    });
    // Something that listens and says nothing.
    const mute = createTcpServer((s) => s.on('error', () => {}));
    const mutePort = await listen(mute);
    expect(await attempt({ grpc: { port: mutePort }, timeoutSeconds: 1 })).toEqual({
      kind: 'failure',
      output: 'timeout: health rpc did not complete within 1s',
    });
  });
});

describe('commands', () => {
  const bytes = (text: string) => new TextEncoder().encode(text);
  const runtime = (result: CriResult, state: 'ready' | 'lost' = 'ready') => {
    const asked: CriEvent[] = [];
    const registry = {
      read: () => ({ version: 1, value: { state } }),
      async ask(_: unknown, event: (r: ReplyTo<readonly CriResult[]>) => CriEvent) {
        asked.push(event((() => {}) as unknown as ReplyTo<readonly CriResult[]>));
        return { kind: 'reply', value: [result] };
      },
    } as unknown as Registry;
    return { registry, asked };
  };
  const ran = (exitCode: number, stdout: string, stderr = ''): CriResult => ({
    ok: true,
    value: { stdout: bytes(stdout), stderr: bytes(stderr), exitCode },
  });
  const refused = (code: number): CriResult => ({
    ok: false,
    error: { method: 'ExecSync', code, outcome: 'failed', details: 'said the runtime' },
  });
  const exec: Probe = { exec: { command: ['check', '--fast'] }, timeoutSeconds: 3 };

  it('run in the container with the time-out of the probe', async () => {
    const r = runtime(ran(0, 'ok\n'));
    expect(await attempt(exec, r.registry)).toEqual({ kind: 'success', output: 'ok' });
    expect(r.asked[0]).toMatchObject({
      type: 'cri.call',
      calls: [{ method: 'ExecSync', request: { containerId: 'web-1', cmd: ['check', '--fast'], timeout: 3 }, timeoutMs: 13_000 }],
    });
    expect(r.asked[0]).not.toHaveProperty('uid');
  });
  it('fail by their exit code, and by taking too long', async () => {
    expect(await attempt(exec, runtime(ran(3, 'out ', 'err')).registry)).toEqual({ kind: 'failure', output: 'out err' });
    expect(await attempt(exec, runtime(ran(3, '')).registry)).toEqual({ kind: 'failure', output: 'command exited with code 3' });
    expect(await attempt(exec, runtime(refused(4)).registry)).toEqual({
      kind: 'failure',
      output: 'command timed out: "check --fast" timed out after 3s',
    });
    expect((await attempt(exec, runtime(ran(1, 'x'.repeat(50_000))).registry)).output).toHaveLength(10 * 1024);
  });
  it('that the runtime cannot run are errors, and so is a runtime that is away', async () => {
    expect(await attempt(exec, runtime(refused(14)).registry)).toMatchObject({ kind: 'error' });
    expect(await attempt(exec, runtime(refused(4), 'lost').registry)).toMatchObject({ kind: 'error' });
  });
  it('a probe without any handler is an error', async () => {
    expect(await attempt({})).toEqual({ kind: 'error', output: 'missing probe handler' });
  });
});
