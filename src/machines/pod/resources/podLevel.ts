/**
 * Resources of a pod as a whole: what it asks for itself (`spec.resources`), what its containers come to, what these get of
 * it, and what its status says (KEP-5419). Pure.
 */

import { own } from '../../data/own.ts';
import type { Container, ResourceRequirements } from '../../kube/podTable.ts';
import { addQuantities, canonicalQuantity, compareQuantity, isZeroQuantity, quantityToInteger } from '../../kube/quantity.ts';
import type { Pod, Quantity } from '../../kube/types.ts';
import { isRestartableInit } from '../runtime/shouldRestart.ts';
import { type Amounts, amountsOf, RESIZABLE } from './amounts.ts';

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

/** What a container is made with: where it has no limit of its own, that of its pod. */
export function effectiveAmounts(pod: Pod, container: Container): Amounts {
  const { requests } = amountsOf(container);
  const limits = Object.fromEntries(
    RESIZABLE.flatMap((r) => {
      const limit = effectiveLimit(pod, container, r);
      return limit === undefined ? [] : [[r, limit]];
    }),
  );
  return { requests, limits };
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

/** What a pod takes in total: what it says of itself as a whole, else what its containers come to. Overhead is not in it. */
export function podTotal(pod: Pod, kind: 'requests' | 'limits', resource: string): Quantity | undefined {
  return podLevel(pod, kind, resource) ?? containersTotal(pod, kind, resource);
}

/**
 * What the containers of a pod come to: regular containers and sidecars together, or, where more, the neediest moment of the start,
 * when an init container runs beside the sidecars before it.
 */
export function containersTotal(pod: Pod, kind: 'requests' | 'limits', resource: string): Quantity | undefined {
  const of = (c: Container): Quantity | undefined => own(c.resources?.[kind], resource);
  const steady: Quantity[] = [];
  let sidecars: Quantity | undefined;
  let peak: Quantity | undefined;
  for (const container of pod.spec.initContainers ?? []) {
    const amount = of(container);
    if (isRestartableInit(container)) {
      if (amount !== undefined) sidecars = sidecars === undefined ? amount : addQuantities([sidecars, amount]);
      continue;
    }
    if (amount === undefined) continue;
    const moment = addQuantities(sidecars === undefined ? [amount] : [sidecars, amount]);
    if (peak === undefined || compareQuantity(moment, peak) > 0) peak = moment;
  }
  for (const container of pod.spec.containers) {
    const amount = of(container);
    if (amount !== undefined) steady.push(amount);
  }
  const together = [...(sidecars === undefined ? [] : [sidecars]), ...steady];
  const sum = together.length === 0 ? undefined : addQuantities(together);
  if (peak === undefined) return sum;
  return sum === undefined || compareQuantity(peak, sum) > 0 ? peak : sum;
}

/** The limit that a pod as a whole is held to: none where a container without one could go beyond it. Overhead is not in it. */
export function heldLimit(pod: Pod, resource: 'cpu' | 'memory'): Quantity | undefined {
  const containers = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
  const every = containers.every((c) => !isZeroQuantity(c.resources?.limits?.[resource] ?? 0));
  const limit = podLevel(pod, 'limits', resource) ?? (every ? containersTotal(pod, 'limits', resource) : undefined);
  return limit === undefined || isZeroQuantity(limit) ? undefined : limit;
}

/** The same with the overhead. */
export function heldInAll(pod: Pod, resource: 'cpu' | 'memory'): Quantity | undefined {
  const limit = heldLimit(pod, resource);
  return limit === undefined ? undefined : withOverhead(pod, resource, limit);
}
export function withOverhead(pod: Pod, resource: string, amount: Quantity | undefined): Quantity | undefined {
  const parts = [amount, own(pod.spec.overhead, resource)].filter((q) => q !== undefined);
  return parts.length === 0 ? undefined : addQuantities(parts);
}

/** For each container, of the memory that the pod as a whole asks for beyond what its containers do. Bytes. */
export function memoryShareOf(pod: Pod): number {
  const whole = podLevel(pod, 'requests', 'memory');
  if (whole === undefined) return 0;
  const beyond = quantityToInteger(whole) - quantityToInteger(containersTotal(pod, 'requests', 'memory'));
  return Math.max(0, Math.floor(beyond / (pod.spec.containers.length + (pod.spec.initContainers?.length ?? 0))));
}

export interface ShownResources {
  /** What it asks for and is held to, without its overhead; absent: neither. */
  resources?: ResourceRequirements;
  /** What it was granted, its overhead included; absent: it asks for nothing. */
  allocatedResources?: Record<string, Quantity>;
}

/** Worked out once per pod: each of its statuses says it. */
export function shownResources(pod: Pod): ShownResources {
  const known = REMEMBERED.get(pod) ?? workedOut(pod);
  REMEMBERED.set(pod, known);
  return known;
}
const REMEMBERED = new WeakMap<Pod, ShownResources>();

function workedOut(pod: Pod): ShownResources {
  const { spec } = pod;
  const own = spec.resources ?? {};
  const requests = {
    ...list(Object.keys(own.requests ?? {}), (r) => own.requests?.[r]),
    ...list(RESIZABLE, (r) => podTotal(pod, 'requests', r)),
  };
  const limits = { ...list(Object.keys(own.limits ?? {}), (r) => own.limits?.[r]), ...list(RESIZABLE, (r) => heldLimit(pod, r)) };
  const resources = { ...some({ limits }), ...some({ requests }) };
  const all = [spec, ...spec.containers, ...(spec.initContainers ?? [])].flatMap((c) => Object.keys(c.resources?.requests ?? {}));
  const allocatedResources = list([...new Set([...all, ...Object.keys(spec.overhead ?? {})])].sort(), (r) => {
    const parts = [podTotal(pod, 'requests', r), spec.overhead?.[r]].filter((q) => q !== undefined);
    return parts.length === 0 ? undefined : addQuantities(parts);
  });
  return { ...some({ resources }), ...some({ allocatedResources }) };
}

function list<R extends string>(names: readonly R[], of: (r: R) => Quantity | undefined): Record<string, Quantity> {
  return Object.fromEntries(
    names.flatMap((r) => {
      const amount = of(r);
      return amount === undefined ? [] : [[r, canonicalQuantity(amount)]];
    }),
  );
}

/** Without what is empty. */
function some<T extends Record<string, object>>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => Object.keys(value).length > 0)) as Partial<T>;
}
