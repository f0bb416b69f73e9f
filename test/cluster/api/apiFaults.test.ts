/**
 * A node whose API server answers badly: refusals of every kind, answers that are lost, late, cut or no answers, watches
 * that end in the middle of a line. The first of every two equal requests meets it. Pods live as ever: nothing is lost,
 * nothing runs twice, no status reaches another UID.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { type ApiProxy, type DoorCall, type DoorFault, startApiProxy } from '../../e2e/lab/cluster/apiProxy.ts';
import { sh, steady } from '../../e2e/manifests.ts';
import { type Cluster, isReady, LONG, lifeOf, PROBE_TIMEOUT_S, STAY, startCluster } from '../cluster.ts';
import { Witness } from '../witness.ts';

let cluster: Cluster;
let proxy: ApiProxy;
let witness: Witness;

beforeAll(async () => {
  cluster = await startCluster({
    kubeconfig: async (plane) => {
      proxy = await startApiProxy(plane, NODE_NAME);
      return proxy.kubeconfig;
    },
    // That a lease came late is the API server's doing here.
    plane: { controllerManager: true, scheduler: true, flags: { 'kube-controller-manager': ['--node-monitor-grace-period=10m'] } },
  });
  witness = new Witness(cluster.lab).start();
  await cluster.create('bystander', { containers: [probed()] });
  await cluster.ready('bystander');
});
afterAll(async () => {
  await witness?.stop();
  await cluster?.daemon.end('SIGKILL');
  await proxy?.stop();
  await cluster?.stop();
});

const probed = () =>
  sh('main', `touch /tmp/up; ${STAY}`, {
    readinessProbe: { exec: { command: ['test', '-e', '/tmp/up'] }, periodSeconds: 1, timeoutSeconds: PROBE_TIMEOUT_S },
  });
/** Falls once, after which it stays. */
const fallsOnce = () =>
  sh('main', `[ -e /scratch/x ] || { touch /scratch/x; exit 4; }; ${STAY}`, { volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }] });

/** The fault for the first of every two requests that are alike. */
function everySecond(fault: (call: DoorCall) => DoorFault | undefined): (call: DoorCall) => DoorFault | undefined {
  const seen = new Map<string, number>();
  return (call) => {
    const key = `${call.method} ${call.path} ${call.watch}`;
    const n = seen.get(key) ?? 0;
    seen.set(key, n + 1);
    return n % 2 === 0 ? fault(call) : undefined;
  };
}
const isWrite = (call: DoorCall) => call.method !== 'GET';

const DAYS: readonly (readonly [name: string, fault: (call: DoorCall) => DoorFault | undefined])[] = [
  [
    'conflicts',
    (call) => (call.method === 'PATCH' || call.method === 'PUT' ? { kind: 'refused', code: 409, reason: 'Conflict' } : undefined),
  ],
  ['throttles', () => ({ kind: 'refused', code: 429, reason: 'TooManyRequests', retryAfterSeconds: 1 })],
  ['breaks', () => ({ kind: 'refused', code: 500, reason: 'InternalError' })],
  ['loses-answers', (call) => (isWrite(call) ? { kind: 'lost' } : { kind: 'cut', bytes: 0 })],
  ['dawdles', () => ({ kind: 'slow', ms: 1_500 })],
  ['babbles', () => ({ kind: 'garbage' })],
  ['cuts-streams', (call) => (isWrite(call) ? undefined : { kind: 'cut', bytes: call.watch ? 2_500 : 700 })],
  ['forgets-versions', (call) => (call.watch ? { kind: 'expired' } : undefined)],
];

describe('a node whose API server', () => {
  it('answers well tells it of a start in two patches', async () => {
    proxy.passed.length = 0;
    await cluster.create('quiet', { containers: [steady()] });
    await cluster.ready('quiet');
    const told = proxy.passed.filter((c) => c.method === 'PATCH' && c.path.endsWith('/pods/quiet/status'));
    expect(told.map((c) => (c.sent as Pick<Pod, 'status'>).status.phase)).toEqual([undefined, 'Running']);
    await cluster.kubectl('delete', 'pod', 'quiet', '--wait=false');
    await cluster.gone('quiet');
  });

  it.each(DAYS)('%s carries its pods through', async (name, fault) => {
    const bystander = lifeOf((await cluster.pod('bystander')) as Pod);
    const { size } = new Set([...witness.containers.values()].filter((c) => c.pod === 'bystander').map((c) => c.id));
    proxy.faults.clear();
    proxy.passed.length = 0;
    // Watches that stand would never meet it: they begin anew, as they do every few minutes anyway.
    proxy.cut();
    proxy.fault = everySecond(fault);
    try {
      await cluster.post('configmaps', { metadata: { name }, data: { word: 'kept' } });
      const scratch = { name: 'scratch', emptyDir: {} };
      await cluster.create(`${name}-falls`, { containers: [fallsOnce()], volumes: [scratch] });
      await cluster.create(`${name}-twin`, {
        containers: [sh('main', `cat /map/word; ${STAY}`, { volumeMounts: [{ name: 'map', mountPath: '/map' }] })],
        volumes: [{ name: 'map', configMap: { name } }],
      });
      const first = await cluster.ready(`${name}-twin`);
      const fell = await cluster.podWhere(
        `${name}-falls`,
        'fell once',
        (p) => isReady(p) && p.status.containerStatuses?.[0]?.restartCount === 1,
      );
      expect(fell.status.containerStatuses?.[0]?.lastState.terminated).toMatchObject({ exitCode: 4, reason: 'Error' });
      // The same name for another pod, at once.
      await cluster.kubectl('delete', 'pod', `${name}-twin`, '--grace-period=0', '--force');
      await cluster.create(`${name}-twin`, { containers: [steady()] });
      const second = await cluster.podWhere(`${name}-twin`, 'is another', (p) => isReady(p) && p.metadata.uid !== first.metadata.uid);
      expect(second.status.containerStatuses?.[0]).toMatchObject({ restartCount: 0, lastState: {} });
      await cluster.kubectl('delete', 'pod', `${name}-twin`, `${name}-falls`, '--wait=false');
      await cluster.gone(`${name}-twin`);
      await cluster.gone(`${name}-falls`);
    } finally {
      proxy.fault = () => undefined;
    }
    expect([...proxy.faults.values()].reduce((sum, n) => sum + n, 0)).toBeGreaterThan(3);
    // Each status went to the pod that it was about, and to no other of its name.
    const patches = proxy.passed.filter(
      (c) => c.method === 'PATCH' && c.path.endsWith('/status') && c.path.includes('/pods/') && c.code === 200,
    );
    expect(patches.length).toBeGreaterThan(3);
    for (const p of patches) expect([p.path, uidOf(p.sent)]).toEqual([p.path, uidOf(p.got)]);
    expect(lifeOf((await cluster.pod('bystander')) as Pod)).toEqual(bystander);
    expect(new Set([...witness.containers.values()].filter((c) => c.pod === 'bystander').map((c) => c.id)).size).toBe(size);
    expect([...witness.duplicates]).toEqual([]);
    expect(witness.restarted().filter((r) => r.startsWith(name))).toEqual([`${name}-falls/main#1`]);
    await cluster.daemon.wait('the node is Ready', async () => / Ready /.test(await cluster.kubectl('get', 'node', NODE_NAME)), LONG);
  });

  it('did all of this left nothing on the machine but what still runs', async () => {
    await cluster.kubectl('delete', 'pod', 'bystander');
    await cluster.gone('bystander');
    await witness.stop();
    await witness.nothingLeft(cluster.daemon, LONG.timeoutMs);
    expect(cluster.daemon.log()).not.toMatch(/uncaught|unhandled|TypeError/i);
  });
});

function uidOf(object: unknown): string | undefined {
  const { metadata } = (object ?? {}) as { metadata?: { uid?: string } };
  return metadata?.uid;
}
