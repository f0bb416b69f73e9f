/** When a row of attempts becomes a result (pod lifecycle 8.2, rows 11 to 15). Pure. */
import type { Probe } from '../../kube/podTable.ts';
import type { ProbeOutcome, ProbeType } from '../../pod/probes/probes.ts';

/** Tries of one attempt: only an error is tried again, a failure counts at once. */
export const TRIES_MAX = 3;
/** The API server's defaults; static pods have them filled in when they are decoded. */
const SUCCESS_THRESHOLD = 1;
const FAILURE_THRESHOLD = 3;

/** Equal outcomes in a row. */
export interface Run {
  last: 'success' | 'failure' | null;
  length: number;
}
export const NO_RUN: Run = { last: null, length: 0 };

/**
 * One more outcome. `result` is null while its threshold is not reached. An error leaves everything as it was. A failure
 * that ends the container starts the count anew: what comes after it is about another instance.
 */
export function countOutcome(
  run: Run,
  outcome: ProbeOutcome,
  of: { probe: Probe; type: ProbeType },
): { run: Run; result: 'success' | 'failure' | null } {
  if (outcome.kind === 'error') return { run, result: null };
  const verdict = outcome.kind === 'failure' ? 'failure' : 'success';
  const length = run.last === verdict ? run.length + 1 : 1;
  const threshold = verdict === 'failure' ? of.probe.failureThreshold || FAILURE_THRESHOLD : of.probe.successThreshold || SUCCESS_THRESHOLD;
  if (length < threshold) return { run: { last: verdict, length }, result: null };
  return { run: { last: verdict, length: endsContainer(of.type, verdict) ? 0 : length }, result: verdict };
}

/** A failed liveness or startup probe has the container killed; nothing is probed until there is another. */
export function endsContainer(type: ProbeType, result: string): boolean {
  return type !== 'readiness' && result === 'failure';
}
