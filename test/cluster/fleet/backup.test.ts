/** A fleet whose API server restarts, and whose etcd is put back to a copy of some time ago. */
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane } from '../../e2e/lab/cluster/controlPlane.ts';
import { until } from '../../e2e/lab/ports.ts';
import { endFleetProcesses, lines, startFleetProcess } from './command.ts';

const LONG = { timeoutMs: 150_000, everyMs: 250 };
const NODES = 4;
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

/** Names of running pods. */
async function running(): Promise<string[]> {
  const columns = 'jsonpath={range .items[?(@.status.phase=="Running")]}{.metadata.name}{"\\n"}{end}';
  return lines(await kubectl('get', 'pods', '-o', columns)).sort();
}
const bare = (name: string, node: string) =>
  kubectl('run', name, '--image=web', `--overrides=${JSON.stringify({ spec: { nodeName: node, terminationGracePeriodSeconds: 1 } })}`);

it.each([
  ['own', []],
  ['shared', ['--share-watches']],
])('nodes with %s watches follow what a backup says', { timeout: 600_000 }, async (prefix, flags) => {
  const mine = startFleetProcess(
    ...[`--nodes=${NODES}`, `--prefix=${prefix}`, `--name=${prefix}`, `--kubeconfig=${plane.adminKubeconfig}`],
    ...['--socket=', '--port=0', '--cleanup', ...flags],
  );
  await until('all nodes', async () => mine.text().includes(`nodes ${NODES}/${NODES} Ready`), LONG);
  for (const name of ['stays', 'goes']) await bare(name, `${prefix}-0`);
  await until('both pods', async () => (await running()).join() === 'goes,stays', LONG);

  const data = join(plane.dir, 'etcd');
  const copy = join(plane.dir, `etcd-${prefix}`);
  const without = async (act: () => void): Promise<void> => {
    for (const name of ['kube-apiserver', 'etcd'] as const) await plane.kill(name);
    act();
    await plane.start('etcd', 'kube-apiserver');
  };
  // A restart of both is the first bad day.
  await without(() => cpSync(data, copy, { recursive: true }));
  await bare('later', `${prefix}-1`);
  await kubectl('delete', 'pod', 'goes', '--wait');
  await until('the change', async () => (await running()).join() === 'later,stays', LONG);

  await without(() => {
    rmSync(data, { recursive: true });
    cpSync(copy, data, { recursive: true });
  });
  await until('what the backup has', async () => (await running()).join() === 'goes,stays', LONG);
  await bare('new', `${prefix}-1`);
  await until('a pod of today', async () => (await running()).join() === 'goes,new,stays', LONG);
  const ready = async () => lines(await kubectl('get', 'nodes', '--no-headers')).filter((line) => / Ready /.test(line)).length;
  await until('all nodes again', async () => (await ready()) === NODES, LONG);
  await kubectl('delete', 'pod', 'goes', 'new', 'stays', '--wait');
  expect(await running()).toEqual([]);
  mine.child.kill('SIGINT');
  expect(await mine.ended).toBe(0);
});
