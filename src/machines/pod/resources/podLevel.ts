/** Resources of a pod as a whole (`spec.resources`): what they are of, and what its containers get of them. Pure. */

import { own } from '../../data/own.ts';
import type { Container } from '../../kube/podTable.ts';
import { addQuantities, compareQuantity, isZeroQuantity } from '../../kube/quantity.ts';
import type { Pod, Quantity } from '../../kube/types.ts';
import { isRestartableInit } from '../runtime/shouldRestart.ts';

export type ResourceKind = 'requests' | 'limits';

/** Whether a pod as a whole may have it. Other resources belong to single containers. */
export function isPodLevel(resource: string): boolean {
  return resource === 'cpu' || resource === 'memory' || resource.startsWith('hugepages-');
}

/** What the pod as a whole asks for, or may have; undefined where it does not say. */
export function podLevel(pod: Pod, kind: ResourceKind, resource: string): Quantity | undefined {
  return isPodLevel(resource) ? own(pod.spec.resources?.[kind], resource) : undefined;
}

export function hasPodLevel(pod: Pod): boolean {
  return (['requests', 'limits'] as const).some((kind) => Object.keys(pod.spec.resources?.[kind] ?? {}).some(isPodLevel));
}

/** The limit that a container is held to: its own, or that of its pod. */
export function effectiveLimit(pod: Pod, container: Container, resource: string): Quantity | undefined {
  const limit = own(container.resources?.limits, resource);
  return limit === undefined || isZeroQuantity(limit) ? (podLevel(pod, 'limits', resource) ?? limit) : limit;
}

/** Containers that run side by side once the pod is up: regular ones and sidecars. They alone may have probes. */
export function lastingContainers(pod: Pod): Container[] {
  return [...(pod.spec.initContainers ?? []).filter(isRestartableInit), ...pod.spec.containers];
}

/**
 * Limits of the pod that its containers together could go beyond, each within the limit that it is held to: `spec.resources`
 * fields. Without a cgroup that holds the pod as a whole these could not be kept; of huge pages it holds them only
 * where the kernel has that controller, which nobody has asked here.
 */
export function limitsNotKept(pod: Pod, o: { podGroups?: boolean } = {}): string[] {
  return Object.entries(pod.spec.resources?.limits ?? {}).flatMap(([resource, limit]) => {
    if (!isPodLevel(resource) || (o.podGroups === true && (resource === 'cpu' || resource === 'memory'))) return [];
    const together = lastingContainers(pod).flatMap((c) => effectiveLimit(pod, c, resource) ?? []);
    return compareQuantity(addQuantities(together), limit) > 0 ? [`spec.resources.limits.${resource}`] : [];
  });
}
