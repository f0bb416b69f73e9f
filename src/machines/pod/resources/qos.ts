/** Quality-of-service class of a pod, from its requests and limits of cpu and memory (pod lifecycle 6.3). */

import { addQuantities, compareQuantity, isZeroQuantity } from '../../kube/quantity.ts';
import type { Pod, PodStatus, Quantity } from '../../kube/types.ts';
import { hasPodLevel } from './podLevel.ts';

export type QosClass = NonNullable<PodStatus['qosClass']>;
const COUNTED = ['cpu', 'memory'] as const;

/** The API server says it when it takes a pod, and refuses each status that says another. Otherwise it is worked out. */
export function qosClass(pod: Pod): QosClass {
  return pod.status.qosClass || askedClass(pod);
}

/**
 * Containers and init containers count, ephemeral ones do not; zero quantities are as good as absent. What the pod as a
 * whole asks for counts in place of what they do.
 */
export function askedClass(pod: Pod): QosClass {
  const requests = new Map<string, Quantity[]>();
  const limits = new Map<string, Quantity[]>();
  let everyContainerLimited = true;
  for (const container of hasPodLevel(pod) ? [pod.spec] : [...pod.spec.containers, ...(pod.spec.initContainers ?? [])]) {
    for (const resource of COUNTED) {
      const request = container.resources?.requests?.[resource];
      const limit = container.resources?.limits?.[resource];
      if (request !== undefined && !isZeroQuantity(request)) requests.set(resource, [...(requests.get(resource) ?? []), request]);
      if (limit !== undefined && !isZeroQuantity(limit)) limits.set(resource, [...(limits.get(resource) ?? []), limit]);
      else everyContainerLimited = false;
    }
  }
  if (requests.size === 0 && limits.size === 0) return 'BestEffort';
  if (!everyContainerLimited || requests.size !== limits.size) return 'Burstable';
  for (const [resource, wanted] of requests) {
    const allowed = limits.get(resource);
    if (allowed === undefined || compareQuantity(addQuantities(wanted), addQuantities(allowed)) !== 0) return 'Burstable';
  }
  return 'Guaranteed';
}
