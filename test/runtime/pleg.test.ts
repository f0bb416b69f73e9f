/** Lifecycle events: who is told what, when the runtime is listed, when the hint stream is believed. */
import { afterEach, describe, expect, it } from 'vitest';
import { plegAddr, runtimePodsView } from '../../src/machines/runtime/pleg/messages.ts';
import { CriError } from '../../src/ports/ports.ts';
import { type FakeCri, fail, fakeCri, healthy, listedContainer, listedSandbox } from './fakeCri.ts';
import { type World, world } from './world.ts';

let w: World;
afterEach(() => w.stop());
function listing(cri: FakeCri, pods: Record<string, 'CONTAINER_RUNNING' | 'CONTAINER_EXITED' | 'CONTAINER_CREATED'>): void {
  cri.answer('ListPodSandbox', () => ({ items: Object.keys(pods).map((uid) => listedSandbox(uid)) }));
  cri.answer('ListContainers', () => ({ containers: Object.entries(pods).map(([uid, state]) => listedContainer(uid, `c-${uid}`, state)) }));
}
async function start(pods: Parameters<typeof listing>[1], adjust?: (cri: FakeCri) => void): Promise<void> {
  const cri = healthy(fakeCri());
  listing(cri, pods);
  adjust?.(cri);
  w = await world({ cri, only: ['cri', 'pleg'] });
}
const lists = () => w.cri.of('ListPodSandbox').length;
const told = () => w.dirty.map((d) => d.uid);
const viewOfPods = () => w.tree.registry.read(runtimePodsView)?.value;

describe('lifecycle events', () => {
  it('list as soon as the runtime is ready and mark every pod found dirty', async () => {
    await start({ a: 'CONTAINER_RUNNING', b: 'CONTAINER_EXITED' });
    expect(told().sort()).toEqual(['a', 'b']);
    expect([...(viewOfPods()?.pods.keys() ?? [])]).toEqual(['a', 'b']);
    const text = await w.ports.metrics.render();
    expect(text).toContain('kubelet_running_pods 2');
    expect(text).toContain('kubelet_running_containers{container_state="exited"} 1');
  });

  it('without a stream list every second and tell of an exit that a listing found', async () => {
    await start({ a: 'CONTAINER_RUNNING' }, (cri) => {
      cri.hintsVia = 'none';
    });
    w.dirty.length = 0;
    listing(w.cri, { a: 'CONTAINER_EXITED' });
    await w.ports.advance(1001);
    expect(w.dirty).toMatchObject([{ type: 'pods.dirty', uid: 'a' }]);
    expect(w.dirty[0]?.why).toContain('ContainerDied');
    const before = lists();
    await w.ports.advance(30_000);
    expect(lists() - before).toBeGreaterThanOrEqual(29);
  });

  it('pass a hint about a known container on at once, without listing first', async () => {
    await start({ a: 'CONTAINER_RUNNING' });
    w.dirty.length = 0;
    const before = lists();
    w.cri.hint({ kind: 'stopped', id: 'c-a' });
    await w.ports.settle();
    expect(told()).toEqual(['a']);
    expect(lists()).toBe(before);
  });

  it('ask the runtime whose an unknown container is, and tell its pod', async () => {
    await start({});
    w.cri.answer('ContainerStatus', () => ({ status: { ...listedContainer('new', 'c-new', 'CONTAINER_EXITED') }, info: {} }));
    w.cri.hint({ kind: 'stopped', id: 'c-new' });
    await w.ports.settle();
    expect(told()).toEqual(['new']);
  });

  it('list soon when nobody knows whose an id is', async () => {
    await start({});
    w.cri.answer('ContainerStatus', () => fail(5, 'not found'));
    w.cri.answer('PodSandboxStatus', () => fail(5, 'not found'));
    const before = lists();
    for (const id of ['x', 'y', 'z']) w.cri.hint({ kind: 'stopped', id });
    await w.ports.advance(1000);
    expect(lists()).toBe(before + 1);
    expect(told()).toEqual([]);
  });

  it('count the streams of hints that were opened and that broke, and a hint that found no room', async () => {
    await start({ a: 'CONTAINER_RUNNING' });
    const text = () => w.ports.metrics.render();
    expect(await text()).toContain('kubelet_evented_pleg_connection_success_count 1');
    w.cri.endHints(new CriError({ method: 'hints', code: 8, outcome: 'failed', details: '8192 hints waited for their reader' }));
    await w.ports.settle();
    expect(await text()).toContain('kubelet_evented_pleg_connection_error_count 1');
    expect(await text()).toContain('kubelet_pleg_discard_events 1');
    await w.ports.advance(60_000);
    expect(await text()).toContain('kubelet_evented_pleg_connection_success_count 2');
    expect(await text()).toContain('kubelet_pleg_discard_events 1');
  });

  it('list less and less while listings find nothing that was not announced, up to twice a minute', async () => {
    await start({ a: 'CONTAINER_RUNNING' });
    await w.ports.advance(300_000);
    const before = lists();
    await w.ports.advance(300_000);
    expect(lists() - before).toBe(10);
    expect(viewOfPods()?.via).toBe('containerd');
  });

  it('go back to every second when a listing finds what the stream had missed', async () => {
    await start({ a: 'CONTAINER_RUNNING' });
    await w.ports.advance(300_000);
    listing(w.cri, { a: 'CONTAINER_EXITED' });
    w.dirty.length = 0;
    for (let second = 0; second < 61 && told().length === 0; second++) await w.ports.advance(1000);
    expect(told()).toEqual(['a']);
    await w.ports.advance(1000);
    expect(viewOfPods()?.via).toBe('poll');
    const before = lists();
    await w.ports.advance(2900);
    expect(lists() - before).toBeGreaterThanOrEqual(2);
    expect(await w.ports.metrics.render()).toContain('actorlet_pleg_missed_hints_total 1');
  });

  it('give up a stream that misses change after change, since the runtime may wait for its reader, and open it again', async () => {
    await start({ a: 'CONTAINER_RUNNING' });
    await w.ports.advance(300_000);
    const opened = w.cri.opened();
    const states = ['CONTAINER_EXITED', 'CONTAINER_RUNNING'] as const;
    // A change in each listing, the first of which is up to 30 s away.
    for (let second = 0; second < 60 && w.cri.opened() === opened; second++) {
      listing(w.cri, { a: states[second % 2] ?? 'CONTAINER_EXITED' });
      await w.ports.advance(1000);
    }
    expect(w.cri.opened()).toBe(opened + 1);
    // One that was opened anew begins with a clean sheet.
    await w.ports.advance(10_000);
    expect(w.cri.opened()).toBe(opened + 1);
  });

  it('go back to every second when the stream ends, and open it again', async () => {
    await start({ a: 'CONTAINER_RUNNING' });
    await w.ports.advance(300_000);
    const opened = w.cri.opened();
    w.cri.endHints();
    await w.ports.settle();
    expect(w.cri.of('Status').length).toBeGreaterThan(0);
    await w.ports.advance(1000);
    expect(w.cri.opened()).toBe(opened + 1);
  });

  it('confirm a hint by a listing within a second and trust the stream the more for it', async () => {
    await start({ a: 'CONTAINER_RUNNING' });
    await w.ports.advance(300_000);
    const before = lists();
    listing(w.cri, { a: 'CONTAINER_EXITED' });
    w.cri.hint({ kind: 'stopped', id: 'c-a' });
    await w.ports.advance(1000);
    expect(lists()).toBe(before + 1);
    expect(viewOfPods()?.pods.get('a')?.containers[0]?.state).toBe('exited');
    expect(viewOfPods()?.via).toBe('containerd');
  });

  it('wait while the runtime is lost and mark every known pod dirty when it is back', async () => {
    await start({ a: 'CONTAINER_RUNNING', b: 'CONTAINER_RUNNING' });
    w.cri.answer('Status', () => fail(14, 'gone'));
    w.cri.answer('Version', () => fail(14, 'gone'));
    await w.ports.advance(5000);
    const before = lists();
    await w.ports.advance(5000);
    expect(lists()).toBe(before);
    w.dirty.length = 0;
    healthy(w.cri);
    await w.ports.advance(5000);
    expect(lists()).toBeGreaterThan(before);
    expect([...new Set(told())].sort()).toEqual(['a', 'b']);
  });

  it('say which call is not answered and for how long, and unhealthy after three minutes', async () => {
    await start({});
    w.cri.answer('ListContainers', 'hang');
    await w.ports.advance(450_000);
    const reasonOf = () => JSON.stringify(w.tree.state());
    expect(reasonOf()).toMatch(/UNHEALTHY: .*ListContainers unanswered for \d+ s; last listed \d+ s ago/);
  });

  it('rebuild everything from one listing when they are killed', async () => {
    await start({ a: 'CONTAINER_RUNNING' });
    w.dirty.length = 0;
    expect(w.tree.kill('node/runtime/pleg', 'test')).toBe(true);
    await w.ports.advance(1000);
    expect(told()).toEqual(['a']);
    w.dirty.length = 0;
    w.cri.hint({ kind: 'stopped', id: 'c-a' });
    await w.ports.settle();
    expect(told()).toEqual(['a']);
  });

  it.each([
    ['relist.noRuntime', (cri: FakeCri) => cri.answer('Version', () => fail(14, 'gone'))],
    ['relist.listing', (cri: FakeCri) => cri.answer('ListContainers', 'hang')],
  ])('killed in %s list everything once they can', async (state, arrange) => {
    await start({ a: 'CONTAINER_RUNNING' }, arrange);
    expect(JSON.stringify(w.tree.state())).toContain(state);
    expect(w.tree.kill('node/runtime/pleg', 'test')).toBe(true);
    healthy(w.cri);
    listing(w.cri, { a: 'CONTAINER_RUNNING' });
    await w.ports.advance(6000);
    expect(told()).toEqual(['a']);
  });

  it('take a hint from another actor as they take one from the stream', async () => {
    await start({ a: 'CONTAINER_RUNNING' });
    w.dirty.length = 0;
    w.tree.registry.send(plegAddr, { type: 'pleg.hint', id: 'c-a', kind: 'oom' });
    await w.ports.settle();
    expect(told()).toEqual(['a']);
  });
});
