/**
 * Several builds or flags of this daemon beside each other at the same time: each on a hollow runtime of its own (a process behind the
 * CRI), all on one API server of Kubernetes. What else a machine does weighs on all of them alike, so the shares hold where times
 * do not. Each turn starts the daemons anew, makes so many pods on each at once, deletes them at once, and does both again.
 * Options: --pods=50 --turns=3 --rest-seconds=0 --agents=NAME=NODE,NAME=NODE --out=FILE. NODE: a program that stands in for Node (ACTORLET_NODE); an
 * empty one is Node itself. The shares are of the first.
 */
import { buildDaemon } from '../test/e2e/daemon.ts';
import { type Agent, startBeside } from './lib/beside.ts';
import type { PodHistory } from './lib/cluster.ts';
import { residentPeak } from './lib/peak.ts';
import { stat, threadsOf } from './lib/procs.ts';
import { numberOption, option, report, say, sleep } from './lib/report.ts';

const podCount = numberOption('pods', 50);
const turns = numberOption('turns', 3);
const agents = (option('agents') ?? 'a=,b=').split(',').map((entry) => {
  const [name = '', node = ''] = entry.split('=');
  return { name, node };
});
/** Of every first burst, once its pods are Ready and settled: what a node at rest takes. */
const restSeconds = Number(option('rest-seconds') ?? 0);
const RESTED_MS = 75_000;
const SETTLE_MS = 6_000;
const AFTER_MS = 3_000;
const BURSTS = ['first', 'second'] as const;

type Figures = Map<string, number[]>;

await buildDaemon();
const beside = await startBeside(agents, { podCount });
const { all } = beside;
const figuresOf = new Map<Agent, Figures>(all.map((agent) => [agent, new Map()]));
const note = (agent: Agent, name: string, value: number): void => {
  const figures = figuresOf.get(agent);
  figures?.set(name, [...(figures.get(name) ?? []), value]);
};

/** When the last pod of an agent came so far. */
const last = (pods: readonly PodHistory[], { name }: Agent, what: 'readyMs' | 'goneMs'): number =>
  Math.max(...pods.filter((p) => p.name.endsWith(`-${name}`)).map((p) => p[what] ?? Number.NaN));

/** What each process took of its processors in `act`, by threads, under this name. */
async function measured(phase: string, act: () => Promise<unknown>): Promise<void> {
  const before = all.map(({ daemon }) => threadsOf(daemon.pid ?? 0));
  await act();
  await sleep(AFTER_MS);
  for (const [i, agent] of all.entries()) {
    let sum = 0;
    for (const [thread, ms] of threadsOf(agent.daemon.pid ?? 0)) {
      const own = ms - (before[i]?.get(thread) ?? 0);
      sum += own;
      if (thread === 'MainThread' || thread === 'V8Worker') note(agent, `${phase} ${thread}`, own);
    }
    note(agent, `${phase} all`, sum);
  }
}

try {
  for (let turn = 0; turn < turns; turn++) {
    say(`turn ${turn + 1} of ${turns}`);
    for (const agent of all) await beside.start(agent);
    await sleep(SETTLE_MS);
    for (const burst of BURSTS) {
      const peaks = all.map(({ daemon }) => residentPeak(daemon.pid ?? 0));
      let made: PodHistory[] = [];
      await measured(`${burst} start`, async () => {
        const from = performance.now();
        made = await beside.make(`${burst[0]}${turn}`, podCount);
        for (const agent of all) note(agent, `${burst} readyMs`, last(made, agent, 'readyMs') - from);
      });
      if (restSeconds > 0 && burst === 'first') {
        await sleep(RESTED_MS);
        await measured('rest', () => sleep(restSeconds * 1000));
        for (const agent of all) note(agent, 'rest residentMiB', (stat(agent.daemon.pid ?? 0)?.rssBytes ?? 0) / 2 ** 20);
      }
      await measured(`${burst} end`, async () => {
        const from = performance.now();
        await beside.remove(made);
        for (const agent of all) note(agent, `${burst} goneMs`, last(made, agent, 'goneMs') - from);
      });
      for (const [i, agent] of all.entries()) note(agent, `${burst} peakMiB`, peaks[i]?.() ?? 0);
    }
    for (const { daemon } of all) await daemon.end('SIGTERM');
  }
  const [base] = all;
  const samples = (agent: Agent | undefined, name: string): number[] => (agent && figuresOf.get(agent)?.get(name)) ?? [];
  const total = (agent: Agent | undefined, name: string): number => samples(agent, name).reduce((sum, n) => sum + n, 0);
  const names = [...(base ? (figuresOf.get(base)?.keys() ?? []) : [])];
  const summary = (agent: Agent, name: string) => ({
    mean: Math.round(total(agent, name) / turns),
    share: Math.round((1000 * total(agent, name)) / total(base, name)) / 1000,
    samples: samples(agent, name).map(Math.round),
  });
  await report('paired', {
    pods: podCount,
    agents: Object.fromEntries(all.map((agent) => [agent.name, Object.fromEntries(names.map((n) => [n, summary(agent, n)]))])),
  });
} finally {
  await beside.end();
}
