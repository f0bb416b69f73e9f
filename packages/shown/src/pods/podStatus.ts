/** How well a pod is, in one word, and in a colour. Pure. */
import { shortDuration } from '@actorlet/kubelet/machines/text/duration.ts';
import type { PodSummary } from './podSummary.ts';

export type Tone = 'ok' | 'busy' | 'warn' | 'bad' | 'off';
type Judged = Pick<PodSummary, 'phase' | 'status' | 'ready' | 'containers' | 'rejected' | 'removed' | 'reason' | 'message' | 'crashed'>;

/** The back-off of a container that ran for so long begins anew: until then one that came back is not well yet. */
const STEADY_AFTER_MS = 600_000;
/** A container that restarted once may have been unlucky. */
const CRASHES_MIN = 2;

/** It runs, and ran and ended just before, again and again. */
function isUnsteady({ crashed, phase, removed }: Pick<Judged, 'crashed' | 'phase' | 'removed'>, nowMs: number): boolean {
  return phase === 'Running' && !removed && crashed !== undefined && crashed.times >= CRASHES_MIN && nowMs - crashed.atMs < STEADY_AFTER_MS;
}

/** Of these kubectl says no more; the worker may know why. */
const VAGUE: readonly string[] = ['ContainerCreating', 'PodInitializing'];

/** As kubectl's STATUS, and where that says nothing, why a pod is not well. On the page and in a terminal. */
export function podStatus(p: Judged): string {
  if (p.rejected) return 'Refused';
  const isVague = p.status === p.phase || VAGUE.includes(p.status);
  return isVague && isFailing(p) ? p.reason || p.status : p.status;
}

function isFailing(p: Judged): boolean {
  return p.rejected || p.phase === 'Failed' || /BackOff|Error|Err[A-Z]|Failed|Unavailable/.test(p.reason);
}

export function podTone(p: Judged, nowMs: number): Tone {
  if (isFailing(p)) return 'bad';
  if (isUnsteady(p, nowMs)) return 'warn';
  if (p.phase === 'Running') return p.ready === p.containers ? 'ok' : 'busy';
  return p.phase === 'Succeeded' ? 'off' : 'busy';
}

/** What a reader should know beside the status; '' for a pod that is well. */
export function podTrouble(p: Judged, nowMs: number): string {
  const tone = podTone(p, nowMs);
  if (tone === 'warn' && p.crashed !== undefined) {
    const { name, times, how, atMs } = p.crashed;
    return `${name} ended ${times} times, last ${shortDuration(nowMs - atMs)} ago with ${how}`;
  }
  return tone === 'ok' || tone === 'off' ? '' : p.message || p.reason;
}
