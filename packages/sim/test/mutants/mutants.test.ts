/** The mutant of this commit, and what holds for all of them. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CAUGHT_BEFORE, MUTANTS } from './mutants.ts';
import { fitsIn } from './scratch.ts';
import { mutantsOfThisRun } from './suite.ts';

const ROOT = join(import.meta.dirname, '../../../..');

describe('the checkers notice', mutantsOfThisRun);

it('seeds are remembered of these mutants only', () => {
  const ids = new Set(MUTANTS.map((m) => m.id));
  expect(Object.keys(CAUGHT_BEFORE).filter((id) => !ids.has(id))).toEqual([]);
  expect(MUTANTS.length).toBeGreaterThanOrEqual(20);
});

it('the line of every mutant is in its file exactly once', () => {
  expect(MUTANTS.map((m) => fitsIn(ROOT, m)).filter((why) => why !== '')).toEqual([]);
});
