/**
 * Simulation benchmark: one node with 20 pods under about 200 faults in one virtual minute, the production tree, all
 * invariants on. Prints one JSON object. Run: `node bench/sim.ts`
 */

import { realMs, runSim } from '@actorlet/sim/src/index.ts';
import { machine, summary } from './lib/report.ts';

const PODS = 20;
const FAULTS = 200;
const SEEDS = 20;
/** What the minute with faults may take on one core, from the world's beginning. */
const TARGET_MS = 1_500;
const size = { minutes: 1, pods: PODS, nodes: 1, faults: FAULTS };

// Compiled code, warm caches: what matters is how many seeds an hour holds.
for (let seed = 1; seed <= 3; seed++) await runSim({ seed, ...size });

const samples: object[] = [];
const wholeMs: number[] = [];
const faultMinuteMs: number[] = [];
const minuteMs: number[] = [];
const perMinute: number[] = [];
let steps = 0;
let broken = 0;
for (let seed = 1; seed <= SEEDS; seed++) {
  const began = realMs();
  let healingAt = Number.NaN;
  const onPhase = (phase: string): void => {
    if (phase === 'healing') healingAt = realMs();
  };
  const r = await runSim({ seed, ...size, onPhase });
  const ms = realMs() - began;
  // A broken invariant ends a run where it broke.
  faultMinuteMs.push((Number.isNaN(healingAt) ? realMs() : healingAt) - began);
  const again = seed <= 3 ? (await runSim({ seed, ...size })).hash : r.hash;
  if (again !== r.hash) throw new Error(`seed ${seed} gave the traces ${r.hash} and ${again}: the run is not deterministic`);
  const virtualMinutes = r.virtualMs / 60_000;
  if (r.violation !== null) broken += 1;
  wholeMs.push(ms);
  minuteMs.push(ms / virtualMinutes);
  perMinute.push(r.steps / virtualMinutes);
  steps += r.steps;
  samples.push({
    seed,
    ms: Math.round(ms),
    virtualMinutes: Number(virtualMinutes.toFixed(2)),
    steps: r.steps,
    faults: r.schedule.filter((f) => !f.kind.startsWith('pod.')).length,
    workload: r.schedule.filter((f) => f.kind.startsWith('pod.')).length,
    invariant: r.violation?.invariant ?? null,
  });
}
const total = wholeMs.reduce((a, b) => a + b, 0);
console.log(
  JSON.stringify(
    {
      benchmark: 'sim',
      machine: await machine(),
      what: `${PODS} pods, 1 virtual minute with about ${FAULTS} faults, then healing, restarts, emptying and stop; all invariants on; one thread`,
      targetMs: TARGET_MS,
      /** Boot and the minute with faults. */
      faultMinuteMs: summary(faultMinuteMs),
      /** The whole run, all phases. */
      wholeRunMs: summary(wholeMs),
      /** The whole run divided by its virtual minutes, which are more than the one with faults. */
      msPerVirtualMinute: summary(minuteMs),
      stepsPerVirtualMinute: summary(perMinute),
      stepsPerSecond: Math.round((steps / total) * 1_000),
      brokenInvariants: broken,
      samples,
    },
    null,
    2,
  ),
);
