/** What a node of a real cluster refuses, probes and keeps: pods that do not fit, containers that are not well, and pods over the death of the daemon. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Container, PodSpec } from '../../../src/machines/kube/podTable.ts';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { sh, steady } from '../../e2e/manifests.ts';
import { sandboxes } from '../../e2e/runtime.ts';
import { type Cluster, isReady, LONG, lifeOf, PROBE_TIMEOUT_S, STAY, startCluster } from '../cluster.ts';

let cluster: Cluster;

beforeAll(async () => {
  // A daemon that takes long to come back, on a busy machine, must not look like a lost node to the cluster.
  const flags = { 'kube-controller-manager': ['--node-monitor-grace-period=10m'] };
  cluster = await startCluster({ plane: { controllerManager: true, scheduler: true, flags } });
});
afterAll(() => cluster?.stop());

/** Placed by hand, past the scheduler, which would not send it here. */
async function refused(name: string, spec: Partial<PodSpec> & { containers: Container[] }): Promise<Pod> {
  await cluster.create(name, { nodeName: NODE_NAME, ...spec });
  return cluster.podWhere(name, 'is refused', (p) => p.status.phase === 'Failed');
}

describe('a pod that does not fit', () => {
  it('fails with the reason, in status, column and event, and nothing is made for it', async () => {
    const port = { containerPort: 80, hostPort: 30_999 };
    await cluster.create('first', { nodeName: NODE_NAME, containers: [steady('main', { ports: [port] })] });
    await cluster.ready('first');
    const cases: readonly (readonly [string, RegExp, Partial<PodSpec> & { containers: Container[] }])[] = [
      [
        'OutOfcpu',
        /^Pod was rejected: Node didn't have enough resource: cpu, requested: 1000000, used: \d+, capacity: \d+$/,
        { containers: [steady('main', { resources: { requests: { cpu: '1000' } } })] },
      ],
      [
        'OutOfmemory',
        /^Pod was rejected: Node didn't have enough resource: memory, requested: \d+, used: \d+, capacity: \d+$/,
        { containers: [steady('main', { resources: { requests: { memory: '100Ti' } } })] },
      ],
      ['NodeAffinity', /^Pod was rejected: Predicate NodeAffinity failed/, { nodeSelector: { disk: 'none-such' }, containers: [steady()] }],
      ['NodePorts', /^Pod was rejected: Predicate NodePorts failed/, { containers: [steady('main', { ports: [port] })] }],
      [
        'UnsupportedField',
        /^Pod was rejected: this node cannot honour the fields? spec\.volumes\[0\]\.quobyte/,
        { containers: [steady()], volumes: [{ name: 'far', quobyte: { registry: 'gluster.invalid:7000', volume: 'x' } }] as never },
      ],
    ];
    for (const [reason, message, spec] of cases) {
      const name = reason.toLowerCase();
      const pod = await refused(name, spec);
      expect(pod.status).toMatchObject({ phase: 'Failed', reason, message: expect.stringMatching(message) });
      expect((await cluster.kubectl('get', 'pod', name, '--no-headers')).trim().split(/\s+/)[2]).toBe(reason);
      await cluster.daemon.wait(
        'its event',
        async () => (await cluster.kubectl('describe', 'pod', name)).includes(`Warning  ${reason} `),
        LONG,
      );
    }
    const made = new Set((await sandboxes(cluster.lab)).map((s) => s.metadata?.name));
    expect([...made]).toEqual(['first']);
    // It is refused for good, also by a daemon that did not refuse it.
    await cluster.daemon.end('SIGKILL');
    await cluster.daemon.start();
    await cluster.kubectl('delete', 'pod', 'first', ...cases.map(([reason]) => reason.toLowerCase()));
    expect([...new Set((await sandboxes(cluster.lab)).map((s) => s.metadata?.name))].filter((name) => name !== 'first')).toEqual([]);
  });
});

describe('a probe', () => {
  const often = { periodSeconds: 1, timeoutSeconds: PROBE_TIMEOUT_S };

  it('of liveness that fails has its container started anew, and no other', async () => {
    const main = sh('main', `touch /tmp/well; ${STAY}`, {
      livenessProbe: { exec: { command: ['test', '-e', '/tmp/well'] }, ...often, failureThreshold: 2 },
    });
    await cluster.create('ill', { containers: [main, steady('side')] });
    const before = await cluster.ready('ill');
    await cluster.kubectl('exec', 'ill', '-c', 'main', '--', 'rm', '/tmp/well');
    const of = (p: Pod, name: string) => p.status.containerStatuses?.find((c) => c.name === name);
    const after = await cluster.podWhere('ill', 'was started anew', (p) => isReady(p) && of(p, 'main')?.restartCount === 1);
    expect(of(after, 'side')).toMatchObject({ restartCount: 0, containerID: of(before, 'side')?.containerID });
    await cluster.daemon.wait(
      'its events',
      async () => {
        const text = await cluster.kubectl('describe', 'pod', 'ill');
        return (
          /Unhealthy .*Liveness probe failed/.test(text) && /Killing .*Container main failed liveness probe, will be restarted/.test(text)
        );
      },
      LONG,
    );
    await cluster.kubectl('delete', 'pod', 'ill');
  });

  it('of startup, by HTTP, holds back those of readiness and liveness until it succeeds', async () => {
    const page = (path: string) => ({ httpGet: { path, port: 8080 }, ...often });
    const main = sh(
      'main',
      'mkdir /www; until [ -e /tmp/go ]; do sleep 0.2; done; echo x > /www/index.html; exec httpd -f -p 8080 -h /www',
      {
        startupProbe: { ...page('/'), failureThreshold: 600 },
        readinessProbe: page('/'),
        livenessProbe: { ...page('/'), failureThreshold: 1 },
      },
    );
    await cluster.create('slow', { containers: [main] });
    const held = await cluster.podWhere('slow', 'runs', (p) => p.status.phase === 'Running');
    expect(held.status.containerStatuses?.[0]).toMatchObject({ started: false, ready: false, restartCount: 0 });
    await cluster.daemon.wait(
      'its event',
      async () => /Unhealthy .*Startup probe failed/.test(await cluster.kubectl('describe', 'pod', 'slow')),
      LONG,
    );
    await cluster.kubectl('exec', 'slow', '--', 'touch', '/tmp/go');
    expect((await cluster.ready('slow')).status.containerStatuses?.[0]).toMatchObject({ started: true, ready: true, restartCount: 0 });
    await cluster.kubectl('delete', 'pod', 'slow');
  });
});

it('keeps pods with probes Ready over the death of the daemon, writes nothing of them, and renews its lease', async () => {
  const names = Array.from({ length: 6 }, (_, i) => `kept-${i}`);
  const probe = { exec: { command: ['test', '-e', '/tmp/up'] }, periodSeconds: 1, timeoutSeconds: PROBE_TIMEOUT_S, failureThreshold: 1 };
  for (const name of names) await cluster.create(name, { containers: [sh('main', `touch /tmp/up; ${STAY}`, { readinessProbe: probe })] });
  for (const name of names) await cluster.ready(name);
  const shown = async () => Promise.all(names.map(async (name) => (await cluster.pod(name)) as Pod));
  const told = (pods: readonly Pod[]) => pods.map((p) => ({ ...lifeOf(p), version: p.metadata.resourceVersion }));
  // What the first statuses left to say has been said when two renewals of the lease saw no more.
  const lease = () => cluster.kubectl('-n', 'kube-node-lease', 'get', 'lease', NODE_NAME, '-o', 'jsonpath={.spec.renewTime}');
  const renewed = async () => {
    const last = await lease();
    await cluster.daemon.wait('the lease is renewed', async () => (await lease()) !== last, LONG);
  };
  let before = told(await shown());
  await cluster.daemon.wait(
    'it is quiet',
    async () => {
      await renewed();
      const now = told(await shown());
      const quiet = JSON.stringify(now) === JSON.stringify(before);
      before = now;
      return quiet;
    },
    LONG,
  );
  for (const _ of [1, 2]) {
    await cluster.daemon.end('SIGKILL');
    await cluster.daemon.start();
    await renewed();
    expect(told(await shown())).toEqual(before);
  }
  await renewed();
  expect(told(await shown())).toEqual(before);
  await cluster.kubectl('delete', 'pod', ...names);
}, 300_000);
