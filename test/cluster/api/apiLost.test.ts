/**
 * A cluster whose API server or etcd is away for a while, in every way it can be: not there when the daemon starts,
 * killed, frozen with its connections open, without its store, with a store of some time ago. Pods go on; what happened
 * meanwhile is told afterwards; nothing flips.
 */
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { until } from '../../e2e/lab/ports.ts';
import { manifest, sh } from '../../e2e/manifests.ts';
import { containers } from '../../e2e/runtime.ts';
import { type Cluster, isReady, LONG, lifeOf, PROBE_TIMEOUT_S, STAY, startCluster } from '../cluster.ts';
import { Witness } from '../witness.ts';

let cluster: Cluster;
let witness: Witness;
/** Long enough that leases, watches and status writes fall into it. */
const AWAY_MS = 25_000;
/** Longer than anything that a node, a controller or a client waits for by default. */
const LONG_AWAY_MS = 130_000;

beforeAll(async () => {
  // A node that cannot renew its lease is declared lost after 40 s by default, and its pods not Ready: the cluster's
  // doing, not the node's.
  cluster = await startCluster({
    plane: { controllerManager: true, scheduler: true, flags: { 'kube-controller-manager': ['--node-monitor-grace-period=10m'] } },
  });
  witness = new Witness(cluster.lab).start();
});
afterAll(async () => {
  await witness?.stop();
  await cluster?.stop();
});

const probed = (name: string) =>
  sh(name, `touch /tmp/up; ${STAY}`, {
    readinessProbe: { exec: { command: ['test', '-e', '/tmp/up'] }, periodSeconds: 1, timeoutSeconds: PROBE_TIMEOUT_S },
  });
/** Ends with 3 when somebody touches /tmp/end. */
const mortal = () => sh('main', 'until [ -e /tmp/end ]; do sleep 0.2; done; exit 3');

async function lives(...names: string[]): Promise<object> {
  const pods = await Promise.all(names.map((name) => cluster.pod(name)));
  return pods.map((pod) => (pod === null ? null : lifeOf(pod)));
}
async function inContainer(pod: Pod, ...command: string[]): Promise<void> {
  const [held] = (await containers(cluster.lab)).filter((c) => c.uid === pod.metadata.uid && c.running);
  const answer = await cluster.lab.cri.call(
    'ExecSync',
    { containerId: held?.id ?? '', cmd: command, timeout: '10' },
    { timeoutMs: 20_000, signal: new AbortController().signal },
  );
  expect(answer.exitCode).toBe(0);
}
/** What an unhappy API server makes of a node: nothing. Everything below is done while it is away. */
async function liveWithout(name: string, away: () => Promise<void>, back: () => Promise<void>, awayMs = AWAY_MS): Promise<void> {
  await cluster.create(`${name}-stays`, { containers: [probed('main')] });
  await cluster.create(`${name}-falls`, { containers: [mortal()] });
  await cluster.ready(`${name}-stays`);
  const falls = await cluster.ready(`${name}-falls`);
  const before = await lives(`${name}-stays`);
  const written = (await cluster.pod(`${name}-stays`))?.metadata.resourceVersion;
  await away();
  const awayAt = performance.now();
  // Static pods need no API server, and a container that ends is started again without one.
  cluster.daemon.put(`${name}-static.json`, manifest(`${name}-static`, [probed('main')]));
  await inContainer(falls, 'touch', '/tmp/end');
  await cluster.daemon.wait(
    'the container is started again',
    async () => (await containers(cluster.lab)).some((c) => c.uid === falls.metadata.uid && c.running && c.restartCount === 1),
    LONG,
  );
  await cluster.daemon.wait(
    'the static pod runs',
    async () => (await cluster.daemon.pod(`${name}-static`))?.status.phase === 'Running',
    LONG,
  );
  await until('it was away long enough', () => performance.now() - awayAt > awayMs, { timeoutMs: awayMs + 60_000, everyMs: 200 });
  expect(await cluster.daemon.healthz()).toContain('ok');
  const backAt = Date.now();
  await back();
  const lease = ['-n', 'kube-node-lease', 'get', 'lease', NODE_NAME, '-o', 'jsonpath={.spec.renewTime}'];
  await cluster.daemon.wait('the lease is renewed', async () => Date.parse(await cluster.kubectl(...lease)) > backAt, LONG);
  await cluster.podWhere(`${name}-falls`, 'has its restart told', (p) => p.status.containerStatuses?.[0]?.restartCount === 1);
  expect((await cluster.ready(`${name}-falls`)).status.containerStatuses?.[0]?.lastState.terminated).toMatchObject({
    exitCode: 3,
    reason: 'Error',
  });
  await cluster.ready(`${name}-static-${NODE_NAME}`);
  await cluster.daemon.wait('the node is Ready', async () => / Ready /.test(await cluster.kubectl('get', 'node', NODE_NAME)), LONG);
  expect(await lives(`${name}-stays`)).toEqual(before);
  // Of what did not change nothing was written.
  expect((await cluster.pod(`${name}-stays`))?.metadata.resourceVersion).toBe(written);
  // New pods come as before. Placed by hand: the scheduler takes up to a minute to come back.
  await cluster.create(`${name}-after`, { nodeName: NODE_NAME, containers: [probed('main')] });
  await cluster.ready(`${name}-after`);
  cluster.daemon.remove(`${name}-static.json`);
  await cluster.kubectl('delete', 'pod', `${name}-stays`, `${name}-falls`, `${name}-after`);
  await cluster.gone(`${name}-static-${NODE_NAME}`);
}

describe('a node', () => {
  it('whose API server is away when it starts keeps what runs, runs static pods, and follows what was changed meanwhile', async () => {
    const { plane, daemon } = cluster;
    for (const name of ['kept', 'deleted']) await cluster.create(name, { containers: [probed('main')] });
    const [, deleted] = [await cluster.ready('kept'), await cluster.ready('deleted')];
    const before = await lives('kept');
    await daemon.end('SIGKILL');
    await plane.kubectl('delete', 'pod', 'deleted', '--grace-period=0', '--force');
    await plane.kill('kube-apiserver');
    // Its lock is free, its port too; it may not call itself healthy while it knows nothing of its cluster.
    await daemon.start({ ready: false });
    daemon.put('early.json', manifest('early', [probed('main')]));
    await daemon.wait('the static pod runs', async () => (await daemon.pod('early'))?.status.phase === 'Running', LONG);
    // Nobody has said that this one is unwanted: it stays until somebody does.
    expect((await containers(cluster.lab)).filter((c) => c.uid === deleted.metadata.uid).map((c) => c.running)).toEqual([true]);
    expect(daemon.log()).toMatch(/ECONNREFUSED|refused/);
    await plane.start('kube-apiserver');
    await daemon.wait(
      'the deleted pod leaves the machine',
      async () => (await containers(cluster.lab)).every((c) => c.uid !== deleted.metadata.uid),
      LONG,
    );
    await cluster.ready(`early-${NODE_NAME}`);
    await daemon.healthy();
    expect(await lives('kept')).toEqual(before);
    daemon.remove('early.json');
    await plane.kubectl('delete', 'pod', 'kept');
    await cluster.gone(`early-${NODE_NAME}`);
  });

  it.each([
    ['kube-apiserver', 'for minutes', LONG_AWAY_MS],
    ['etcd', 'for a while', AWAY_MS],
  ] as const)(
    'that loses its %s %s goes on',
    async (component, _, awayMs) => {
      await liveWithout(
        `killed-${component}`,
        () => cluster.plane.kill(component),
        () => cluster.plane.start(component),
        awayMs,
      );
    },
    480_000,
  );

  it.each(['kube-apiserver', 'etcd'] as const)('whose %s freezes, with its connections open, goes on', async (component) => {
    await liveWithout(
      `frozen-${component}`,
      async () => cluster.plane.freeze(component, true),
      async () => {
        cluster.plane.freeze(component, false);
        await cluster.plane.ready();
      },
    );
  });

  it('that is killed while all of its cluster is away comes back to the same pods', async () => {
    const { plane, daemon } = cluster;
    await cluster.create('both', { containers: [probed('main')] });
    await cluster.ready('both');
    const before = await lives('both');
    await plane.kill('kube-apiserver');
    await plane.kill('etcd');
    await daemon.end('SIGKILL');
    await daemon.start({ ready: false });
    daemon.put('mean.json', manifest('mean', [probed('main')]));
    await daemon.wait('it works', async () => (await daemon.pod('mean'))?.status.phase === 'Running', LONG);
    daemon.remove('mean.json');
    await plane.start('etcd', 'kube-apiserver');
    await daemon.healthy();
    await cluster.ready('both');
    await daemon.wait('the node is Ready', async () => / Ready /.test(await cluster.kubectl('get', 'node', NODE_NAME)), LONG);
    expect(await lives('both')).toEqual(before);
    await plane.kubectl('delete', 'pod', 'both');
  });

  it('whose etcd is put back to a backup keeps what ran then, and ends what came later', async () => {
    const { plane } = cluster;
    const [data, copy] = [join(plane.dir, 'etcd'), join(plane.dir, 'etcd-copy')];
    const programs = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;
    const whileDown = async (act: () => void) => {
      for (const name of [...programs].reverse()) await plane.kill(name);
      act();
      await plane.start(...programs);
    };
    const renewed = async (what: string) => {
      const sinceMs = Date.now();
      const lease = ['-n', 'kube-node-lease', 'get', 'lease', NODE_NAME, '-o', 'jsonpath={.spec.renewTime}'];
      await cluster.daemon.wait(what, async () => Date.parse(await cluster.kubectl(...lease)) > sinceMs, LONG);
    };
    for (const name of ['of-then', 'goes']) await cluster.create(name, { containers: [probed('main')] });
    for (const name of ['of-then', 'goes']) await cluster.ready(name);
    const before = await lives('of-then');
    const goes = await lives('goes');
    await renewed('a lease of the backup');
    await whileDown(() => cpSync(data, copy, { recursive: true }));
    await cluster.create('later', { nodeName: NODE_NAME, containers: [probed('main')] });
    const { metadata: later } = await cluster.ready('later');
    await plane.kubectl('delete', 'pod', 'goes');
    // A backup as young as the last lease cannot be told from the present.
    await renewed('a lease after the backup');
    await whileDown(() => {
      rmSync(data, { recursive: true });
      cpSync(copy, data, { recursive: true });
    });
    const isThere = async () => (await containers(cluster.lab)).some((c) => c.uid === later.uid);
    await cluster.daemon.wait('the later pod to leave the machine', async () => !(await isThere()), LONG);
    await cluster.daemon.wait(
      'the pod that had ended to run anew',
      async () => isReady((await cluster.pod('goes')) ?? ({ status: {} } as Pod)),
      LONG,
    );
    await cluster.daemon.wait(
      'its containers to be others',
      async () => JSON.stringify(await lives('goes')) !== JSON.stringify(goes),
      LONG,
    );
    await cluster.daemon.wait('the node is Ready', async () => / Ready /.test(await cluster.kubectl('get', 'node', NODE_NAME)), LONG);
    expect(await lives('of-then')).toEqual(before);
    await cluster.create('after', { nodeName: NODE_NAME, containers: [probed('main')] });
    await cluster.ready('after');
    await plane.kubectl('delete', 'pod', 'of-then', 'goes', 'after');
  }, 480_000);

  it('ran nothing twice meanwhile, and restarted nothing but what ended', () => {
    expect(witness.looks).toBeGreaterThan(100);
    expect([...witness.duplicates]).toEqual([]);
    expect(witness.restarted().filter((r) => !r.includes('-falls/main#1'))).toEqual([]);
  });
});
