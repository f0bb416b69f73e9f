/** The daemon as a member of a real cluster: real API server, controller manager and scheduler, real containerd underneath. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { buildDaemon, createDaemon, type Daemon, NODE_NAME } from '../../e2e/daemon.ts';
import { type ControlPlane, startControlPlane } from '../../e2e/lab/cluster/controlPlane.ts';
import { type Containerd, startContainerd } from '../../e2e/lab/containerd.ts';
import { until } from '../../e2e/lab/ports.ts';
import { manifest, steady } from '../../e2e/manifests.ts';

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

const isReady = (p: Pod) => p.status.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;

describe('a node of a real cluster', () => {
  it('registers, is Ready and holds its lease', async () => {
    await until('Ready', async () => / Ready /.test(await plane.kubectl('get', 'nodes', NODE_NAME).catch(() => '')), LONG);
    // Made beside the registration, not before the node is Ready.
    const holder = () =>
      plane.kubectl('-n', 'kube-node-lease', 'get', 'lease', NODE_NAME, '-o', 'jsonpath={.spec.holderIdentity}').catch(() => '');
    await until('its lease', async () => (await holder()) === NODE_NAME, LONG);
    expect(await plane.kubectl('describe', 'node', NODE_NAME)).toContain('kubelet is posting ready status');
  });

  it('has the labels of its machine again when another program changed them', async () => {
    const label = (name: string) => plane.kubectl('get', 'node', NODE_NAME, '-o', `jsonpath={.metadata.labels.kubernetes\\.io/${name}}`);
    const [os, arch] = [await label('os'), await label('arch')];
    expect(os).toBe('linux');
    await plane.kubectl('label', '--overwrite', 'node', NODE_NAME, 'kubernetes.io/os=dummy', 'kubernetes.io/arch-');
    await until('its labels', async () => (await label('os')) === os && (await label('arch')) === arch, LONG);
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
