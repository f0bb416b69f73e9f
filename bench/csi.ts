/**
 * A burst of pods with a CSI volume each, behind a claim and staged: calls of the driver, and the time until all are Ready and
 * until all are gone. The reference kubelet and this node take turns on one cluster. As root, after `npm run e2e:setup`, with
 * the programs of a release, its kubelet too, in KUBEBUILDER_ASSETS. Options: --pods=100 --rounds=2 --out=FILE
 */
import { join } from 'node:path';
import type { Pod } from '../src/machines/kube/types.ts';
import { isReady, LONG, STAY, startCluster } from '../test/cluster/cluster.ts';
import { NODE_NAME } from '../test/e2e/daemon.ts';
import { createReferenceKubelet } from '../test/e2e/lab/cluster/referenceKubelet.ts';
import { sh } from '../test/e2e/manifests.ts';
import { startDriver } from '../test/volumes/csiDriver.ts';
import { numberOption, report, say } from './lib/report.ts';

const podCount = numberOption('pods', 100);
const rounds = numberOption('rounds', 2);
const NAME = 'csi.example.com';
const BURST_MS = { timeoutMs: 240_000, everyMs: 250 };
const PODS = '/api/v1/namespaces/default/pods';
type Agent = 'reference' | 'actorlet';
interface Round {
  readyMs: number;
  goneMs: number;
  calls: Record<string, number>;
}

const c = await startCluster({ start: false });
const reference = await createReferenceKubelet(c);
const names = Array.from({ length: podCount }, (_, n) => `csi-${n}`);

async function provide(): Promise<void> {
  const common = { storageClassName: '', accessModes: ['ReadWriteOnce'] };
  await c.apply(
    { apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver', metadata: { name: NAME }, spec: { attachRequired: false } },
    ...names.flatMap((name) => [
      {
        ...{ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: `pv-${name}` } },
        spec: {
          ...{ ...common, capacity: { storage: '1Mi' }, persistentVolumeReclaimPolicy: 'Retain' },
          ...{ claimRef: { namespace: 'default', name }, csi: { driver: NAME, volumeHandle: name } },
        },
      },
      {
        ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name, namespace: 'default' } },
        spec: { ...common, volumeName: `pv-${name}`, resources: { requests: { storage: '1Mi' } } },
      },
    ]),
  );
  const bound = async () => (await c.kubectl('get', 'pvc', '-o', 'jsonpath={.items[*].status.phase}')).split(' ');
  await c.daemon.wait('all claims are bound', async () => (await bound()).filter((p) => p === 'Bound').length === podCount, LONG);
}
async function listed(): Promise<Pod[]> {
  return ((await c.plane.request('GET', PODS)).body as { items: Pod[] }).items;
}

async function burst(): Promise<Round> {
  const socket = join(c.daemon.rootDir, 'plugins_registry', `${NAME}-reg.sock`);
  const driver = await startDriver({ name: NAME, socket, capabilities: ['STAGE_UNSTAGE_VOLUME'], volumesMax: 2 * podCount });
  try {
    await c.daemon.wait('the driver is registered', () => driver.told.includes(''), LONG);
    const before = driver.calls.length;
    const began = performance.now();
    const spec = (name: string) => ({
      containers: [sh('main', STAY, { volumeMounts: [{ name: 'disk', mountPath: '/data' }] })],
      volumes: [{ name: 'disk', persistentVolumeClaim: { claimName: name } }],
    });
    await Promise.all(names.map((name) => c.create(name, spec(name))));
    await c.daemon.wait('all are Ready', async () => (await listed()).filter(isReady).length === podCount, BURST_MS);
    const readyMs = Math.round(performance.now() - began);
    const deleted = performance.now();
    await c.plane.request('DELETE', PODS);
    await c.daemon.wait('all are gone', async () => (await listed()).length === 0, BURST_MS);
    const goneMs = Math.round(performance.now() - deleted);
    await c.daemon.wait('nothing is staged', () => driver.staged.size === 0, LONG);
    const calls: Record<string, number> = {};
    for (const { method } of driver.calls.slice(before)) calls[method] = (calls[method] ?? 0) + 1;
    return { readyMs, goneMs, calls };
  } finally {
    await driver.stop();
  }
}

async function round(agent: Agent): Promise<Round> {
  say(`csi: ${podCount} pods, ${agent}`);
  await (agent === 'reference' ? reference : c.daemon).start();
  try {
    await c.daemon.wait('the account', () => c.plane.hasAccount(), LONG);
    await c.daemon.wait('the node is Ready', async () => / Ready /.test(await c.kubectl('get', 'node', NODE_NAME)), LONG);
    return await burst();
  } finally {
    await (agent === 'reference' ? reference : c.daemon).end('SIGTERM');
  }
}

const total = (rs: readonly Round[]) => rs.map(({ calls }) => Object.values(calls).reduce((a, b) => a + b, 0));
const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;
const ratio = (of: (rs: readonly Round[]) => readonly number[], told: Record<Agent, Round[]>) =>
  Math.round((mean(of(told.actorlet)) / mean(of(told.reference))) * 1000) / 1000;
try {
  await provide();
  const told: Record<Agent, Round[]> = { reference: [], actorlet: [] };
  for (let n = 0; n < rounds; n++) for (const agent of ['reference', 'actorlet'] as const) told[agent].push(await round(agent));
  await report('csi', {
    ...{ pods: podCount, rounds, told },
    ratios: {
      calls: ratio(total, told),
      ready: ratio((rs) => rs.map((r) => r.readyMs), told),
      gone: ratio((rs) => rs.map((r) => r.goneMs), told),
    },
  });
} finally {
  await reference.end('SIGKILL');
  await c.stop();
  await reference.dispose();
}
