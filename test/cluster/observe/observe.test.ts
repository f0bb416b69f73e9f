/** `actorlet observe` beside the reference kubelet: pods live and die, and the observer has changed nothing of them. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PodStatus } from '../../../src/machines/kube/types.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import {
  createReferenceKubelet,
  REFERENCE_LOGS,
  type ReferenceKubelet,
  whyNoReferenceKubelet,
} from '../../e2e/lab/cluster/referenceKubelet.ts';
import { Observer } from '../../e2e/lab/observer.ts';
import { sh, steady } from '../../e2e/manifests.ts';
import { type Cluster, isReady, LONG, PROBE_TIMEOUT_S, STAY, startCluster } from '../cluster.ts';

const whyNot = whyNoReferenceKubelet();
if (whyNot !== undefined) console.warn(`not run: ${whyNot}`);

let cluster: Cluster;
let reference: ReferenceKubelet;
let observer: Observer;
let folder: string;

/** Every request of the node, of the kubelet and of the observer, with the words by which they call themselves. */
const POLICY = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [{ level: 'Metadata', users: [`system:node:${NODE_NAME}`] }] };

beforeAll(async () => {
  if (whyNot !== undefined) return;
  folder = await mkdtemp(join(tmpdir(), 'actorlet-observed-'));
  const policy = join(folder, 'policy.json');
  writeFileSync(policy, JSON.stringify(POLICY));
  const flags = { 'kube-apiserver': [`--audit-policy-file=${policy}`, `--audit-log-path=${join(folder, 'audit.log')}`] };
  cluster = await startCluster({ start: false, config: { podLogsDir: REFERENCE_LOGS.podLogs }, plane: { flags } });
  reference = await createReferenceKubelet(cluster);
  observer = new Observer(cluster.daemon.dir);
  await reference.start();
  await observer.start([`--kubelet-pid=${reference.pid}`]);
  await cluster.daemon.wait('the account', () => cluster.plane.hasAccount(), LONG);
  await cluster.daemon.wait('the node is Ready', async () => / Ready /.test(await cluster.kubectl('get', 'node', NODE_NAME)), LONG);
});
afterAll(async () => {
  await observer?.end('SIGKILL');
  await reference?.end('SIGKILL');
  await cluster?.stop();
  await reference?.dispose();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

function writesOfObserver(): string[] {
  const lines = readFileSync(join(folder, 'audit.log'), 'utf8').split('\n').slice(0, -1);
  const entries = lines
    .map((line) => JSON.parse(line) as { verb: string; userAgent: string; requestURI: string })
    .filter((e) => e.userAgent.includes('actorlet'));
  expect(entries.length).toBeGreaterThan(0);
  return entries.filter((e) => !['get', 'list', 'watch'].includes(e.verb)).map((e) => `${e.verb} ${e.requestURI}`);
}
async function statusOf(name: string): Promise<PodStatus | undefined> {
  const { pods } = (await observer.admin.json('/pods', { full: '' })) as {
    pods: { pod?: { metadata: { name: string }; status: PodStatus } }[];
  };
  return pods.find((p) => p.pod?.metadata.name === name)?.pod?.status;
}

describe.skipIf(whyNot !== undefined)('beside the reference kubelet', () => {
  it('sees pods start, crash, become unready and go, as the API shows them, and changes nothing', async () => {
    const probe = { exec: { command: ['test', '-e', '/tmp/up'] }, periodSeconds: 1, timeoutSeconds: PROBE_TIMEOUT_S, failureThreshold: 1 };
    await cluster.post('configmaps', { metadata: { name: 'settings' }, data: { value: 'one' } });
    await cluster.create('plain', {
      containers: [steady()],
      volumes: [
        { name: 'settings', configMap: { name: 'settings' } },
        { name: 'memory', emptyDir: { medium: 'Memory' } },
      ],
    });
    await cluster.create('probed', { containers: [sh('main', `touch /tmp/up; sleep 5; rm /tmp/up; ${STAY}`, { readinessProbe: probe })] });
    await cluster.create('crash', { containers: [sh('main', 'exit 1')] });
    await cluster.ready('plain');
    const wait = (what: string, fits: () => Promise<boolean>) => cluster.daemon.wait(what, fits, LONG);
    await wait('plain is Ready for the observer', async () => {
      const status = await statusOf('plain');
      return status !== undefined && isReady({ status } as Parameters<typeof isReady>[0]);
    });
    const crashed = await cluster.podWhere('crash', 'fell twice', (p) => (p.status.containerStatuses?.[0]?.restartCount ?? 0) >= 2);
    await wait('the observer counts as many', async () => {
      const [status] = (await statusOf('crash'))?.containerStatuses ?? [];
      return (status?.restartCount ?? 0) >= (crashed.status.containerStatuses?.[0]?.restartCount ?? 0);
    });
    await cluster.podWhere('probed', 'is not Ready any more', (p) => p.status.phase === 'Running' && !isReady(p));
    await wait('nor for the observer', async () => {
      const status = await statusOf('probed');
      return status?.phase === 'Running' && !isReady({ status } as Parameters<typeof isReady>[0]);
    });
    expect(await observer.ctl('why', 'crash')).toContain('back-off');
    await cluster.kubectl('delete', 'pod', '--wait=false', '--all');
    for (const name of ['plain', 'probed', 'crash']) await cluster.gone(name);
    await wait(
      'the observer has no pod any more',
      async () => (await statusOf('plain')) === undefined && (await statusOf('crash')) === undefined,
    );
    expect(writesOfObserver()).toEqual([]);
    await wait('a lease that was renewed', async () => (await observer.ledger()).counts.some((c) => c.kind === 'Lease' && c.agreed > 0));
    const { counts, disagreements } = await observer.ledger();
    const agreed = (kind: string) => counts.find((c) => c.kind === kind)?.agreed ?? 0;
    for (const kind of ['RunPodSandbox', 'CreateContainer', 'StartContainer', 'PodStatus', 'Lease'])
      expect({ kind, any: agreed(kind) > 0 }).toEqual({ kind, any: true });
    expect(disagreements.filter((d) => d.known === null && d.settledMs === null)).toEqual([]);
    // Its folder is another one.
    expect(existsSync(join(cluster.daemon.rootDir, 'actorlet'))).toBe(false);
    expect(await observer.end()).toBe(0);
    expect(reference.alive()).toBe(true);
  });
});
