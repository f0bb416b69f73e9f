/**
 * A thousand nodes in one process: each the production tree on its own hollow runtime with one static pod, started,
 * brought to a running container, stopped, and looked for in the heap afterwards. Three rounds: what the third leaves
 * behind beyond the first is the leak. Real clock; garbage is collected on purpose before each reading, which is what
 * "leak" needs and no other benchmark does. Run with --expose-gc (scripts/bench.sh does).
 * Options: --nodes=1000 --rounds=3 --out=FILE
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { HollowRuntime } from '@actorlet/runtimes/src/hollow/index.ts';
import type { Node } from '../src/actors/node.ts';
import { collected, putPods, startHollowNode } from './lib/hollowNode.ts';
import { numberOption, report, say, sleep, until } from './lib/report.ts';

const nodesWanted = numberOption('nodes', 1000);
const rounds = numberOption('rounds', 3);
const STARTED_AT_ONCE = 25;
/** Every node's own folder lies in here. */
const scratch = mkdtempSync(join(tmpdir(), 'actorlet-nodes-'));

function start(index: number): Promise<{ node: Node; runtime: HollowRuntime }> {
  const dir = join(scratch, String(index));
  putPods(dir, ['only']);
  return startHollowNode({ dir, name: `node-${index}`, maxPods: 10 });
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
  const beforeMiB = (await collected()).heapMiB;
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
    const running = await collected();
    const stopping = performance.now();
    await Promise.all(all.map(({ node }) => node.stop()));
    for (const { runtime } of all) runtime.close();
    return {
      allRunningMs,
      runningMiB: running.heapMiB,
      runningRssMiB: running.rssMiB,
      stoppedMs: Math.round(performance.now() - stopping),
    };
  };
  const measured = await inner();
  await sleep(500);
  const afterMiB = (await collected()).heapMiB;
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
await report('nodes', {
  nodes: nodesWanted,
  leakMiBPerRound: rounds > 1 ? Math.round(((last.afterMiB - first.afterMiB) / (rounds - 1)) * 100) / 100 : null,
  heapKiBPerRunningNode: Math.round(((last.runningMiB - last.beforeMiB) * 1024) / nodesWanted),
  nodesAliveAfterStop: last.nodesAlive,
  rounds: all,
});
