/** When and why the node itself ends a pod: its active deadline, and a sandbox that is lost and may not be made again. */

import type { Pod, PodPhase, PodStatus } from '../../kube/types.ts';
import { firstStatus } from '../runtime/runtimeStatus.ts';
import type { PodRuntimeStatus } from '../runtime/seen.ts';

export interface StatusOverride {
  phase: PodPhase;
  reason: string;
  message: string;
  /** Why the node ends this pod: becomes condition DisruptionTarget with reason TerminationByKubelet. */
  disruption?: string;
}

export const DEADLINE_OVERRIDE: StatusOverride = {
  phase: 'Failed',
  reason: 'DeadlineExceeded',
  message: 'Pod was active on the node longer than the specified deadline',
};

/** Wall ms at which `activeDeadlineSeconds` ends, or null. */
export function deadlineAtMs(pod: Pod, status: PodStatus | undefined): number | null {
  const seconds = pod.spec.activeDeadlineSeconds;
  if (seconds === undefined || status?.startTime === undefined) return null;
  return Date.parse(status.startTime) + seconds * 1000;
}

/** First sight of a pod that the runtime already holds: its start is its oldest sandbox (pod lifecycle trap 56). */
export function withStartTime(old: PodStatus | undefined, status: PodRuntimeStatus, nowWallMs: number): PodStatus {
  if (old?.startTime !== undefined) return old;
  let ms = nowWallMs;
  for (const s of status.sandboxes) ms = Math.min(ms, Number(s.createdAtNs / 1_000_000n));
  return { ...old, startTime: `${new Date(ms).toISOString().slice(0, 19)}Z` };
}

/** Reason of a pod that can neither go on nor begin anew: ours, where the reference waits for ever. */
export const SANDBOX_LOST = 'SandboxLost';

export function stranded(pod: Pod, status: PodRuntimeStatus): StatusOverride {
  const succeeded = pod.spec.containers.every((c) => {
    const newest = firstStatus(status, c.name);
    return newest?.state === 'exited' && newest.exitCode === 0;
  });
  return {
    phase: succeeded ? 'Succeeded' : 'Failed',
    reason: SANDBOX_LOST,
    message: 'The sandbox of the pod ended, and its restart policy allows no other',
  };
}
