/** The real control plane that the cluster tests stand on: that it answers, and lets a node's identity do what a node does. */
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane } from '../../e2e/lab/cluster/controlPlane.ts';
import { until } from '../../e2e/lab/ports.ts';

let plane: ControlPlane;
beforeAll(async () => {
  plane = await startControlPlane({ controllerManager: true, scheduler: true });
});
afterAll(async () => {
  await plane?.stop();
  if (plane !== undefined) expect(existsSync(plane.dir)).toBe(false);
});

const pairOf = (nodeName: string) => plane.ca.issue(`node-${nodeName}`, { name: `system:node:${nodeName}`, groups: ['system:nodes'] });
const nodeObject = (name: string) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name } });

it('answers the administrator, and nobody without credentials', async () => {
  expect((await plane.request('GET', '/version')).body).toMatchObject({ gitVersion: expect.stringMatching(/^v1\.\d+\./) });
  const unknown = plane.ca.issue('unknown', { name: 'unknown' });
  expect((await plane.request('GET', '/api/v1/nodes', { as: unknown })).status).toBe(403);
});

it('lets a node register itself, and no other', async () => {
  plane.nodeKubeconfig('worker-1');
  const as = pairOf('worker-1');
  expect((await plane.request('POST', '/api/v1/nodes', { as, body: nodeObject('worker-1') })).status).toBe(201);
  expect((await plane.request('POST', '/api/v1/nodes', { as, body: nodeObject('worker-2') })).status).toBe(403);
  expect(await plane.kubectl('get', 'nodes', '-o', 'name')).toBe('node/worker-1\n');
});

it('schedules a pod to a node that says it is ready, with a service account', async () => {
  const as = pairOf('worker-3');
  plane.nodeKubeconfig('worker-3');
  await plane.request('POST', '/api/v1/nodes', { as, body: nodeObject('worker-3') });
  const status = {
    capacity: { cpu: '2', memory: '1Gi', pods: '10' },
    allocatable: { cpu: '2', memory: '1Gi', pods: '10' },
    conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', lastHeartbeatTime: '2099-01-01T00:00:00Z' }],
  };
  const patched = await plane.request('PATCH', '/api/v1/nodes/worker-3/status', {
    as,
    body: { status },
    contentType: 'application/strategic-merge-patch+json',
  });
  expect(patched.status).toBe(200);
  // The controller manager makes the account shortly after the namespace.
  await until('the default service account', () => plane.kubectl('get', 'serviceaccount', 'default'), { timeoutMs: 60_000, everyMs: 200 });
  await plane.kubectl('run', 'web', '--image=busybox', '--restart=Never');
  const bound = await until(
    'the pod to be scheduled',
    async () => (await plane.kubectl('get', 'pod', 'web', '-o', 'jsonpath={.spec.nodeName}')) || false,
    { timeoutMs: 60_000, everyMs: 200 },
  );
  expect(bound).toBe('worker-3');
});

it('comes back at the same address after it was killed, for controllers that begin anew and judge no node by what they saw', async () => {
  const before = await until('controllers', () => plane.kubectl('get', 'lease', '-n', 'kube-system', 'kube-controller-manager'), {
    timeoutMs: 60_000,
    everyMs: 200,
  }).then(() => plane.pid('kube-controller-manager'));
  await plane.kill('kube-apiserver');
  await expect(plane.request('GET', '/version', { timeoutMs: 2_000 })).rejects.toThrow();
  await until('others in their place', async () => ![undefined, before].includes(plane.pid('kube-controller-manager')), {
    timeoutMs: 60_000,
    everyMs: 200,
  });
  await plane.start('kube-apiserver');
  expect(await plane.kubectl('get', 'node', 'worker-1', '-o', 'name')).toBe('node/worker-1\n');
});
