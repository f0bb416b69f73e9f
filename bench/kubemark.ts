/**
 * Memory of a node of a fleet beside that of a hollow kubelet of kubemark, one process for each, on the same control plane in the same
 * run; and what a person is answered about a pod on each. Resident memory has the program's pages in each process, proportional shares
 * them. Without a program `kubemark` in KUBEBUILDER_ASSETS it is skipped. Options: --kubemark=10 --nodes=200 --settle-seconds=60 --out=FILE
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, openSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { type ControlPlane, startControlPlane } from '../test/e2e/lab/cluster/controlPlane.ts';
import { freePort } from '../test/freePort.ts';
import { tried } from './lib/onPlane.ts';
import { usageOf } from './lib/procs.ts';
import { numberOption, projectRoot, report, say, sleep, until } from './lib/report.ts';

const kubemark = join(process.env.KUBEBUILDER_ASSETS ?? '', 'kubemark');
const hollow = numberOption('kubemark', 10);
const nodes = numberOption('nodes', 200);
const settleMs = numberOption('settle-seconds', 60) * 1000;
/** Kubelets make these wherever they run. */
const MADE = ['/var/log/pods', '/var/log/containers', '/var/lib/kubelet'].filter((path) => !existsSync(path));
const LONG = { timeoutMs: 180_000, everyMs: 500 };
const FLEET_PORT = 21_300;

interface Node {
  status: { conditions?: { type: string; status: string }[] };
}
async function reach(plane: ControlPlane, count: number): Promise<void> {
  await until(
    `${count} nodes that are Ready`,
    async () => {
      const { items } = (await plane.request('GET', '/api/v1/nodes')).body as { items: Node[] };
      return items.filter((n) => n.status.conditions?.some((c) => c.type === 'Ready' && c.status === 'True')).length >= count || undefined;
    },
    LONG,
  );
}

/** MiB that these processes have, pages of programs shared among them counted once. */
function proportionalMiB(children: readonly ChildProcess[]): number {
  const ofOne = ({ pid }: ChildProcess): number =>
    Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0) / 1024;
  return children.reduce((sum, child) => sum + ofOne(child), 0);
}

async function ended(children: readonly ChildProcess[]): Promise<void> {
  await Promise.all(
    children.map(async (child) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const closed = once(child, 'close');
      child.kill('SIGKILL');
      await closed;
    }),
  );
}

/** What is answered about a pod on that node. */
async function answers(plane: ControlPlane, node: string): Promise<Record<string, string>> {
  const pod = `on-${node}`;
  const metadata = { annotations: { 'actorlet.dev/exec': '{"*": "hollow\\n"}', 'actorlet.dev/hollow': 'run=3s,exit=1' } };
  const overrides = JSON.stringify({ metadata, spec: { nodeName: node, terminationGracePeriodSeconds: 1 } });
  const ready = await tried(plane.kubectl('run', pod, '--image=web', `--overrides=${overrides}`));
  const running = await tried(plane.kubectl('wait', '--for=condition=Ready', `pod/${pod}`, '--timeout=60s'));
  const path = (of: string) => `/api/v1/nodes/${node}/proxy/${of}`;
  const found = {
    created: ready,
    running,
    logs: await tried(plane.kubectl('logs', pod)),
    exec: await tried(plane.kubectl('exec', pod, '--', 'true')),
    summary: await tried(plane.kubectl('get', '--raw', path('stats/summary'))),
    resourceMetrics: await tried(plane.kubectl('get', '--raw', path('metrics/resource'))),
    restarts: await tried(
      plane.kubectl('wait', '--for=jsonpath={.status.containerStatuses[0].restartCount}=1', `pod/${pod}`, '--timeout=20s'),
    ),
    deleted: await tried(plane.kubectl('delete', 'pod', pod, '--timeout=30s')),
  };
  return found;
}

/** Of processes that are Ready and have settled. */
async function measured(plane: ControlPlane, o: { what: string; children: readonly ChildProcess[]; count: number; node: string }) {
  await reach(plane, o.count);
  await sleep(settleMs);
  const pss = proportionalMiB(o.children);
  const resident = o.children.reduce((sum, { pid }) => sum + usageOf(pid ?? 0).rssBytes / 2 ** 20, 0);
  const round = (n: number): number => Math.round(n * 100) / 100;
  const memory = { nodes: o.count, residentMiBPerNode: round(resident / o.count), proportionalMiBPerNode: round(pss / o.count) };
  say(`${o.what}: ${JSON.stringify(memory)}`);
  return { ...memory, answers: await answers(plane, o.node) };
}

async function ofKubemark(plane: ControlPlane) {
  const children: ChildProcess[] = [];
  const tmp = join(plane.dir, 'tmp');
  mkdirSync(tmp);
  const log = openSync(join(plane.dir, 'kubemark.log'), 'a');
  try {
    for (let i = 0; i < hollow; i++) {
      const args = [
        '--morph=kubelet',
        `--name=hollow-${i}`,
        `--kubeconfig=${plane.nodeKubeconfig(`hollow-${i}`)}`,
        `--cert-dir=${tmp}/${i}`,
      ];
      const ports = [`--kubelet-port=${await freePort()}`, `--kubelet-read-only-port=${await freePort()}`];
      const env = { ...process.env, TMPDIR: tmp };
      children.push(spawn(kubemark, [...args, ...ports, '--use-host-image-service=false'], { cwd: tmp, env, stdio: ['ignore', log, log] }));
    }
    return await measured(plane, { what: 'kubemark', children, count: hollow, node: 'hollow-0' });
  } catch (error) {
    say(readFileSync(join(plane.dir, 'kubemark.log'), 'utf8').slice(-3_000));
    throw error;
  } finally {
    await ended(children);
    for (let i = 0; i < hollow; i++) await plane.request('DELETE', `/api/v1/nodes/hollow-${i}`);
  }
}

async function ofFleet(plane: ControlPlane) {
  const args = ['fleet', `--nodes=${nodes}`, `--kubeconfig=${plane.adminKubeconfig}`, '--socket=', `--port=${FLEET_PORT}`];
  const child = spawn(join(projectRoot, 'bin/actorlet'), args, { stdio: 'ignore' });
  try {
    return await measured(plane, { what: 'fleet', children: [child], count: nodes, node: 'fleet-0' });
  } finally {
    await ended([child]);
  }
}

if (existsSync(kubemark)) {
  const plane = await startControlPlane({ controllerManager: true, scheduler: true });
  try {
    await until('the default account', async () => (await plane.hasAccount()) || undefined, LONG);
    const [theirs, ours] = [await ofKubemark(plane), await ofFleet(plane)];
    const times = (of: 'residentMiBPerNode' | 'proportionalMiBPerNode'): number => Math.round((theirs[of] / ours[of]) * 10) / 10;
    const nodesForTheSameMemory = { resident: times('residentMiBPerNode'), proportional: times('proportionalMiBPerNode') };
    await report('kubemark', { kubemark: theirs, fleet: ours, nodesForTheSameMemory });
  } finally {
    await plane.stop();
    for (const path of MADE) if (existsSync(path)) rmdirSync(path);
  }
} else say('skipped: there is no kubemark beside the control plane in KUBEBUILDER_ASSETS');
