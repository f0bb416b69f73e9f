/** What pods were granted is the same to the reference kubelet and to the node agent that takes its node over, and back. */
import { describe, expect, it } from 'vitest';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { minorVersion } from '../../e2e/lab/cluster/controlPlane.ts';
import type { ReferenceKubelet } from '../../e2e/lab/cluster/referenceKubelet.ts';
import { steady } from '../../e2e/manifests.ts';
import { type Cluster, DEFAULT_NAMESPACE, isReady, LONG } from '../cluster.ts';
import { besideReference } from '../hooks.ts';

let cluster: Cluster;
let reference: ReferenceKubelet;

const whyNot = besideReference(
  (made) => ({ cluster, reference } = made),
  () => (minorVersion('kubelet') < 35 ? 'the kubelet is older than 1.35' : undefined),
);

/** A container that starts anew with other memory, and not with other cpu. */
const main = () =>
  steady('main', {
    resources: { requests: { cpu: '10m', memory: '16Mi' }, limits: { memory: '64Mi' } },
    resizePolicy: [
      { resourceName: 'cpu', restartPolicy: 'NotRequired' },
      { resourceName: 'memory', restartPolicy: 'RestartContainer' },
    ],
  });
/** Not by the scheduler, to which a change that waits takes the room already. */
async function make(name: string): Promise<void> {
  await cluster.create(name, { nodeName: NODE_NAME, containers: [main()] });
  await cluster.ready(name);
}
async function asks(name: string, cpu: string): Promise<void> {
  const done = await cluster.plane.request('PATCH', `${DEFAULT_NAMESPACE}/pods/${name}/resize`, {
    body: { spec: { containers: [{ name: 'main', resources: { requests: { cpu } } }] } },
    contentType: 'application/strategic-merge-patch+json',
  });
  expect(done.status).toBe(200);
}
const pendingOf = (p: Pod) => p.status.conditions?.find((c) => c.type === 'PodResizePending')?.reason ?? '';
const cpuOf = (p: Pod) => p.status.containerStatuses?.[0]?.allocatedResources?.cpu;
async function waits(name: string): Promise<void> {
  await make(name);
  await asks(name, await cluster.kubectl('get', 'node', NODE_NAME, '-o', 'jsonpath={.status.allocatable.cpu}'));
  await cluster.podWhere(name, 'waits', (p) => pendingOf(p) === 'Deferred');
}
async function told(...names: string[]): Promise<object> {
  const pods = await Promise.all(names.map((name) => cluster.pod(name)));
  return Object.fromEntries(
    pods.flatMap((p) => {
      const [c] = p?.status.containerStatuses ?? [];
      return p === null ? [] : [[p.metadata.name, [p.status.phase, pendingOf(p), cpuOf(p), c?.containerID, c?.restartCount]]];
    }),
  );
}
/** The new agent has had time to change its mind: three renewals of the lease. */
async function settled(names: readonly string[]): Promise<void> {
  const renewed = async () =>
    await cluster.kubectl('-n', 'kube-node-lease', 'get', 'lease', '--ignore-not-found', NODE_NAME, '-o', 'jsonpath={.spec.renewTime}');
  for (const _ of [1, 2, 3]) {
    const last = await renewed();
    await cluster.daemon.wait('the lease is renewed', async () => (await renewed()) !== last, LONG);
  }
  for (const name of names) await cluster.podWhere(name, 'is Ready', isReady);
}

describe.skipIf(whyNot !== undefined)('what pods were granted', () => {
  it('by the kubelet stays, and so does what it deferred', async () => {
    await reference.start();
    await cluster.daemon.wait('the account', () => cluster.plane.hasAccount(), LONG);
    await make('granted');
    await waits('deferred');
    const before = await told('granted', 'deferred');
    await reference.end('SIGKILL');
    await cluster.daemon.start();
    await settled(['granted', 'deferred']);
    expect(await told('granted', 'deferred')).toEqual(before);
  });

  it('stays when the kubelet is back, of pods too that it has never seen', async () => {
    await make('ours');
    await waits('ours-deferred');
    await asks('ours', '20m');
    await cluster.podWhere('ours', 'has more', (p) => cpuOf(p) === '20m');
    const all = ['granted', 'deferred', 'ours', 'ours-deferred'];
    const before = await told(...all);
    await cluster.daemon.end('SIGTERM');
    await reference.start();
    await settled(all);
    expect(await told(...all)).toEqual(before);
  });
});
