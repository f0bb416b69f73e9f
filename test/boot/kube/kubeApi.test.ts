import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createClock } from '../../../src/boot/dependencies/clock.ts';
import { createKubeApi } from '../../../src/boot/dependencies/kube/kubeApi.ts';
import { parseKubeConfig } from '../../../src/boot/dependencies/kube/kubeconfig.ts';
import { createMetrics } from '../../../src/boot/dependencies/metrics/metrics.ts';
import type { KubeResult } from '../../../src/machines/kube/request.ts';
import type { KubeApi, KubeCallOptions } from '../../../src/ports/kube.ts';
import type { Metrics } from '../../../src/ports/ports.ts';
import { collectingLogger, type LogLine } from '../../supervision/fakePorts.ts';
import { type Issued, issue } from './certs.ts';

const ca = issue({ cn: 'test-ca', issuer: null });
const serving = issue({ cn: 'api', issuer: ca, ips: ['127.0.0.1'], dns: ['kubernetes'] });
const client = issue({ cn: 'system:node:n1', org: 'system:nodes', issuer: ca });

type Handler = (req: IncomingMessage & { peer: string }, res: ServerResponse, body: string) => void;
let handler: Handler = (_, res) => void res.end('{}');
let port = 0;
let connections = 0;
const server = createServer(
  { cert: serving.cert, key: serving.key, ca: ca.cert, requestCert: true, rejectUnauthorized: false },
  (req, res) => {
    let body = '';
    req.on('data', (d) => {
      body += String(d);
    });
    req.on('end', () => {
      const { subject } =
        'getPeerCertificate' in req.socket
          ? (req.socket as { getPeerCertificate(): { subject?: { CN?: string } } }).getPeerCertificate()
          : { subject: undefined };
      handler(Object.assign(req, { peer: subject?.CN ?? '' }), res, body);
    });
  },
);
let resumed = 0;
server.on('secureConnection', (socket) => {
  connections += 1;
  if (socket.isSessionReused()) resumed += 1;
});

const folders: string[] = [];
const made: KubeApi[] = [];
const lines: LogLine[] = [];

async function folder(files: Record<string, string>): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'kube-'));
  folders.push(dir);
  for (const [name, text] of Object.entries(files)) await writeFile(join(dir, name), text);
  return dir;
}

async function api(
  o: {
    ca?: Issued;
    user?: object;
    files?: Record<string, string>;
    qps?: number;
    burst?: number;
    port?: number;
    clock?: ReturnType<typeof createClock>;
    cluster?: object;
    metrics?: Metrics;
    idleMs?: number;
    /** File of a shell script that gives the credentials. */
    exec?: string;
  } = {},
) {
  const dir = await folder({ 'ca.pem': (o.ca ?? ca).cert, 'client.pem': client.cert, 'client.key': client.key, ...o.files });
  const text = JSON.stringify({
    'current-context': 'x',
    contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
    clusters: [{ name: 'x', cluster: { server: `https://127.0.0.1:${o.port ?? port}`, 'certificate-authority': 'ca.pem', ...o.cluster } }],
    users: [
      {
        name: 'x',
        user:
          o.exec !== undefined
            ? execUser(join(dir, o.exec))
            : (o.user ?? { 'client-certificate': 'client.pem', 'client-key': 'client.key' }),
      },
    ],
  });
  const limits = { qps: o.qps ?? -1, burst: o.burst ?? 10 };
  const kube = createKubeApi({
    config: parseKubeConfig(text, join(dir, 'config')),
    clock: o.clock ?? createClock(),
    log: collectingLogger(lines),
    userAgent: 'kubelet/test',
    env: { PATH: process.env.PATH },
    kube: limits,
    event: limits,
    ...(o.metrics === undefined ? {} : { metrics: o.metrics }),
    ...(o.idleMs === undefined ? {} : { idleMs: o.idleMs }),
  });
  made.push(kube);
  return { kube, dir };
}
const execUser = (script: string) => ({
  exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'sh', args: [script, `${script}.count`], interactiveMode: 'Never' },
});
const opts = (o: Partial<KubeCallOptions> = {}): KubeCallOptions => ({ timeoutMs: 20_000, signal: new AbortController().signal, ...o });
/** A clock whose timers wait until they all are over. */
function byHand() {
  const armed = new Map<number, () => void>();
  let last = 0;
  const clock = {
    ...createClock(),
    setTimeout(fn: () => void) {
      last += 1;
      armed.set(last, fn);
      return last;
    },
    clearTimeout: (id: unknown) => void armed.delete(Number(id)),
  };
  const pass = (): void => {
    for (const overdue of [...armed.values()]) overdue();
  };
  return { clock, pass };
}
const failureOf = (r: KubeResult) => {
  if (r.ok) throw new Error(`answered ${r.code}`);
  return r.failure;
};

beforeAll(async () => {
  await new Promise<void>((up) => server.listen(0, '127.0.0.1', up));
  port = (server.address() as AddressInfo).port;
});
afterEach(async () => {
  for (const kube of made.splice(0)) kube.close();
  for (const dir of folders.splice(0)) await rm(dir, { recursive: true });
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((down) => server.close(down));
});

describe('the API client', () => {
  it('counts what it asks by method, host and answer, as dashboards want it (rest_client_*)', async () => {
    const metrics = createMetrics();
    const { kube } = await api({ metrics, qps: 50 });
    handler = (req, res) => void res.writeHead(req.url === '/none' ? 404 : 200, { 'content-type': 'application/json' }).end('{}');
    await kube.request({ verb: 'GET', path: '/one' }, opts());
    await kube.request({ verb: 'GET', path: '/none' }, opts());
    await kube.request({ verb: 'POST', path: '/one', body: {} }, opts());
    handler = (_, res) => void res.destroy();
    await kube.request({ verb: 'PATCH', path: '/one', body: {}, patchType: 'merge' }, opts());
    const text = await metrics.render();
    for (const [code, method] of [
      ['200', 'GET'],
      ['404', 'GET'],
      ['200', 'POST'],
      ['<error>', 'PATCH'],
    ])
      expect(text).toContain(`rest_client_requests_total{code="${code}",method="${method}",host="127.0.0.1:${port}"} 1\n`);
    const counted = (family: string, verb: string, n: number) =>
      expect(text).toContain(`rest_client_${family}{verb="${verb}",host="127.0.0.1:${port}"} ${n}\n`);
    counted('request_duration_seconds_count', 'GET', 2);
    // Under a limit the wait for a turn is counted, also where there was none.
    counted('rate_limiter_duration_seconds_count', 'GET', 2);
    counted('rate_limiter_duration_seconds_count', 'PATCH', 1);
    // Without a body 0 bytes were sent; where no answer came none was received.
    counted('request_size_bytes_count', 'GET', 2);
    counted('request_size_bytes_sum', 'GET', 0);
    counted('request_size_bytes_sum', 'POST', 2);
    counted('response_size_bytes_count', 'GET', 2);
    counted('response_size_bytes_sum', 'POST', 2);
    expect(text).not.toContain('rest_client_response_size_bytes_count{verb="PATCH"');
  });

  it('counts a request that is sent once more on another connection', async () => {
    const metrics = createMetrics();
    const { kube } = await api({ metrics });
    let requests = 0;
    handler = (req, res) => {
      requests += 1;
      if (requests === 2) return void req.socket.destroy();
      res.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    };
    await kube.request({ verb: 'GET', path: '/one' }, opts());
    expect(await kube.request({ verb: 'GET', path: '/one' }, opts())).toMatchObject({ ok: true });
    expect(await metrics.render()).toContain(`rest_client_request_retries_total{code="<error>",verb="GET",host="127.0.0.1:${port}"} 1\n`);
  });

  it('shows its certificate, sends JSON and gives the answer', async () => {
    const seen: unknown[] = [];
    handler = (req, res, body) => {
      seen.push([req.method, req.url, req.peer, req.headers['content-type'], req.headers['user-agent'], JSON.parse(body)]);
      res.writeHead(201, { 'content-type': 'application/json' }).end('{"kind":"Node"}');
    };
    const { kube } = await api();
    const result = await kube.request(
      { verb: 'PATCH', path: '/api/v1/nodes/n1', query: { fieldManager: 'a b' }, body: { a: 1 }, patchType: 'strategic' },
      opts(),
    );
    expect(result).toEqual({ ok: true, code: 201, body: { kind: 'Node' } });
    expect(seen).toEqual([
      ['PATCH', '/api/v1/nodes/n1?fieldManager=a+b', 'system:node:n1', 'application/strategic-merge-patch+json', 'kubelet/test', { a: 1 }],
    ]);
  });
  it('says of a 401 which credentials were not taken', async () => {
    handler = (_, res) => void res.writeHead(401).end();
    const { kube, dir } = await api();
    const { message, code } = failureOf(await kube.request({ verb: 'GET', path: '/version' }, opts()));
    expect(code).toBe(401);
    expect(message).toContain('CN=system:node:n1');
    expect(message).toContain(`(${join(dir, 'client.pem')}), signed by `);
  });
  it('keeps one connection for calls in a row, and dials anew when told to drop it', async () => {
    handler = (_, res) => void res.end('{}');
    const { kube } = await api();
    const before = connections;
    for (let i = 0; i < 3; i++) expect((await kube.request({ verb: 'GET', path: '/version' }, opts())).ok).toBe(true);
    expect(connections - before).toBe(1);
    kube.closeConnections('kube');
    expect((await kube.request({ verb: 'GET', path: '/version' }, opts())).ok).toBe(true);
    expect(connections - before).toBe(2);
  });
  it('opens 8 connections for waves of requests, keeps 4 of them when it is quiet, and resumes the TLS session of the others', async () => {
    handler = (_, res) => void setTimeout(() => res.end('{}'), 5);
    const { kube } = await api({ idleMs: 100 });
    const before = connections;
    const wave = (count: number) => Promise.all(Array.from({ length: count }, () => kube.request({ verb: 'GET', path: '/x' }, opts())));
    for (let i = 0; i < 5; i++) expect((await wave(20)).every((r) => r.ok)).toBe(true);
    expect(connections - before).toBe(8);
    const open = () => new Promise<number>((resolve, reject) => server.getConnections((error, n) => (error ? reject(error) : resolve(n))));
    await expect.poll(open).toBe(4);
    expect(
      (await wave(4)).every((r) => r.ok),
      'the four are used again',
    ).toBe(true);
    expect(connections - before).toBe(8);
    resumed = 0;
    await wave(20);
    expect(connections - before).toBe(12);
    expect(resumed).toBe(4);
  });

  it('gives code, reason, message and the asked wait of a Status', async () => {
    handler = (_, res) =>
      void res
        .writeHead(429, { 'retry-after': '3' })
        .end(JSON.stringify({ kind: 'Status', code: 429, reason: 'TooManyRequests', message: 'slow down' }));
    const { kube } = await api();
    expect(failureOf(await kube.request({ verb: 'GET', path: '/x' }, opts()))).toEqual({
      code: 429,
      reason: 'TooManyRequests',
      message: 'slow down',
      outcome: 'failed',
      retryAfterMs: 3000,
    });
  });
  it('takes the word of a proxy that says no Status', async () => {
    handler = (_, res) => void res.writeHead(503).end('<html>');
    const { kube } = await api();
    expect(failureOf(await kube.request({ verb: 'GET', path: '/x' }, opts()))).toMatchObject({ code: 503, reason: 'ServiceUnavailable' });
  });
  it('refuses a server whose certificate another authority signed, before anything is sent', async () => {
    let heard = 0;
    handler = (_, res) => {
      heard += 1;
      res.end('{}');
    };
    const { kube } = await api({ ca: issue({ cn: 'other', issuer: null }), user: { token: 'secret' } });
    expect(failureOf(await kube.request({ verb: 'POST', path: '/x', body: {} }, opts()))).toMatchObject({ code: 0, outcome: 'failed' });
    expect(heard).toBe(0);
  });
  it('trusts a server by an intermediate that stands in the authority without its root, as in Go', async () => {
    const issuer = issue({ cn: 'cluster-ca', issuer: ca, authority: true });
    const { cert, key } = issue({ cn: 'api', issuer, ips: ['127.0.0.1'] });
    const other = createServer({ cert, key }, (_, res) => void res.end('{}'));
    await new Promise<void>((up) => other.listen(0, '127.0.0.1', up));
    try {
      const { kube } = await api({ ca: issuer, port: (other.address() as AddressInfo).port, user: { token: 'secret' } });
      expect(await kube.request({ verb: 'GET', path: '/x' }, opts())).toMatchObject({ ok: true });
    } finally {
      other.closeAllConnections();
      other.close();
    }
  });
  it('holds the server to the name it is given', async () => {
    handler = (_, res) => void res.end('{}');
    const good = await api({ cluster: { 'tls-server-name': 'kubernetes' } });
    expect((await good.kube.request({ verb: 'GET', path: '/x' }, opts())).ok).toBe(true);
    const bad = await api({ cluster: { 'tls-server-name': 'elsewhere' } });
    expect(failureOf(await bad.kube.request({ verb: 'GET', path: '/x' }, opts())).code).toBe(0);
  });
  it('says of a write without an answer that its outcome is unknown, and of one never sent that it failed', async () => {
    handler = (req) => void req.socket.destroy();
    const { kube } = await api();
    expect(failureOf(await kube.request({ verb: 'POST', path: '/x', body: {} }, opts())).outcome).toBe('unknown');
    const away = await api({ port: 1 });
    expect(failureOf(await away.kube.request({ verb: 'POST', path: '/x', body: {} }, opts()))).toMatchObject({
      reason: 'ECONNREFUSED',
      outcome: 'failed',
    });
  });
  it('gives up after its time, and when asked to', async () => {
    const { promise: there, resolve: come } = Promise.withResolvers<void>();
    handler = () => come();
    const { clock, pass } = byHand();
    const { kube } = await api({ clock });
    const put = kube.request({ verb: 'PUT', path: '/x', body: {} }, opts());
    await there;
    pass();
    expect(failureOf(await put)).toMatchObject({ reason: 'Timeout', outcome: 'unknown' });
    const abort = new AbortController();
    const call = kube.request({ verb: 'GET', path: '/x' }, opts({ signal: abort.signal }));
    abort.abort();
    expect(failureOf(await call).reason).toBe('Aborted');
  });
  it('takes a switch of protocols that it did not ask for as an answer', async () => {
    handler = (req) => void req.socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n');
    const { kube } = await api();
    expect(failureOf(await kube.request({ verb: 'PUT', path: '/x', body: {} }, opts()))).toMatchObject({ code: 101 });
    expect(await kube.watch({ path: '/pods' }, opts())).toMatchObject({ ok: false, failure: { code: 101 } });
  });
  it('reads a rotated certificate and a rotated token without a restart', async () => {
    const peers: string[] = [];
    handler = (req, res) => {
      peers.push(`${req.peer} ${req.headers.authorization ?? ''}`);
      res.end('{}');
    };
    let skewMs = 0;
    const real = createClock();
    const clock = { ...real, monoMs: () => real.monoMs() + skewMs };
    const { kube, dir } = await api({
      clock,
      user: { 'client-certificate': 'client.pem', 'client-key': 'client.key', tokenFile: 'token' },
      files: { token: 'one\n' },
    });
    await kube.request({ verb: 'GET', path: '/x' }, opts());
    const next = issue({ cn: 'system:node:rotated', issuer: ca });
    await writeFile(join(dir, 'client.pem'), `${next.cert}\n`);
    await writeFile(join(dir, 'client.key'), `${next.key}\n`);
    await writeFile(join(dir, 'token'), 'second');
    await kube.request({ verb: 'GET', path: '/x' }, opts());
    skewMs += 60_000;
    await kube.request({ verb: 'GET', path: '/x' }, opts());
    expect(peers).toEqual(['system:node:n1 Bearer one', 'system:node:n1 Bearer one', 'system:node:rotated Bearer second']);
    // Half a pair: what was read before stays in use.
    await writeFile(join(dir, 'client.key'), client.key);
    skewMs += 60_000;
    await kube.request({ verb: 'GET', path: '/x' }, opts());
    expect(peers.at(-1)).toBe('system:node:rotated Bearer second');
    expect(lines.some((l) => l.level === 'warn' && l.msg.includes('credentials cannot be used'))).toBe(true);
    expect(lines.some((l) => JSON.stringify(l).includes('second'))).toBe(false);
  });
  it('on being told reads replaced files at once, ends watches and idle connections of every class, and opens new ones', async () => {
    const peers: string[] = [];
    handler = (req, res) => {
      peers.push(req.peer);
      if (req.url?.includes('watch=true') === true) res.write('{"a":1}\n');
      else res.end('{}');
    };
    const { kube, dir } = await api();
    const watch = await kube.watch({ path: '/pods' }, opts());
    if (!watch.ok) throw new Error(watch.failure.message);
    const lines = watch.lines[Symbol.asyncIterator]();
    expect((await lines.next()).value).toBe('{"a":1}');
    await kube.request({ verb: 'GET', path: '/x' }, opts({ class: 'heartbeat' }));
    const before = connections;
    const next = issue({ cn: 'system:node:renewed', issuer: ca });
    await writeFile(join(dir, 'client.pem'), `${next.cert}\n`);
    await writeFile(join(dir, 'client.key'), `${next.key}\n`);
    await kube.reload?.();
    await expect(lines.next()).rejects.toThrow('the credentials were replaced');
    expect((await kube.request({ verb: 'GET', path: '/x' }, opts({ class: 'heartbeat' }))).ok).toBe(true);
    expect(connections - before).toBe(1);
    expect(peers).toEqual(['system:node:n1', 'system:node:n1', 'system:node:renewed']);
  });
  it('says that it has no credentials yet, and works as soon as they are there', async () => {
    handler = (req, res) => void res.end(JSON.stringify({ peer: req.peer }));
    const { kube, dir } = await api({ user: { 'client-certificate': 'later.pem', 'client-key': 'later.pem' } });
    const get = () => kube.request({ verb: 'GET', path: '/x' }, opts());
    expect(failureOf(await get())).toMatchObject({ code: 0, reason: 'NoCredentials', outcome: 'failed' });
    await writeFile(join(dir, 'later.pem'), `${client.cert}${client.key}`);
    expect(await get()).toMatchObject({ ok: true, body: { peer: 'system:node:n1' } });
  });
  it('asks a credential program once more when the server refuses what it gave, and sends the request again', async () => {
    const seen: string[] = [];
    handler = (req, res, body) => {
      seen.push(`${req.headers.authorization ?? ''} ${body}`);
      res.writeHead(seen.length === 2 ? 401 : 200).end('{}');
    };
    let skewMs = 0;
    const real = createClock();
    const give = `#!/bin/sh\nn=$(cat "$1" 2>/dev/null || echo 0); n=$((n+1)); echo $n >"$1"\necho '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"token-'$n'"}}'\n`;
    const { kube } = await api({
      clock: { ...real, monoMs: () => real.monoMs() + skewMs },
      files: { give },
      exec: 'give',
    });
    const post = () => kube.request({ verb: 'POST', path: '/x', body: { a: 1 } }, opts());
    expect((await post()).ok).toBe(true);
    skewMs = 60_000;
    expect((await post()).ok).toBe(true);
    expect(seen).toEqual(['Bearer token-1 {"a":1}', 'Bearer token-1 {"a":1}', 'Bearer token-2 {"a":1}']);
    expect(JSON.stringify(lines)).not.toContain('token-');
  });
  it('does not wait longer for a credential program than the call has, and goes on with what it gives later', async () => {
    handler = (_, res) => void res.end('{}');
    const wait = 'i=0; while [ ! -e "$1" ] && [ $i -lt 1200 ]; do i=$((i+1)); sleep 0.05; done';
    const give = `${wait}\necho '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t"}}'\n`;
    const { kube, dir } = await api({ files: { give }, exec: 'give' });
    const get = (timeoutMs: number) => kube.request({ verb: 'GET', path: '/x' }, opts({ timeoutMs }));
    expect(failureOf(await get(200))).toMatchObject({ reason: 'Timeout', outcome: 'failed' });
    await writeFile(join(dir, 'give.count'), '');
    expect((await get(50_000)).ok).toBe(true);
  });
  it('makes callers of one class wait their turn, and those of another not', async () => {
    handler = (_, res) => void res.end('{}');
    const { kube } = await api({ qps: 0.001, burst: 2 });
    const get = (o: Partial<KubeCallOptions>) => kube.request({ verb: 'GET', path: '/x' }, opts(o));
    expect((await get({})).ok && (await get({})).ok).toBe(true);
    expect(failureOf(await get({ timeoutMs: 200 }))).toMatchObject({ reason: 'Timeout', outcome: 'failed' });
    expect((await get({ class: 'heartbeat' })).ok).toBe(true);
    expect((await get({ class: 'event' })).ok).toBe(true);
  });
});

describe('a watch', () => {
  const open = async (kube: KubeApi, o: Partial<KubeCallOptions> = {}) => {
    const watch = await kube.watch({ path: '/api/v1/pods', query: { resourceVersion: '7' } }, opts(o));
    if (!watch.ok) throw new Error(watch.failure.message);
    return watch.lines;
  };
  it('gives lines as they come, whatever the packets', async () => {
    let url = '';
    handler = (req, res) => {
      url = req.url ?? '';
      res.write('{"a":1}\n{"b"');
      res.write(':"é"}\n\n');
      res.end();
    };
    const { kube } = await api();
    const got: string[] = [];
    for await (const line of await open(kube)) got.push(line);
    expect(got).toEqual(['{"a":1}', '{"b":"é"}']);
    expect(url).toBe('/api/v1/pods?resourceVersion=7&watch=true');
  });
  it('throws when it is cut, and never gives half a line', async () => {
    handler = (req, res) => {
      res.write('{"a":1}\n{"b"', () => req.socket.destroy());
    };
    const { kube } = await api();
    const got: string[] = [];
    const read = async () => {
      for await (const line of await open(kube)) got.push(line);
    };
    await expect(read()).rejects.toThrow();
    handler = (_, res) => void res.end('{"a":1}\n{"b"');
    await expect(read()).rejects.toThrow('inside a line');
    expect(got).toEqual(['{"a":1}', '{"a":1}']);
  });
  it('outlives the time given for opening it, and ends with its signal', async () => {
    let later = () => {};
    handler = (_, res) => {
      res.write('{"a":1}\n');
      later = () => void res.write('{"b":2}\n');
    };
    const { clock, pass } = byHand();
    const { kube } = await api({ clock });
    const abort = new AbortController();
    const stream = (await open(kube, { signal: abort.signal }))[Symbol.asyncIterator]();
    expect((await stream.next()).value).toBe('{"a":1}');
    pass();
    later();
    expect((await stream.next()).value).toBe('{"b":2}');
    abort.abort();
    await expect(stream.next()).rejects.toThrow();
  });
  it('says why it was not opened', async () => {
    handler = (_, res) => void res.writeHead(410).end(JSON.stringify({ kind: 'Status', code: 410, reason: 'Expired', message: 'too old' }));
    const { kube } = await api();
    expect(await kube.watch({ path: '/api/v1/pods' }, opts())).toMatchObject({ ok: false, failure: { code: 410, reason: 'Expired' } });
  });
});
