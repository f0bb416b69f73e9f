/** The edge's servers over real loopback ports: what they answer, and what they answer while the node is not well. */
import { treeHealth } from '@actorlet/shown/src/treeHealth.ts';
import { describe, expect, onTestFinished, test } from 'vitest';
import { healthzServerSpec } from '../../src/actors/edge/healthz.ts';
import { type ReadOnlyOptions, readOnlyServerSpec } from '../../src/actors/edge/readOnly.ts';
import type { Inspect } from '../../src/actors/edge/server.ts';
import type { ActorState } from '../../src/actors/supervision/types.ts';
import { createMetrics } from '../../src/boot/dependencies/metrics/metrics.ts';
import { createNet } from '../../src/boot/dependencies/net/net.ts';
import { podsView } from '../../src/machines/pods/manager/messages.ts';
import { statusesView } from '../../src/machines/pods/status/messages.ts';
import { freePort } from '../freePort.ts';
import { LEAVING, REFUSED } from '../lifeStates.ts';
import { fakePorts } from '../supervision/fakePorts.ts';
import { actor, NO_FIGURES, run, sampleTree, stateAt, until, views } from './harness.ts';
import { crashing, pod, record, running, statusView, viewOfPods, worker } from './metrics/samples.ts';

const net = createNet();
const build = { major: '1', minor: '36', gitVersion: 'v1.36.0+actorlet.1', gitCommit: '', buildDate: '', platform: 'linux/amd64' };

async function readOnly(more: Partial<ReadOnlyOptions> & { tree?: ActorState } = {}) {
  const ports = fakePorts({ net, metrics: createMetrics() });
  const registry = views();
  const port = more.port ?? (await freePort());
  const at = { tree: more.tree ?? sampleTree() };
  const inspect: Inspect = {
    state: () => at.tree,
    stateAt: (path: string) => stateAt(at.tree, path),
    recorder: () => ({ entries: [], overwritten: 0 }),
    configz: () => ({}),
  };
  const figures = {
    rootDir: '/',
    podLogsDir: '/',
    runtimeRequestTimeoutMs: 10_000,
    volumeStats: { periodMs: 0, health: false },
    ...NO_FIGURES,
  };
  const spec = readOnlyServerSpec({
    host: '127.0.0.1',
    inspect,
    nodeName: 'n1',
    build,
    syncFrequencyMs: 60_000,
    ...figures,
    ...more,
    port,
  });
  const actor = run(spec, ports, registry);
  onTestFinished(() => actor.stop());
  await until(() => spec.ready?.when({ value: actor.value() }) === true);
  const get = async (path: string, init: RequestInit = {}) => {
    const res = await fetch(`http://127.0.0.1:${port}${path}`, init);
    return { status: res.status, type: res.headers.get('content-type'), warning: res.headers.get('warning'), text: await res.text() };
  };
  return { ports, registry, port, at, actor, spec, get };
}
const it = test.extend('s', () => readOnly());

describe('the read-only port', () => {
  it('lists no pods as null, not as an empty list', async ({ s }) => {
    s.registry.set(podsView, viewOfPods([]));
    const res = await s.get('/pods');
    expect([res.status, res.type, res.text.trim()]).toEqual([
      200,
      'application/json',
      '{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}',
    ]);
  });
  it('lists pods with their live status, without orphaned and without removed ones', async ({ s }) => {
    s.registry.set(
      podsView,
      viewOfPods([
        record(pod('web')),
        record(pod('refused'), { state: REFUSED, worker: null }),
        record(pod('gone'), { state: LEAVING }),
        record(pod('orphan'), { source: 'runtime' }),
      ]),
    );
    s.registry.set(statusesView, statusView({ 'uid-web': running }));
    const list = JSON.parse((await s.get('/pods')).text);
    expect(list.items.map((p: { metadata: { name: string }; status: { phase?: string } }) => [p.metadata.name, p.status.phase])).toEqual([
      ['web', 'Running'],
      ['refused', undefined],
    ]);
    expect(list.items[0].spec.containers[0].name).toBe('web');
  });
  it('says 503 with the reason until the pod manager has published, and marks an old list as stale', async () => {
    const s = await readOnly({ tree: sampleTree({ 'node/pods/podManager': { lifecycle: 'restarting', lastError: 'boom "x"\n' } }) });
    const none = await s.get('/pods');
    expect([none.status, none.text]).toEqual([503, '503: pods is not available: node/pods/podManager is restarting (boom "x"\n)\n']);
    s.registry.set(podsView, viewOfPods([record(pod('web'))]));
    const old = await s.get('/pods');
    expect([old.status, old.warning]).toEqual([200, '110 actorlet "stale: node/pods/podManager is restarting (boom  x  )"']);
    s.at.tree = sampleTree();
    expect((await s.get('/pods')).warning).toBe(null);
  });
  it('answers 404 for what it does not know, 405 for a wrong method and for every debugging path', async ({ s }) => {
    expect(await s.get('/nope')).toMatchObject({ status: 404, text: '404 page not found\n' });
    expect(await s.get('/pods/x')).toMatchObject({ status: 404 });
    expect(await s.get('/configz')).toMatchObject({ status: 404 });
    expect(await s.get('/statez')).toMatchObject({ status: 404 });
    expect(await s.get('/pods', { method: 'POST' })).toMatchObject({ status: 405, text: '405: Method Not Allowed' });
    for (const path of [
      '/run/a/b/c',
      '/exec/a/b/c',
      '/attach/',
      '/portForward/x',
      '/containerLogs/a/b/c',
      '/runningpods/',
      '/debug/pprof/',
      '/logs/',
    ]) {
      expect([path, await s.get(path)]).toMatchObject([path, { status: 405, text: 'Debug endpoints are disabled.\n' }]);
    }
  });
  it('has the pages with figures that the reference shows there, and says so where the runtime is away', async ({ s }) => {
    for (const page of ['resource', 'probes', 'cadvisor', 'slis'])
      expect([page, (await s.get(`/metrics/${page}`)).text]).toEqual([page, expect.stringMatching(/^# HELP /)]);
    expect((await s.get('/metrics/cadvisor')).text).toContain('\ncontainer_scrape_error 1\n');
    expect(await s.get('/stats/summary')).toMatchObject({ status: 500, text: expect.stringContaining('Internal Error: ') });
    expect(await s.get('/metrics/other')).toMatchObject({ status: 404 });
  });
  it('is healthy without a runtime and before any pod was seen', async () => {
    const s = await readOnly({ tree: sampleTree({ node: { children: [] } }) });
    expect(await s.get('/healthz')).toMatchObject({ status: 200, text: 'ok', type: 'text/plain; charset=utf-8' });
    expect(await s.get('/healthz', { method: 'POST' })).toMatchObject({ status: 200, text: 'ok' });
    expect(await s.get('/healthz?verbose')).toMatchObject({
      text: '[+]ping ok\n[+]log ok\n[+]syncloop ok\n[+]device-plugin ok\nhealthz check passed\n',
    });
    for (const name of ['ping', 'log', 'syncloop', 'device-plugin'])
      expect(await s.get(`/healthz/${name}`)).toMatchObject({ status: 200, text: 'ok' });
    expect(await s.get('/healthz/other')).toMatchObject({ status: 404 });
  });
  it('fails syncloop once work has waited 5 minutes for the pod manager: withheld at the root, told by the check itself', async () => {
    const mailbox = (oldestAgeMs: number) => ({ depth: 1, depthMax: 1, oldestAgeMs, coalesced: 0, dropped: 0, suspended: false });
    const s = await readOnly({ tree: sampleTree({ 'node/pods/podManager': { mailbox: mailbox(299_000) } }) });
    expect(await s.get('/healthz')).toMatchObject({ status: 200 });
    s.at.tree = sampleTree({ 'node/pods/podManager': { mailbox: mailbox(301_000) } });
    expect(await s.get('/healthz')).toMatchObject({
      status: 500,
      text: '[+]ping ok\n[+]log ok\n[-]syncloop failed: reason withheld\n[+]device-plugin ok\nhealthz check failed\n',
    });
    expect(await s.get('/healthz/syncloop')).toMatchObject({
      status: 500,
      text: 'internal server error: work has waited 301 s for the pod manager\n',
    });
    expect(await s.get('/healthz?exclude=syncloop')).toMatchObject({ status: 200, text: 'ok' });
    expect((await s.get('/healthz?verbose&exclude=syncloop&exclude=x')).text).toBe(
      '[+]ping ok\n[+]log ok\n[+]syncloop excluded: ok\n[+]device-plugin ok\nwarn: some health checks cannot be excluded: no matches for "x"\nhealthz check passed\n',
    );
  });
  it('fails device-plugin while device plugins cannot register', async () => {
    const devices = actor('node/allocation/devices', { reason: 'SocketFailed', message: 'device plugins cannot register: no room' });
    const s = await readOnly({ tree: sampleTree({ node: { children: [devices] } }) });
    expect(await s.get('/healthz')).toMatchObject({ status: 500, text: expect.stringContaining('[-]device-plugin failed') });
    expect(await s.get('/healthz/device-plugin')).toMatchObject({
      status: 500,
      text: 'internal server error: device plugins cannot register: no room\n',
    });
  });
  it('counts its requests without letting a scanner make series', async ({ s }) => {
    for (const path of ['/pods', '/pods/', '/healthz/ping', '/a', '/b', '/c']) await s.get(path);
    await s.get('/pods', { method: 'PROPFIND' });
    const { text } = await s.get('/metrics');
    const totals = text.match(/^kubelet_http_requests_total.*$/gm)?.sort();
    const at = (method: string, path: string, n: number) =>
      `kubelet_http_requests_total{method="${method}",path="${path}",server_type="readonly",long_running="false"} ${n}`;
    expect(totals).toEqual([
      at('GET', 'healthz', 1),
      at('GET', 'metrics', 1),
      at('GET', 'other', 3),
      at('GET', 'pods', 2),
      at('other', 'pods', 1),
    ]);
    expect(text).toMatch(/^kubelet_http_inflight_requests\{method="GET",path="metrics".*\} 1$/m);
  });
  it('counts pods as the kubelet does', async ({ s }) => {
    s.registry.set(
      podsView,
      viewOfPods([
        record(pod('a')),
        record(pod('done')),
        record(pod('refused'), { state: REFUSED, worker: null }),
        record(pod('fromapi'), { source: 'api' }),
        record(pod('leaving'), { state: LEAVING, worker: worker({ phase: 'terminating' }) }),
        record(pod('orphan'), { source: 'runtime', worker: worker({ phase: 'terminated' }) }),
      ]),
    );
    s.registry.set(statusesView, statusView({ 'uid-done': { phase: 'Succeeded' }, 'uid-a': crashing }));
    const { text } = await s.get('/metrics');
    for (const line of [
      'kubelet_desired_pods{static=""} 1',
      'kubelet_desired_pods{static="true"} 3',
      'kubelet_active_pods{static="true"} 1',
      'kubelet_working_pods{lifecycle="sync",config="desired",static="true"} 2',
      'kubelet_working_pods{lifecycle="terminating",config="orphan",static="true"} 1',
      'kubelet_working_pods{lifecycle="terminated",config="runtime_only",static="unknown"} 1',
      'kubelet_working_pods{lifecycle="sync",config="orphan",static=""} 0',
      'kubelet_node_name{node="n1"} 1',
      'actorlet_actors{path="node/pods/workers/*"} 1',
      'actorlet_actors_running{path="node/runtime/cri"} 1',
      'actorlet_dead_letters_total{reason="stopped"} 3',
    ]) {
      expect(text).toContain(`${line}\n`);
    }
    expect(text).toMatch(/^kubernetes_build_info\{major="1",minor="36",git_version="v1.36.0\+actorlet.1",.*\} 1$/m);
  });
  it('stops answering when stopped and frees its port', async ({ s }) => {
    await s.actor.stop();
    await expect(s.get('/healthz')).rejects.toThrow();
    await (await net.serveHttp({ host: '127.0.0.1', port: s.port }, async () => ({ status: 200, body: '' }))).close();
  });
  it('killed without a stop, lets go of its port for the next incarnation', async ({ s }) => {
    s.actor.abort();
    const again = await readOnly({ port: s.port });
    await again.ports.advance(100);
    await until(() => again.actor.value() === 'listening');
    expect(await again.get('/healthz')).toMatchObject({ status: 200 });
  });
});

describe('a taken port', () => {
  it('does not hold up the node, is said once, and is taken as soon as it is free', async () => {
    const first = await readOnly();
    const second = await readOnly({ port: first.port });
    expect(second.actor.value()).toBe('blocked');
    for (let i = 0; i < 4; i++) {
      await second.ports.advance(5000);
      await until(() => second.actor.value() === 'blocked');
    }
    const errors = second.ports.lines.filter((l) => l.level === 'error');
    expect(errors.map((l) => l.msg)).toEqual([
      `readOnly server: --read-only-port: cannot listen on 127.0.0.1:${first.port}: the address is already in use; it is tried again until it works`,
    ]);
    await first.actor.stop();
    await second.ports.advance(5000);
    await until(() => second.actor.value() === 'listening');
    expect(await second.get('/healthz')).toMatchObject({ status: 200 });
  });
});

describe('a server without its address', () => {
  it('fails its line of the admin health answer with the flag, and takes nothing else down', () => {
    const why = '--read-only-port: cannot listen on 127.0.0.1:10255: the address is already in use';
    const tree = sampleTree({ 'node/edge/admin': { state: 'blocked', reason: 'CannotListen', message: why } });
    expect(treeHealth(tree).filter((h) => !h.ok)).toEqual([{ path: 'node/edge/admin', ok: false, reason: why, down: false }]);
  });
});

describe('the health port', () => {
  it('has ping and nothing else', async () => {
    const port = await freePort();
    const actor = run(healthzServerSpec({ host: '127.0.0.1', port }), fakePorts({ net }));
    onTestFinished(() => actor.stop());
    await until(() => actor.value() === 'listening');
    const get = async (path: string) => {
      const res = await fetch(`http://127.0.0.1:${port}${path}`);
      return [res.status, await res.text()];
    };
    expect(await get('/healthz')).toEqual([200, 'ok']);
    expect(await get('/healthz/ping')).toEqual([200, 'ok']);
    expect((await get('/healthz/syncloop'))[0]).toBe(404);
    expect((await get('/pods'))[0]).toBe(404);
  });
});
