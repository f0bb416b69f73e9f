/**
 * A Deployment on a real cluster as a person works with it: created, rolled, rolled back, scaled and deleted by kubectl,
 * with the daemon killed in the middle; and a machine that holds nothing of it afterwards.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sh } from '../../e2e/manifests.ts';
import { type Cluster, isReady, LONG, lifeOf, PROBE_TIMEOUT_S, STAY } from '../cluster.ts';
import { onCluster } from '../hooks.ts';
import { Witness } from '../witness.ts';

let cluster: Cluster;
let witness: Witness;

onCluster((made) => (cluster = made));
beforeEach(() => {
  witness = new Witness(cluster.lab).start();
});
afterEach(() => witness.stop());

function deployment(name: string, o: { replicas: number; version: string; strategy?: object }): object {
  const probe = { exec: { command: ['test', '-e', '/tmp/up'] }, periodSeconds: 1, timeoutSeconds: PROBE_TIMEOUT_S };
  const container = sh('main', `touch /tmp/up; echo "version $VERSION"; ${STAY}`, {
    env: [{ name: 'VERSION', value: o.version }],
    readinessProbe: probe,
    volumeMounts: [
      { name: 'settings', mountPath: '/settings' },
      { name: 'scratch', mountPath: '/scratch' },
    ],
    resources: { requests: { cpu: '10m', memory: '16Mi' }, limits: { memory: '64Mi' } },
  });
  const volumes = [
    { name: 'settings', configMap: { name: 'settings' } },
    { name: 'scratch', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
  ];
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name },
    spec: {
      replicas: o.replicas,
      selector: { matchLabels: { app: name } },
      ...(o.strategy === undefined ? {} : { strategy: o.strategy }),
      template: { metadata: { labels: { app: name } }, spec: { terminationGracePeriodSeconds: 2, containers: [container], volumes } },
    },
  };
}
const settings = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' }, data: { mode: 'fast' } };
const versions = async (name: string) =>
  (await cluster.pods(`app=${name}`)).map((p) => p.spec.containers[0]?.env?.find((e) => e.name === 'VERSION')?.value);

/** Deletes it as a person does, and waits until neither the cluster nor the machine holds anything of it. */
async function removed(name: string): Promise<void> {
  await cluster.kubectl('delete', 'deployment', name);
  await cluster.daemon.wait('no pod is left', async () => (await cluster.pods(`app=${name}`)).length === 0, LONG);
  await witness.stop();
  await witness.nothingLeft(cluster.daemon, LONG.timeoutMs);
}

describe('a Deployment', () => {
  it('is created, rolled, rolled back, scaled and deleted, and leaves nothing on the machine', async () => {
    expect(await cluster.apply(settings, deployment('web', { replicas: 3, version: 'one' }))).toContain('deployment.apps/web created');
    expect(await cluster.kubectl('rollout', 'status', 'deployment/web', '--timeout=120s')).toContain('successfully rolled out');
    const first = await cluster.pods('app=web');
    expect(first.map(isReady)).toEqual([true, true, true]);
    // Each runs what it was given, with its own address.
    expect(new Set(first.map((p) => p.status.podIP)).size).toBe(3);
    expect(await cluster.kubectl('logs', '-l', 'app=web')).toBe('version one\n'.repeat(3));

    await cluster.kubectl('set', 'env', 'deployment/web', 'VERSION=two');
    expect(await cluster.kubectl('rollout', 'status', 'deployment/web', '--timeout=120s')).toContain('successfully rolled out');
    await cluster.daemon.wait('only the new version', async () => (await versions('web')).join() === 'two,two,two', LONG);
    await cluster.kubectl('rollout', 'undo', 'deployment/web');
    await cluster.kubectl('rollout', 'status', 'deployment/web', '--timeout=120s');
    await cluster.daemon.wait('the version before', async () => (await versions('web')).join() === 'one,one,one', LONG);

    const before = await cluster.pods('app=web');
    await cluster.kubectl('scale', 'deployment/web', '--replicas=5');
    await cluster.kubectl('rollout', 'status', 'deployment/web', '--timeout=120s');
    await cluster.kubectl('scale', 'deployment/web', '--replicas=1');
    await cluster.daemon.wait('one is left', async () => (await cluster.pods('app=web')).length === 1, LONG);
    const [left] = await cluster.pods('app=web');
    const same = before.find((p) => p.metadata.uid === left?.metadata.uid);
    if (left !== undefined && same !== undefined) expect(lifeOf(left)).toEqual(lifeOf(same));

    await removed('web');
    expect(witness.looks).toBeGreaterThan(10);
    expect([...witness.duplicates]).toEqual([]);
    expect(witness.restarted()).toEqual([]);
    // Three of the first version, three of the second, three again, two more: none was made in vain.
    expect(new Set([...witness.sandboxes.values()]).size).toBe(11);
    expect(witness.sandboxes.size).toBe(11);
  });

  it.each([
    ['with the first of the new version made', 1],
    ['with half of the new version made', 3],
  ])('loses nothing when the daemon is killed %s', async (_, made) => {
    const name = `killed-${made}`;
    const strategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 2, maxUnavailable: 1 } };
    await cluster.apply(settings, deployment(name, { replicas: 5, version: 'one', strategy }));
    await cluster.kubectl('rollout', 'status', `deployment/${name}`, '--timeout=120s');
    await cluster.kubectl('set', 'env', `deployment/${name}`, 'VERSION=two');
    await cluster.daemon.wait(
      'the moment to kill it',
      async () => (await versions(name)).filter((v) => v === 'two').length >= made && witness.sandboxes.size > 5,
      LONG,
    );
    await cluster.daemon.end('SIGKILL');
    await witness.look();
    const ran = [...witness.containers.values()].filter((c) => c.running && c.pod.startsWith(name)).map((c) => c.id);
    expect(ran.length).toBeGreaterThan(0);
    await cluster.daemon.start();
    expect(await cluster.kubectl('rollout', 'status', `deployment/${name}`, '--timeout=120s')).toContain('successfully rolled out');
    await cluster.daemon.wait(
      'five of the new version, Ready, and no other',
      async () => {
        const all = await cluster.pods(`app=${name}`);
        return all.length === 5 && all.every(isReady) && (await versions(name)).every((v) => v === 'two');
      },
      LONG,
    );
    for (const pod of await cluster.pods(`app=${name}`)) {
      expect(pod.status.containerStatuses?.map((c) => c.restartCount)).toEqual([0]);
      // One that ran at the kill is the one that runs now.
      const id = pod.status.containerStatuses?.[0]?.containerID?.replace('containerd://', '') ?? '';
      const earlier = ran.filter((r) => witness.containers.get(r)?.uid === pod.metadata.uid);
      if (earlier.length > 0) expect(earlier).toEqual([id]);
    }
    await removed(name);
    expect([...witness.duplicates]).toEqual([]);
    expect(witness.restarted()).toEqual([]);
  });

  it('is served by its Service once Ready, and by it only: a readiness gate holds a pod back', async () => {
    const meta = { name: 'gated', labels: { app: 'gated' } };
    const service = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'gated' },
      spec: { selector: { app: 'gated' }, ports: [{ port: 80, targetPort: 8080 }] },
    };
    const probe = { httpGet: { path: '/', port: 8080 }, periodSeconds: 1, timeoutSeconds: PROBE_TIMEOUT_S, failureThreshold: 1 };
    const script = 'mkdir /www; echo welcome > /www/index.html; exec httpd -f -p 8080 -h /www';
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: meta,
      spec: {
        terminationGracePeriodSeconds: 1,
        readinessGates: [{ conditionType: 'example.com/open' }],
        containers: [sh('main', script, { readinessProbe: probe })],
      },
    };
    await cluster.apply(service, pod);
    type Subsets = { subsets?: { addresses?: { ip: string }[]; notReadyAddresses?: { ip: string }[] }[] };
    const endpoints = async () => {
      const got = JSON.parse(await cluster.kubectl('get', 'endpoints', 'gated', '-o', 'json')) as Subsets;
      const all = got.subsets?.[0];
      return { ready: all?.addresses?.map((a) => a.ip) ?? [], notReady: all?.notReadyAddresses?.map((a) => a.ip) ?? [] };
    };
    const setGate = async (status: string) => {
      const body = { status: { conditions: [{ type: 'example.com/open', status }] } };
      const path = '/api/v1/namespaces/default/pods/gated/status';
      const done = await cluster.plane.request('PATCH', path, { body, contentType: 'application/strategic-merge-patch+json' });
      expect(done.status).toBe(200);
    };
    const held = await cluster.podWhere('gated', 'has ready containers', (p) =>
      (p.status.conditions ?? []).some((c) => c.type === 'ContainersReady' && c.status === 'True'),
    );
    expect(held.status.conditions?.find((c) => c.type === 'Ready')).toMatchObject({ status: 'False', reason: 'ReadinessGatesNotReady' });
    const ip = held.status.podIP ?? '';
    await cluster.daemon.wait('it is held back', async () => (await endpoints()).notReady.join() === ip, LONG);
    await setGate('True');
    await cluster.ready('gated');
    await cluster.daemon.wait('it is served', async () => (await endpoints()).ready.join() === ip, LONG);
    // A probe that fails takes it out, one that succeeds puts it in again; the container is not touched.
    await cluster.kubectl('exec', 'gated', '--', 'mv', '/www/index.html', '/www/away');
    await cluster.daemon.wait('it is taken out', async () => (await endpoints()).notReady.join() === ip, LONG);
    await cluster.kubectl('exec', 'gated', '--', 'mv', '/www/away', '/www/index.html');
    await cluster.daemon.wait('it is served again', async () => (await endpoints()).ready.join() === ip, LONG);
    await setGate('False');
    await cluster.daemon.wait('the gate is closed', async () => (await endpoints()).notReady.join() === ip, LONG);
    expect((await cluster.pod('gated'))?.status.containerStatuses?.map((c) => c.restartCount)).toEqual([0]);
    await cluster.kubectl('delete', 'pod,service', 'gated');
    await cluster.gone('gated');
  });
});
