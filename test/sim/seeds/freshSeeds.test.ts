/** Seeds that nobody has run before: small worlds, so that they cost a minute or so. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { failureReport, realMs, reproduction, runSim } from '../../../src/sim/index.ts';

/** `npm run nightly` runs 2,000 more. */
const SEEDS = 10;
/** No new seed begins after this, on whatever machine: the rest is left for the next time. */
const BUDGET_MS = 60_000;
const FAILURES = join(import.meta.dirname, '../../../.cache/sim-failures');
const SIZE = { minutes: 0.3, pods: 4 };
/** The same for everybody who tests this very content: a build that was green stays green, and the next change has its own. */
function ofContent(): number | undefined {
  try {
    const tree = execFileSync('git', ['rev-parse', 'HEAD^{tree}'], {
      cwd: import.meta.dirname,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return 1 + (Number.parseInt(tree.slice(0, 8), 16) % 1_000_000_000);
  } catch {
    return undefined;
  }
}
/** From the clock; under CI from what is committed. A run of seeds can be had again with ACTORLET_SIM_SEED. */
const drawn = (process.env.CI === 'true' ? ofContent() : undefined) ?? 1 + (Math.floor(Date.now() / 1_000) % 1_000_000_000);
const first = Number(process.env.ACTORLET_SIM_SEED ?? drawn);

describe(`fresh seeds from ${first}`, () => {
  it(
    'break no invariant',
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
        failures.push(`${r.violation.invariant}: ${r.violation.what}\n  repeat: ${reproduction(r.options)}\n  kept in ${file}`);
      }
      console.log(`simulation: ${done} fresh seeds from ${first}, ${failures.length} failed`);
      expect(failures).toEqual([]);
      expect(done).toBeGreaterThan(0);
    },
    BUDGET_MS * 4,
  );
});
