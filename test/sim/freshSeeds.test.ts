/** Seeds that nobody has run before: small worlds, so that they cost a minute at most. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { failureReport, realMs, reproduction, runSim } from '../../src/sim/index.ts';

const SEEDS = 20;
/** No new seed begins after this, on whatever machine: the rest is left for the next time. */
const BUDGET_MS = 60_000;
const FAILURES = join(import.meta.dirname, '..', '..', '.cache', 'sim-failures');
const SIZE = { minutes: 0.3, pods: 4 };
/** A run of seeds can be had again with ACTORLET_SIM_SEED. */
const first = Number(process.env.ACTORLET_SIM_SEED ?? 1 + (Math.floor(Date.now() / 1_000) % 1_000_000_000));

describe(`fresh seeds from ${first}`, () => {
  it(
    'break no claim',
    async () => {
      const began = realMs();
      const failures: string[] = [];
      let done = 0;
      for (; done < SEEDS && realMs() - began < BUDGET_MS; done++) {
        const r = await runSim({ seed: first + done, ...SIZE });
        if (r.violation === null) continue;
        const file = join(FAILURES, `seed-${r.options.seed}.txt`);
        const report = failureReport(r, { drawn: r.schedule.length, shrinkRuns: 0, tailLines: 200 });
        mkdirSync(FAILURES, { recursive: true });
        writeFileSync(file, `${report.join('\n')}\n`);
        failures.push(`${r.violation.claim}: ${r.violation.what}\n  repeat: ${reproduction(r.options)}\n  kept in ${file}`);
      }
      console.log(`simulation: ${done} fresh seeds from ${first}, ${failures.length} failed`);
      expect(failures).toEqual([]);
      expect(done).toBeGreaterThan(0);
    },
    BUDGET_MS * 4,
  );
});
