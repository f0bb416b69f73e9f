/** A fleet whose etcd is put back to a copy of some time ago. Nodes, pods and the lack of pods become what the copy says. */
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane } from '../../e2e/lab/cluster/controlPlane.ts';
import { until } from '../../e2e/lab/ports.ts';
import { endFleetProcesses, lines, startFleetProcess } from './command.ts';

const LONG = { timeoutMs: 150_000, everyMs: 250 };
const NODES = 4;
const PORT = 21_200;
/** The lease of a node is written every 10 s. A copy that is younger than that cannot be told from the present. */
const LEASE_MS = 15_000;
let plane: ControlPlane;
const kubectl = (...args: string[]): Promise<string> => plane.kubectl(...args);

beforeAll(async () => {
  plane = await startControlPlane({ controllerManager: true, scheduler: true });
  await until('the default account', () => plane.hasAccount(), LONG);
}, 120_000);
afterAll(async () => {
  endFleetProcesses();
  await plane?.stop();
});

/** Names of Ready nodes whose lease was renewed since. */
async function ready(sinceMs: number): Promise<string[]> {
  const nodes = lines(await kubectl('get', 'nodes', '--no-headers')).filter((line) => / Ready /.test(line));
  const columns = 'jsonpath={range .items[*]}{.metadata.name} {.spec.renewTime}{"\\n"}{end}';
  const leases = new Map(
    lines(await kubectl('get', 'leases', '-n', 'kube-node-lease', '-o', columns)).map((line) => line.split(' ') as [string, string]),
  );
  const names = nodes.map((line) => line.split(' ')[0] ?? '');
  return names.filter((name) => Date.parse(leases.get(name) ?? '') > sinceMs).sort();
}
/** Names of Ready pods, each with the start of its container. */
async function pods(): Promise<Map<string, string>> {
  interface Listed {
    metadata: { name: string };
    status: { conditions?: { type: string; status: string }[]; containerStatuses?: { state: { running?: { startedAt: string } } }[] };
  }
  const { items } = JSON.parse(await kubectl('get', 'pods', '-o', 'json')) as { items: Listed[] };
  const isReady = ({ status }: Listed) => status.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;
  return new Map(
    items.filter(isReady).map((p) => [p.metadata.name, p.status.containerStatuses?.[0]?.state.running?.startedAt ?? ''] as const),
  );
}
/** Names of the pods that the node itself knows. */
async function onNode(node: string): Promise<string> {
  const { items } = JSON.parse(await kubectl('get', '--raw', `/api/v1/nodes/${node}/proxy/pods`)) as {
    items: { metadata: { name: string } }[] | null;
  };
  return (items ?? [])
    .map((p) => p.metadata.name)
    .sort()
    .join();
}
const bare = (name: string, node: string) =>
  kubectl('run', name, '--image=web', `--overrides=${JSON.stringify({ spec: { nodeName: node, terminationGracePeriodSeconds: 1 } })}`);
const names = async (): Promise<string> => [...(await pods()).keys()].sort().join();

describe.each([
  ['watches of their own', 'own', []],
  ['shared watches', 'shared', ['--share-watches']],
])('nodes with %s', (_, prefix, flags) => {
  it('go on with what a backup of etcd says', { timeout: 600_000 }, async () => {
    const nodes = Array.from({ length: NODES }, (_unused, i) => `${prefix}-${i}`);
    const fleet = (name: string, count: number, port: number) =>
      startFleetProcess(
        ...[`--nodes=${count}`, `--prefix=${name}`, `--name=${name}`, `--kubeconfig=${plane.adminKubeconfig}`],
        ...['--socket=', `--port=${port}`, '--cleanup', ...flags],
      );
    const mine = fleet(prefix, NODES, PORT);
    await until('all nodes', async () => (await ready(0)).join() === nodes.join(), LONG);
    for (const name of ['stays', 'goes']) await bare(name, `${prefix}-0`);
    await until('both pods', async () => (await names()) === 'goes,stays', LONG);
    await new Promise((resolve) => setTimeout(resolve, LEASE_MS));

    const [data, copy] = [join(plane.dir, 'etcd'), join(plane.dir, `etcd-${prefix}`)];
    for (const name of ['kube-apiserver', 'etcd'] as const) await plane.kill(name);
    cpSync(data, copy, { recursive: true });
    await plane.start('etcd', 'kube-apiserver');
    const before = await pods();
    const later = fleet(`${prefix}-later`, 1, PORT + 1);
    await bare('later', `${prefix}-1`);
    await kubectl('delete', 'pod', 'goes', '--wait');
    await until('a node more', async () => (await ready(0)).includes(`${prefix}-later-0`), LONG);
    await bare('on-it', `${prefix}-later-0`);
    await until('the change', async () => (await names()) === 'later,on-it,stays', LONG);
    await new Promise((resolve) => setTimeout(resolve, LEASE_MS));

    // Controllers and scheduler keep what they knew, too: they are restarted, as Kubernetes advises after a restore.
    const programs = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;
    for (const name of [...programs].reverse()) await plane.kill(name);
    rmSync(data, { recursive: true });
    cpSync(copy, data, { recursive: true });
    const restoredMs = Date.now();
    await plane.start(...programs);

    await until('all nodes, with that which the backup lacks', async () => (await ready(restoredMs)).length === NODES + 1, LONG);
    await until(
      'the pod that had ended runs anew',
      async () => {
        const now = await pods();
        return [...now.keys()].sort().join() === 'goes,stays' && now.get('goes') !== before.get('goes');
      },
      LONG,
    );
    expect((await pods()).get('stays')).toBe(before.get('stays'));
    await until(
      'the nodes have let go of the others',
      async () => (await onNode(`${prefix}-1`)) === '' && (await onNode(`${prefix}-later-0`)) === '',
      LONG,
    );
    await bare('new', `${prefix}-1`);
    await bare('on-it', `${prefix}-later-0`);
    await until('pods of today', async () => (await names()) === 'goes,new,on-it,stays', LONG);
    await kubectl('delete', 'pod', 'goes', 'new', 'on-it', 'stays', '--wait', '--timeout=60s');
    for (const one of [mine, later]) one.child.kill('SIGINT');
    expect([await mine.ended, await later.ended]).toEqual([0, 0]);
    expect(await kubectl('get', 'nodes', '--no-headers')).toBe('');
  });
});
