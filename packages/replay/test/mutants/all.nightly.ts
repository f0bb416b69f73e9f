/** Of the mutants that change what their seed does, a replay finds at least nine in ten, by name. */
import { expect, it } from 'vitest';
import { MUTANTS } from '../../../sim/test/mutants/mutants.ts';
import { replayedMutants } from './replayed.ts';

const SHARE_MIN = 0.9;
const TIMEOUT_MS = 4 * 3_600_000;

it(
  'a replay finds changed lines',
  async () => {
    using mutants = replayedMutants();
    const count = { found: 0, missed: 0, same: 0, unusable: 0 };
    for (const m of MUTANTS) {
      const found = await mutants.find(m);
      count[found.kind] += 1;
      console.log(`${found.kind.padEnd(8)} ${m.id}${found.kind === 'found' ? `: ${found.by}` : ''}`);
    }
    const share = count.found / (count.found + count.missed);
    console.log(
      `${count.found} of ${count.found + count.missed} mutants found (${(100 * share).toFixed(1)} %); ${count.same} change nothing`,
    );
    expect(count.unusable).toBe(0);
    expect(share).toBeGreaterThanOrEqual(SHARE_MIN);
  },
  TIMEOUT_MS,
);
