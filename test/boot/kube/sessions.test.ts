/** HTTP/2 to the API server: many clients on few connections, and what becomes of calls whose connection ends. */
import { createSecureServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { createClock } from '../../../src/boot/dependencies/clock.ts';
import { createCredentials } from '../../../src/boot/dependencies/kube/credentials.ts';
import { createKubeApi } from '../../../src/boot/dependencies/kube/kubeApi.ts';
import { parseKubeConfig } from '../../../src/boot/dependencies/kube/kubeconfig.ts';
import { Sessions } from '../../../src/boot/dependencies/kube/transport/sessions.ts';
import type { KubeCallOptions } from '../../../src/ports/kube.ts';
import type { Clock } from '../../../src/ports/ports.ts';
import { collectingLogger } from '../../supervision/fakePorts.ts';
import { issue } from './certs.ts';

const ca = issue({ cn: 'test-ca', issuer: null });
const serving = issue({ cn: 'api', issuer: ca, ips: ['127.0.0.1'] });
const client = issue({ cn: 'admin', org: 'system:masters', issuer: ca });
const clock = createClock();
const opts = (o: Partial<KubeCallOptions> = {}): KubeCallOptions => ({ timeoutMs: 50_000, signal: new AbortController().signal, ...o });
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const ended: (() => void)[] = [];
afterEach(() => {
  for (const end of ended.splice(0)) end();
});

type Serve = (stream: ServerHttp2Stream, headers: Record<string, unknown>) => void;

async function lab(serve: Serve, o: { streamsMax?: number; clock?: Clock } = {}) {
  const peers = new Set<ServerHttp2Session>();
  let connections = 0;
  const server = createSecureServer({
    ...{ cert: serving.cert, key: serving.key, ca: ca.cert, requestCert: true },
    settings: { maxConcurrentStreams: o.streamsMax ?? 100 },
  });
  server.on('session', (session) => {
    connections += 1;
    peers.add(session);
    session.on('error', () => {});
  });
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {});
    serve(stream, headers);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const data = { certificate: base64(client.cert), key: base64(client.key), ca: base64(ca.cert) };
  const config = parseKubeConfig(
    JSON.stringify({
      'current-context': 'x',
      contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
      clusters: [{ name: 'x', cluster: { server: `https://127.0.0.1:${port}`, 'certificate-authority-data': data.ca } }],
      users: [{ name: 'x', user: { 'client-certificate-data': data.certificate, 'client-key-data': data.key } }],
    }),
    '/kubeconfig',
  );
  const log = collectingLogger([]);
  const credentials = createCredentials(config, { clock, log });
  const sessions = new Sessions({ config, clock: o.clock ?? clock });
  const limits = { kube: { qps: 0, burst: 0 }, event: { qps: 0, burst: 0 } };
  const api = (user: string) =>
    createKubeApi({
      config,
      clock,
      log,
      userAgent: 'test',
      ...limits,
      credentials,
      sessions,
      impersonate: { user, group: 'system:nodes' },
    });
  ended.push(() => {
    sessions.close();
    for (const peer of peers) peer.destroy();
    server.close();
  });
  return { api, sessions, peers, connections: () => connections };
}

function answered(stream: ServerHttp2Stream, body: object): void {
  stream.respond({ ':status': 200, 'content-type': 'application/json' });
  stream.end(JSON.stringify(body));
}

describe('connections that clients share', () => {
  it('may be given up in the very turn in which they open: the call fails, and the next one opens another', async () => {
    const giveUps = new Map<unknown, () => void>();
    let late = true;
    const busy: Clock = {
      ...clock,
      setTimeout(fn, ms) {
        const id = clock.setTimeout(fn, ms);
        giveUps.set(id, fn);
        return id;
      },
      clearTimeout(id) {
        clock.clearTimeout(id);
        if (late) giveUps.get(id)?.();
        late = false;
      },
    };
    const { api, connections } = await lab((stream) => answered(stream, {}), { clock: busy });
    const request = { verb: 'GET', path: '/api/v1/nodes/n' } as const;
    expect(await api('a').request(request, opts())).toMatchObject({ ok: false });
    expect(await api('a').request(request, opts())).toMatchObject({ ok: true });
    expect(connections()).toBe(2);
  });

  it('carry the requests and watches of many clients, each in its own name', async () => {
    const { api, connections } = await lab((stream, headers) => {
      const who = headers['impersonate-user'];
      if (!String(headers[':path']).includes('watch=true')) return answered(stream, { who });
      stream.respond({ ':status': 200 });
      stream.end(`${JSON.stringify({ type: 'ADDED', who })}\n`);
    });
    const names = Array.from({ length: 40 }, (_, i) => `system:node:n${i}`);
    const seen = await Promise.all(
      names.map(async (name) => {
        const kube = api(name);
        const [got, watch] = await Promise.all([
          kube.request({ verb: 'POST', path: '/a', body: { b: 1 } }, opts()),
          kube.watch({ path: '/b' }, opts()),
        ]);
        const lines: string[] = [];
        if (watch.ok) for await (const line of watch.lines) lines.push(line);
        return [got.ok && got.body, lines];
      }),
    );
    expect(seen).toEqual(names.map((who) => [{ who }, [JSON.stringify({ type: 'ADDED', who })]]));
    expect(connections()).toBe(1);
  });

  it('are as many as the server allows streams for, and no more', async () => {
    const waiting: ServerHttp2Stream[] = [];
    const { api, connections, sessions } = await lab((stream) => waiting.push(stream), { streamsMax: 4 });
    const kube = api('system:node:n0');
    const first = kube.watch({ path: '/first' }, opts());
    await expect.poll(() => waiting.length).toBe(1);
    const others = Array.from({ length: 10 }, () => kube.watch({ path: '/w' }, opts()));
    await expect.poll(() => waiting.length).toBe(11);
    expect([connections(), sessions.count]).toEqual([3, 3]);
    for (const stream of waiting) {
      stream.respond({ ':status': 200 });
      stream.end();
    }
    expect((await Promise.all([first, ...others])).every((w) => w.ok)).toBe(true);
  });

  it('take no more than a server allows that says so late', async () => {
    const waiting: ServerHttp2Stream[] = [];
    const { api, connections } = await lab((stream) => waiting.push(stream), { streamsMax: 3 });
    const kube = api('system:node:n0');
    // None of them knows the limit when it asks.
    const watches = Array.from({ length: 8 }, () => kube.watch({ path: '/w' }, opts()));
    await expect.poll(() => waiting.length).toBe(8);
    expect(connections()).toBe(3);
    for (const stream of waiting) {
      stream.respond({ ':status': 200 });
      stream.end();
    }
    expect((await Promise.all(watches)).every((w) => w.ok)).toBe(true);
  });

  it('are made anew after one is lost: a read is sent again, of a write it is unknown what became', async () => {
    let lost = 0;
    const { api, peers } = await lab((stream, headers) => {
      if (headers[':path'] === '/lost' && lost++ === 0) for (const peer of peers) peer.destroy();
      else answered(stream, {});
    });
    const kube = api('system:node:n0');
    const write = await kube.request({ verb: 'POST', path: '/lost', body: {} }, opts());
    expect(write).toMatchObject({ ok: false, failure: { outcome: 'unknown' } });
    expect(await kube.request({ verb: 'GET', path: '/after' }, opts())).toMatchObject({ ok: true });
  });

  it('are asked once whether they live, however many clients suspect them, and carry their watches on', async () => {
    const watching: ServerHttp2Stream[] = [];
    const { api, peers } = await lab((stream) => {
      stream.respond({ ':status': 200 });
      watching.push(stream);
    });
    const clients = Array.from({ length: 20 }, (_, i) => api(`system:node:n${i}`));
    const watches = await Promise.all(clients.map((kube) => kube.watch({ path: '/w' }, opts())));
    let pings = 0;
    for (const peer of peers) peer.on('ping', () => (pings += 1));
    for (const kube of clients) kube.closeConnections('heartbeat');
    await expect.poll(() => pings).toBe(1);
    for (const stream of watching) stream.end('{"type":"ADDED"}\n');
    const read = async (watch: (typeof watches)[number]): Promise<string[]> => {
      const lines: string[] = [];
      if (watch.ok) for await (const line of watch.lines) lines.push(line);
      return lines;
    };
    expect(await Promise.all(watches.map(read))).toEqual(watches.map(() => ['{"type":"ADDED"}']));
    expect([pings, peers.size]).toEqual([1, 1]);
  });

  it('have leases and the status of a node on their own, whatever else waits', async () => {
    const sessionsOf: Record<string, Set<unknown>> = {};
    const { api } = await lab((stream, headers) => {
      const path = String(headers[':path']);
      sessionsOf[path] = (sessionsOf[path] ?? new Set()).add(stream.session);
      answered(stream, {});
    });
    const clients = Array.from({ length: 20 }, (_, i) => api(`system:node:n${i}`));
    const request = (path: string, o: Partial<KubeCallOptions>) =>
      clients.map((kube) => kube.request({ verb: 'PUT', path, body: {} }, opts(o)));
    const answers = [...request('/pods', {}), ...request('/leases', { class: 'heartbeat' }), ...request('/events', { class: 'event' })];
    expect((await Promise.all(answers)).filter((answer) => !answer.ok)).toEqual([]);
    const { '/leases': leases = new Set(), '/pods': pods = new Set(), '/events': events = new Set() } = sessionsOf;
    expect([leases.size, pods.size, events.size]).toEqual([1, 1, 1]);
    expect([...pods, ...events].filter((session) => leases.has(session))).toEqual([]);
  });

  it('answer a busy process, which reads only after the deadline what came before it', async () => {
    let isBusy = false;
    const { api } = await lab((stream) => {
      answered(stream, {});
      if (!isBusy) return;
      setImmediate(() => {
        const untilMs = performance.now() + 300;
        while (performance.now() < untilMs) {}
      });
    });
    const kube = api('system:node:n0');
    const request = { verb: 'GET', path: '/a' } as const;
    // The connection stands from here on.
    await kube.request(request, opts());
    isBusy = true;
    expect(await kube.request(request, opts({ timeoutMs: 200 }))).toMatchObject({ ok: true });
  });

  it('tell of a server that is not there, and of a call that takes too long', async () => {
    const { api, sessions, peers } = await lab(() => {});
    const kube = api('system:node:n0');
    expect(await kube.request({ verb: 'GET', path: '/slow' }, opts({ timeoutMs: 100 }))).toMatchObject({
      failure: { reason: 'Timeout', message: 'no answer within 100 ms' },
    });
    for (const end of ended.splice(0)) end();
    await expect.poll(() => sessions.count + [...peers].filter((p) => !p.destroyed).length).toBe(0);
    expect(await kube.request({ verb: 'GET', path: '/gone' }, opts())).toMatchObject({
      failure: { reason: 'ECONNREFUSED', outcome: 'failed' },
    });
  });
});
