/** A replay finds changed lines: some of the mutants in each commit, all of them in `all.nightly.ts`. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { MUTANTS } from '../../sim/mutants/mutants.ts';
import { rotating } from '../../sim/seeds/rotation.ts';
import { type ReplayedMutants, replayedMutants } from './replayed.ts';

/** Each takes some ten seconds of processor time. */
const AT_ONCE = 2;
const TIMEOUT_MS = 600_000;

let mutants: ReplayedMutants | undefined;
beforeAll(() => {
  mutants = replayedMutants();
});
afterAll(() => mutants?.[Symbol.dispose]());

it.each(rotating('replayed mutants', MUTANTS, Math.ceil(MUTANTS.length / AT_ONCE)).map((m) => [m.id, m] as const))(
  '%s',
  async (_, m) => {
    // One in ten may be missed: the nightly run counts.
    const found = await mutants?.find(m);
    console.log(`${m.id}: ${JSON.stringify(found)}`);
    expect(found?.kind).toMatch(/^(?:found|same|missed)$/);
  },
  TIMEOUT_MS,
);
