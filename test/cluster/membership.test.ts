/** The daemon as a member of a real cluster: real API server, controller manager and scheduler, real containerd underneath. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Pod } from '../../src/machines/k8s.ts';
import { buildDaemon, createDaemon, type Daemon, NODE_NAME } from '../e2e/daemon.ts';
import { type Containerd, startContainerd } from '../e2e/lab/containerd.ts';
import { type ControlPlane, startControlPlane } from '../e2e/lab/controlPlane.ts';
import { until } from '../e2e/lab/ports.ts';
import { manifest, steady } from '../e2e/manifests.ts';

let plane: ControlPlane;
let lab: Containerd;
let daemon: Daemon;
const LONG = { timeoutMs: 90_000, everyMs: 100 };

beforeAll(async () => {
  await buildDaemon();
  plane = await startControlPlane({ controllerManager: true, scheduler: true });
  lab = await startContainerd();
  daemon = await createDaemon(lab, {}, ['--kubeconfig', plane.nodeKubeconfig(NODE_NAME)]);
  await daemon.start();
});
afterAll(async () => {
  await daemon?.dispose();
  await plane?.stop();
  expect(await lab?.stop()).toEqual([]);
});

async function pods(selector: string): Promise<Pod[]> {
  const { items } = JSON.parse(await plane.kubectl('get', 'pods', '-l', selector, '-o', 'json')) as { items: Pod[] };
  return items;
}
const isReady = (p: Pod) => p.status.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;
async function deploy(name: string, o: { replicas: number; version: string }): Promise<void> {
  const container = steady('main');
  const body = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name },
    spec: {
      replicas: o.replicas,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name, version: o.version } },
        spec: { automountServiceAccountToken: false, terminationGracePeriodSeconds: 1, containers: [container] },
      },
    },
  };
  const path = `/apis/apps/v1/namespaces/default/deployments`;
  const made = await plane.request('POST', path, { body });
  if (made.status === 201) return;
  const changed = await plane.request('PUT', `${path}/${name}`, { body });
  expect(changed.status).toBe(200);
}
const rolledOut = (name: string, o: { replicas: number; version: string }) =>
  until(
    `${name} runs version ${o.version}`,
    async () => {
      const all = await pods(`app=${name}`);
      return all.length === o.replicas && all.every((p) => isReady(p) && p.metadata.labels?.version === o.version);
    },
    LONG,
  );

describe('a node of a real cluster', () => {
  it('registers, is Ready and holds its lease', async () => {
    await until('Ready', async () => / Ready /.test(await plane.kubectl('get', 'nodes', NODE_NAME).catch(() => '')), LONG);
    const lease = JSON.parse(await plane.kubectl('-n', 'kube-node-lease', 'get', 'lease', NODE_NAME, '-o', 'json')) as {
      spec: { holderIdentity: string; renewTime: string };
    };
    expect(lease.spec.holderIdentity).toBe(NODE_NAME);
    expect(await plane.kubectl('describe', 'node', NODE_NAME)).toContain('kubelet is posting ready status');
  });

  it('runs a Deployment from its creation over a new version to its deletion, and keeps nothing', async () => {
    await deploy('web', { replicas: 3, version: 'one' });
    await rolledOut('web', { replicas: 3, version: 'one' });
    await deploy('web', { replicas: 3, version: 'two' });
    await rolledOut('web', { replicas: 3, version: 'two' });
    const [pod] = await pods('app=web');
    expect(await plane.kubectl('describe', 'pod', pod?.metadata.name ?? '')).toContain('Started container main');
    await plane.kubectl('delete', 'deployment', 'web');
    await until('no pod is left', async () => (await pods('app=web')).length === 0, LONG);
    await until('the node knows none either', async () => (await daemon.pods()).every((p) => p.metadata.labels?.app !== 'web'), LONG);
  });

  it('loses nothing when it is killed in the middle of a rollout', async () => {
    await deploy('killed', { replicas: 4, version: 'one' });
    await rolledOut('killed', { replicas: 4, version: 'one' });
    await deploy('killed', { replicas: 4, version: 'two' });
    await until('the new version begins', async () => (await pods('app=killed,version=two')).length > 0, LONG);
    await daemon.end('SIGKILL');
    await daemon.start();
    await rolledOut('killed', { replicas: 4, version: 'two' });
    await plane.kubectl('delete', 'deployment', 'killed');
    await until('no pod is left', async () => (await pods('app=killed')).length === 0, LONG);
  });

  it('shows static pods in the API, and brings back one that was deleted there', async () => {
    daemon.put('shown.json', manifest('shown', [steady('main')]));
    const name = `shown-${NODE_NAME}`;
    const get = async () => JSON.parse(await plane.kubectl('get', 'pod', name, '-o', 'json').catch(() => 'null')) as Pod | null;
    const shown = async () => {
      const pod = await get();
      return pod !== null && isReady(pod) ? pod : null;
    };
    await until('the mirror is Ready', async () => (await shown()) !== null, LONG);
    const first = await get();
    await plane.kubectl('delete', 'pod', name, '--wait=false');
    await until('another mirror', async () => ![undefined, first?.metadata.uid].includes((await shown())?.metadata.uid), LONG);
    expect((await get())?.status.containerStatuses?.[0]?.containerID).toBe(first?.status.containerStatuses?.[0]?.containerID);
  });
});
