/** Which pods a shutdown of the node ends first, and how long each group of pods may take. Pure. */
import type { KubeletConfiguration } from '../../config/config.ts';
import type { Pod } from '../../kube/types.ts';
import { CRITICAL_PRIORITY } from '../../pod/phase.ts';

/** Pods from this priority on, up to that of the next group. */
export interface ShutdownGroup {
  priority: number;
  periodSeconds: number;
}

/** Priority of a pod that names none. */
const DEFAULT_PRIORITY = 0;

export interface ShutdownGates {
  /** GracefulNodeShutdown. */
  graceful: boolean;
  /** GracefulNodeShutdownBasedOnPodPriority. */
  byPriority: boolean;
}

/** Lowest priority first. Empty: a shutdown of the node waits for no pod. */
export function shutdownGroups(
  c: Pick<KubeletConfiguration, 'shutdownGracePeriod' | 'shutdownGracePeriodCriticalPods' | 'shutdownGracePeriodByPodPriority'>,
  gates: ShutdownGates,
): ShutdownGroup[] {
  if (!gates.graceful) return [];
  const listed = gates.byPriority ? c.shutdownGracePeriodByPodPriority : [];
  if (listed.length > 0)
    return listed
      .map(({ priority, shutdownGracePeriodSeconds }) => ({ priority, periodSeconds: shutdownGracePeriodSeconds }))
      .sort((a, b) => a.priority - b.priority);
  const { shutdownGracePeriod: total, shutdownGracePeriodCriticalPods: critical } = c;
  if (total <= 0 || critical > total) return [];
  return [
    { priority: DEFAULT_PRIORITY, periodSeconds: Math.floor((total - critical) / 1000) },
    { priority: CRITICAL_PRIORITY, periodSeconds: Math.floor(critical / 1000) },
  ];
}

/** How long logind is asked to wait. */
export function totalMs(groups: readonly ShutdownGroup[]): number {
  return groups.reduce((sum, g) => sum + g.periodSeconds, 0) * 1000;
}

/** Index of the group of a pod: the last one whose priority the pod reaches, the first one for a pod below all. */
export function groupOf(groups: readonly ShutdownGroup[], pod: Pod): number {
  const priority = pod.spec.priority ?? DEFAULT_PRIORITY;
  return Math.max(
    0,
    groups.findLastIndex((g) => g.priority <= priority),
  );
}

/** What the containers of a pod get: what the pod asks for, within the period of its group and what is left of the shutdown. */
export function shutdownGraceSeconds(pod: Pod, group: ShutdownGroup, leftMs: number): number {
  const left = Math.max(0, Math.floor(leftMs / 1000));
  return Math.min(group.periodSeconds, pod.spec.terminationGracePeriodSeconds ?? group.periodSeconds, left);
}

/** How long ago an unfinished shutdown of the state file began, if it can be the present one; else null. */
export function resumedMs(groups: readonly ShutdownGroup[], o: { unfinishedMs: number | null; wallMs: number }): number | null {
  if (o.unfinishedMs === null) return null;
  const agoMs = o.wallMs - o.unfinishedMs;
  return agoMs >= 0 && agoMs < totalMs(groups) ? agoMs : null;
}
