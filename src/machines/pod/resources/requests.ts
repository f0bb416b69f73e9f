/** Whether a pod fits beside the others: requests against what the node has to give. Pure. */

import { own } from '../../data/own.ts';
import { isExtendedResource } from '../../kube/names.ts';
import { addQuantities, quantityToInteger, quantityToMilli } from '../../kube/quantity.ts';
import type { Pod, Quantity } from '../../kube/types.ts';
import { podTotal } from './podLevel.ts';

/** Amounts as the reference says them: cpu in thousandths, bytes, pods. */
export interface Shortage {
  resource: string;
  requested: number;
  used: number;
  capacity: number;
}

const HUGE_PAGES = 'hugepages-';
/** Every pod takes one of these. */
export const POD_COUNT = 'pods';

function amount(quantity: Quantity | undefined, resource: string): number {
  return resource === 'cpu' ? quantityToMilli(quantity) : quantityToInteger(quantity);
}

/** What the pod asks for in all, the overhead of its runtime class included. */
export function requestOf(pod: Pod, resource: string): number {
  const parts = [podTotal(pod, 'requests', resource), own(pod.spec.overhead, resource)].filter((q) => q !== undefined);
  return parts.length === 0 ? 0 : amount(addQuantities(parts), resource);
}

export type RequestOf = typeof requestOf;

/** The same, worked out once per pod: each pod that comes is weighed against all that are there. */
export const rememberedRequest: RequestOf = (pod, resource) => {
  const amounts = REMEMBERED.get(pod) ?? new Map<string, number>();
  const asked = amounts.get(resource) ?? requestOf(pod, resource);
  REMEMBERED.set(pod, amounts.set(resource, asked));
  return asked;
};
const REMEMBERED = new WeakMap<Pod, Map<string, number>>();

/** Sizes of huge pages that the pod asks for, and extended resources that the node counts, in order. */
function scalars(pod: Pod, allocatable: Room['allocatable']): string[] {
  const all = [pod.spec, ...pod.spec.containers, ...(pod.spec.initContainers ?? [])];
  const names = new Set(all.flatMap((c) => Object.keys(c.resources?.requests ?? {})));
  // An extended resource that no node has is the cluster's, and not for this one to count.
  const counted = (name: string) => name.startsWith(HUGE_PAGES) || (isExtendedResource(name) && own(allocatable, name) !== undefined);
  return [...names].filter(counted).sort();
}

export interface Room {
  others: readonly Pod[];
  podsMax: number;
  allocatable: Readonly<Record<string, string>>;
  requests?: RequestOf | undefined;
}

/** Every resource that does not suffice, in the order of the reference: pods, cpu, memory, ephemeral storage, huge pages, extended resources of the node. */
export function shortages(pod: Pod, room: Room): Shortage[] {
  const { others, allocatable, requests = requestOf } = room;
  const short: Shortage[] = [];
  if (others.length + 1 > room.podsMax) short.push({ resource: POD_COUNT, requested: 1, used: others.length, capacity: room.podsMax });
  for (const resource of ['cpu', 'memory', 'ephemeral-storage', ...scalars(pod, allocatable)]) {
    const offered = own(allocatable, resource);
    // A node that does not measure its storage cannot say that there is too little of it.
    if (resource === 'ephemeral-storage' && offered === undefined) continue;
    const requested = requests(pod, resource);
    if (requested === 0) continue;
    const capacity = amount(offered, resource);
    const used = others.reduce((sum, other) => sum + requests(other, resource), 0);
    if (used + requested > capacity) short.push({ resource, requested, used, capacity });
  }
  return short;
}
