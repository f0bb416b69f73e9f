/** What the API answers to somebody who was let in: lists, logs, files, statistics, streams, and bad requests of each kind. */
import { appendFileSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { connect } from 'node:tls';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { families } from '../../../src/actors/edge/https/routes.ts';
import { CRI_LABELS } from '../../../src/machines/cri.ts';
import type { ContainerStatus, PodStatus } from '../../../src/machines/k8s.ts';
import { view } from '../../../src/machines/protocol.ts';
import { until } from '../harness.ts';
import { pod, podsView, record, running, statusView } from '../samples.ts';
import { type Ask, clientCa, type Lab, serverCa, startLab } from './lab.ts';

const ann = clientCa.leaf({ commonName: 'ann', organizations: ['dev'] });
vi.setConfig({ testTimeout: 60_000 });
const enders: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of enders.splice(0).reverse()) await end();
});

const web = pod('web', { containers: ['main', 'side'] });
const uid = web.metadata.uid;
const WAIT_MS = 20_000;

async function start(o: Parameters<typeof startLab>[0] = {}) {
  const lab = await startLab(o);
  enders.push(() => lab.stop());
  lab.registry.set(view.pods, podsView([record(web), record(pod('stranger', { uid: 'r' }), { source: 'runtime' })]));
  say(lab, { main: { state: { running: { startedAt: '2026-01-01T00:00:00Z' } } } });
  const ask = (path: string, a: Ask = {}) => lab.ask(path, { client: ann, ...a });
  const upgrade = (path: string, a: Ask = {}) => lab.upgrade(path, { client: ann, ...a });
  return { ...lab, lab, ask, upgrade };
}
function say(lab: Lab, containers: Record<string, Partial<ContainerStatus>>): void {
  const containerStatuses = Object.entries(containers).map(([name, more]) => ({
    ...{ name, ready: true, restartCount: 0, image: 'busybox', imageID: 'i', state: {}, lastState: {} },
    ...more,
  }));
  const status: PodStatus = { ...running, containerStatuses };
  lab.registry.set(view.statuses, statusView({ [uid]: status }));
}
const criContainer = (name: string, more: object = {}) => ({
  ...{ id: `id-${name}`, podSandboxId: 'sb', metadata: { name, attempt: 0 }, image: { image: 'busybox' }, imageRef: 'ref' },
  ...{ state: 'CONTAINER_RUNNING', createdAt: '1700000000000000000', annotations: {} },
  labels: {
    [CRI_LABELS.podUid]: uid,
    [CRI_LABELS.podName]: 'web',
    [CRI_LABELS.podNamespace]: 'default',
    [CRI_LABELS.containerName]: name,
  },
  ...more,
});
const sandbox = { ...criContainer('x'), id: 'sb', state: 'SANDBOX_READY' };
const coded = (code: number, message: string) => Object.assign(new Error(message), { code });

describe('lists', () => {
  it('of pods have what sources want, and null for none (trap 28)', async () => {
    const s = await start();
    const list = JSON.parse((await s.ask('/pods')).body) as { items: { metadata: { name: string }; status: PodStatus }[] };
    expect(list.items.map((p) => [p.metadata.name, p.status.phase])).toEqual([['web', 'Running']]);
    s.registry.set(view.pods, podsView([]));
    expect(JSON.parse((await s.ask('/pods/')).body)).toHaveProperty('items', null);
  });
  it('of running pods come from the runtime', async () => {
    const s = await start();
    s.cri.ListContainers = () => ({
      containers: [criContainer('main'), criContainer('side'), criContainer('old', { state: 'CONTAINER_EXITED' })],
    });
    const list = JSON.parse((await s.ask('/runningpods/')).body) as {
      items: { spec: { containers: { name: string; image: string }[] } }[];
    };
    expect(list.items).toHaveLength(1);
    expect(list.items[0]?.spec.containers.map((c) => `${c.name} ${c.image}`)).toEqual(['main busybox', 'side busybox']);
  });
  it('say 503 with the reason while there are none, and the runtime’s failure as 500', async () => {
    const s = await startLab();
    enders.push(() => s.stop());
    expect((await s.ask('/pods', { client: ann })).status).toBe(503);
    expect((await s.ask('/runningpods', { client: ann })).status).toBe(500);
  });
  it('and pages know their methods and what is below them', async () => {
    const s = await start();
    for (const path of ['/pods', '/configz', '/statez', '/containerLogs/default/web/main', '/logs/', '/metrics']) {
      expect([path, (await s.ask(path, { method: 'DELETE' })).status]).toEqual([path, 405]);
    }
    for (const path of ['/pods/x', '/configz/x', '/stats', '/stats/container', '/metrics/cadvisor', '/healthz/none', '/exec', '/run/a']) {
      const method = path.startsWith('/run') ? 'POST' : 'GET';
      expect([path, (await s.ask(path, { method })).status]).toEqual([path, 404]);
    }
  });
  it('are the debugging group’s no more when that is switched off, nor the host’s logs', async () => {
    const off = await start({ debugging: false });
    for (const path of [
      '/run/a/b/c',
      '/exec/a/b/c',
      '/attach/a/b/c',
      '/portForward/a/b',
      '/containerLogs/default/web/main',
      '/runningpods/',
      '/logs/',
    ]) {
      const answer = await off.ask(path);
      expect([path, answer.status, answer.body]).toEqual([path, 405, 'Debug endpoints are disabled.\n']);
    }
    for (const path of ['/configz', '/statez']) expect((await off.ask(path)).status).toBe(404);
    expect((await off.ask('/pods')).status).toBe(200);
    const noLogs = await start({ systemLogs: false });
    expect(await noLogs.ask('/logs/')).toMatchObject({ status: 405, body: 'logs endpoint is disabled.\n' });
  });
});

describe('container logs', () => {
  const STAMP = '2026-01-01T00:00:00.000000000Z';
  const lines = (...texts: string[]) => texts.map((t) => `${STAMP} stdout F ${t}\n`).join('');
  const logDir = (dir: string, container = 'main') => join(dir, 'pods', `default_web_${uid}`, container);
  function put(dir: string, name: string, text: string, container = 'main'): string {
    mkdirSync(logDir(dir, container), { recursive: true });
    writeFileSync(join(logDir(dir, container), name), text);
    return join(logDir(dir, container), name);
  }
  /** A followed log: what has come so far, and its end. */
  function follow(lab: Lab, query: string) {
    const got = { text: '', ended: false, status: 0 };
    const req = request({
      ...{ host: '127.0.0.1', port: lab.port, path: `/containerLogs/default/web/main?follow=true${query}` },
      ...{ ca: serverCa.pem, agent: false as const, ...ann },
    });
    req.on('error', () => undefined);
    req.on('response', (res) => {
      got.status = res.statusCode ?? 0;
      res.on('data', (d: Buffer) => {
        got.text += d.toString();
      });
      res.on('error', () => undefined);
      res.on('close', () => {
        got.ended = true;
      });
    });
    req.end();
    enders.push(() => void req.destroy());
    return { got, leave: () => req.destroy() };
  }

  it('give a file with the options of the query', async () => {
    const s = await start();
    put(s.dir, '0.log', `${lines('one', 'two')}${STAMP} stdout P thr\n${STAMP} stdout F ee\n${STAMP} stdout F torn`);
    const get = async (query: string) => (await s.ask(`/containerLogs/default/web/main?${query}`)).body;
    expect(await get('')).toBe('one\ntwo\nthree\ntorn\n');
    // Lines of the file, in which the partial one counts, and the torn one does not (trap 35).
    expect(await get('tailLines=1')).toBe('ee\ntorn\n');
    expect(await get('tailLines=0')).toBe('torn\n');
    expect(await get('tailLines=100')).toBe('one\ntwo\nthree\ntorn\n');
    // Time stamps count, and the cut is where it falls (trap 34).
    expect(await get('limitBytes=5&timestamps=true')).toBe('2026-');
    expect((await s.ask('/containerLogs/default/web/main?tailLines=x')).status).toBe(400);
    expect((await s.ask('/containerLogs/default/web/main?limitBytes=0')).status).toBe(422);
  });
  it('have tails over many blocks', async () => {
    const s = await start();
    put(s.dir, '0.log', lines(...Array.from({ length: 9_000 }, (_, i) => `line ${i}`)));
    const tail = (await s.ask('/containerLogs/default/web/main?tailLines=4000')).body.trim().split('\n');
    expect([tail.length, tail[0], tail.at(-1)]).toEqual([4000, 'line 5000', 'line 8999']);
  });
  it('are of the run that is meant', async () => {
    const s = await start();
    put(s.dir, '2.log', lines('second'));
    put(s.dir, '3.log', lines('third'));
    const get = async (query = '') => (await s.ask(`/containerLogs/default/web/main?${query}`)).body;
    const ended = { terminated: { exitCode: 1, reason: 'Error', startedAt: STAMP, finishedAt: STAMP } };
    say(s.lab, { main: { restartCount: 3, state: { running: { startedAt: STAMP } }, lastState: ended } });
    expect([await get(), await get('previous=true')]).toEqual(['third\n', 'second\n']);
    // Waiting for its next start, the last run is both the present and the previous one.
    say(s.lab, { main: { restartCount: 3, state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: ended } });
    expect([await get(), await get('previous=true')]).toEqual(['third\n', 'third\n']);
  });
  it('that cannot be say why, and never as an empty answer (trap 37)', async () => {
    const s = await start();
    const status = async (path: string) => {
      const answer = await s.ask(`/containerLogs/${path}`);
      return `${answer.status} ${answer.body.trim()}`;
    };
    say(s.lab, { main: { state: { waiting: { reason: 'ErrImagePull' } } } });
    expect(await status('default/web/main')).toMatch(/^400 .*image can't be pulled/);
    expect(await status('default/web/side')).toMatch(/^400 .*no status yet/);
    say(s.lab, { main: { state: { running: { startedAt: STAMP } } } });
    expect(await status('default/web/main')).toMatch(/^400 .*does not exist/);
    expect(await status('default/web/main?previous=true')).toMatch(/^400 .*no previous terminated/);
    expect(await status('default/web/other')).toMatch(/^404 /);
    expect(await status('default/none/main')).toMatch(/^404 .*default\/none/);
    expect(await status('default/stranger/web')).toMatch(/^404 /);
    expect(await status('')).toBe('400 {"message": "Missing podNamespace."}');
    expect(await status('default')).toBe('400 {"message": "Missing podID."}');
    expect(await status('default/web')).toBe('400 {"message": "Missing container name."}');
  });
  it('do not leave their folder, by a path or by a link', async () => {
    const s = await start();
    const secret = join(s.dir, 'tls.key');
    for (const path of [
      'default/web/..',
      '../../tls.key',
      'default/web/%2e%2e',
      'default/web%2f..%2f..%2ftls.key/main',
      'default/web/main%00',
      'default/web/a%5cb',
    ]) {
      const answer = await s.ask(`/containerLogs/${path}`);
      expect([path, answer.status]).toEqual([path, 400]);
      expect(answer.body).not.toContain('PRIVATE KEY');
    }
    mkdirSync(logDir(s.dir), { recursive: true });
    symlinkSync(secret, join(logDir(s.dir), '0.log'));
    const answer = await s.ask('/containerLogs/default/web/main');
    expect(answer.status).toBe(400);
    expect(answer.body).not.toContain('PRIVATE KEY');
  });
  it('are followed as they grow, over a rotation, to the end of the container', async () => {
    const s = await start();
    const file = put(s.dir, '0.log', lines('one', 'two'));
    const { got } = follow(s.lab, '&tailLines=1');
    await until(() => got.text === 'two\n', WAIT_MS);
    appendFileSync(file, lines('three'));
    await until(() => got.text === 'two\nthree\n', WAIT_MS);
    // As a runtime rotates: what was written last is still given, then the new file from its beginning.
    appendFileSync(file, lines('four'));
    renameSync(file, `${file}.20260101`);
    writeFileSync(file, lines('five'));
    await until(() => got.text.endsWith('four\nfive\n'), WAIT_MS);
    appendFileSync(file, lines('six'));
    // The end of the container, and a line that shows up only after it.
    appendFileSync(file, lines('seven'));
    say(s.lab, { main: { state: { terminated: { exitCode: 0, reason: 'Completed', startedAt: STAMP, finishedAt: STAMP } } } });
    await until(() => got.ended, WAIT_MS);
    expect(got.text).toBe('two\nthree\nfour\nfive\nsix\nseven\n');
  });
  it('end when they were limited, and when the client leaves', async () => {
    const s = await start();
    const file = put(s.dir, '0.log', lines('one'));
    const limited = follow(s.lab, '&limitBytes=6');
    await until(() => limited.got.text === 'one\n', WAIT_MS);
    appendFileSync(file, lines('two'));
    await until(() => limited.got.ended, WAIT_MS);
    expect(limited.got.text).toBe('one\ntw');
    const left = follow(s.lab, '');
    await until(() => left.got.text !== '', WAIT_MS);
    left.leave();
    await s.actor.stop();
  });
});

describe("the host's logs", () => {
  it('are listed and given, and nothing outside of them', async () => {
    const s = await start();
    mkdirSync(join(s.dir, 'log', 'sub <b>'));
    writeFileSync(join(s.dir, 'log', 'sys.log'), 'hello');
    symlinkSync('/etc/passwd', join(s.dir, 'log', 'escape'));
    symlinkSync('sys.log', join(s.dir, 'log', 'inside'));
    symlinkSync(s.dir, join(s.dir, 'log', 'up'));
    const list = await s.ask('/logs/');
    expect(list.status).toBe(200);
    expect(list.body).toContain('<a href="./sys.log">sys.log</a>');
    expect(list.body).toContain('<a href="./sub%20%3Cb%3E/">sub &lt;b&gt;/</a>');
    expect(await s.ask('/logs/sys.log')).toMatchObject({ status: 200, body: 'hello' });
    expect(await s.ask('/logs/inside')).toMatchObject({ status: 200, body: 'hello' });
    expect(await s.ask('/logs/sub%20%3Cb%3E')).toMatchObject({ status: 301, headers: { location: 'sub <b>/' } });
    for (const path of ['escape', 'up/tls.key']) expect([path, (await s.ask(`/logs/${path}`)).status]).toEqual([path, 403]);
    for (const path of ['../tls.key', '..%2ftls.key', '%2e%2e/tls.key', 'sub/../../tls.key', 'a%00b']) {
      expect([path, (await s.ask(`/logs/${path}`)).status]).toEqual([path, 400]);
    }
    expect((await s.ask('/logs/none')).status).toBe(404);
    expect((await s.ask(`/logs/${'x'.repeat(300)}`)).status).toBe(400);
  });
});

describe('statistics', () => {
  const labels = criContainer('main').labels;
  const stats = (used: number, atNs: string) => ({
    attributes: { id: 'id-main', metadata: { name: 'main', attempt: 0 }, labels, annotations: {} },
    cpu: { timestamp: atNs, usageCoreNanoSeconds: { value: String(used) }, usageNanoCores: null },
    memory: {
      timestamp: atNs,
      workingSetBytes: { value: '4096' },
      availableBytes: null,
      usageBytes: null,
      rssBytes: null,
      pageFaults: null,
      majorPageFaults: null,
    },
    writableLayer: null,
  });
  it('sum up the node and its pods, with rates from the second look on', async () => {
    const s = await start();
    let used = 1_000_000_000;
    let at = '1700000000000000000';
    s.cri.ListContainerStats = () => ({ stats: [stats(used, at)] });
    s.cri.ListContainers = () => ({ containers: [criContainer('main')] });
    s.cri.ListPodSandbox = () => ({ items: [sandbox] });
    s.cri.ImageFsInfo = () => ({
      imageFilesystems: [{ timestamp: at, fsId: { mountpoint: '/' }, usedBytes: { value: '7' }, inodesUsed: { value: '3' } }],
    });
    const first = JSON.parse((await s.ask('/stats/summary')).body);
    expect(first).toMatchObject({
      node: {
        nodeName: 'n1',
        cpu: { usageCoreNanoSeconds: expect.any(Number) },
        fs: { capacityBytes: expect.any(Number) },
        runtime: { imageFs: { usedBytes: 7 } },
      },
      pods: [
        {
          podRef: { name: 'web', namespace: 'default', uid },
          containers: [{ name: 'main', cpu: { usageCoreNanoSeconds: 1_000_000_000 } }],
        },
      ],
    });
    used += 500_000_000;
    at = '1700000002000000000';
    s.skip(2000);
    const brief = JSON.parse((await s.ask('/stats/summary?only_cpu_and_memory=true')).body);
    expect(brief.pods[0].containers[0].cpu.usageNanoCores).toBe(250_000_000);
    expect(brief.node.cpu.usageNanoCores).toEqual(expect.any(Number));
    expect(brief.node).not.toHaveProperty('fs');
    const resource = await s.ask('/metrics/resource');
    expect(resource.body).toContain(
      'container_cpu_usage_seconds_total{container="main",namespace="default",pod="web"} 1.5 1700000002000\n',
    );
    expect(resource.headers['content-type']).toContain('text/plain; version=0.0.4');
  });
  it('are an error where the runtime gives none, told as such to metrics-server', async () => {
    const s = await start();
    expect(await s.ask('/stats/summary')).toMatchObject({ status: 500, body: expect.stringContaining('Internal Error') });
    const resource = await s.ask('/metrics/resource');
    expect([resource.status, resource.body]).toEqual([200, expect.stringContaining('resource_scrape_error 1')]);
  });
  it('of the process have the requests themselves, and probes have their page', async () => {
    const s = await start();
    await s.ask('/exec/a/b/c');
    await s.ask('/scanner');
    await s.ask('/portForward/a/b');
    const { body } = await s.ask('/metrics');
    expect(body).toContain('kubelet_http_requests_total{method="GET",path="exec",server_type="readwrite",long_running="true"} 1');
    expect(body).toContain('kubelet_http_requests_total{method="GET",path="other",server_type="readwrite",long_running="false"} 1');
    // Not counted among the long ones, as in the reference (trap 41).
    expect(body).toContain('kubelet_http_requests_total{method="GET",path="portForward",server_type="readwrite",long_running="false"} 1');
    expect(await s.ask('/metrics/probes')).toMatchObject({ status: 200, body: '' });
    expect(families('# HELP a x\n# TYPE a counter\na 1\n# HELP prober_b x\n# TYPE prober_b counter\nprober_b 2\n', /^prober_/)).toBe(
      '# HELP prober_b x\n# TYPE prober_b counter\nprober_b 2\n',
    );
  });
});

/** The runtime's streaming server, as far as it is looked at: it switches to whatever it is asked and echoes in capitals. */
async function streamingServer(o: { status?: number } = {}) {
  const seen: IncomingMessage[] = [];
  const open = new Set<Duplex>();
  const server = createServer((_req, res) => res.writeHead(o.status ?? 500).end('no upgrade'));
  server.on('upgrade', (req, socket: Duplex, head: Buffer) => {
    seen.push(req);
    open.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => open.delete(socket));
    socket.once('end', () => socket.end());
    if (o.status !== undefined) {
      socket.end(`HTTP/1.1 ${o.status} No\r\ncontent-length: 4\r\nx-from: runtime\r\n\r\ngone`);
      return;
    }
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${req.headers.upgrade}\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\nhi `,
    );
    socket.on('data', (d: Buffer) => void socket.write(d.toString().toUpperCase()));
    if (head.length > 0) socket.write(head.toString().toUpperCase());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  enders.push(() => {
    for (const socket of open) socket.destroy();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return { seen, open, url: (path: string) => `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}` };
}

describe('streams', () => {
  const EXEC = '/exec/default/web/main?command=echo&command=a%20b&output=1&error=1&input=1';
  async function withRuntime(o: { status?: number } = {}) {
    const s = await start();
    const runtime = await streamingServer(o);
    s.cri.ListContainers = () => ({
      containers: [criContainer('main'), criContainer('main', { id: 'older', createdAt: '1600000000000000000' })],
    });
    s.cri.ListPodSandbox = () => ({ items: [sandbox] });
    s.cri.Exec = () => ({ url: runtime.url('/exec/token') });
    s.cri.Attach = () => ({ url: runtime.url('/attach/token') });
    s.cri.PortForward = () => ({ url: runtime.url('/portforward/token') });
    return { ...s, runtime };
  }
  const requests = (s: Pick<Lab, 'calls'>, method: string) => s.calls.filter((c) => c.method === method).map((c) => c.request);
  async function switched(answer: Promise<Awaited<ReturnType<Lab['upgrade']>>>) {
    const a = await answer;
    if (!('socket' in a)) throw new Error(`not switched: ${a.status} ${a.body}`);
    const got = { text: a.head.toString(), ended: false };
    a.socket.on('data', (d: Buffer) => {
      got.text += d.toString();
    });
    a.socket.on('error', () => undefined);
    a.socket.on('close', () => {
      got.ended = true;
    });
    enders.push(() => void a.socket.destroy());
    return { ...a, got };
  }

  it('are handed on byte for byte, with the query’s flags, and without the credentials', async () => {
    const s = await withRuntime();
    const headers = { authorization: 'Bearer x', cookie: 'c=1', 'x-stream-protocol-version': 'v4.channel.k8s.io' };
    const { res, socket, got } = await switched(s.upgrade(EXEC, { method: 'POST', headers }));
    expect([res.statusCode, res.headers['x-stream-protocol-version'], res.headers.upgrade]).toEqual([101, 'v4.channel.k8s.io', 'SPDY/3.1']);
    socket.write('abc');
    await until(() => got.text === 'hi ABC', WAIT_MS);
    expect(requests(s, 'Exec')).toEqual([
      { containerId: 'id-main', cmd: ['echo', 'a b'], tty: false, stdin: true, stdout: true, stderr: true },
    ]);
    const [seen] = s.runtime.seen;
    expect([seen?.method, seen?.url, seen?.headers['x-stream-protocol-version']]).toEqual(['POST', '/exec/token', 'v4.channel.k8s.io']);
    expect([seen?.headers.authorization, seen?.headers.cookie]).toEqual([undefined, undefined]);
    socket.end();
    await until(() => got.ended && s.runtime.open.size === 0, WAIT_MS);
  });
  it('of WebSocket clients lose the sub-protocol that carries a token', async () => {
    const s = await withRuntime();
    const carrier = `base64url.bearer.authorization.k8s.io.${Buffer.from('t').toString('base64url')}`;
    const headers = { upgrade: 'websocket', 'sec-websocket-protocol': `${carrier}, v4.channel.k8s.io` };
    const { got } = await switched(s.upgrade(EXEC, { headers }));
    await until(() => got.text === 'hi ', WAIT_MS);
    expect(s.runtime.seen[0]?.headers['sec-websocket-protocol']).toBe('v4.channel.k8s.io');
  });
  it('end on both sides when the runtime ends, when the client goes, and when the server stops', async () => {
    const s = await withRuntime();
    const first = await switched(s.upgrade(EXEC));
    await until(() => s.runtime.open.size === 1, WAIT_MS);
    for (const socket of s.runtime.open) socket.destroy();
    await until(() => first.got.ended, WAIT_MS);
    const second = await switched(s.upgrade(EXEC));
    await until(() => s.runtime.open.size === 1, WAIT_MS);
    second.socket.destroy();
    await until(() => s.runtime.open.size === 0, WAIT_MS);
    const third = await switched(s.upgrade(EXEC));
    await until(() => s.runtime.open.size === 1, WAIT_MS);
    await s.actor.stop();
    await until(() => third.got.ended && s.runtime.open.size === 0, WAIT_MS);
  });
  it('carry much data both ways', async () => {
    const s = await withRuntime();
    const { socket, got } = await switched(s.upgrade(EXEC));
    const block = 'x'.repeat(1 << 20);
    for (let i = 0; i < 8; i++) socket.write(block);
    await until(() => got.text.length === 3 + 8 * block.length, WAIT_MS);
    expect(/^hi X+$/.test(got.text)).toBe(true);
  });
  it('take the terminal from the query for exec and from the definition for attach (traps 29, 30, 33)', async () => {
    const s = await withRuntime();
    await switched(s.upgrade('/exec/default/web/main?command=sh&tty=1&error=1&output=1'));
    await switched(s.upgrade('/attach/default/web/main?output=1&error=1&tty=1'));
    const flags = { stdin: false, stdout: true };
    expect(requests(s, 'Exec')).toMatchObject([{ ...flags, tty: true, stderr: false }]);
    expect(requests(s, 'Attach')).toEqual([{ containerId: 'id-main', ...flags, tty: false, stderr: true }]);
    const terminal = structuredClone(web);
    if (terminal.spec.containers[0] !== undefined) terminal.spec.containers[0].tty = true;
    s.registry.set(view.pods, podsView([record(terminal)]));
    await switched(s.upgrade('/attach/default/web/main?output=1&error=1'));
    expect(requests(s, 'Attach')[1]).toMatchObject({ tty: true, stderr: false });
  });
  it('of ports name the sandbox, and the ports of WebSocket clients', async () => {
    const s = await withRuntime();
    await switched(s.upgrade('/portForward/default/web', { method: 'POST' }));
    await switched(s.upgrade(`/portForward/default/web/${uid}?port=80&port=81,82`, { headers: { upgrade: 'websocket' } }));
    expect(requests(s, 'PortForward')).toEqual([
      { podSandboxId: 'sb', port: [] },
      { podSandboxId: 'sb', port: [80, 81, 82] },
    ]);
  });
  const status = async (answer: Promise<Awaited<ReturnType<Lab['upgrade']>>>) => {
    const a = await answer;
    return 'status' in a ? a.status : 101;
  };
  it.each([
    ['no stream', '/exec/default/web/main?command=x', {}, 400],
    ['a flag that is not 1 (trap 30)', '/exec/default/web/main?command=x&output=true', {}, 400],
    ['an unknown pod', '/exec/default/none/main?command=x&output=1', {}, 404],
    ['a container that is not in the pod', '/exec/default/web/none?command=x&output=1', {}, 500],
    ['another UID, for exec, is not looked at (trap 32)', '/exec/default/web/wrong/main?command=x&output=1', {}, 101],
    ['another UID, for attach (trap 32)', '/attach/default/web/wrong/main?output=1', {}, 500],
    ['another UID, for a port (trap 32)', '/portForward/default/web/wrong', {}, 404],
    ['too few parts', '/exec/default/web?command=x&output=1', {}, 404],
    ['a WebSocket without a port', '/portForward/default/web', { upgrade: 'websocket' }, 400],
    ['a port that is none', '/portForward/default/web?port=70000', { upgrade: 'websocket' }, 400],
    ['no upgrade (trap 31)', '/exec/default/web/main?command=x&output=1', { connection: 'close' }, 500],
  ])('with %s', async (_what, path, headers, expected) => {
    const s = await withRuntime();
    const plain = 'connection' in headers;
    expect(plain ? (await s.ask(path)).status : await status(s.upgrade(path, { headers: headers as Record<string, string> }))).toBe(
      expected,
    );
  });
  it('give the runtime’s refusals in their own codes', async () => {
    const s = await withRuntime();
    const ask = async () => {
      const a = await s.upgrade(EXEC);
      return 'status' in a ? [a.status, a.headers['retry-after'], a.body] : [101];
    };
    s.cri.Exec = () => {
      throw coded(5, 'no such container');
    };
    expect(await ask()).toEqual([404, undefined, 'no such container\n']);
    s.cri.Exec = () => {
      throw coded(8, 'too many');
    };
    expect(await ask()).toEqual([429, '60', 'too many\n']);
    s.cri.Exec = () => ({ url: 'http://127.0.0.1:1/nobody' });
    expect(await ask()).toEqual([502, undefined, expect.stringContaining('did not answer')]);
    s.cri.Exec = () => ({ url: 'file:///etc/passwd' });
    expect(await ask()).toEqual([502, undefined, expect.stringContaining('no URL')]);
    s.cri.ListContainers = () => ({ containers: [] });
    expect(await ask()).toEqual([500, undefined, expect.stringContaining('container not found')]);
  });
  it('pass on a streaming server’s refusal', async () => {
    const s = await withRuntime({ status: 404 });
    const a = await s.upgrade(EXEC);
    expect('status' in a && [a.status, a.body, a.headers['x-from']]).toEqual([404, 'gone', 'runtime']);
  });
});

describe('/run', () => {
  it('gives both outputs, and a failure without them', async () => {
    const s = await start();
    s.cri.ListContainers = () => ({ containers: [criContainer('main')] });
    const bytes = (t: string) => new TextEncoder().encode(t);
    let exitCode = 0;
    s.cri.ExecSync = () => ({ stdout: bytes('out'), stderr: bytes('err'), exitCode });
    expect(await s.ask('/run/default/web/main?cmd=echo%20a', { method: 'POST' })).toMatchObject({ status: 200, body: 'outerr' });
    expect(s.calls.at(-1)?.request).toEqual({ containerId: 'id-main', cmd: ['echo', 'a'], timeout: 0 });
    exitCode = 3;
    expect(await s.ask('/run/default/web/main?cmd=x', { method: 'POST' })).toMatchObject({
      status: 500,
      body: expect.not.stringContaining('out'),
    });
    expect((await s.ask('/run/default/web/main?cmd=x')).status).toBe(405);
  });
});

describe('bad requests', () => {
  it('are refused with their reason, and the server goes on', async () => {
    const s = await start();
    expect((await s.ask('/pods%zz')).status).toBe(400);
    expect((await s.ask('/logs/%ff%fe')).status).toBe(400);
    expect((await s.ask('/run/default/web/main?cmd=x', { method: 'POST', body: Buffer.alloc(70_000) })).status).toBe(413);
    expect((await s.ask('/pods', { headers: { 'x-long': 'x'.repeat(1_100_000) } }).catch(() => ({ status: 431 }))).status).toBe(431);
    expect((await s.ask('/pods')).status).toBe(200);
  });
  it('that are no HTTP at all get a 400 and the end', async () => {
    const s = await start();
    const got = await new Promise<string>((resolve) => {
      let text = '';
      const socket = connect({ host: '127.0.0.1', port: s.port, ca: serverCa.pem, ...ann }, () => socket.write('\0\0nonsense\r\n\r\n'));
      socket.on('data', (d) => {
        text += d.toString('latin1');
      });
      socket.on('error', () => undefined);
      socket.once('close', () => resolve(text));
    });
    expect(got).toMatch(/^HTTP\/1\.1 400 /);
    expect((await s.ask('/pods')).status).toBe(200);
  });
});
