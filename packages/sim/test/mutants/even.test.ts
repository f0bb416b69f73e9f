/** Every other mutant, and what holds for all of them. */
import { describe, expect, it } from 'vitest';
import { CAUGHT_BEFORE, MUTANTS } from './mutants.ts';
import { scratch } from './scratch.ts';
import { mutantsFrom } from './suite.ts';

describe('the checkers notice', () => mutantsFrom(0));

it('seeds are remembered of these mutants only', () => {
  const ids = new Set(MUTANTS.map((m) => m.id));
  expect(Object.keys(CAUGHT_BEFORE).filter((id) => !ids.has(id))).toEqual([]);
  expect(MUTANTS.length).toBeGreaterThanOrEqual(20);
});

it('the line of every mutant is in its file exactly once', () => {
  using copy = scratch();
  expect(MUTANTS.map((m) => copy.fits(m)).filter((why) => why !== '')).toEqual([]);
});
