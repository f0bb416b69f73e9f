/**
 * Supervision benchmark: mailbox deliveries per second. Prints one JSON object with every sample. Run: `node bench/supervision.ts`
 * under Node 24. What idle workers cost is in bench/workers.ts.
 */
import { loadavg } from 'node:os';
import { fromCallback } from 'xstate';
import type { ActorSpec, SupervisionEvent } from '../src/actors/supervision/types.ts';
import { type Flip, MailboxBench, type Sample, toggle } from './lib/mailbox.ts';
import { machine as describeMachine } from './lib/report.ts';

const ROUNDS = 5;

/** A flight recorder: keeps the newest 4,096 events. */
function recorder(): (e: SupervisionEvent) => void {
  const ring: (SupervisionEvent | undefined)[] = new Array(4096).fill(undefined);
  let at = 0;
  return (e) => {
    ring[at] = e;
    at = (at + 1) & 4095;
  };
}

async function deliveries(start: (count: () => void) => ReturnType<ActorSpec<Flip>['start']>): Promise<Sample[]> {
  const bench = new MailboxBench(start, [recorder()]);
  await bench.tree.start();
  // It warms up.
  await bench.round();
  const samples: Sample[] = [];
  for (let round = 0; round < ROUNDS; round++) samples.push(await bench.round());
  await bench.tree.stop();
  return samples;
}

const summary = (samples: Sample[]) => ({
  medianPerS: median(samples.map((s) => s.perS)),
  medianPerCpuS: median(samples.map((s) => s.perCpuS)),
  samples,
});
const median = (samples: number[]): number => samples.toSorted((a, b) => a - b)[Math.floor(samples.length / 2)] ?? 0;

const callback = await deliveries((count) => ({ logic: fromCallback(({ receive }) => receive(count)) }));
const machine = await deliveries((count) => ({ logic: toggle.provide({ actions: { count } }) }));
const targets = { callbackPerS: 200_000, machinePerS: 80_000 };
console.log(
  JSON.stringify(
    {
      benchmark: 'supervision',
      machine: { ...(await describeMachine()), loadavg: loadavg() },
      targets,
      callbackDeliveries: summary(callback),
      machineDeliveries: summary(machine),
      met: summary(callback).medianPerS >= targets.callbackPerS && summary(machine).medianPerS >= targets.machinePerS,
    },
    null,
    2,
  ),
);
