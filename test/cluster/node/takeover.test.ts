/**
 * A node taken over from the reference kubelet, and by it again: the same node, the same folders, the same
 * runtime, pods of every kind; no container is started anew, nobody's Ready flips, nothing is forgotten.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { minorVersion } from '../../e2e/lab/cluster/controlPlane.ts';
import { REFERENCE_LOGS, type ReferenceKubelet } from '../../e2e/lab/cluster/referenceKubelet.ts';
import { manifest, sh, steady } from '../../e2e/manifests.ts';
import { type Cluster, DEFAULT_NAMESPACE, isReady, LONG, lifeOf, PROBE_TIMEOUT_S, STAY, startKubectl } from '../cluster.ts';
import { besideReference } from '../hooks.ts';
import { Witness } from '../witness.ts';

let cluster: Cluster;
let reference: ReferenceKubelet;
let witness: Witness;

const whyNot = besideReference(async (made) => {
  ({ cluster, reference } = made);
  witness = new Witness(cluster.lab).start();
});
afterAll(() => witness?.stop());

const upProbe = { exec: { command: ['test', '-e', '/tmp/up'] }, periodSeconds: 1, timeoutSeconds: PROBE_TIMEOUT_S, failureThreshold: 3 };
const probed = (name: string) =>
  sh(name, `touch /tmp/up; ${STAY}`, { readinessProbe: upProbe, livenessProbe: { ...upProbe, initialDelaySeconds: 5 } });
/** Ends once, after which it stays. */
const fallsOnce = () =>
  sh('main', `[ -e /scratch/x ] || { touch /scratch/x; exit 4; }; ${STAY}`, { volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }] });
const LIVING = ['plain', 'probed', 'volumes', 'several', 'fell', 'host', `static-${NODE_NAME}`];

async function make(): Promise<void> {
  await cluster.post('configmaps', { metadata: { name: 'settings' }, data: { value: 'one' } });
  await cluster.post('secrets', { metadata: { name: 'password' }, stringData: { word: 'open sesame' } });
  await cluster.create('plain', { containers: [steady()] });
  await cluster.create('probed', { containers: [probed('main')] });
  await cluster.create('volumes', {
    containers: [
      sh('main', `echo kept > /scratch/file; ${STAY}`, {
        env: [
          { name: 'WORD', valueFrom: { secretKeyRef: { name: 'password', key: 'word' } } },
          { name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
        ],
        resources: { requests: { cpu: '20m' }, limits: { memory: '64Mi' } },
        volumeMounts: ['settings', 'password', 'scratch', 'memory', 'about'].map((name) => ({ name, mountPath: `/${name}` })),
      }),
    ],
    volumes: [
      { name: 'settings', configMap: { name: 'settings' } },
      { name: 'password', secret: { secretName: 'password' } },
      { name: 'scratch', emptyDir: {} },
      { name: 'memory', emptyDir: { medium: 'Memory' } },
      { name: 'about', projected: { sources: [{ downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] } }] } },
    ],
  });
  await cluster.create('several', { initContainers: [sh('first', 'echo first')], containers: [probed('one'), steady('two')] });
  await cluster.create('fell', { containers: [fallsOnce()], volumes: [{ name: 'scratch', emptyDir: {} }] });
  await cluster.create('host', { hostNetwork: true, containers: [steady()] });
  await cluster.create('done', { restartPolicy: 'Never', containers: [sh('main', 'echo done')] });
  cluster.daemon.put('static.json', manifest('static', [probed('main')]));
}
/** `except`: pods of which nothing is said. */
async function lives(...except: string[]): Promise<object> {
  const pods = await Promise.all([...LIVING, 'done'].filter((name) => !except.includes(name)).map((name) => cluster.pod(name)));
  return Object.fromEntries(
    pods.map((p) => {
      if (p === null) return [p, null];
      // The kubelet of 1.36 no longer tells the address of a pod that ended before it was started.
      const own = p.spec.hostNetwork === true || p.status.phase === 'Succeeded' ? { ip: '' } : {};
      return [p.metadata.name, { ...lifeOf(p), phase: p.status.phase, ...own }];
    }),
  );
}
/** By the version that the node reports: who keeps it now. */
const agentVersion = async () =>
  (await cluster.kubectl('get', 'node', NODE_NAME, '-o', 'jsonpath={.status.nodeInfo.kubeletVersion}')).trim();
const renewed = async () => await cluster.kubectl('-n', 'kube-node-lease', 'get', 'lease', NODE_NAME, '-o', 'jsonpath={.spec.renewTime}');
/** All pods as before, and again after the new agent has had time to change its mind: two renewals of the lease. */
async function expectUntouched(before: object): Promise<void> {
  await cluster.daemon.wait('the node is Ready', async () => / Ready /.test(await cluster.kubectl('get', 'node', NODE_NAME)), LONG);
  for (const _ of [1, 2]) {
    const last = await renewed();
    await cluster.daemon.wait('the lease is renewed', async () => (await renewed()) !== last, LONG);
    expect(await lives()).toEqual(before);
  }
}
/** In place: a container that the kubelet made, too. */
async function grows(name: string): Promise<void> {
  const done = await cluster.plane.request('PATCH', `${DEFAULT_NAMESPACE}/pods/${name}/resize`, {
    body: { spec: { containers: [{ name: 'main', resources: { requests: { cpu: '30m' }, limits: { memory: '80Mi' } } }] } },
    contentType: 'application/strategic-merge-patch+json',
  });
  expect(done.status).toBe(200);
  const grown = await cluster.podWhere(name, 'has more', (p) => {
    const [main] = p.status.containerStatuses ?? [];
    return main?.resources?.limits?.memory === '80Mi' && main.allocatedResources?.cpu === '30m';
  });
  expect(grown.status.containerStatuses?.[0]?.restartCount).toBe(0);
  const limit = ['memory/memory.limit_in_bytes', 'memory.max'].map((file) => `/sys/fs/cgroup/${file}`).join(' ');
  expect((await cluster.kubectl('exec', name, '--', 'sh', '-c', `cat ${limit} 2>/dev/null || true`)).trim()).toBe(String(80 * 2 ** 20));
}
const volume = (pod: Pod, plugin: string, name: string, file: string) =>
  readFileSync(join(cluster.daemon.rootDir, 'pods', pod.metadata.uid, 'volumes', plugin, name, file), 'utf8');

describe.skipIf(whyNot !== undefined)('a node of the reference kubelet', () => {
  let before: object;
  let referenceVersion = '';

  it('runs pods of every kind', async () => {
    await reference.start();
    await cluster.daemon.wait('the account', () => cluster.plane.hasAccount(), LONG);
    await make();
    for (const name of LIVING) await cluster.ready(name);
    await cluster.podWhere('fell', 'fell once', (p) => isReady(p) && p.status.containerStatuses?.[0]?.restartCount === 1);
    await cluster.podWhere('done', 'is done', (p) => p.status.phase === 'Succeeded');
    referenceVersion = await agentVersion();
    before = await lives();
  });

  it('is taken over without a container started anew or a pod that flips', async () => {
    await reference.end('SIGKILL');
    const events = await cluster.kubectl('get', 'events', '-o', 'name');
    await cluster.daemon.start();
    await cluster.daemon.wait('another agent', async () => (await agentVersion()) !== referenceVersion, LONG);
    await expectUntouched(before);
    const told = JSON.parse(await cluster.kubectl('get', 'events', '-o', 'json')) as {
      items: { metadata: { name: string }; reason: string; message: string }[];
    };
    const since = told.items.filter((e) => !events.includes(`event/${e.metadata.name}`));
    expect(
      since.filter((e) => /Kill|Created|Started|Pulled|BackOff|Unhealthy|Failed/.test(e.reason)).map((e) => `${e.reason} ${e.message}`),
    ).toEqual([]);
    expect([...witness.duplicates]).toEqual([]);
  });

  it('is kept as if it had always been so: logs, exec, volumes that follow, restarts that are counted on', async () => {
    const pod = await cluster.ready('volumes');
    expect(await cluster.kubectl('logs', 'done')).toBe('done\n');
    expect(await cluster.kubectl('exec', 'volumes', '--', 'cat', '/scratch/file', '/settings/value', '/password/word', '/about/name')).toBe(
      'kept\noneopen sesamevolumes',
    );
    await cluster.merge('configmaps/settings', { data: { value: 'two' } });
    await cluster.daemon.wait('the volume follows', () => volume(pod, 'kubernetes.io~configmap', 'settings', 'value') === 'two', {
      ...LONG,
      timeoutMs: 180_000,
    });
    if (minorVersion('kubelet') >= 35) await grows('volumes');
    // The command may end with the container that it ends.
    await startKubectl(cluster.plane, ['exec', 'fell', '--', 'sh', '-c', 'kill -TERM 1']).result;
    await cluster.podWhere('fell', 'fell again', (p) => isReady(p) && p.status.containerStatuses?.[0]?.restartCount === 2);
    expect(await cluster.kubectl('get', 'pod', 'fell', '-o', 'jsonpath={.status.containerStatuses[0].lastState.terminated.exitCode}')).toBe(
      '0',
    );
  }, 300_000);

  it('goes back to the kubelet without a container started anew', async () => {
    // Of a container that actorlet started, a kubelet of before 1.31 does not know the hash, which is over more there.
    const old = minorVersion('kubelet') < 31;
    const untimed = async () =>
      Object.entries(await lives(...(old ? ['fell'] : []))).map(([name, life]) => [name, { ...(life as object), readySince: '' }]);
    const given = await untimed();
    await cluster.daemon.end('SIGTERM');
    await reference.start();
    await cluster.daemon.wait('the old agent', async () => (await agentVersion()) === referenceVersion, LONG);
    await cluster.daemon.wait('the node is Ready', async () => / Ready /.test(await cluster.kubectl('get', 'node', NODE_NAME)), LONG);
    // The reference takes pods with probes for not Ready when it starts; that they are Ready again shows that it has looked.
    for (const name of LIVING) await cluster.ready(name);
    if (old)
      await cluster.podWhere('fell', 'was started once more', (p) => isReady(p) && p.status.containerStatuses?.[0]?.restartCount === 3);
    const last = await renewed();
    await cluster.daemon.wait('the lease is renewed', async () => (await renewed()) !== last, LONG);
    expect(await untimed()).toEqual(given);
  });

  it('is taken over again, and what it made is removed in full when its pods are deleted', async () => {
    await reference.end('SIGTERM');
    before = await lives();
    await cluster.daemon.start();
    await cluster.daemon.wait('another agent', async () => (await agentVersion()) !== referenceVersion, LONG);
    await expectUntouched(before);
    cluster.daemon.remove('static.json');
    await cluster.kubectl('delete', 'pod', 'plain', 'probed', 'volumes', 'several', 'fell', 'host', 'done');
    await cluster.gone(`static-${NODE_NAME}`);
    await witness.stop();
    await witness.nothingLeft(cluster.daemon, LONG.timeoutMs, { rootDir: cluster.daemon.rootDir, ...REFERENCE_LOGS });
    expect([...witness.duplicates]).toEqual([]);
  });
});
