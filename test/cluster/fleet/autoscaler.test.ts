/** Nodes that an autoscaler makes, with the real programs: they come late, run pods, and go with their node. */
import { dirname } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { startFleet } from '../../../packages/fleet/src/index.ts';
import { program } from '../../e2e/lab/cluster/controlPlane.ts';

const FILE = `
apiVersion: actorlet.dev/v1alpha1
kind: Fleet
metadata: { name: cloud }
spec:
  groups: [{ name: m5.large, count: 0, capacity: { cpu: 2, memory: 8Gi, pods: 29 }, allocatable: { cpu: 1930m } }]
  adopt:
    - name: karpenter
      nodes: { selector: karpenter.sh/nodepool }
      registration: 1s
      refuse: [{ order: 2, as: dead }, { order: 3, as: noCapacity }]
`;
const STARTUP = { key: 'karpenter.sh/unregistered', effect: 'NoExecute' };
const node = (name: string, taints: object[]) => ({
  ...{ apiVersion: 'v1', kind: 'Node' },
  metadata: { name, labels: { 'karpenter.sh/nodepool': 'a', 'node.kubernetes.io/instance-type': 'm5.large' } },
  spec: { providerID: `kwok://${name}`, taints },
});
const deployment = {
  ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', namespace: 'default' } },
  spec: {
    ...{ replicas: 3, selector: { matchLabels: { app: 'web' } } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: 'web' }] } },
  },
};

beforeAll(() => {
  process.env.KUBEBUILDER_ASSETS ??= dirname(program('kube-apiserver'));
});

it('get kubelets by their shape, honour startup taints, and take their pods away with them', { timeout: 300_000 }, async () => {
  await using fleet = await startFleet({ file: FILE, api: 'local' });
  await fleet.ready();
  await fleet.apply([deployment, ...['a', 'b', 'c'].map((name) => node(name, [STARTUP]))]);
  const ready = (name: string) => fleet.expect({ objects: { kind: 'Node', name }, condition: 'Ready', atLeast: 1 });
  await ready('a');
  const names = async () => (await fleet.objects({ kind: 'Node' })).map((n) => n.metadata.name).sort();
  await expect.poll(names).toEqual(['a', 'b']);
  const [there] = await fleet.objects({ kind: 'Node', name: 'a' });
  expect(there).toMatchObject({ spec: { providerID: 'kwok://a', taints: [STARTUP] }, status: { allocatable: { cpu: '1930m' } } });
  const web = { objects: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }, field: 'status.availableReplicas' };
  expect(await fleet.expect({ ...web, atMost: 0 })).toBe(0);
  await fleet.apply({ ...node('a', []), metadata: { name: 'a' } });
  await fleet.expect({ ...web, atLeast: 3 });
  await fleet.remove(node('a', []));
  await expect.poll(() => fleet.nodes().length).toBe(0);
  expect(await fleet.addNodes('m5.large', 2)).toEqual(['m5.large-0', 'm5.large-1']);
  // The cluster's own controllers find out that the pods are gone.
  const moved = { objects: { kind: 'Pod', selector: 'app=web' }, where: 'object.spec.nodeName.startsWith("m5.large-")' };
  await fleet.expect({ ...moved, condition: 'Ready', atLeast: 3, within: '180s' });
  await fleet.removeNodes(['m5.large-0']);
  await expect.poll(names).toEqual(['b', 'm5.large-1']);
});
