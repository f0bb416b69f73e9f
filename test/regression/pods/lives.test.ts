/** Lives of pods: ends, new lives of one UID, and what is told of them. */
import { describe, expect } from 'vitest';
import { eventsView } from '../../../src/machines/foundation/messages.ts';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { type PodManagerEvent, podManagerAddr, podsView } from '../../../src/machines/pods/manager/messages.ts';
import { statusAddr, statusesView } from '../../../src/machines/pods/status/messages.ts';
import { cluster, create, inApi, isReady } from '../../integration/cluster/clusterPods.ts';
import { itOnNode as it } from '../../integration/onNode.ts';
import { pod, ROOT, virtualNode } from '../../integration/virtualNode.ts';

describe('Pod lifecycle 6.3: a pod that outlives its active deadline is told so, once, by an event', () => {
  it('records DeadlineExceeded', async ({ h }) => {
    h.write('web', pod('web', { spec: { activeDeadlineSeconds: 30 } }));
    await h.until('it failed', () => h.phase('web') === 'Failed' && h.running('web').length === 0, 90_000);
    await h.advance(60_000);
    const said = h.tree.registry.read(eventsView)?.value.filter((e) => e.reason === 'DeadlineExceeded') ?? [];
    expect(said.map((e) => [e.type, e.message, e.count])).toEqual([
      ['Normal', 'Pod was active on the node longer than the specified deadline', 1],
    ]);
  });

  it('does not turn a pod that had succeeded in time into a failed one, when the daemon starts after the deadline', async ({ h }) => {
    h.write('web', pod('web', { life: 'run=2s,exit=0', spec: { activeDeadlineSeconds: 30, restartPolicy: 'Never' } }));
    await h.until('it succeeded', () => h.phase('web') === 'Succeeded');
    await h.crash();
    await h.advance(60_000);
    await h.boot();
    await h.until('it has a status', () => h.record('web')?.worker?.phase === 'finished');
    expect(h.phase('web')).toBe('Succeeded');
  });

  it('counts a new life of a pinned UID from its own beginning', async ({ h }) => {
    const manifest = pod('web', { uid: 'pinned-1', life: 'term=3s', spec: { activeDeadlineSeconds: 30 } });
    h.write('web', manifest);
    await h.until('it runs', () => h.running('web').length === 1);
    const [old] = h.running('web');
    await h.advance(20_000);
    h.remove('web');
    await h.until('it is being stopped', () => h.state(h.workerPath('web')) === 'terminating.stopping');
    h.write('web', manifest);
    await h.until('another runs', () => h.running('web').some((c) => c.id !== old?.id));
    await h.advance(20_000);
    expect(h.phase('web')).toBe('Running');
    await h.until('it failed', () => h.phase('web') === 'Failed', 30_000);
  });
});

describe('a pod that had ended before it was said again, and the room on the node', () => {
  it('one that was refused for what it asks holds none of it when its source says it again', async () => {
    await using h = await cluster();
    const asking = (cpu: string) => ({ container: { resources: { requests: { cpu } } } });
    create(h, 'huge', asking(String(Number(h.node.facts.allocatable.cpu) * 16)));
    await h.until('refused', () => inApi(h, 'huge')?.status.reason === 'OutOfcpu');
    // What is left of it is looked for while the other one is judged; a runtime that is asked gives no answer for a while.
    h.faults.latencyMs.ListPodSandbox = 10_000;
    expect(h.tree.kill('node/pods/config', 'the test')).toBe(true);
    create(h, 'small', asking('100m'));
    const known = () => [...(h.tree.registry.read(podsView)?.value.records.values() ?? [])].map((r) => r.pod.metadata.name);
    await h.until('judged', () => known().includes('small'));
    h.faults.latencyMs = {};
    await h.until('Ready', () => isReady(h, 'small'), 60_000);
    expect(inApi(h, 'huge')?.status).toMatchObject({ phase: 'Failed', reason: 'OutOfcpu' });
    expect(h.violations).toEqual([]);
  });
});

describe('Pod lifecycle 7.6: a pod that has ended says of none of its containers that it waits', () => {
  it('shows how each container ended, and what never came up as ended unseen', async () => {
    await using h = await virtualNode({ hollow: { image: (name) => (name.startsWith('gone') ? undefined : {}) } });
    const containers = [
      { name: 'steady', image: 'busybox:1' },
      { name: 'crasher', image: 'busybox:1' },
      { name: 'missing', image: 'gone:1' },
    ];
    h.write('web', pod('web', { lives: { crasher: 'run=1s,exit=3' }, spec: { activeDeadlineSeconds: 60, containers } }));
    await h.until('it backs off', () => h.containerState('web', 'crasher') === 'backingOff');
    await h.until('it has ended', () => h.record('web')?.worker?.phase === 'finished', 180_000);
    const states = h
      .status('web')
      ?.status.containerStatuses?.map((c) => [c.name, c.state.terminated?.exitCode, c.state.terminated?.reason]);
    expect(states).toEqual([
      ['crasher', 3, 'Error'],
      ['missing', 137, 'ContainerStatusUnknown'],
      ['steady', 143, 'Error'],
    ]);
    expect(h.phase('web')).toBe('Failed');
  });

  it('leaves what an init container kept from ever beginning as it is', async ({ h }) => {
    h.write('web', pod('web', { inits: [{}], lives: { 'init-0': 'run=1s,exit=1' }, spec: { restartPolicy: 'Never' } }));
    await h.until('it has ended', () => h.record('web')?.worker?.phase === 'finished', 180_000);
    expect(h.status('web')?.status.containerStatuses?.[0]?.state.waiting?.reason).toBe('PodInitializing');
    expect(h.status('web')?.status.initContainerStatuses?.[0]?.state.terminated?.exitCode).toBe(1);
  });
});

describe('what was said to a pod manager that is no more, about pods that its successor does not know yet', () => {
  /** The pods of the present view, and which pod manager says so. */
  const epochOf = (h: Awaited<ReturnType<typeof virtualNode>>) => h.tree.registry.read(podsView)?.value.epoch ?? 0;

  it('an orphan that was found by the ledger of an earlier pod manager is not stopped by the next one', async () => {
    await using h = await virtualNode({ manifests: { web: pod('web') } });
    await h.until('it runs', () => h.phase('web') === 'Running');
    const [before] = h.running('web');
    const uid = h.uid('web');
    const epoch = epochOf(h);
    expect(epoch).toBe(1);
    h.kill('node/pods/podManager');
    await h.until('it has ended', () => h.actor('node/pods/podManager')?.lifecycle !== 'running');
    // Left in the mailbox: taken before the sources have said what they want.
    const orphan: PodManagerEvent = {
      type: 'pods.orphan',
      epoch,
      listed: { uid, name: 'web-node1', namespace: 'default', sandboxes: [], containers: [] },
    };
    expect(h.tree.registry.send(podManagerAddr, orphan)).toBe('queued');
    await h.until('the next one has begun', () => epochOf(h) === 2);
    await h.until('and knows the pod', () => h.record('web')?.worker?.phase === 'syncing', 60_000);
    await h.advance(60_000);
    expect(h.running('web').map((c) => c.id)).toEqual([before?.id]);
    expect(h.record('web')).toMatchObject({ source: 'file', state: { is: 'running' } });
  });

  it('a pod whose worker was set aside under an earlier pod manager is worked on under the next one', async () => {
    await using h = await virtualNode({ manifests: { web: pod('web', { uid: 'pinned-1' }) } });
    await h.until('it runs', () => h.phase('web') === 'Running');
    const [before] = h.running('web');
    // Its mailbox is slow: the word arrives when the next one has begun and knows the pod.
    using _ = h.tree.tap((to, __, e) => (to === 'node/pods/podManager' && e.type === 'pods.quarantined' ? { delayMs: 2_000 } : 'pass'));
    h.tree.registry.send(podManagerAddr, { type: 'pods.quarantined', uid: 'pinned-1', error: 'kept failing', epoch: epochOf(h) });
    h.kill('node/pods/podManager');
    await h.advance(10_000);
    expect(epochOf(h)).toBe(2);
    h.write('web', pod('web', { uid: 'pinned-1', container: { image: 'other:1' } }));
    await h.until('it is replaced', () => h.running('web').length === 1 && h.running('web')[0]?.id !== before?.id, 60_000);
  });

  it('a stop that an earlier pod manager asked for does not reach the worker of the next one', async () => {
    await using h = await virtualNode({ manifests: { web: pod('web', { uid: 'pinned-1' }) } });
    await h.until('it runs', () => h.phase('web') === 'Running');
    const [before] = h.running('web');
    {
      using _ = h.tree.tap((to, __, e) => (to === 'node/pods/workers' && e.type === 'pod.kill' ? { delayMs: 5_000 } : 'pass'));
      h.remove('web');
      await h.until('a stop was asked for', () => h.record('web')?.state.is === 'leaving');
      h.write('web', pod('web', { uid: 'pinned-1' }));
      h.kill('node/pods/podManager');
      await h.until('the next one wants it', () => epochOf(h) === 2 && h.record('web')?.worker?.phase === 'syncing', 60_000);
      await h.advance(10_000);
    }
    await h.advance(60_000);
    expect(h.running('web').map((c) => c.id)).toEqual([before?.id]);
    expect(h.phase('web')).toBe('Running');
  });
});

describe('a static pod that brings its own UID may go, or be refused, and come back', () => {
  /** A static pod that brings its own UID may go, or be refused, and come back: nothing of its earlier life is taken for the new one's. */
  const good = pod('web', { uid: 'pinned-1', life: 'term=1s' });
  const refused = pod('web', { uid: 'pinned-1', life: 'term=1s', spec: { volumes: [{ name: 'v', quobyte: {} }] } });

  it('a new life does not begin with the end of the one before, which is still being forgotten', async ({ h }) => {
    await h.run('web', good);
    h.write('web', refused);
    await h.until('it has failed', () => h.phase('web') === 'Failed' && h.record('web')?.worker?.phase === 'finished', 60_000);
    // Longer than the new life takes to look at the runtime and decide.
    using _ = h.tree.tap((to, _lane, e) => (to === 'node/pods/status' && e.type === 'status.forget' ? { delayMs: 2_000 } : 'pass'));
    h.write('web', good);
    await h.until('a new one runs', () => h.running('web').length === 1, 60_000);
    await h.until('and is shown as running', () => h.phase('web') === 'Running', 60_000);
    await h.advance(120_000);
    expect(h.running('web')).toHaveLength(1);
    expect(h.status('web')?.status).toMatchObject({ phase: 'Running', containerStatuses: [{ state: { running: {} } }] });
    expect(h.violations).toEqual([]);
  });

  it('a new life is not forgotten with the one before', async ({ h }) => {
    await h.run('web', good);
    const life = h.status('web')?.life ?? 0;
    h.remove('web');
    await h.until('it is gone', () => h.status('web') === undefined && h.record('web') === undefined, 60_000);
    h.write('web', good);
    await h.until('it runs again', () => h.phase('web') === 'Running', 60_000);
    expect(h.status('web')?.life).toBeGreaterThan(life);
    h.tree.registry.send(statusAddr, { type: 'status.forget', uid: 'pinned-1', life });
    await h.settle();
    expect(h.phase('web')).toBe('Running');
  });

  it('a new life is not refused for what the mirror pod tells of the one before (seed 3700704 with 8 pods)', async () => {
    await using h = await virtualNode({ cluster: true });
    const containers = ['main', 'side'].map((name) => ({ name, image: 'busybox:1' }));
    const lives = { main: 'run=60s,exit=0', side: 'run=30s,exit=0' };
    const job = pod('job', { uid: 'pinned-1', lives, spec: { restartPolicy: 'Never', containers } });
    const inApi = () => {
      const got = h.kube.handle({ verb: 'GET', path: '/api/v1/namespaces/default/pods/job-n1' });
      return got.ok ? (got.body as Pod) : undefined;
    };
    h.write('job', job);
    await h.until(
      'the mirror says that one has ended',
      () => (inApi()?.status.containerStatuses ?? []).some((c) => c.state.terminated !== undefined),
      60_000,
    );
    h.kube.trouble.verdict = (r) => (r.verb === 'GET' ? { delayMs: 0 } : { delayMs: 0, refuse: { status: 500 } });
    await h.until('it has ended', () => h.phase('job') === 'Succeeded' && h.record('job')?.worker?.phase === 'finished', 60_000);
    h.remove('job');
    await h.until('nothing of it is left here', () => h.record('job') === undefined && h.containers('job').length === 0, 300_000);
    expect(inApi()?.status.phase).toBe('Running');
    h.write('job', job);
    await h.until('it runs again', () => h.phase('job') === 'Running', 10_000);
    await h.until('and ends again', () => h.phase('job') === 'Succeeded', 90_000);
    h.kube.trouble.verdict = () => ({ delayMs: 0 });
    await h.until('as its mirror says', () => inApi()?.status.phase === 'Succeeded', 60_000);
  });
});

describe('what a listing shows as its worker saw it is not asked for again: each look of a worker costs the runtime two lists', () => {
  it('a pod that starts is looked at after each act and no more', async ({ h }) => {
    await h.until('the node is up', () => h.pods().length === 0 && h.calls.length > 0);
    await h.advance(5_000);
    h.calls.splice(0);
    await h.run('web', pod('web'));
    await h.advance(20_000);
    const count = (method: string) => h.calls.filter((c) => c.method === method).length;
    expect(count('RunPodSandbox')).toBe(1);
    // One look at the new pod, one after its sandbox, one after its container.
    expect(
      h.calls.filter((c) => c.method === 'ListContainers' && JSON.stringify(c.req).includes('labelSelector')).length,
    ).toBeLessThanOrEqual(4);
    expect(count('PodSandboxStatus')).toBe(1);
    expect(count('ContainerStatus')).toBeLessThanOrEqual(2);
  });
});

describe('a pod that has gone does not come back as an orphaned pod because a listing is older than its end', () => {
  it('is not seen again after its end', async ({ h }) => {
    const names = Array.from({ length: 12 }, (_, i) => `p${i}`);
    for (const name of names) h.write(name, pod(name));
    await h.until('all run', () => h.running().length === names.length);
    // Long enough for slow listings.
    await h.advance(300_000);
    const orphans: string[] = [];
    h.tree.observe(() => {
      for (const r of h.tree.registry.read(podsView)?.value.records.values() ?? [])
        if (r.source === 'runtime' && !orphans.includes(r.pod.metadata.name)) orphans.push(r.pod.metadata.name);
    });
    for (const name of names) {
      h.remove(name);
      await h.advance(270);
    }
    await h.until('nothing is left', () => h.runtime.dump().sandboxes.length === 0, 180_000);
    expect(orphans).toEqual([]);
  });

  it('has no status left over when the pod manager died in that very moment', async ({ h }) => {
    h.write('web', pod('web', { life: 'run=1s,exit=0', spec: { restartPolicy: 'Never' } }));
    await h.until('it has ended', () => h.phase('web') === 'Succeeded');
    await h.advance(10_000);
    h.kill('node/pods/podManager');
    h.remove('web');
    await h.until(
      'it is not known any more',
      () => h.tree.registry.read(podsView)?.value.sourcesReady === true && h.record('web') === undefined,
    );
    await h.advance(120_000);
    expect([...(h.tree.registry.read(statusesView)?.value.keys() ?? [])]).toEqual([]);
  });
});

describe('a container that crashes for weeks does not leave a file for every crash', () => {
  it('keeps the termination files of instances that are still there only', async ({ h }) => {
    h.write('web', pod('web', { life: 'run=1s,exit=1' }));
    await h.until('it crashed often', () => h.runtime.dump().counts.containersStarted >= 12, 3 * 3_600_000);
    await h.advance(120_000);
    const files = h.fs.below(`${ROOT}/pods/${h.uid('web')}/containers/main`);
    expect(files.length).toBeLessThanOrEqual(3);
  });
});

describe('a new definition is acted on at once, whatever the worker was waiting for', () => {
  it('after a failed sandbox', async ({ h }) => {
    h.faults.fault = (method) => (method === 'RunPodSandbox' ? { kind: 'refuse', code: 2, details: 'no' } : undefined);
    h.write('web', pod('web', { uid: 'pinned-1' }));
    await h.until('the act failed', () => h.record('web') !== undefined && h.state(h.workerPath('web')) === 'syncing.actFailed');
    h.faults.fault = () => undefined;
    h.write('web', pod('web', { uid: 'pinned-1', container: { image: 'busybox:2' } }));
    await h.until('it runs', () => h.running('web').length === 1, 3_000);
  });

  it('after a container that could not be made, whatever of it was changed', async ({ h }) => {
    h.faults.fault = (method, req) =>
      method === 'CreateContainer' && JSON.stringify(req).includes('bad-command') ? { kind: 'refuse', code: 2, details: 'no' } : undefined;
    h.write('web', pod('web', { uid: 'pinned-1', container: { command: ['bad-command'] } }));
    await h.until('it failed', () => h.containerState('web', 'main') === 'failed');
    h.write('web', pod('web', { uid: 'pinned-1', container: { command: ['good-command'] } }));
    await h.until('it runs', () => h.running('web').length === 1, 3_000);
  });

  it('but a repeated word is no new definition', async ({ h }) => {
    let made = 0;
    h.faults.fault = (method) => {
      if (method !== 'CreateContainer') return undefined;
      made += 1;
      return { kind: 'refuse', code: 2, details: 'no' };
    };
    h.write('web', pod('web'));
    await h.until('it failed', () => h.containerState('web', 'main') === 'failed');
    h.kill('node/pods/config');
    await h.advance(5_000);
    expect(made).toBe(1);
  });
});
