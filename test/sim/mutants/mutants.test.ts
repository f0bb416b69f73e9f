/** A few mutants, each caught within a few seeds: the checkers bite. All of them: node test/sim/mutants/run.ts */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MUTANTS } from './mutants.ts';
import { type Scratch, scratch } from './scratch.ts';

/** Mutant by id, with what notices it. Each is caught by nearly every seed, so that the number of the first matters little. */
const QUICK: readonly [string, readonly string[]][] = [
  ['an act does not wait for the one before it', ['one-act-per-pod']],
  ['a hint never makes its pod look', ['hints-are-followed', 'comes-to-rest']],
  ['the definition of a running container always differs', ['healthy-is-left-alone']],
  ['the status of a pod goes back in version', ['status-version-grows']],
  ['the grace of a pod is forgotten', ['grace-is-kept']],
];
const SEEDS_MAX = 12;

describe('the checkers notice', () => {
  let copy: Scratch | undefined;
  beforeAll(() => {
    copy = scratch();
  });
  afterAll(() => copy?.[Symbol.dispose]());

  it.each(QUICK)(
    '%s',
    async (id, claims) => {
      const m = MUTANTS.find((one) => one.id === id);
      if (m === undefined || copy === undefined) throw new Error(`there is no mutant ${id}`);
      const outcome = await copy.hunt(m, { first: 1, count: SEEDS_MAX });
      expect(outcome.kind, JSON.stringify(outcome)).toBe('caught');
      if (outcome.kind === 'caught') expect(claims).toContain(outcome.by.claim);
    },
    180_000,
  );
});
