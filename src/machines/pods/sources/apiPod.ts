/** Pods as the API server gives them. Pure. */

import { sameData } from '../../data/sameData.ts';
import { shareData } from '../../data/sharedData.ts';
import { isKubeObject, slim, UNREADABLE } from '../../kube/request.ts';
import type { Pod, PodStatus } from '../../kube/types.ts';
import { PARTS_MAX } from '../../pod/bounds.ts';
import { isRecord } from '../../shape/conform.ts';

/**
 * A pod of an object that was read as one (`objects/answers.ts`). Null when it can be no pod of a node. The server has validated and
 * defaulted it; what is said here again is what a member of a list leaves out.
 */
export function toApiPod(value: unknown): Pod | null {
  if (!isKubeObject(value) || value[UNREADABLE] !== undefined || !isRecord(value.spec)) return null;
  // Its fields were held against the table that the type is made of.
  const { metadata, spec, status } = slim(value) as unknown as Pod;
  if (!metadata.uid || !metadata.namespace || !Array.isArray(spec.containers) || spec.containers.length === 0) return null;
  return withinBounds({ apiVersion: 'v1', kind: 'Pod', metadata, spec, status: isRecord(status) ? status : {} });
}

/**
 * Ephemeral containers come while the pod runs, after it was let in: those that would take it out of bounds are not seen. One
 * without any is judged at admission.
 */
function withinBounds(pod: Pod): Pod {
  const { containers, initContainers = [], ephemeralContainers = [] } = pod.spec;
  const room = Math.max(0, PARTS_MAX - containers.length - initContainers.length);
  if (ephemeralContainers.length <= room) return pod;
  return { ...pod, spec: { ...pod.spec, ephemeralContainers: ephemeralContainers.slice(0, room) } };
}

/** What the API server shows, with as much of `ours` in it as says the same: a node keeps both for each of its pods. */
export function withOwnParts(shown: PodStatus, ours: PodStatus): PodStatus {
  const byType = new Map(ours.conditions?.map((c) => [c.type, c]));
  const conditions = shown.conditions?.map((c) => {
    const own = byType.get(c.type);
    // A server says `lastProbeTime: null` of a condition that has none.
    return own !== undefined && sameData({ ...c, lastProbeTime: null }, { ...own, lastProbeTime: null }) ? { ...c, ...own } : c;
  });
  return shareData(ours, conditions === undefined ? shown : { ...shown, conditions });
}
