/** Finds a small part of a schedule that still breaks the same invariant. */
import { fewest } from '@actorlet/world/src/fewest.ts';
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
  // What was to come after the end cannot matter.
  const endMs = (failed.violation?.atSeconds ?? Number.POSITIVE_INFINITY) * 1_000;
  const inTime = failed.schedule.filter((f) => f.atMs <= endMs);
  if (inTime.length < failed.schedule.length) await stillFails(inTime);
  await fewest(best.schedule, stillFails, {
    triesMax: runsMax - runs,
    on: (left) => s.on?.(left, runs),
    ...(s.cancelled === undefined ? {} : { cancelled: s.cancelled }),
  });
  return { result: best, runs };
}
