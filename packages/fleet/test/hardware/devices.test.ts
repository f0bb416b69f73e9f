/** Devices of nodes for dynamic allocation: their drivers register, and their ResourceSlices are published. */
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { expect, it } from 'vitest';
import { decodeFleet } from '../../src/file.ts';
import { apiServer, runnable } from '../adopt/rig.ts';
import { refusedOf } from '../api/rights.ts';

const HEAD = 'apiVersion: actorlet.dev/v1alpha1\nkind: Fleet\nmetadata: { name: demo }\nspec:\n';
const GROUP = `${HEAD}  groups:
    - name: gpu
      count: 2
      devices:
        - { driver: gpu.example.com, count: 3, attributes: { model: h100, index: 7, shared: true }, capacity: { memory: 80Gi } }
`;

it('are slices of each node, which go with it, and a pod with a claim gets one', { timeout: 60_000 }, async () => {
  const api = apiServer();
  const run = runnable(GROUP, api);
  const { store } = api.kube;
  await run.start();
  const slices = (): KubeObject[] => store.list('resourceslices');
  await expect.poll(() => slices().length).toBe(2);
  const node = run.nodes().find((n) => n.metadata.name === 'gpu-0');
  const device = {
    attributes: { model: { string: 'h100' }, index: { int: 7 }, shared: { bool: true } },
    capacity: { memory: { value: '80Gi' } },
  };
  expect(slices().find((s) => s.metadata.name === 'gpu-0-gpu.example.com')).toMatchObject({
    metadata: { ownerReferences: [{ kind: 'Node', name: 'gpu-0', uid: node?.metadata.uid }] },
    spec: {
      ...{ driver: 'gpu.example.com', nodeName: 'gpu-0', pool: { name: 'gpu-0', generation: 1, resourceSliceCount: 1 } },
      devices: [0, 1, 2].map((i) => ({ name: `device-${i}`, ...device })),
    },
  });
  // As the scheduler allocates it.
  const results = [{ driver: 'gpu.example.com', pool: 'gpu-0', device: 'device-1', request: 'gpu' }];
  const claim = {
    ...{ apiVersion: 'resource.k8s.io/v1', kind: 'ResourceClaim', metadata: { name: 'one', namespace: 'default' } },
    spec: { devices: { requests: [{ name: 'gpu', exactly: { deviceClassName: 'gpu' } }] } },
  };
  const claims = '/apis/resource.k8s.io/v1/namespaces/default/resourceclaims';
  api.kube.handle({ verb: 'POST', path: claims, body: claim });
  const pod = {
    metadata: { name: 'p' },
    spec: {
      ...{ nodeName: 'gpu-0', serviceAccountName: 'default', resourceClaims: [{ name: 'gpu', resourceClaimName: 'one' }] },
      containers: [{ name: 'a', image: 'x', resources: { claims: [{ name: 'gpu' }] } }],
    },
  };
  const made = api.kube.handle({ verb: 'POST', path: '/api/v1/namespaces/default/pods', body: pod });
  expect(made.ok).toBe(true);
  const { uid } = store.list('pods')[0]?.metadata ?? {};
  const status = { allocation: { devices: { results } }, reservedFor: [{ resource: 'pods', name: 'p', uid }] };
  api.kube.handle({ verb: 'PATCH', path: `${claims}/one/status`, patchType: 'merge', body: { status } });
  const phase = (): unknown => (store.list('pods')[0]?.status as { phase?: string } | undefined)?.phase;
  await expect.poll(phase).toBe('Running');
  await run.stop();
  expect(refusedOf(api.kube.calls.map(({ request }) => request))).toEqual([]);
});

it.each([
  ['{ count: 1 }', 'devices[0].driver: is missing'],
  ['{ driver: GPU }', 'devices[0].driver: "GPU" must be'],
  ['{ driver: a.b, count: 129 }', 'count: must be a whole number from 1 to 128'],
  ['{ driver: a.b, attributes: { x: 1.5 } }', 'attributes.x: must be a whole number'],
  ['{ driver: a.b, attributes: { "a b": 1 } }', 'attributes: "a b"'],
  ['{ driver: a.b, capacity: { memory: lots } }', 'capacity: memory must be a quantity'],
  ['{ driver: a.b }, { driver: a.b }', 'devices[1].driver: is that of another entry'],
])('are refused where a file says %s', (devices, why) => {
  const read = decodeFleet(`${HEAD}  groups: [{ name: a, count: 1, devices: [${devices}] }]\n`);
  expect(read.ok ? '' : read.errors.map((e) => `${e.field}: ${e.message}`).join('\n')).toContain(why);
});
