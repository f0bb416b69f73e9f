/** What a pod is, as far as its phase, priority and source tell. Pure. */
import type { Pod, PodPhase } from '../kube/types.ts';
import { ANNOTATION_MIRROR, ANNOTATION_SOURCE } from './names.ts';

/** The type of the condition that a pod with a sandbox has. */
export const SANDBOX_READY = 'PodReadyToStartContainers';

export function isTerminal(phase: PodPhase | undefined): phase is 'Succeeded' | 'Failed' {
  return phase === 'Succeeded' || phase === 'Failed';
}

/** Static pods, mirrors and the system's own are never evicted, and are admitted under any pressure. */
export function isCritical(pod: Pod): boolean {
  if (!isOfApi(pod) || isMirror(pod)) return true;
  return (pod.spec.priority ?? 0) >= CRITICAL_PRIORITY;
}

/** Priorities from here on are the system's own. */
export const CRITICAL_PRIORITY = 2_000_000_000;

/** From the API server; every other pod is static, or found in the runtime alone. */
export function isOfApi(pod: Pod): boolean {
  return pod.metadata.annotations?.[ANNOTATION_SOURCE] === 'api';
}

export function isMirror(pod: Pod): boolean {
  return pod.metadata.annotations?.[ANNOTATION_MIRROR] !== undefined;
}
