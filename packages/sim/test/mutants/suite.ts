/**
 * Every mutant is caught within 200 seeds: the checkers bite. To spare time the seed that caught it last (caught.json) goes
 * first; when the code has moved on so far that it does not any more, the seeds from 1 on are tried as a whole hunt does.
 * After changes: node packages/sim/test/mutants/run.ts --write
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { rotating } from '../../../../test/rotation.ts';
import { CAUGHT_BEFORE, MUTANTS, SEEDS_MAX } from './mutants.ts';
import { type Scratch, scratch } from './scratch.ts';

/** What notices these is certain: the invariant that was made for the fault. */
const NOTICED_BY: Readonly<Record<string, readonly string[]>> = {
  'an act does not wait for the one before it': ['one-act-per-pod'],
  'a hint never makes its pod look': ['hints-are-followed', 'comes-to-rest'],
  'the definition of a running container always differs': ['healthy-is-left-alone'],
  'the status of a pod goes back in version': ['status-version-grows'],
  'the grace of a pod is forgotten': ['grace-is-kept'],
};
/** A whole hunt of 200 seeds on a busy machine; one that is caught by its seed takes seconds. */
const TIMEOUT_MS = 900_000;

/** One for each commit: a mutant takes about ten seconds of processor time, and many times that where its seed has to be found anew. */
export function mutantsOfThisRun(): void {
  const mutants = rotating('mutants', MUTANTS, MUTANTS.length);
  let copy: Scratch | undefined;
  beforeAll(() => {
    copy = scratch();
  });
  afterAll(() => copy?.[Symbol.dispose]());

  it.each(mutants.map((m) => [m.id, m] as const))(
    '%s',
    async (id, m) => {
      if (copy === undefined) throw new Error('there is no copy of the sources');
      const outcome = await copy.hunt(m, { first: 1, count: SEEDS_MAX, before: CAUGHT_BEFORE[id] });
      expect(outcome.kind, JSON.stringify(outcome)).toBe('caught');
      if (outcome.kind === 'caught' && outcome.by.seed !== CAUGHT_BEFORE[id])
        console.warn(
          `"${id}" is caught by seed ${outcome.by.seed} now: node packages/sim/test/mutants/run.ts --write 200 "${id}" keeps it`,
        );
      const invariants = NOTICED_BY[id];
      if (invariants !== undefined && outcome.kind === 'caught') expect(invariants).toContain(outcome.by.invariant);
    },
    TIMEOUT_MS,
  );
}
