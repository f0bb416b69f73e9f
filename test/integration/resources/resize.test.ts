/** Cpu and memory of running containers, changed in place on a whole node in virtual time (pod lifecycle 6.6). */
import { describe, expect } from 'vitest';
import { createEntropy } from '../../../src/boot/dependencies/clock.ts';
import { decodeCheckpoint, encodeCheckpoint } from '../../../src/machines/foundation/checkpoint.ts';
import { ACTUATED, ALLOCATED } from '../../../src/machines/foundation/messages.ts';
import type { Container, ResourceRequirements } from '../../../src/machines/kube/podTable.ts';
import type { PodCondition } from '../../../src/machines/kube/types.ts';
import { OLDER_ALLOCATIONS } from '../../../src/machines/pods/resize/allocation.ts';
import { CRI_ANNOTATIONS } from '../../../src/machines/wire/cri.ts';
import type { CriRequest, CriResponse } from '../../../src/machines/wire/criCalls.ts';
import { create, createReady, drop, events, inApi, isReady, cluster as ofCluster, patch } from '../cluster/clusterPods.ts';
import { itWith } from '../onNode.ts';
import { type Faults, pod, ROOT, type VirtualNode, virtualNode } from '../virtualNode.ts';

const it = itWith(ofCluster);

const MI = 1024 * 1024;
const PATH = 'node/pods/podManager';
const cpus = (h: VirtualNode) => Number(h.node.facts.allocatable.cpu);
const running = (h: VirtualNode, name: string) => h.running().filter((c) => c.labels['io.kubernetes.pod.name'] === name);
const inForce = (h: VirtualNode, name: string) => running(h, name)[0]?.resources;
const shown = (h: VirtualNode, name: string) => inApi(h, name)?.status.containerStatuses?.[0];
const condition = (h: VirtualNode, name: string, type: string): PodCondition | undefined =>
  inApi(h, name)?.status.conditions?.find((c) => c.type === type);
const pending = (h: VirtualNode, name: string) => condition(h, name, 'PodResizePending');
const updates = (h: VirtualNode) =>
  h.calls.filter((c) => c.method === 'UpdateContainerResources').map((c) => c.req as CriRequest<'UpdateContainerResources'>);
const told = (h: VirtualNode) =>
  h.calls.filter((c) => c.method === 'UpdatePodSandboxResources').map((c) => c.req as CriRequest<'UpdatePodSandboxResources'>);

const burstable = (cpu: string, memory: string): ResourceRequirements => ({
  requests: { cpu, memory },
  limits: { cpu: '3', memory: '512Mi' },
});
/** Through the API, as `kubectl patch --subresource resize` does. */
function resize(h: VirtualNode, name: string, resources: ResourceRequirements, at = 0): void {
  const containers = (inApi(h, name)?.spec.containers ?? []).map((c: Container, i) => (i === at ? { ...c, resources } : c));
  patch(h, `pods/${name}`, { spec: { containers } });
}
async function up(
  h: VirtualNode,
  name: string,
  resources: ResourceRequirements,
  more: { container?: object; spec?: object; life?: string } = {},
) {
  create(h, name, { ...more, container: { resources, ...more.container } });
  await h.until(`${name} is Ready`, () => isReady(h, name));
  await h.advance(2_000);
}
const says = (h: VirtualNode, name: string, resources: ResourceRequirements) => {
  const s = shown(h, name);
  return (
    JSON.stringify([s?.resources?.requests, s?.resources?.limits]) === JSON.stringify([resources.requests, resources.limits]) &&
    condition(h, name, 'PodResizeInProgress') === undefined
  );
};

describe('the runtime, told what the sandbox may have in all,', () => {
  const wanted = { requests: { cpu: '200m', memory: '128Mi' }, limits: { cpu: '2', memory: '1Gi' } };
  const refusing = (h: VirtualNode, code: number, details: string) => {
    h.faults.fault = (method) => (method === 'UpdatePodSandboxResources' ? { kind: 'refuse', code, details } : undefined);
  };

  it('hears of a change once, before its containers, and without the overhead', async ({ h }) => {
    await up(h, 'web', burstable('100m', '64Mi'), { spec: { overhead: { cpu: '50m', memory: '10Mi' } } });
    expect(told(h)).toEqual([]);
    resize(h, 'web', wanted);
    await h.until('it says so', () => says(h, 'web', wanted));
    expect(told(h)).toMatchObject([
      {
        podSandboxId: h.runtime.dump().sandboxes[0]?.id,
        overhead: { memoryLimitInBytes: 10 * MI },
        resources: { memoryLimitInBytes: 1024 * MI, cpuShares: 204, cpuPeriod: 100_000, cpuQuota: 200_000 },
      },
    ]);
    const first = (method: string) => h.calls.findIndex((c) => c.method === method);
    expect(first('UpdatePodSandboxResources')).toBeLessThan(first('UpdateContainerResources'));
  });

  it('hears nothing where all that the sandbox may have stays what it was', async ({ h }) => {
    const given = burstable('100m', '64Mi');
    const of = (name: string, resources?: object) => ({ name, image: 'busybox:1', resources });
    await up(h, 'web', given, { spec: { containers: [of('main', given), of('other')] } });
    const more = { ...given, limits: { ...given.limits, memory: '2Gi' } };
    resize(h, 'web', more);
    await h.until('it says so', () => says(h, 'web', more));
    expect([told(h), updates(h).length]).toEqual([[], 1]);
  });

  it('may refuse it: nothing is changed, the pod says why, and it is tried again', async () => {
    await using h = await ofCluster({ cgroups: true });
    await up(h, 'web', burstable('100m', '64Mi'));
    const group = () => [...h.cgroups.groups].map(([path, files]) => [path, ...files.entries()]);
    const before = JSON.stringify(group());
    refusing(h, 9, 'the machine of this pod cannot grow');
    resize(h, 'web', wanted);
    await h.until('it says so', () => condition(h, 'web', 'PodResizeInProgress')?.reason === 'Error');
    expect(condition(h, 'web', 'PodResizeInProgress')?.message).toBe(
      'failed to notify runtime for UpdatePodSandboxResources (resource=memory); resize rejected: the machine of this pod cannot grow',
    );
    expect(events(h, 'ResizeError')).toHaveLength(1);
    expect([updates(h), JSON.stringify(group())]).toEqual([[], before]);
    h.faults.fault = () => undefined;
    await h.until('it is in force', () => says(h, 'web', wanted), 120_000);
  });

  it.each([
    [12, 'unknown method UpdatePodSandboxResources for service runtime.v1.RuntimeService'],
    [2, 'not implemented yet'],
  ])('need not know the call (%i %s)', async (code, details) => {
    await using h = await ofCluster();
    await up(h, 'web', burstable('100m', '64Mi'));
    let asked = 0;
    h.faults.fault = (method) => {
      if (method !== 'UpdatePodSandboxResources') return undefined;
      asked += 1;
      return { kind: 'refuse', code, details };
    };
    resize(h, 'web', wanted);
    await h.until('it says so', () => says(h, 'web', wanted));
    expect([asked, events(h, 'ResizeError')]).toEqual([1, []]);
  });
});

describe('a change that fits', () => {
  it('is told the runtime, memory first, and restarts nothing', async ({ h }) => {
    await up(h, 'web', burstable('100m', '64Mi'));
    const [before] = running(h, 'web');
    const wanted = { requests: { cpu: '200m', memory: '128Mi' }, limits: { cpu: '2', memory: '1Gi' } };
    resize(h, 'web', wanted);
    await h.until('it says so', () => says(h, 'web', wanted));
    expect(updates(h).map((u) => u.linux)).toEqual([
      { memoryLimitInBytes: 1024 * MI },
      { cpuShares: 204, cpuPeriod: 100_000, cpuQuota: 200_000 },
    ]);
    expect(inForce(h, 'web')).toMatchObject({ memoryLimitInBytes: 1024 * MI, cpuShares: 204, cpuQuota: 200_000 });
    expect(running(h, 'web').map((c) => c.id)).toEqual([before?.id]);
    expect(shown(h, 'web')).toMatchObject({ restartCount: 0, allocatedResources: wanted.requests, resources: wanted });
    expect(inApi(h, 'web')?.status.observedGeneration).toBe(inApi(h, 'web')?.metadata.generation);
    const said =
      '{"containers":[{"name":"main","resources":{"limits":{"cpu":"2","memory":"1Gi"},"requests":{"cpu":"200m","memory":"128Mi"}}}],"generation":2}';
    expect(events(h, 'ResizeStarted')).toEqual([`Pod resize started: ${said}`]);
    expect(events(h, 'ResizeCompleted')).toEqual([`Pod resize completed: ${said}`]);
    expect(h.violations).toEqual([]);
  });

  it('of a request of memory alone needs no word to the runtime', async ({ h }) => {
    await up(h, 'web', burstable('100m', '64Mi'));
    const wanted = burstable('100m', '96Mi');
    resize(h, 'web', wanted);
    await h.until('it says so', () => says(h, 'web', wanted));
    expect(updates(h)).toEqual([]);
    expect([events(h, 'ResizeStarted').length, events(h, 'ResizeCompleted').length]).toEqual([1, 1]);
  });

  it.each(['restarts', 'of another daemon restarts'])(
    '%s the container, and it alone, where its policy for that resource says so',
    async (which) => {
      await using h = await ofCluster();
      const resizePolicy = [{ resourceName: 'memory', restartPolicy: 'RestartContainer' }];
      const second = { name: 'second', image: 'busybox:1', resources: burstable('50m', '32Mi') };
      create(h, 'web', {
        spec: { containers: [{ name: 'main', image: 'busybox:1', resources: burstable('100m', '64Mi'), resizePolicy }, second] },
      });
      await h.until('Ready', () => isReady(h, 'web'));
      await h.advance(2_000);
      const other = running(h, 'web').find((c) => c.name === 'second')?.id;
      // Cpu has the default policy.
      resize(h, 'web', burstable('150m', '64Mi'));
      await h.until('cpu is told', () => says(h, 'web', burstable('150m', '64Mi')));
      expect(shown(h, 'web')?.restartCount).toBe(0);
      if (which !== '') await h.restart();
      const wanted = { ...burstable('150m', '64Mi'), limits: { cpu: '3', memory: '768Mi' } };
      resize(h, 'web', wanted);
      await h.until('it started anew', () => says(h, 'web', wanted) && shown(h, 'web')?.restartCount === 1);
      expect(events(h, 'Killing')).toContain('Container main resize requires restart');
      expect(running(h, 'web').find((c) => c.name === 'main')?.resources).toMatchObject({ memoryLimitInBytes: 768 * MI, cpuShares: 153 });
      expect(running(h, 'web').find((c) => c.name === 'second')?.id).toBe(other);
      expect(updates(h)).toHaveLength(1);
      expect(told(h).map(({ resources }) => resources?.memoryLimitInBytes)).toEqual([1024 * MI, 1280 * MI]);
      expect(h.violations).toEqual([]);
    },
  );

  it('shrinks before it grows, each resource for itself', async ({ h }) => {
    const one = (name: string, memory: string, cpu: string) => ({
      name,
      image: 'busybox:1',
      resources: { requests: { cpu: '100m', memory: '16Mi' }, limits: { cpu, memory } },
    });
    await createReady(h, 'web', { spec: { containers: [one('grows', '256Mi', '1'), one('shrinks', '512Mi', '2')] } });
    await h.advance(2_000);
    patch(h, 'pods/web', { spec: { containers: [one('grows', '512Mi', '2'), one('shrinks', '256Mi', '1')] } });
    await h.until('all is told', () => updates(h).length === 4 && condition(h, 'web', 'PodResizeInProgress') === undefined);
    const names = new Map(running(h, 'web').map((c) => [c.id, c.name]));
    expect(updates(h).map((u) => [names.get(u.containerId), Object.keys(u.linux ?? {})[0]])).toEqual([
      ['shrinks', 'memoryLimitInBytes'],
      ['grows', 'memoryLimitInBytes'],
      ['shrinks', 'cpuShares'],
      ['grows', 'cpuShares'],
    ]);
  });
});

describe('a change that does not fit', () => {
  it('is Deferred with what is lacking, and granted when somebody leaves', async ({ h }) => {
    const all = cpus(h);
    create(h, 'other', { container: { resources: { requests: { cpu: '1' } } } });
    await up(h, 'web', burstable('1', '64Mi'), { container: { resources: { requests: { cpu: '1' } } } });
    await h.until('both', () => isReady(h, 'other'));
    const wanted = { requests: { cpu: String(all) } };
    resize(h, 'web', wanted);
    await h.until('it waits', () => pending(h, 'web')?.reason === 'Deferred');
    expect(pending(h, 'web')).toMatchObject({
      status: 'True',
      message: `Node didn't have enough resource: cpu, requested: ${all * 1000}, used: 1000, capacity: ${all * 1000}`,
      observedGeneration: inApi(h, 'web')?.metadata.generation,
    });
    expect(h.actor(PATH)?.reason).toBe('ResizePending');
    expect(events(h, 'ResizeDeferred')).toHaveLength(1);
    expect(shown(h, 'web')).toMatchObject({ allocatedResources: { cpu: '1' } });
    expect(updates(h)).toEqual([]);
    await h.advance(60_000);
    expect(pending(h, 'web')?.reason).toBe('Deferred');
    drop(h, 'pods/other', 1);
    await h.until('granted', () => pending(h, 'web') === undefined && inForce(h, 'web')?.cpuShares === all * 1024, 60_000);
    await h.until('shown', () => shown(h, 'web')?.allocatedResources?.cpu === String(all));
    expect(shown(h, 'web')?.restartCount).toBe(0);
    expect(h.violations).toEqual([]);
  });

  it('is told once for each change and reason, whatever comes and goes meanwhile', async ({ h }) => {
    const all = cpus(h);
    create(h, 'other', { container: { resources: { requests: { cpu: '1' } } } });
    await up(h, 'web', { requests: { cpu: '1' } });
    resize(h, 'web', { requests: { cpu: String(all) } });
    await h.until('it waits', () => pending(h, 'web')?.reason === 'Deferred');
    const since = pending(h, 'web')?.lastTransitionTime;
    create(h, 'third', { container: { resources: { requests: { cpu: '1' } } } });
    await h.until('it lacks more', () => pending(h, 'web')?.message?.includes('used: 2000') === true, 60_000);
    expect(events(h, 'ResizeDeferred')).toHaveLength(1);
    expect(pending(h, 'web')?.lastTransitionTime).toBe(since);
    resize(h, 'web', { requests: { cpu: String(all), memory: '1Mi' } });
    await h.until('the next change is told too', () => events(h, 'ResizeDeferred').length === 2);
    resize(h, 'web', { requests: { cpu: String(all + 1) } });
    await h.until('it can never be', () => pending(h, 'web')?.reason === 'Infeasible');
    expect(pending(h, 'web')?.lastTransitionTime).not.toBe(since);
  });

  it('is Infeasible beyond what the node has, and taken back by another change', async ({ h }) => {
    const all = cpus(h);
    await up(h, 'web', burstable('1', '64Mi'));
    resize(h, 'web', burstable(String(all + 1), '64Mi'));
    await h.until('it says so', () => pending(h, 'web') !== undefined);
    expect(pending(h, 'web')).toMatchObject({
      reason: 'Infeasible',
      message: `Node didn't have enough capacity: cpu, requested: ${(all + 1) * 1000}, capacity: ${all * 1000}`,
    });
    expect(events(h, 'ResizeInfeasible')).toHaveLength(1);
    resize(h, 'web', burstable('1', '64Mi'));
    await h.until('nothing waits', () => pending(h, 'web') === undefined);
    expect(updates(h)).toEqual([]);
    expect(h.actor(PATH)?.reason).toBe('Ready');
  });

  it('never changes the class of the pod', async ({ h }) => {
    const same = { requests: { cpu: '1', memory: '64Mi' }, limits: { cpu: '1', memory: '64Mi' } };
    await up(h, 'web', same);
    resize(h, 'web', { ...same, requests: { cpu: '500m', memory: '64Mi' } });
    await h.until('it says so', () => pending(h, 'web') !== undefined);
    expect(pending(h, 'web')).toMatchObject({ reason: 'Infeasible', message: 'Pod QOS Class may not change as a result of resizing' });
    expect(inApi(h, 'web')?.status.qosClass).toBe('Guaranteed');
  });

  it('is not forgotten by a daemon that starts again: what was granted is kept, and what waits goes on waiting', async ({ h }) => {
    const all = cpus(h);
    create(h, 'other', { container: { resources: { requests: { cpu: '1' } } } });
    await up(h, 'web', burstable('1', '64Mi'), { container: { resources: { requests: { cpu: '1' } } } });
    resize(h, 'web', { requests: { cpu: String(all) } });
    await h.until('it waits', () => pending(h, 'web')?.reason === 'Deferred');
    const [before] = running(h, 'web');
    await h.restart();
    await h.until('up', () => isReady(h, 'web') && h.actor(PATH)?.reason === 'ResizePending', 60_000);
    await h.advance(30_000);
    expect(pending(h, 'web')?.reason).toBe('Deferred');
    expect(shown(h, 'web')).toMatchObject({ allocatedResources: { cpu: '1' }, restartCount: 0 });
    expect(running(h, 'web').map((c) => c.id)).toEqual([before?.id]);
    expect(updates(h)).toEqual([]);
    // Room appears while nobody looks.
    await h.crash();
    drop(h, 'pods/other', 0);
    await h.boot();
    await h.until('granted', () => pending(h, 'web') === undefined && inForce(h, 'web')?.cpuShares === all * 1024, 60_000);
    expect(h.violations).toEqual([]);
  });
});

describe('a change that cannot be set', () => {
  it('is tried again with back-off, holds up nothing else, and says why meanwhile', async ({ h }) => {
    await up(h, 'web', burstable('100m', '64Mi'));
    h.faults.fault = (method) =>
      method === 'UpdateContainerResources' ? { kind: 'refuse', code: 13, details: 'no such cgroup' } : undefined;
    const wanted = burstable('300m', '64Mi');
    resize(h, 'web', wanted);
    await h.until('it says so', () => condition(h, 'web', 'PodResizeInProgress')?.reason === 'Error');
    expect(condition(h, 'web', 'PodResizeInProgress')?.message).toBe('cpu of container main could not be changed: no such cgroup');
    expect(shown(h, 'web')).toMatchObject({
      allocatedResources: { cpu: '300m', memory: '64Mi' },
      resources: { requests: { cpu: '100m' } },
    });
    // A container that ends is started again all the same.
    h.runtime.exit(running(h, 'web')[0]?.id ?? '', { exitCode: 1 });
    await h.until('it runs again with what was granted', () => says(h, 'web', wanted) && inForce(h, 'web')?.cpuShares === 307, 60_000);
    resize(h, 'web', burstable('400m', '64Mi'));
    await h.until('it fails again', () => condition(h, 'web', 'PodResizeInProgress')?.reason === 'Error');
    h.faults.fault = () => undefined;
    await h.until('it is set', () => says(h, 'web', burstable('400m', '64Mi')), 120_000);
    expect(inForce(h, 'web')?.cpuShares).toBe(409);
    expect(h.violations).toEqual([]);
  });

  it('is shown with the generation that was granted, whatever is asked for since', async ({ h }) => {
    await up(h, 'web', burstable('100m', '64Mi'));
    h.faults.fault = (method) =>
      method === 'UpdateContainerResources' ? { kind: 'refuse', code: 13, details: 'no such cgroup' } : undefined;
    const generations = () => ['PodResizeInProgress', 'PodResizePending'].map((type) => condition(h, 'web', type)?.observedGeneration);
    const wanted = burstable('300m', '64Mi');
    resize(h, 'web', wanted);
    await h.until('it failed', () => condition(h, 'web', 'PodResizeInProgress')?.reason === 'Error');
    expect(generations()).toEqual([2, undefined]);
    resize(h, 'web', burstable(`${cpus(h) + 1}`, '64Mi'));
    await h.until('more than there is waits', () => pending(h, 'web') !== undefined);
    expect(generations()).toEqual([2, 3]);
    await h.restart();
    await h.until('it failed again', () => condition(h, 'web', 'PodResizeInProgress')?.reason === 'Error');
    await h.advance(200_000);
    expect(generations()).toEqual([2, 3]);
    // Each daemon says the same failure once.
    expect(events(h, 'ResizeError')).toEqual([expect.stringContaining('"generation":2,"error":')]);
    // Another limit: no request changes.
    resize(h, 'web', { ...wanted, limits: { ...wanted.limits, cpu: '2' } });
    await h.until('it is granted', () => pending(h, 'web') === undefined);
    expect(generations()).toEqual([4, undefined]);
    h.faults.fault = () => undefined;
    await h.until('it is in force', () => condition(h, 'web', 'PodResizeInProgress') === undefined, 120_000);
    expect(events(h, 'ResizeStarted').map((said) => /"generation":(\d)/.exec(said)?.[1])).toEqual(['4']);
    expect(events(h, 'ResizeCompleted').map((said) => /"generation":(\d)/.exec(said)?.[1])).toEqual(['4']);
  });

  it('does not lower a limit of memory below what is in use', async ({ h }) => {
    await up(h, 'web', burstable('100m', '100Ki'));
    resize(h, 'web', { requests: { cpu: '100m', memory: '100Ki' }, limits: { cpu: '3', memory: '512Ki' } });
    await h.until('it says so', () => condition(h, 'web', 'PodResizeInProgress')?.reason === 'Error');
    expect(condition(h, 'web', 'PodResizeInProgress')?.message).toBe(
      'cannot decrease memory limits: [attempting to set pod memory limit (524288) below current usage (1048576), ' +
        'attempting to set container "main" memory limit (524288) below current usage (1048576)]',
    );
    expect(inForce(h, 'web')).toMatchObject({ memoryLimitInBytes: 512 * MI });
    expect(updates(h)).toEqual([]);
    expect(events(h, 'ResizeError')[0]).toMatch(
      /^Pod resize error: \{"containers":.*"generation":\d+,"error":"cannot decrease memory limits: /,
    );
    resize(h, 'web', burstable('100m', '100Ki'));
    await h.until('nothing is wrong any more', () => condition(h, 'web', 'PodResizeInProgress') === undefined);
  });

  it('does not lower a limit of memory below what is in use with the page cache', async ({ h }) => {
    await up(h, 'web', burstable('100m', '64Mi'));
    const bytes = (mi: number) => ({ value: BigInt(mi * MI) });
    h.faults.answer = (method, value) =>
      method === 'ContainerStats' ? { stats: { memory: { workingSetBytes: bytes(100), usageBytes: bytes(400) } } } : value;
    resize(h, 'web', { requests: { cpu: '100m', memory: '64Mi' }, limits: { cpu: '3', memory: '256Mi' } });
    await h.until('it says so', () => condition(h, 'web', 'PodResizeInProgress')?.reason === 'Error');
    expect(condition(h, 'web', 'PodResizeInProgress')?.message).toBe(
      `cannot decrease memory limits: attempting to set container "main" memory limit (${256 * MI}) below current usage (${400 * MI})`,
    );
    expect(updates(h)).toEqual([]);
  });

  it('lowers the limit of no container where that of another cannot be lowered', async ({ h }) => {
    const [small, large] = [burstable('100m', '100Ki'), { requests: { memory: '100Ki' }, limits: { memory: '512Ki' } }];
    const container = (name: string, resources: object) => ({ name, image: `${name}:1`, resources });
    await createReady(h, 'web', { spec: { containers: [container('a', small), container('b', small)] } });
    const lower = { ...small, limits: { cpu: '3', memory: '256Mi' } };
    patch(h, 'pods/web', {
      spec: { containers: [container('a', lower), container('b', { ...small, limits: { cpu: '3', ...large.limits } })] },
    });
    await h.until('it says so', () => condition(h, 'web', 'PodResizeInProgress')?.reason === 'Error');
    expect(condition(h, 'web', 'PodResizeInProgress')?.message).toMatch(/container "b" memory limit \(524288\) below current usage/);
    expect(updates(h)).toEqual([]);
  });

  it('lowers no limit that was raised again while it was asked how much is in use', async ({ h }) => {
    await up(h, 'web', burstable('100m', '64Mi'));
    h.faults.latencyMs.ContainerStats = 8_000;
    resize(h, 'web', { requests: { cpu: '100m', memory: '64Mi' }, limits: { cpu: '3', memory: '256Mi' } });
    await h.until('it is in progress', () => condition(h, 'web', 'PodResizeInProgress') !== undefined, 5_000);
    resize(h, 'web', burstable('100m', '64Mi'));
    await h.until('it says so', () => says(h, 'web', burstable('100m', '64Mi')));
    await h.advance(60_000);
    expect(updates(h)).toEqual([]);
    expect(inForce(h, 'web')).toMatchObject({ memoryLimitInBytes: 512 * MI });
  });

  it('is told again by a daemon that does not know whether it was', async ({ h }) => {
    await up(h, 'web', burstable('100m', '64Mi'));
    h.faults.fault = (method) => (method === 'UpdateContainerResources' ? { kind: 'timeout', effect: false } : undefined);
    const wanted = burstable('200m', '64Mi');
    resize(h, 'web', wanted);
    await h.until('asked', () => condition(h, 'web', 'PodResizeInProgress') !== undefined);
    await h.crash();
    h.faults.fault = () => undefined;
    await h.boot();
    await h.until('it is set', () => says(h, 'web', wanted), 120_000);
    expect(inForce(h, 'web')?.cpuShares).toBe(204);
    expect(shown(h, 'web')?.restartCount).toBe(0);
    expect(h.violations).toEqual([]);
  });
});

describe('after a takeover from the kubelet', () => {
  /** The kubelet writes nothing of resources on the containers that it makes. */
  const byKubelet: Faults['answer'] = (method, value) => {
    if (method !== 'ContainerStatus') return value;
    const { status, ...rest } = value as CriResponse<'ContainerStatus'>;
    if (status === null) return value;
    const { [CRI_ANNOTATIONS.resources]: _, ...annotations } = status.annotations;
    return { ...rest, status: { ...status, annotations } };
  };
  async function takeOver(h: VirtualNode, reason: string): Promise<void> {
    await h.crash();
    h.fs.drop(`${ROOT}/allocated_pods_state`);
    h.faults.answer = byKubelet;
    await h.boot();
    await h.until('taken over', () => h.actor(PATH)?.reason === reason, 60_000);
    await h.advance(10_000);
    expect(updates(h)).toEqual([]);
  }

  it('a container of the kubelet is changed in place, or starts anew, as its policy says', async ({ h }) => {
    const resizePolicy = [{ resourceName: 'memory', restartPolicy: 'RestartContainer' }];
    await up(h, 'web', burstable('100m', '64Mi'), { container: { resizePolicy } });
    await takeOver(h, 'Ready');
    const faster = burstable('200m', '64Mi');
    resize(h, 'web', faster);
    await h.until('cpu is set', () => inForce(h, 'web')?.cpuShares === 204 && says(h, 'web', faster), 60_000);
    expect(shown(h, 'web')?.restartCount).toBe(0);
    const larger = { ...faster, limits: { cpu: '3', memory: '768Mi' } };
    resize(h, 'web', larger);
    await h.until('it started anew', () => shown(h, 'web')?.restartCount === 1 && says(h, 'web', larger), 60_000);
    expect(inForce(h, 'web')?.memoryLimitInBytes).toBe(768 * MI);
    expect(h.violations).toEqual([]);
  });

  it('a change that the kubelet had not granted waits on, and is granted when there is room', async ({ h }) => {
    const all = cpus(h);
    create(h, 'other', { container: { resources: { requests: { cpu: '1' } } } });
    await up(h, 'web', { requests: { cpu: '1' } });
    resize(h, 'web', { requests: { cpu: String(all) } });
    await h.until('it waits', () => pending(h, 'web')?.reason === 'Deferred');
    await takeOver(h, 'ResizePending');
    expect(pending(h, 'web')?.reason).toBe('Deferred');
    expect(shown(h, 'web')).toMatchObject({ allocatedResources: { cpu: '1' }, restartCount: 0 });
    drop(h, 'pods/other', 1);
    await h.until('granted', () => pending(h, 'web') === undefined && inForce(h, 'web')?.cpuShares === all * 1024, 60_000);
    expect(shown(h, 'web')?.restartCount).toBe(0);
    expect(h.violations).toEqual([]);
  });

  it('a change of the pod as a whole that the kubelet had not granted waits on', async ({ h }) => {
    create(h, 'other', { container: { resources: { requests: { cpu: '1' } } } });
    await up(h, 'web', { requests: { cpu: '1' } }, { spec: { resources: { requests: { cpu: '1' } } } });
    await h.crash();
    const uid = inApi(h, 'web')?.metadata.uid ?? '';
    patch(h, 'pods/web', { spec: { resources: { requests: { cpu: String(cpus(h)) } } } });
    const entries = {
      [uid]: { ContainerResources: { main: { requests: { cpu: '1' } } }, PodLevelResources: { requests: { cpu: '1' } } },
    };
    h.fs.put(
      `${ROOT}/${ALLOCATED}`,
      encodeCheckpoint(ALLOCATED, { entries }, () => ''),
    );
    await h.boot();
    await h.until('it waits', () => pending(h, 'web')?.reason === 'Deferred', 60_000);
    expect(inApi(h, 'web')?.status.allocatedResources?.cpu).toBe('1');
    expect(h.violations).toEqual([]);
  });
});

it('a change of the pod as a whole that an earlier build had not granted waits on', async ({ h }) => {
  create(h, 'other', { container: { resources: { requests: { cpu: '1' } } } });
  await up(h, 'web', { requests: { cpu: '1' } }, { spec: { resources: { requests: { cpu: '1' } } } });
  await h.crash();
  const uid = inApi(h, 'web')?.metadata.uid ?? '';
  patch(h, 'pods/web', { spec: { resources: { requests: { cpu: String(cpus(h)) } } } });
  h.fs.drop(`${ROOT}/${ALLOCATED}`);
  const asked = { requests: { cpu: '1' }, limits: {} };
  h.fs.makeDir(`${ROOT}/actorlet/state`);
  h.fs.put(
    `${ROOT}/actorlet/state/${OLDER_ALLOCATIONS}.json`,
    encodeCheckpoint(OLDER_ALLOCATIONS, { pods: { [uid]: { main: asked, '': asked } } }, createEntropy().sha256Hex),
  );
  await h.boot();
  await h.until('it waits', () => pending(h, 'web')?.reason === 'Deferred', 60_000);
  expect(inApi(h, 'web')?.status.allocatedResources?.cpu).toBe('1');
  expect(h.violations).toEqual([]);
});

describe('the checkpoints of the kubelet', () => {
  const read = (h: VirtualNode, name: string) => {
    const found = decodeCheckpoint(name, h.fs.textOf(`${ROOT}/${name}`) ?? '', () => '');
    const { entries } = (found.ok ? found.value : {}) as { entries: Record<string, { ContainerResources: Record<string, unknown> }> };
    return entries[inApi(h, 'web')?.metadata.uid ?? '']?.ContainerResources;
  };

  it('say what each container was granted, with all its resources, and what of that is in force', async ({ h }) => {
    const withDisk = (cpu: string) => ({ requests: { cpu, 'ephemeral-storage': '1Mi' } });
    await up(h, 'web', withDisk('100m'));
    for (const name of [ALLOCATED, ACTUATED]) expect(read(h, name)).toEqual({ main: withDisk('100m') });
    resize(h, 'web', withDisk(String(cpus(h) + 1)));
    await h.until('it waits', () => pending(h, 'web')?.reason === 'Infeasible');
    expect(read(h, ALLOCATED)).toEqual({ main: withDisk('100m') });
    h.faults.fault = (method) => (method === 'UpdateContainerResources' ? { kind: 'timeout', effect: false } : undefined);
    resize(h, 'web', withDisk('200m'));
    await h.until('it is in progress', () => condition(h, 'web', 'PodResizeInProgress') !== undefined);
    expect([read(h, ALLOCATED), read(h, ACTUATED)]).toEqual([{ main: withDisk('200m') }, { main: withDisk('100m') }]);
    h.faults.fault = () => undefined;
    await h.until('it is in force', () => condition(h, 'web', 'PodResizeInProgress') === undefined, 120_000);
    await h.advance(2_000);
    expect(read(h, ACTUATED)).toEqual({ main: withDisk('200m') });
  });
});

describe('a static pod', () => {
  it('is in the checkpoints of the kubelet with what it asks for, and not any more when it is gone', async () => {
    const resources = { requests: { cpu: '100m' } };
    await using h = await virtualNode({ manifests: { web: pod('web', { container: { resources } }) } });
    await h.until('it runs', () => h.running('web').length === 1);
    const uid = h.uid('web');
    const read = (name: string) => decodeCheckpoint(name, h.fs.textOf(`${ROOT}/${name}`) ?? '', () => '');
    const entries = { [uid]: { ContainerResources: { main: resources }, PodLevelResources: null } };
    for (const name of [ALLOCATED, ACTUATED]) expect(read(name)).toEqual({ ok: true, value: { entries } });
    h.remove('web');
    await h.until('it is gone', () => h.record('web') === undefined);
    await h.advance(2_000);
    expect(read(ACTUATED)).toEqual({ ok: true, value: { entries: {} } });
  });
});

describe('an init container', () => {
  const INIT = { requests: { cpu: '100m', memory: '64Mi' }, limits: { cpu: '1', memory: '128Mi' } };
  const MORE = { requests: { cpu: '200m', memory: '64Mi' }, limits: { cpu: '2', memory: '128Mi' } };
  async function initializing(h: VirtualNode, more: object = {}): Promise<void> {
    create(h, 'web', { inits: [{ resources: INIT, ...more }], lives: { 'init-0': 'run=60s' }, container: { resources: INIT } });
    await h.until('it runs', () => running(h, 'web').length === 1);
    await h.advance(2_000);
  }
  const change = (h: VirtualNode) =>
    patch(h, 'pods/web', {
      spec: { initContainers: (inApi(h, 'web')?.spec.initContainers ?? []).map((c) => ({ ...c, resources: MORE })) },
    });
  const init = (h: VirtualNode) => inApi(h, 'web')?.status.initContainerStatuses?.[0];

  it('that runs is told, and goes on', async ({ h }) => {
    await initializing(h);
    const [before] = running(h, 'web');
    change(h);
    await h.until('it is told', () => updates(h).length === 1);
    expect(updates(h)[0]).toEqual({ containerId: before?.id, linux: { cpuShares: 204, cpuPeriod: 100_000, cpuQuota: 200_000 } });
    await h.until('its status says so', () => init(h)?.resources?.limits?.cpu === '2');
    await h.until('the pod is Ready', () => isReady(h, 'web'), 120_000);
    expect(init(h)).toMatchObject({ restartCount: 0, resources: MORE });
    expect(condition(h, 'web', 'PodResizeInProgress')).toBeUndefined();
    expect(h.violations).toEqual([]);
  });

  it('whose change takes a restart starts anew with it', async ({ h }) => {
    await initializing(h, { resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }] });
    const [before] = running(h, 'web');
    change(h);
    await h.until('another one runs', () => running(h, 'web').some((c) => c.id !== before?.id));
    expect(inForce(h, 'web')).toMatchObject({ cpuShares: 204, cpuQuota: 200_000 });
    await h.until('the pod is Ready', () => isReady(h, 'web'), 180_000);
    expect(init(h)).toMatchObject({ restartCount: 1, resources: MORE });
  });
});

describe('what a pod holds while it changes', () => {
  it('is the larger of both until the smaller is in force', async ({ h }) => {
    const all = cpus(h);
    await up(h, 'web', { requests: { cpu: String(all) } });
    h.faults.fault = (method) => (method === 'UpdateContainerResources' ? { kind: 'refuse', code: 13, details: 'busy' } : undefined);
    resize(h, 'web', { requests: { cpu: '1' } });
    await h.until('it fails', () => condition(h, 'web', 'PodResizeInProgress')?.reason === 'Error');
    create(h, 'early', { container: { resources: { requests: { cpu: '1' } } } });
    await h.until('no room', () => inApi(h, 'early')?.status.reason === 'OutOfcpu');
    h.faults.fault = () => undefined;
    await h.until('it is set', () => condition(h, 'web', 'PodResizeInProgress') === undefined, 120_000);
    await createReady(h, 'late', { container: { resources: { requests: { cpu: '1' } } } });
  });
});
