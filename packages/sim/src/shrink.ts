/** Finds a small part of a schedule that still breaks the same invariant, by leaving out ever smaller pieces of it. */
import type { Fault } from './nemesis/faults.ts';
import type { SimOptions, SimResult } from './result.ts';
import { runSim } from './run.ts';

export interface ShrinkOptions {
  /** Runs it may cost. Default 80. */
  runsMax?: number;
  on?(left: number, runs: number): void;
  /** True ends the search with what was found so far. */
  cancelled?(): boolean;
}

/** `failed` must hold a violation. The result is the smallest failing run found, `failed` itself when nothing could go. */
export async function shrink(o: SimOptions, failed: SimResult, s: ShrinkOptions = {}): Promise<{ result: SimResult; runs: number }> {
  const invariant = failed.violation?.invariant;
  const runsMax = s.runsMax ?? 80;
  let best = failed;
  let runs = 0;
  const stillFails = async (schedule: readonly Fault[]): Promise<boolean> => {
    runs += 1;
    const result = await runSim({ ...o, schedule });
    if (result.violation?.invariant !== invariant) return false;
    best = result;
    return true;
  };
  const over = () => runs >= runsMax || s.cancelled?.() === true;
  // What was to come after the end cannot matter.
  const endMs = (failed.violation?.atSeconds ?? Number.POSITIVE_INFINITY) * 1_000;
  const inTime = failed.schedule.filter((f) => f.atMs <= endMs);
  if (inTime.length < failed.schedule.length) await stillFails(inTime);
  let pieces = 2;
  while (!over() && best.schedule.length > 1) {
    const size = Math.ceil(best.schedule.length / pieces);
    let shorter = false;
    for (let at = 0; at < best.schedule.length && !over(); ) {
      const without = best.schedule.filter((_, i) => i < at || i >= at + size);
      if (await stillFails(without)) shorter = true;
      else at += size;
      s.on?.(best.schedule.length, runs);
    }
    if (size === 1 && !shorter) break;
    pieces = Math.min(best.schedule.length, pieces * 2);
  }
  return { result: best, runs };
}
