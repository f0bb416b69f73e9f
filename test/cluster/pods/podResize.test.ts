/**
 * Resources of a pod as a whole, changed through the real API server, in the kernel's own files: the node declares that it can, and
 * the values of the pod's cgroup, of its containers and of its status are what was granted.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCgroups } from '../../../src/boot/dependencies/cgroups/cgroups.ts';
import type { ResourceRequirements } from '../../../src/machines/kube/podTable.ts';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { until } from '../../e2e/lab/ports.ts';
import { steady } from '../../e2e/manifests.ts';
import { type Cluster, DEFAULT_NAMESPACE, LONG, startCluster } from '../cluster.ts';

const ROOT = `/actorlet-test-${randomBytes(4).toString('hex')}`;
const MI = 1024 * 1024;
const cgroups = createCgroups();
const version = async () => (await cgroups.detect('cgroupfs')).version;
let c: Cluster;

beforeAll(async () => {
  await cgroups.create(ROOT);
  for (const other of ['unified', 'freezer', 'blkio', 'devices']) {
    const made = join('/sys/fs/cgroup', other, ROOT);
    if (existsSync(made) && (await version()) === 1) rmdirSync(made);
  }
  c = await startCluster({ config: { cgroupsPerQOS: true, cgroupRoot: ROOT } });
});
afterAll(async () => {
  await c?.stop();
  await until('the groups of this test to be gone', async () => {
    await cgroups.kill(ROOT);
    return cgroups.remove(ROOT).then(
      () => true,
      () => false,
    );
  });
}, 120_000);

async function memoryMax({ metadata }: Pod): Promise<number> {
  const path = `${ROOT}/kubepods/burstable/pod${metadata.uid}`;
  const file = (await version()) === 1 ? { controller: 'memory', file: 'memory.limit_in_bytes' } : { controller: '', file: 'memory.max' };
  return Number((await cgroups.read(path, [file]))[0]);
}
async function resize(name: string, resources: ResourceRequirements): Promise<void> {
  const done = await c.plane.request('PATCH', `${DEFAULT_NAMESPACE}/pods/${name}/resize`, {
    body: { spec: { resources } },
    contentType: 'application/merge-patch+json',
  });
  expect([done.status, done.status === 200 ? '' : JSON.stringify(done.body)]).toEqual([200, '']);
}
const says = (pod: Pod, type: string) => pod.status.conditions?.find((x) => x.type === type);
const inForce = (wanted: ResourceRequirements) => (pod: Pod) =>
  JSON.stringify([pod.status.resources?.requests, pod.status.resources?.limits]) === JSON.stringify([wanted.requests, wanted.limits]) &&
  says(pod, 'PodResizeInProgress') === undefined;

describe('resources of a pod as a whole', () => {
  it('change while it runs; what does not fit waits; a daemon that starts again keeps what was granted', async () => {
    const node = JSON.parse(await c.kubectl('get', 'node', NODE_NAME, '-o', 'json')) as { status: { declaredFeatures?: string[] } };
    expect(node.status.declaredFeatures).toContain('InPlacePodLevelResourcesVerticalScaling');
    const was = { requests: { cpu: '20m', memory: '16Mi' }, limits: { cpu: '500m', memory: '64Mi' } };
    await c.create('web', { resources: was, containers: [steady(), steady('two')] });
    const pod = await c.ready('web');
    expect(pod.status).toMatchObject({ resources: was, allocatedResources: { cpu: '20m', memory: '16Mi' } });
    expect(await memoryMax(pod)).toBe(64 * MI);
    const more = { requests: { cpu: '30m', memory: '32Mi' }, limits: { cpu: '1', memory: '128Mi' } };
    await resize('web', more);
    const grown = await c.podWhere('web', 'has more', inForce(more));
    expect(await memoryMax(grown)).toBe(128 * MI);
    expect(grown.status.allocatedResources).toEqual({ cpu: '30m', memory: '32Mi' });
    expect(grown.status.containerStatuses?.map((s) => s.restartCount)).toEqual([0, 0]);
    // More than the node has is refused by the API server.
    await c.create('other', { containers: [{ ...steady(), resources: { requests: { cpu: '1' } } }] });
    await c.ready('other');
    await resize('web', { requests: { cpu: '1500m', memory: '32Mi' }, limits: { cpu: '1500m', memory: '128Mi' } });
    const waits = await c.podWhere('web', 'waits', (p) => says(p, 'PodResizePending')?.reason === 'Deferred');
    expect(waits.status.allocatedResources).toEqual({ cpu: '30m', memory: '32Mi' });
    await c.daemon.end('SIGKILL');
    await c.daemon.start();
    await resize('web', was);
    const shrunk = await c.podWhere('web', 'has less', inForce(was), LONG);
    expect(await memoryMax(shrunk)).toBe(64 * MI);
    expect(shrunk.status.containerStatuses?.map((s) => [s.restartCount, s.containerID])).toEqual(
      pod.status.containerStatuses?.map((s) => [0, s.containerID]),
    );
  });
});
