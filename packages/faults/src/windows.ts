/** When the faults of a scenario are at work. Pure. */
import { FAULT_KINDS } from './kinds.ts';
import type { FaultWindow, Scenario, ScenarioFault } from './types.ts';

/** Windows of one fault at most, whatever its period and the duration. */
const WINDOWS_MAX = 10_000;

/** First moment of a fault, after whatever it waits for; the decoder has refused loops and unknown names. */
function beginOf(fault: ScenarioFault, byName: ReadonlyMap<string, ScenarioFault>, durationMs: number): number {
  const prior = fault.after === undefined ? undefined : byName.get(fault.after);
  if (prior === undefined) return fault.atMs;
  const priorBegin = beginOf(prior, byName, durationMs);
  return fault.atMs + endOf(prior, priorBegin, durationMs);
}
function endOf(fault: ScenarioFault, beginMs: number, durationMs: number): number {
  if (!FAULT_KINDS[fault.kind].lasts) return beginMs;
  return fault.forMs === undefined ? Math.max(beginMs, durationMs) : beginMs + fault.forMs;
}

/** Every window that begins before `durationMs`, oldest first; those that would outlast it end there. */
export function windowsOf(scenario: Scenario, durationMs: number): FaultWindow[] {
  const byName = new Map(scenario.faults.map((f) => [f.name, f]));
  const all: FaultWindow[] = [];
  for (const fault of scenario.faults) {
    const first = beginOf(fault, byName, durationMs);
    const count = Math.min(fault.count ?? (fault.everyMs === undefined ? 1 : WINDOWS_MAX), WINDOWS_MAX);
    for (let index = 0; index < count; index++) {
      const atMs = first + index * (fault.everyMs ?? 0);
      if (atMs >= durationMs) break;
      all.push({ fault, index, atMs, endMs: Math.min(endOf(fault, atMs, durationMs), durationMs) });
    }
  }
  return all.sort((a, b) => a.atMs - b.atMs);
}
