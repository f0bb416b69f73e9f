/** Library entry: deterministic simulation of whole nodes. See docs/simulation.md. */

export { realMs } from '@actorlet/world/src/globals.ts';
export { addCoverage, type Coverage, coverageOf } from './coverage.ts';
export { drawSchedule } from './nemesis/draw.ts';
export { drawTuning } from './nemesis/draws/node/tuning.ts';
export { describeFault, type Fault, type FaultAct, type FaultKind } from './nemesis/faults.ts';
export { addTotals, emptyTotals, failureReport, reproduction, summary, type Totals, totalsOf } from './report.ts';
export type { SimOptions, SimResult, Violation } from './result.ts';
export { runSim } from './run.ts';
export { type ShrinkOptions, shrink } from './shrink.ts';
