/** Cpu and memory of a pod as a whole, changed while it runs, on a whole node in virtual time (KEP-5419). */
import { describe, expect } from 'vitest';
import type { ResourceRequirements } from '../../../../src/machines/kube/podTable.ts';
import type { PodCondition } from '../../../../src/machines/kube/types.ts';
import { statusesView } from '../../../../src/machines/pods/status/messages.ts';
import { create, drop, events, inApi, isReady, cluster as ofCluster, patch } from '../../cluster/clusterPods.ts';
import { itWith } from '../../onNode.ts';
import type { VirtualNode } from '../../virtualNode.ts';

const MI = 1024 * 1024;
const PATH = 'node/pods/podManager';
const condition = (h: VirtualNode, type: string): PodCondition | undefined =>
  inApi(h, 'web')?.status.conditions?.find((c) => c.type === type);
const inProgress = (h: VirtualNode) => condition(h, 'PodResizeInProgress') !== undefined;
const whole = (h: VirtualNode) => inApi(h, 'web')?.status.resources;
const shown = (h: VirtualNode, name: string) => inApi(h, 'web')?.status.containerStatuses?.find((s) => s.name === name);
const group = (h: VirtualNode) => {
  const uid = inApi(h, 'web')?.metadata.uid ?? '';
  const [path = ''] = [...h.cgroups.groups.keys()].filter((p) => p.endsWith(uid));
  const files = h.cgroups.groups.get(path);
  return { memory: files?.get('memory.max'), cpu: files?.get('cpu.max'), weight: files?.get('cpu.weight') };
};
const amounts = (cpu: string, memory: string, more: { cpu?: string; memory?: string } = {}): ResourceRequirements => ({
  requests: { cpu, memory },
  limits: { cpu: more.cpu ?? '2', memory: more.memory ?? '512Mi' },
});
const resize = (h: VirtualNode, resources: ResourceRequirements) => patch(h, 'pods/web', { spec: { resources } });
/** One container with limits of its own, and one that has its pod's. */
async function up(h: VirtualNode, resources: ResourceRequirements): Promise<void> {
  const own = { requests: { cpu: '50m', memory: '32Mi' }, limits: { cpu: '500m', memory: '64Mi' } };
  create(h, 'web', {
    spec: {
      resources,
      containers: [
        { name: 'main', image: 'busybox:1' },
        { name: 'own', image: 'busybox:1', resources: own },
      ],
    },
  });
  await h.until('it is Ready', () => isReady(h, 'web'));
  await h.advance(2_000);
}
const settled = (h: VirtualNode, wanted: ResourceRequirements) =>
  JSON.stringify([whole(h)?.limits, whole(h)?.requests]) === JSON.stringify([wanted.limits, wanted.requests]) && !inProgress(h);
const grouped = () => ofCluster({ cgroups: true });
const it = itWith(grouped);

describe('resources of a pod as a whole', () => {
  it('stand in its status, with what was granted', async ({ h }) => {
    await up(h, amounts('200m', '128Mi'));
    expect(inApi(h, 'web')?.status).toMatchObject({
      resources: amounts('200m', '128Mi'),
      allocatedResources: { cpu: '200m', memory: '128Mi' },
    });
    expect(shown(h, 'main')?.resources).toEqual({});
    expect(h.lines.filter((l) => l.level === 'error')).toEqual([]);
  });

  it('grow and shrink in its cgroup; a container without a limit follows, one with its own does not; nothing restarts', async ({ h }) => {
    await up(h, amounts('200m', '128Mi'));
    expect(group(h)).toMatchObject({ memory: String(512 * MI), cpu: '200000 100000' });
    const more = amounts('400m', '256Mi', { cpu: '3', memory: '1Gi' });
    resize(h, more);
    await h.until('it says so', () => settled(h, more));
    expect(group(h)).toMatchObject({ memory: String(1024 * MI), cpu: '300000 100000' });
    const told = (name: string) => h.running().find((c) => c.name === name)?.resources;
    expect(told('main')).toMatchObject({ memoryLimitInBytes: 1024 * MI, cpuQuota: 300_000 });
    expect(told('own')).toMatchObject({ memoryLimitInBytes: 64 * MI, cpuQuota: 50_000 });
    expect(inApi(h, 'web')?.status.allocatedResources).toEqual({ cpu: '400m', memory: '256Mi' });
    expect(events(h, 'ResizeStarted')).toHaveLength(1);
    expect(events(h, 'ResizeCompleted')).toHaveLength(1);
    const less = amounts('100m', '64Mi', { cpu: '1', memory: '256Mi' });
    resize(h, less);
    await h.until('it says so', () => settled(h, less));
    expect(group(h)).toMatchObject({ memory: String(256 * MI), cpu: '100000 100000' });
    expect(told('main')).toMatchObject({ memoryLimitInBytes: 256 * MI, cpuQuota: 100_000 });
    expect(inApi(h, 'web')?.status.containerStatuses?.map((s) => s.restartCount)).toEqual([0, 0]);
    expect(h.violations).toEqual([]);
  });

  it('of requests alone change the weight of the cgroup, and no container', async ({ h }) => {
    await up(h, amounts('200m', '128Mi'));
    const before = group(h).weight;
    resize(h, amounts('800m', '128Mi'));
    await h.until('it says so', () => settled(h, amounts('800m', '128Mi')));
    expect(group(h).weight).not.toBe(before);
    expect(h.calls.filter((c) => c.method === 'UpdateContainerResources')).toEqual([]);
  });

  it('do not go below what the pod uses: the change is tried again, and says why', async ({ h }) => {
    await up(h, amounts('200m', '128Mi'));
    h.faults.answer = (method, value) =>
      method === 'ListContainerStats' ? { stats: [{ memory: { workingSetBytes: { value: BigInt(400 * MI) } } }] } : value;
    const less = amounts('200m', '128Mi', { memory: '256Mi' });
    resize(h, less);
    await h.until('it says why', () => condition(h, 'PodResizeInProgress')?.reason === 'Error');
    expect(condition(h, 'PodResizeInProgress')?.message).toBe(
      'cannot decrease memory limits: attempting to set pod memory limit (268435456) below current usage (419430400)',
    );
    expect(whole(h)?.limits?.memory).toBe('512Mi');
    h.faults.answer = (_, value) => value;
    await h.until('it is in force', () => settled(h, less), 200_000);
  });

  it('that are not in force when the pod ends are not said to be', async ({ h }) => {
    await up(h, amounts('200m', '128Mi'));
    h.faults.answer = (method, value) =>
      method === 'ListContainerStats' ? { stats: [{ memory: { workingSetBytes: { value: BigInt(400 * MI) } } }] } : value;
    h.faults.fault = (method) => (method.startsWith('Stop') ? { kind: 'timeout', effect: false } : undefined);
    resize(h, amounts('200m', '128Mi', { memory: '256Mi' }));
    await h.until('it says why', () => condition(h, 'PodResizeInProgress')?.reason === 'Error');
    const { uid = '' } = inApi(h, 'web')?.metadata ?? {};
    drop(h, 'pods/web', 30);
    await h.until('it ends', () => h.state(`node/pods/workers/${uid}`).startsWith('terminating'));
    await h.advance(5_000);
    const said = h.tree.registry.read(statusesView)?.value.get(uid)?.status.resources?.limits?.memory;
    expect([said, whole(h)?.limits?.memory]).toEqual(['512Mi', '512Mi']);
  });

  it('wait while they do not fit, and are Infeasible where they never can', async ({ h }) => {
    const all = Number(h.node.facts.allocatable.cpu);
    create(h, 'other', { container: { resources: { requests: { cpu: '1' } } } });
    await up(h, amounts('200m', '128Mi', { cpu: '64' }));
    resize(h, amounts(String(all), '128Mi', { cpu: '64' }));
    await h.until('it waits', () => condition(h, 'PodResizePending')?.reason === 'Deferred');
    expect(inApi(h, 'web')?.status.allocatedResources).toEqual({ cpu: '200m', memory: '128Mi' });
    resize(h, amounts('63', '128Mi', { cpu: '64' }));
    await h.until('it cannot be', () => condition(h, 'PodResizePending')?.reason === 'Infeasible');
    expect(condition(h, 'PodResizePending')?.message).toContain("Node didn't have enough capacity: cpu, requested: 63000");
    const wanted = amounts('300m', '128Mi', { cpu: '64' });
    resize(h, wanted);
    await h.until('it says so', () => settled(h, wanted) && condition(h, 'PodResizePending') === undefined);
  });

  it('are counted as the kubelet counts them', async ({ h }) => {
    await up(h, amounts('200m', '128Mi'));
    const containers = (inApi(h, 'web')?.spec.containers ?? []).map((x) =>
      x.name === 'own' ? { ...x, resources: { requests: { cpu: '60m', memory: '32Mi' }, limits: { cpu: '400m', memory: '64Mi' } } } : x,
    );
    patch(h, 'pods/web', { spec: { containers } });
    await h.until('it is in force', () => shown(h, 'own')?.resources?.limits?.cpu === '400m' && !inProgress(h));
    const text = await h.metrics.render();
    expect(text).toContain('kubelet_container_requested_resizes_total{operation="increase",requirement="requests",resource="cpu"} 1');
    expect(text).toContain('kubelet_container_requested_resizes_total{operation="decrease",requirement="limits",resource="cpu"} 1');
    expect(text).toContain('kubelet_pod_resize_duration_milliseconds_count{success="true"} 1');
  });

  it('survive the daemon and its pod manager: what was granted stays granted, and what was under way is carried out', async ({ h }) => {
    await up(h, amounts('200m', '128Mi', { cpu: '64' }));
    resize(h, amounts('64', '128Mi', { cpu: '64' }));
    await h.until('it cannot be', () => condition(h, 'PodResizePending')?.reason === 'Infeasible');
    await h.restart();
    await h.advance(20_000);
    expect(condition(h, 'PodResizePending')?.reason).toBe('Infeasible');
    expect(inApi(h, 'web')?.status.allocatedResources).toEqual({ cpu: '200m', memory: '128Mi' });
    const wanted = amounts('300m', '128Mi', { cpu: '64', memory: '1Gi' });
    h.faults.latencyMs.UpdateContainerResources = 3_000;
    resize(h, wanted);
    await h.until('it is under way', () => inProgress(h));
    await h.crash();
    h.faults.latencyMs = {};
    await h.boot();
    await h.until('it says so', () => settled(h, wanted), 120_000);
    expect(group(h).memory).toBe(String(1024 * MI));
    h.kill(PATH);
    await h.advance(10_000);
    expect(settled(h, wanted)).toBe(true);
    expect(inApi(h, 'web')?.status.containerStatuses?.map((s) => s.restartCount)).toEqual([0, 0]);
  });
});
