/**
 * Tells whether the time of a function grows faster than n log n with its input. Robustly: processor time of this thread, so that
 * other work of the machine does not count; sizes that are a factor of 16 apart; several runs where one looks bad.
 */
import { Script } from 'node:vm';

/** Between the smaller and the larger input. */
const FACTOR = 16;
/**
 * The larger may take this many times as long. n log n takes 22 times, and up to 47 where only the smaller fits into the
 * processor's caches and others use them too; n squared takes 256.
 */
const GROWTH_MAX = 64;
/** What costs less than this at the larger size is cheap enough, and too short to be compared. */
const CHEAP_MS = 15;
/** A run that lasts longer is broken off: what is exponential would not end. */
const RUN_MS_MAX = 15_000;
const RUNS = 3;
const MEAN_RUNS_MAX = 200;

/** Each commit takes one part in so many of what is measured. */
export const PARTS = 8;

/** Builds an input of that size and gives what is measured. */
export type Grown = (n: number) => () => unknown;

class TooLong extends Error {}

// A run in a script of its own can be broken off, in the middle of a regular expression too.
const script = new Script('globalThis.__grown()');
function once(run: () => unknown): number {
  Object.assign(globalThis, { __grown: run });
  const before = process.threadCpuUsage();
  try {
    script.runInThisContext({ timeout: RUN_MS_MAX });
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw new TooLong();
    throw error;
  }
  const used = process.threadCpuUsage(before);
  return (used.user + used.system) / 1000;
}

function least(make: Grown, n: number): number {
  let ms = Number.POSITIVE_INFINITY;
  for (let i = 0; i < RUNS; i++) ms = Math.min(ms, once(make(n)));
  return ms;
}

/** Of many runs, until they can be told from nothing: where the kernel counts processor time in ticks, one run takes none at all. */
function mean(make: Grown, n: number): number {
  let ms = 0;
  let runs = 0;
  while (ms < 2 * CHEAP_MS && runs < MEAN_RUNS_MAX) {
    ms += once(make(n));
    runs += 1;
  }
  return ms / runs;
}

/** Why the time grows too fast up to inputs of size `most`; null: it does not. */
export function growth(most: number, make: Grown): string | null {
  let n = 0;
  try {
    for (n of [32, 256]) once(make(n));
    n = most;
    if (once(make(most)) < CHEAP_MS) return null;
    const few = Math.floor(most / FACTOR);
    const [small, large] = [mean(make, few), least(make, most)];
    if (large < CHEAP_MS || large <= GROWTH_MAX * Math.max(small, CHEAP_MS / GROWTH_MAX)) return null;
    return `${small.toFixed(1)} ms for ${few}, ${large.toFixed(1)} ms for ${most}`;
  } catch (error) {
    if (error instanceof TooLong) return `does not end within ${RUN_MS_MAX} ms for ${n}`;
    throw error;
  }
}
