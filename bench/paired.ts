/**
 * Several builds or flags of this daemon beside each other at the same time: each on a hollow runtime of its own (a process behind the
 * CRI), all on one API server of Kubernetes. What else a machine does weighs on all of them alike, so the shares hold where times
 * do not. Each turn starts the daemons anew, makes so many pods on each at once, deletes them at once, and does both again.
 * Options: --pods=50 --turns=3 --rest-seconds=0 --agents=NAME=NODE,NAME=NODE --out=FILE. NODE: a program that stands in for Node (ACTORLET_NODE); an
 * empty one is Node itself. The shares are of the first.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildDaemon, createDaemon, type Daemon } from '../test/e2e/daemon.ts';
import { type ControlPlane, startControlPlane } from '../test/e2e/lab/cluster/controlPlane.ts';
import { cleanUpOnce } from './lib/cleanUp.ts';
import { ClusterView, NAMESPACE, type PodHistory } from './lib/cluster.ts';
import { LONG_MS } from './lib/member.ts';
import { residentPeak } from './lib/peak.ts';
import { stat, threadsOf } from './lib/procs.ts';
import { numberOption, option, report, say, sleep, until } from './lib/report.ts';

const podCount = numberOption('pods', 50);
const turns = numberOption('turns', 3);
const agents = (option('agents') ?? 'a=,b=').split(',').map((entry) => {
  const [name = '', node = ''] = entry.split('=');
  return { name, node };
});
/** Of every first burst, once its pods are Ready and settled: what a node at rest takes. */
const restSeconds = numberOption('rest-seconds', 0);
const RESTED_MS = 75_000;
const SETTLE_MS = 6_000;
const AFTER_MS = 3_000;
const BURSTS = ['first', 'second'] as const;

interface Agent {
  name: string;
  node: string;
  daemon: Daemon;
  figures: Map<string, number[]>;
}

const pod = (name: string, node: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: NAMESPACE, labels: { app: 'bench' } },
  spec: {
    nodeName: node,
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'main', image: 'hollow/idle:1', imagePullPolicy: 'IfNotPresent', command: ['idle'] }],
  },
});

const dir = mkdtempSync(join(tmpdir(), 'actorlet-paired-'));
const runtimes: ChildProcess[] = [];
async function hollow(name: string): Promise<string> {
  const socket = join(dir, `${name}.sock`);
  runtimes.push(
    spawn(process.execPath, ['--expose-gc', join(import.meta.dirname, 'lib/hollowServer.ts'), socket], {
      stdio: ['ignore', 'ignore', 'inherit'],
    }),
  );
  await until('the hollow runtime', async () => (existsSync(socket) ? true : undefined), { timeoutMs: 60_000, everyMs: 100 });
  return socket;
}

await buildDaemon();
let plane: ControlPlane | undefined;
let view: ClusterView | undefined;
const all: Agent[] = [];
const cleanUp = cleanUpOnce(async () => {
  view?.close();
  for (const { daemon } of all) await daemon.dispose();
  for (const child of runtimes) child.kill('SIGKILL');
  await plane?.stop();
  rmSync(dir, { recursive: true, force: true });
  return [];
});

/** What each process took of its processors in `act`, by threads, under this name. */
async function measured(phase: string, act: () => Promise<void>): Promise<void> {
  const before = all.map(({ daemon }) => threadsOf(daemon.pid ?? 0));
  await act();
  await sleep(AFTER_MS);
  for (const [i, { daemon, figures }] of all.entries()) {
    let sum = 0;
    const note = (name: string, ms: number): void => {
      figures.set(name, [...(figures.get(name) ?? []), ms]);
    };
    for (const [thread, ms] of threadsOf(daemon.pid ?? 0)) {
      const own = ms - (before[i]?.get(thread) ?? 0);
      sum += own;
      if (thread === 'MainThread' || thread === 'V8Worker') note(`${phase} ${thread}`, own);
    }
    note(`${phase} all`, sum);
  }
}

try {
  plane = await startControlPlane({ controllerManager: true });
  const server = plane;
  for (const { name, node } of agents) {
    const daemon = await createDaemon(
      { endpoint: `unix://${await hollow(name)}` },
      { maxPods: podCount + 10, kubeAPIQPS: 50, kubeAPIBurst: 100 },
      [`--hostname-override=${name}`, '--kubeconfig', plane.nodeKubeconfig(name)],
    );
    all.push({ name, node, daemon, figures: new Map() });
  }
  view = await ClusterView.open(plane);
  const seen = view;
  await until('the service account', async () => ((await server.hasAccount()) ? true : undefined), { timeoutMs: 90_000, everyMs: 200 });
  for (let turn = 0; turn < turns; turn++) {
    say(`turn ${turn + 1} of ${turns}`);
    for (const { daemon, node } of all) {
      if (node === '') delete process.env.ACTORLET_NODE;
      else process.env.ACTORLET_NODE = node;
      await daemon.start();
    }
    await sleep(SETTLE_MS);
    for (const burst of BURSTS) {
      const peaks = all.map(({ daemon }) => residentPeak(daemon.pid ?? 0));
      let made: PodHistory[] = [];
      await measured(`${burst} start`, async () => {
        made = await Promise.all(
          Array.from({ length: podCount }, (_, i) =>
            all.map(({ name }) => seen.create(pod(`${burst[0]}${turn}-${i}-${name}`, name))),
          ).flat(),
        );
        await seen.ready(made, LONG_MS);
      });
      if (restSeconds > 0 && burst === 'first') {
        await sleep(RESTED_MS);
        await measured('rest', () => sleep(restSeconds * 1000));
        for (const { daemon, figures } of all)
          figures.set('rest residentMiB', [...(figures.get('rest residentMiB') ?? []), (stat(daemon.pid ?? 0)?.rssBytes ?? 0) / 2 ** 20]);
      }
      await measured(`${burst} end`, async () => {
        await Promise.all(made.map((p) => seen.remove(p, 1)));
        await seen.gone(made, LONG_MS);
      });
      for (const [i, { figures }] of all.entries())
        figures.set(`${burst} peakMiB`, [...(figures.get(`${burst} peakMiB`) ?? []), peaks[i]?.() ?? 0]);
    }
    for (const { daemon } of all) await daemon.end('SIGTERM');
  }
  const [base] = all;
  const total = (o: Agent | undefined, name: string): number => (o?.figures.get(name) ?? []).reduce((sum, n) => sum + n, 0);
  const names = [...(base?.figures.keys() ?? [])];
  await report('paired', {
    pods: podCount,
    agents: Object.fromEntries(
      all.map((a) => [
        a.name,
        Object.fromEntries(
          names.map((n) => [
            n,
            {
              mean: Math.round(total(a, n) / turns),
              share: Math.round((1000 * total(a, n)) / total(base, n)) / 1000,
              samples: a.figures.get(n)?.map(Math.round),
            },
          ]),
        ),
      ]),
    ),
  });
} catch (error) {
  for (const { daemon } of all) say(daemon.log().slice(-2000));
  throw error;
} finally {
  await cleanUp();
}
