/** Which pods make room for a critical one (pod lifecycle 2.6, resources 12.3): the least harm first, as few as can be. Pure. */

import type { Pod } from '../../kube/types.ts';
import { isCritical } from '../../pod/phase.ts';
import { type QosClass, qosClass } from '../../pod/resources/qos.ts';
import { POD_COUNT, type RequestOf, type Shortage } from '../../pod/resources/requests.ts';

export const PREEMPTING = 'Preempting';
export const PREEMPTING_MESSAGE = 'Preempted in order to admit critical pod';
/** Of condition DisruptionTarget. */
export const PREEMPTED_MESSAGE = 'Pod was preempted by Kubelet to accommodate a critical pod.';

/** A pod that is on its way is waited for at least this long; after half as much again as its grace if that is longer. As the reference waits for a kill. */
const LEAVING_MIN_MS = 10_000;
const GRACE_FACTOR = 1.5;
/** Grace of a pod that sets none. */
export const DEFAULT_GRACE_SECONDS = 30;

/** How long a critical pod waits for this one to end, milliseconds; then it is let in all the same. */
export function leavingMs({ spec }: Pod): number {
  return Math.max(LEAVING_MIN_MS, (spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS) * GRACE_FACTOR * 1000);
}

/** Since when each of these pods has been on its way. `before`: the same at the last look. */
export function seenLeaving(before: ReadonlyMap<string, number>, going: readonly Pod[], nowMonoMs: number): Map<string, number> {
  return new Map(going.map(({ metadata: { uid } }) => [uid, before.get(uid) ?? nowMonoMs]));
}
/** Pods on their way that have not ended in time. */
export function lateOf(since: ReadonlyMap<string, number>, going: readonly Pod[], nowMonoMs: number): Pod[] {
  return going.filter((pod) => nowMonoMs - (since.get(pod.metadata.uid) ?? nowMonoMs) >= leavingMs(pod));
}

/** What is missing of one resource. */
interface Need {
  resource: string;
  amount: number;
}
type Choice = { ok: true; pods: Pod[] } | { ok: false; missing: string };

/** Whether the first may drive out the second. */
function mayPreempt(pod: Pod, other: Pod): boolean {
  if (isCritical(pod) && !isCritical(other)) return true;
  const [own, others] = [pod.spec.priority, other.spec.priority];
  return own !== undefined && others !== undefined && own > others;
}

/** Pods that have to go so that nothing of what is short is any more; refused when all of them together are not enough. */
export function choosePreempted(
  pod: Pod,
  { pods, short, requests }: { pods: readonly Pod[]; short: readonly Shortage[]; requests: RequestOf },
): Choice {
  const asked: RequestOf = (of, resource) => (resource === POD_COUNT ? 1 : requests(of, resource));
  const needs = short.map(({ resource, requested, used, capacity }) => ({ resource, amount: requested - (capacity - used) }));
  const classes: Record<QosClass, Pod[]> = { BestEffort: [], Burstable: [], Guaranteed: [] };
  for (const other of pods) if (mayPreempt(pod, other)) classes[qosClass(other)].push(other);
  const { BestEffort: least, Burstable: some, Guaranteed: most } = classes;
  const unmet = without(needs, [...least, ...some, ...most], asked);
  if (unmet.length > 0) return { ok: false, missing: needsText(unmet) };
  // The better a class is served, the later its turn: it gives only what the classes below it cannot.
  const guaranteed = nearest(most, without(needs, [...least, ...some], asked), asked);
  if (!guaranteed.ok) return guaranteed;
  const burstable = nearest(some, without(needs, [...least, ...guaranteed.pods], asked), asked);
  if (!burstable.ok) return burstable;
  const bestEffort = nearest(least, without(needs, [...burstable.pods, ...guaranteed.pods], asked), asked);
  if (!bestEffort.ok) return bestEffort;
  return { ok: true, pods: [...bestEffort.pods, ...burstable.pods, ...guaranteed.pods] };
}

/** One after the other the pod that leaves least unmet; among equals, the one that asks for less. */
function nearest(pods: readonly Pod[], needs: readonly Need[], asked: RequestOf): Choice {
  const left = [...pods];
  const chosen: Pod[] = [];
  for (let unmet = needs; unmet.length > 0; unmet = without(needs, chosen, asked)) {
    let best: { at: number; key: readonly number[] } | undefined;
    for (const [at, pod] of left.entries()) {
      const key = [distance(pod, unmet, asked), asked(pod, 'memory'), asked(pod, 'cpu')];
      if (best === undefined || !isLess(best.key, key)) best = { at, key };
    }
    if (best === undefined) return { ok: false, missing: needsText(unmet) };
    chosen.push(...left.splice(best.at, 1));
  }
  return { ok: true, pods: chosen };
}

function isLess(a: readonly number[], b: readonly number[]): boolean {
  const at = a.findIndex((value, i) => value !== b[i]);
  return at >= 0 && (a[at] ?? 0) < (b[at] ?? 0);
}

/** 0: it meets every need; each need that it does not touch at all counts 1. */
function distance(pod: Pod, needs: readonly Need[], asked: RequestOf): number {
  return needs.reduce((sum, { resource, amount }) => sum + (Math.max(0, amount - asked(pod, resource)) / amount) ** 2, 0);
}

function without(needs: readonly Need[], pods: readonly Pod[], asked: RequestOf): Need[] {
  return needs.flatMap(({ resource, amount }) => {
    const left = pods.reduce((rest, pod) => rest - asked(pod, resource), amount);
    return left > 0 ? [{ resource, amount: left }] : [];
  });
}

/** In the reference's form. */
function needsText(needs: readonly Need[]): string {
  return `[${needs.map(({ resource, amount }) => `(res: ${resource}, q: ${amount}), `).join('')}]`;
}
