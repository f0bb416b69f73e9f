/** A machine that goes down while pods run: which pods end when, what the node says of it, and what a restart or a cancellation finds. */
import { describe, expect } from 'vitest';
import type { KubeletConfiguration } from '../../../src/machines/config/config.ts';
import { podsView, refusedFor } from '../../../src/machines/pods/manager/messages.ts';
import { nodeShutdownView } from '../../../src/machines/reclaim/nodeShutdown/messages.ts';
import { cluster, condition, create, createUp, drop, events, failed, inApi, running, up } from '../cluster/clusterPods.ts';
import { itWith } from '../onNode.ts';
import { pod, ROOT, type VirtualNode, type VirtualNodeOptions, virtualNode } from '../virtualNode.ts';

const PATH = 'node/reclaim/nodeShutdown';
const STATE = `${ROOT}/graceful_node_shutdown_state`;
const CRITICAL = 2_000_001_000;
const periods: Partial<KubeletConfiguration> = { shutdownGracePeriod: 30_000, shutdownGracePeriodCriticalPods: 10_000 };
const begin = (o: VirtualNodeOptions = {}) => cluster({ config: periods, ...o });
const watching = (h: VirtualNode) => h.until('logind is watched', () => h.state(PATH).includes('logind.watching'));
async function start(config: Partial<KubeletConfiguration> = periods): Promise<VirtualNode> {
  const h = await begin({ config });
  await watching(h);
  return h;
}
const it = itWith(start);
const reason = (h: VirtualNode, expected: string) => h.until(`the reason ${expected}`, () => h.actor(PATH)?.reason === expected);
const down = (h: VirtualNode) => h.until('the machine is down', () => h.logind.downAtMs !== null, 120_000);
const state = (h: VirtualNode) => JSON.parse(h.fs.textOf(STATE) ?? '') as { startTime: string; endTime: string };
const ZERO = '0001-01-01T00:00:00Z';
const ready = (h: VirtualNode) => condition(h, 'Ready');
const graces = (h: VirtualNode) =>
  h.calls.filter((c) => c.method === 'StopContainer').map((c) => Number((c.req as { timeout: number }).timeout));
/** Ignores TERM: it takes all of its grace. */
const stubborn = (graceSeconds: number, more: object = {}) => ({
  life: 'run=forever,term=ignore',
  spec: { terminationGracePeriodSeconds: graceSeconds, ...more },
});

describe('a machine that goes down', () => {
  it('waits until pods have ended, ordinary ones before critical ones, and says so', async ({ h }) => {
    create(h, 'web');
    create(h, 'guarded', { spec: { priority: CRITICAL } });
    for (const name of ['web', 'guarded']) await up(h, name);
    await h.until('the node is ready', () => ready(h)?.status === 'True');
    expect([h.logind.held, h.logind.delayMs]).toEqual([true, 30_000]);
    const startedMs = h.time.clock.monoMs();
    h.logind.shutDown();
    await h.until('the ordinary pod has ended', () => {
      expect(running(h, 'guarded')).toBe(1);
      return running(h, 'web') === 0;
    });
    await down(h);
    expect([running(h, 'web'), running(h, 'guarded')]).toEqual([0, 0]);
    expect((h.logind.downAtMs ?? 0) - startedMs).toBeLessThan(15_000);
    for (const name of ['web', 'guarded']) {
      await failed(h, name);
      expect(inApi(h, name)?.status).toMatchObject({
        phase: 'Failed',
        reason: 'Terminated',
        message: 'Pod was terminated in response to imminent node shutdown.',
      });
      expect(inApi(h, name)?.status.conditions).toContainEqual(
        expect.objectContaining({ type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet' }),
      );
    }
    await h.until('the node is not ready', () => ready(h)?.status === 'False');
    expect(ready(h)).toMatchObject({ reason: 'KubeletNotReady', message: 'node is shutting down' });
    expect(events(h, 'Shutdown')).toEqual(['Shutdown manager detected shutdown event']);
  });

  it('refuses pods that come meanwhile, critical ones too, and preempts no pod for them', async ({ h }) => {
    await createUp(h, 'slow', stubborn(20));
    h.logind.shutDown();
    await h.until('it is noticed', () => h.tree.registry.read(nodeShutdownView)?.value.active);
    create(h, 'late');
    create(h, 'lateCritical', { spec: { priority: CRITICAL }, container: { resources: { requests: { cpu: '4' } } } });
    for (const name of ['late', 'lateCritical']) {
      await failed(h, name);
      expect(inApi(h, name)?.status).toMatchObject({
        reason: 'NodeShutdown',
        message: 'Pod was rejected: Pod was rejected as the node is shutting down.',
      });
    }
    expect(events(h, 'Preempting')).toEqual([]);
  });

  it('gives each group its period, by priority, and goes on without pods that take longer (trap 74)', async () => {
    const shutdownGracePeriodByPodPriority = [
      { priority: 1_000, shutdownGracePeriodSeconds: 6 },
      { priority: 0, shutdownGracePeriodSeconds: 4 },
      // No pod is among these: they cost no time.
      { priority: 5_000, shutdownGracePeriodSeconds: 60 },
      { priority: 100_000, shutdownGracePeriodSeconds: 3 },
    ];
    await using h = await start({ shutdownGracePeriodByPodPriority });
    const priorities = { below: -5, low: 999, high: 4_999, top: 100_001 };
    for (const [name, priority] of Object.entries(priorities)) create(h, name, stubborn(300, { priority }));
    for (const name of Object.keys(priorities)) await up(h, name);
    const startedMs = h.time.clock.monoMs();
    h.logind.shutDown();
    await down(h);
    const tookMs = (h.logind.downAtMs ?? 0) - startedMs;
    expect(tookMs).toBeGreaterThan(9_000);
    expect(tookMs).toBeLessThan(20_000);
    expect(graces(h)).toEqual([4, 4, 6, 3]);
    expect(events(h, 'Shutdown')).toHaveLength(1);
  });

  it('gives a pod no more than it asked for, and hurries one that was being deleted', async ({ h }) => {
    create(h, 'short', stubborn(3));
    create(h, 'leaving', stubborn(300));
    for (const name of ['short', 'leaving']) await up(h, name);
    drop(h, 'pods/leaving', 300);
    await h.until('it is being stopped', () => graces(h).includes(300));
    h.logind.shutDown();
    await down(h);
    expect(graces(h).sort((a, b) => a - b)).toEqual([3, 20, 300]);
    expect([running(h, 'short'), running(h, 'leaving')]).toEqual([0, 0]);
    await h.until('the deleted one is gone', () => inApi(h, 'leaving') === undefined);
  });

  it('ends static pods too, and leaves ended pods their end', async ({ h }) => {
    h.write('static', pod('static'));
    create(h, 'done', { life: 'run=1s,exit=0', spec: { restartPolicy: 'Never' } });
    await h.until('the static pod runs', () => h.phase('static') === 'Running');
    await h.until('the other has ended', () => inApi(h, 'done')?.status.phase === 'Succeeded');
    h.logind.shutDown();
    await down(h);
    expect(h.running('static')).toEqual([]);
    expect(h.status('static')?.status).toMatchObject({ phase: 'Failed', reason: 'Terminated' });
    expect(inApi(h, 'done')?.status.phase).toBe('Succeeded');
    expect(inApi(h, 'done')?.status.reason).toBeUndefined();
  });
});

describe('a shutdown that is cancelled', () => {
  it('leaves pods that had time, makes the node ready, and waits again the next time', async ({ h }) => {
    create(h, 'slow', stubborn(20));
    create(h, 'guarded', { spec: { priority: CRITICAL } });
    for (const name of ['slow', 'guarded']) await up(h, name);
    h.logind.shutDown();
    await h.until('the node is not ready', () => ready(h)?.status === 'False');
    h.logind.cancel();
    await h.until('the node is ready', () => ready(h)?.status === 'True');
    await failed(h, 'slow');
    await h.advance(60_000);
    expect(running(h, 'guarded')).toBe(1);
    await createUp(h, 'next');
    expect(events(h, 'Shutdown')).toEqual(['Shutdown manager detected shutdown event', 'Shutdown manager detected shutdown cancellation']);
    expect(h.logind.held).toBe(true);
    h.logind.shutDown();
    await down(h);
    expect([running(h, 'guarded'), running(h, 'next')]).toEqual([0, 0]);
  });

  it('lets static pods begin again that were ended or refused, and leaves those of the API as they are', async ({ h }) => {
    h.logind.otherLock = true;
    h.write('static', pod('static'));
    h.write('slow', pod('slow', { life: 'run=forever,term=ignore', spec: { terminationGracePeriodSeconds: 15 } }));
    await createUp(h, 'web');
    await h.until('the static pods run', () => h.phase('static') === 'Running' && h.phase('slow') === 'Running');
    h.logind.shutDown();
    await failed(h, 'web');
    await h.until('one has ended', () => h.phase('static') === 'Failed');
    h.write('late', pod('late'));
    await h.until('one is refused', () => h.status('late')?.status.reason === 'NodeShutdown');
    expect(h.running('slow')).toHaveLength(1);
    h.logind.cancel();
    await h.until('the node is ready', () => ready(h)?.status === 'True');
    const runs = (name: string) => h.phase(name) === 'Running' && h.running(name).length === 1;
    await h.until('all static pods run', () => ['static', 'slow', 'late'].every(runs), 60_000);
    expect(h.status('static')?.status.reason).toBeUndefined();
    // The slow one ended first: it has another container.
    expect(graces(h)).toContain(15);
    await reason(h, 'Watching');
    await h.advance(60_000);
    expect(inApi(h, 'web')?.status).toMatchObject({ phase: 'Failed', reason: 'Terminated' });
    expect(['static', 'slow', 'late'].every(runs)).toBe(true);
  });

  it('lets one begin again that was put back, and refused, while its former life was wound down', async ({ h }) => {
    h.logind.otherLock = true;
    const slow = pod('slow', { life: 'run=forever,term=ignore', spec: { terminationGracePeriodSeconds: 25 } });
    await h.run('slow', slow);
    h.remove('slow');
    await h.until('it is wound down', () => h.record('slow')?.state.is === 'leaving');
    h.logind.shutDown();
    await reason(h, 'ShuttingDown');
    h.write('slow', slow);
    await h.until('it is refused', () => refusedFor(h.record('slow') ?? { state: null }) === 'NodeShutdown');
    const [former] = h.running('slow');
    expect(former).toBeDefined();
    h.logind.cancel();
    const others = () => h.running('slow').filter((c) => c.id !== former?.id);
    await h.until('it runs again', () => h.phase('slow') === 'Running' && others().length === 1 && h.running('slow').length === 1);
  });

  it('lets them begin again also where the manager is killed before it asked for that', async ({ h }) => {
    h.logind.otherLock = true;
    await h.run('static', pod('static'));
    h.logind.shutDown();
    await h.until('it has ended', () => h.phase('static') === 'Failed');
    h.fs.delayMs = (op, at) => (op === 'writeFile' && at.startsWith(STATE) ? 2_000 : 0);
    h.logind.cancel();
    await h.until('the cancellation is being written', () => h.state(PATH).includes('pods.shutdown.restoring'));
    h.kill(PATH);
    await h.until('it runs again', () => h.phase('static') === 'Running' && h.running('static').length === 1);
  });

  it('takes the lock again that was dropped, when the machine did not go down after all', async ({ h }) => {
    h.logind.otherLock = true;
    await createUp(h, 'web');
    h.logind.shutDown();
    await h.until('the lock is dropped', () => !h.logind.held);
    await reason(h, 'ShutdownReleased');
    h.logind.cancel();
    await h.until('the lock is taken again', () => h.logind.held);
    await h.until('the node is ready', () => ready(h)?.status === 'True');
  });
});

describe('a restart in the middle', () => {
  it('goes on where the daemon before left off, within what is left of the time', async ({ h }) => {
    h.logind.otherLock = true;
    create(h, 'slow', stubborn(300));
    create(h, 'guarded', stubborn(300, { priority: CRITICAL }));
    for (const name of ['slow', 'guarded']) await up(h, name);
    h.logind.shutDown();
    await h.until('the beginning is on disk', () => h.fs.has(STATE) && state(h).endTime === ZERO);
    const { startTime } = state(h);
    await h.advance(5_000);
    await h.crash();
    await h.advance(17_000);
    await h.boot();
    await h.until('the end is on disk', () => state(h).endTime !== ZERO);
    expect(state(h).startTime).toBe(startTime);
    expect(Date.parse(state(h).endTime) - Date.parse(startTime)).toBeLessThan(34_000);
    // Of the second life: eight seconds were left for the first, and what it left of them for the second.
    expect(Math.max(...graces(h).slice(1))).toBeLessThan(9);
    expect(ready(h)?.message).toBe('node is shutting down');
  });

  it('has nothing of it when the machine comes back, and its pods run', async () => {
    await using h = await virtualNode({ config: periods, manifests: { web: pod('web') } });
    await watching(h);
    await h.until('the pod runs', () => h.phase('web') === 'Running');
    h.logind.shutDown();
    await down(h);
    await h.crash();
    h.logind.reboot();
    await h.boot();
    await h.until('the pod runs again', () => h.phase('web') === 'Running' && h.running('web').length === 1);
    await watching(h);
    expect(h.tree.registry.read(nodeShutdownView)?.value.active).toBe(false);
    const text = await h.metrics.render();
    for (const side of ['start', 'end'])
      expect(Number(new RegExp(`^kubelet_graceful_shutdown_${side}_time_seconds (\\S+)$`, 'm').exec(text)?.[1])).toBeGreaterThan(1e9);
  });

  it('reads a state file of the kubelet, and takes a broken one for none', async () => {
    const written = (text: string) => ({
      before: (h: VirtualNode) => {
        h.fs.makeDir(ROOT);
        h.fs.put(STATE, text);
      },
    });
    const kubelets = '{"startTime":"2026-03-01T10:00:00.123456789+01:00","endTime":"2026-03-01T10:00:20+01:00"}';
    await using h = await virtualNode({ config: periods, ...written(kubelets) });
    await watching(h);
    expect(await h.metrics.render()).toMatch(/^kubelet_graceful_shutdown_end_time_seconds 1772355620$/m);
    await using broken = await virtualNode({ config: periods, ...written('{"startTime": 5}') });
    await watching(broken);
    expect(broken.lines.filter((l) => l.msg.includes('the last shutdown of this node cannot be read'))).toHaveLength(1);
    broken.logind.shutDown();
    await down(broken);
    expect(state(broken).endTime).not.toBe(ZERO);
  });
});

describe('the manager killed at the end of a shutdown', () => {
  it.each(['finishing', 'released'])('in: %s', async (last) => {
    await using h = await start();
    h.logind.otherLock = true;
    await createUp(h, 'web');
    h.fs.delayMs = (op, at) => (op === 'writeFile' && at.startsWith(STATE) ? 1_000 : 0);
    h.logind.shutDown();
    await h.until(`it is ${last}`, () => h.state(PATH).includes(`pods.shutdown.${last}`));
    const { startTime } = state(h);
    h.kill(PATH);
    h.logind.otherLock = false;
    await down(h);
    await reason(h, 'ShutdownReleased');
    expect(h.logind.held).toBe(false);
    expect(state(h)).toMatchObject({ startTime });
    expect(state(h).endTime).not.toBe(ZERO);
    expect(events(h, 'Shutdown')).toEqual(['Shutdown manager detected shutdown event']);
    expect(inApi(h, 'web')?.status.reason).toBe('Terminated');
  });
});

describe('systemd-logind away', () => {
  it('is tried again, longer apart each time, and that is said once; the shutdown that it tells of then is heeded', async () => {
    await using h = await begin({ before: (n) => void Object.assign(n.logind, { reachable: false }) });
    await createUp(h, 'web');
    await h.advance(300_000);
    expect(h.actor(PATH)).toMatchObject({ reason: 'LogindAway' });
    expect(h.lines.filter((l) => l.msg.includes('systemd-logind cannot be reached'))).toHaveLength(1);
    h.logind.otherLock = true;
    h.logind.reachable = true;
    h.logind.shutDown();
    await h.until('it is heeded', () => running(h, 'web') === 0, 120_000);
    await reason(h, 'ShutdownReleased');
  });

  it('that ends, or whose lock is lost, is asked again and the lock taken again', async ({ h }) => {
    await watching(h);
    h.logind.restart();
    await h.until('it noticed', () => h.state(PATH).includes('logind.backingOff'));
    await watching(h);
    h.logind.breakLock();
    await h.until('the lock is taken again', () => h.logind.held);
    await watching(h);
    await reason(h, 'Watching');
  });

  it('that allows too short a delay is no protection, and the node says so', async () => {
    await using h = await begin({ before: (n) => void Object.assign(n.logind, { delayMaxMs: 10_000 }) });
    await h.until('it is said', () => h.lines.some((l) => JSON.stringify(l.fields).includes('InhibitDelayMaxSec is 10 s')));
    expect(h.logind.held).toBe(false);
  });

  it('that does not answer is given up after a minute, and its late lock is kept', async () => {
    await using h = await begin({ before: (n) => void Object.assign(n.logind, { callMs: 600_000 }) });
    await h.until('it is said', () => h.lines.some((l) => JSON.stringify(l.fields).includes('no answer within 60 s')), 120_000);
    h.logind.callMs = 5;
    await watching(h);
    expect(h.logind.held).toBe(true);
  });
});

it('is not there without a period, and without its gate', async () => {
  await using none = await virtualNode({});
  expect(none.actor(PATH)).toBeUndefined();
  await using records = await virtualNode({ config: periods });
  expect(records.tree.registry.read(podsView)).toBeDefined();
  expect(records.actor(PATH)).toBeDefined();
});
