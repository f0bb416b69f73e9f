/** Whether two definitions of a pod ask for the same. Pure. */

import { sameData } from '../data/sameData.ts';
import type { Pod } from '../kube/types.ts';
import { ANNOTATION_MIRROR, ANNOTATION_SEEN, ANNOTATION_SOURCE } from './names.ts';

/** Whether nothing of the pod has changed that makes an update. */
export function sameDesired(a: Pod, b: Pod): boolean {
  const [m, n] = [a.metadata, b.metadata];
  return (
    sameData(a.spec, b.spec) &&
    sameData(m.labels ?? {}, n.labels ?? {}) &&
    sameData(m.deletionTimestamp ?? null, n.deletionTimestamp ?? null) &&
    sameData(m.deletionGracePeriodSeconds ?? null, n.deletionGracePeriodSeconds ?? null) &&
    sameData(foreignAnnotations(a), foreignAnnotations(b))
  );
}

export function foreignAnnotations(pod: Pod): Record<string, string> {
  return Object.fromEntries(Object.entries(pod.metadata.annotations ?? {}).filter(([k]) => !LOCAL.includes(k)));
}

/** Annotations this node writes itself: never compared, never overwritten. */
export const LOCAL = [ANNOTATION_SOURCE, ANNOTATION_MIRROR, ANNOTATION_SEEN];
