/**
 * A thousand nodes in one process: each the production tree on its own hollow runtime with one static pod, started,
 * brought to a running container, stopped, and looked for in the heap afterwards. Three rounds: what the third leaves
 * behind beyond the first is the leak. Real clock; garbage is collected on purpose before each reading, which is what
 * "leak" needs and no other benchmark does. Run with --expose-gc (scripts/bench.sh does).
 * Options: --nodes=1000 --rounds=3 --out=FILE
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Net, Ports, Sys } from '../src/actors/kernel/ports.ts';
import { createNode, type Node } from '../src/actors/node.ts';
import { createClock, createEntropy, createRng, createYield } from '../src/boot/dependencies/clock.ts';
import { createHostFs } from '../src/boot/dependencies/fs.ts';
import { defaultNodeConfig } from '../src/machines/config/defaults.ts';
import { createHollowRuntime, type HollowRuntime } from '../src/sandbox/hollow/index.ts';
import { memoryMetrics } from '../test/kernel/fakePorts.ts';
import { numberOption, report, say, sleep, until } from './lib/report.ts';

const nodesWanted = numberOption('nodes', 1000);
const rounds = numberOption('rounds', 3);
const STARTED_AT_ONCE = 25;
/** Every node's own folder lies in here. */
const scratch = mkdtempSync(join(tmpdir(), 'actorlet-nodes-'));
const hostFs = createHostFs();

const quiet: Ports['log'] = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => quiet };
const sys: Sys = { watchDir: () => ({ [Symbol.dispose]: () => {} }), notify: () => false };
const net: Net = {
  httpGet: () => Promise.reject(new Error('no network here')),
  serveHttp: () => Promise.reject(new Error('no network here')),
};
const noProbes = () => Promise.reject(new Error('no network here'));
const prober: Ports['prober'] = { httpGet: noProbes, tcpDial: noProbes, grpcHealth: noProbes };
const manifest = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'only', namespace: 'default' },
  spec: { containers: [{ name: 'main', image: 'hollow/idle:1', imagePullPolicy: 'IfNotPresent', command: ['idle'] }] },
});

async function start(index: number): Promise<{ node: Node; runtime: HollowRuntime }> {
  const clock = createClock();
  const rng = createRng();
  const runtime = createHollowRuntime({ clock, rng });
  const dir = join(scratch, String(index));
  const manifests = join(dir, 'manifests');
  mkdirSync(manifests, { recursive: true });
  writeFileSync(join(manifests, 'only.json'), manifest);
  const config = defaultNodeConfig({
    flags: { rootDir: join(dir, 'root'), hostnameOverride: `node-${index}` },
    config: { staticPodPath: manifests, podLogsDir: join(dir, 'logs/pods'), readOnlyPort: 0, healthzPort: 0, resolvConf: '', maxPods: 10 },
  });
  const ports: Ports = {
    clock,
    rng,
    entropy: createEntropy(),
    yield: createYield(),
    fs: hostFs,
    sys,
    net,
    prober,
    host: {
      hostname: () => `node-${index}`,
      bootId: () => 'boot',
      capacity: () => ({ memoryBytes: 2 ** 34, cpus: 4 }),
      addresses: () => [{ ip: '10.0.0.1', family: 4 }],
      cpuUsageMs: () => 0,
      rssBytes: () => 0,
    },
    cri: runtime,
    log: quiet,
    metrics: memoryMetrics(),
  };
  const node = await createNode({ ...config, flags: { ...config.flags, adminSocket: '' } }, ports);
  await node.start();
  return { node, runtime };
}

async function settledHeapMiB(): Promise<number> {
  const collect = globalThis.gc;
  if (collect === undefined) throw new Error('run with --expose-gc');
  // Twice, apart: finalizers and closed streams free more on the next turn.
  for (let i = 0; i < 3; i++) {
    collect();
    await sleep(50);
  }
  const used = process.memoryUsage();
  return Math.round(((used.heapUsed + used.external) / 2 ** 20) * 10) / 10;
}

interface Round {
  beforeMiB: number;
  allRunningMs: number;
  runningMiB: number;
  runningRssMiB: number;
  stoppedMs: number;
  afterMiB: number;
  /** Nodes still reachable after stop. */
  nodesAlive: number;
  /** Timers and handles of the process after stop. */
  resources: number;
}

async function round(): Promise<Round> {
  const beforeMiB = await settledHeapMiB();
  const refs: WeakRef<Node>[] = [];
  const inner = async (): Promise<Omit<Round, 'beforeMiB' | 'afterMiB' | 'nodesAlive' | 'resources'>> => {
    const from = performance.now();
    const all: { node: Node; runtime: HollowRuntime }[] = [];
    for (let i = 0; i < nodesWanted; i += STARTED_AT_ONCE) {
      const count = Math.min(STARTED_AT_ONCE, nodesWanted - i);
      all.push(...(await Promise.all(Array.from({ length: count }, (_, k) => start(i + k)))));
    }
    for (const { node } of all) refs.push(new WeakRef(node));
    await until(
      'a running container on every node',
      async () => (all.every(({ runtime }) => runtime.dump().containers.some((c) => c.state === 'CONTAINER_RUNNING')) ? true : undefined),
      { timeoutMs: 120_000, everyMs: 100 },
    );
    const allRunningMs = Math.round(performance.now() - from);
    const runningMiB = await settledHeapMiB();
    const runningRssMiB = Math.round(process.memoryUsage().rss / 2 ** 20);
    const stopping = performance.now();
    await Promise.all(all.map(({ node }) => node.stop()));
    for (const { runtime } of all) runtime.close();
    return { allRunningMs, runningMiB, runningRssMiB, stoppedMs: Math.round(performance.now() - stopping) };
  };
  const measured = await inner();
  await sleep(500);
  const afterMiB = await settledHeapMiB();
  const nodesAlive = refs.filter((ref) => ref.deref() !== undefined).length;
  return { beforeMiB, ...measured, afterMiB, nodesAlive, resources: process.getActiveResourcesInfo().length };
}

const all: Round[] = [];
for (let i = 0; i < rounds; i++) {
  say(`round ${i + 1} of ${rounds}: ${nodesWanted} nodes`);
  rmSync(scratch, { recursive: true, force: true });
  all.push(await round());
}
const first = all[0];
const last = all.at(-1);
if (first === undefined || last === undefined) throw new Error('no rounds');
rmSync(scratch, { recursive: true, force: true });
report('nodes', {
  nodes: nodesWanted,
  leakMiBPerRound: rounds > 1 ? Math.round(((last.afterMiB - first.afterMiB) / (rounds - 1)) * 100) / 100 : null,
  heapKiBPerRunningNode: Math.round(((last.runningMiB - last.beforeMiB) * 1024) / nodesWanted),
  nodesAliveAfterStop: last.nodesAlive,
  rounds: all,
});
