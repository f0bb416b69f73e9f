/** Acts on a pod, and what the runtime's answers to them come to. */
import type { StartFailure } from '../../../machines/pod/runtime/seen.ts';
import type { EffectOutcome } from '../../../machines/pods/workers/container/containerStopMachine.ts';
import type { CriFailure, CriResult } from '../../../machines/runtime/cri/messages.ts';
import type { CriCall } from '../../runtime/client.ts';

export function removals(containerIds: readonly string[]): CriCall[] {
  return containerIds.map((containerId) => ({ method: 'RemoveContainer', request: { containerId } }));
}
/** `later`: it is not there yet. */
export function failedBecause(reason: string, message: string, when?: 'later'): { kind: 'failed'; failure: StartFailure } {
  return { kind: 'failed', failure: { reason, message, ...(when === undefined ? {} : { later: true }) } };
}

export function failedWith(reason: string, results: readonly CriResult[]): EffectOutcome {
  const failed = results.flatMap((r) => (r.ok ? [] : [`${r.error.method}: ${r.error.details}`]));
  return failed.length === 0 ? { kind: 'done' } : { kind: 'failed', failure: { reason, message: failed.join('; ') } };
}

export function unknownOr(
  error: CriFailure,
  reason: string,
): { kind: 'failed'; failure: { reason: string; message: string } } | { kind: 'unknown'; details: string } {
  return error.outcome === 'unknown'
    ? { kind: 'unknown', details: `${error.method}: ${error.details}` }
    : { kind: 'failed', failure: { reason, message: error.details } };
}
