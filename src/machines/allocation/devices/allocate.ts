/** Which devices a container gets (resources 2.5, "Allocate"). Pure. */

import { isExtendedResource } from '../../kube/names.ts';
import type { Container } from '../../kube/podTable.ts';
import { quantityToInteger } from '../../kube/quantity.ts';
import type { Pod } from '../../kube/types.ts';
import { isRestartableInit } from '../../pod/runtime/shouldRestart.ts';
import { type Allocation, type DeviceLedger, deviceIds, NO_NODE, type ResourceDevices } from './types.ts';

export interface DeviceRequest {
  resource: string;
  count: number;
}

/** What a container asks for that may be a plugin's, by name: its limits, which an extended resource always has. */
export function deviceRequests(container: Pick<Container, 'resources'>): DeviceRequest[] {
  return Object.entries(container.resources?.limits ?? {})
    .filter(([name]) => isExtendedResource(name))
    .map(([resource, quantity]) => ({ resource, count: quantityToInteger(quantity) }))
    .filter((r) => r.count > 0)
    .sort((a, b) => (a.resource < b.resource ? -1 : 1));
}

/** Containers in the order in which they get devices, and whether what each held is free for those after it. */
export function allocationOrder(pod: Pod): { container: Container; handsOn: boolean }[] {
  const inits = (pod.spec.initContainers ?? []).map((container) => ({ container, handsOn: !isRestartableInit(container) }));
  return [...inits, ...pod.spec.containers.map((container) => ({ container, handsOn: false }))];
}

export function asksForDevices(pod: Pod): boolean {
  return allocationOrder(pod).some(({ container }) => deviceRequests(container).length > 0);
}

export function allocationOf(ledger: DeviceLedger, uid: string, o: { container: string; resource: string }): Allocation | undefined {
  return ledger.allocations.find((a) => a.uid === uid && a.container === o.container && a.resource === o.resource);
}

/** Devices of init containers that have nothing to do with them once the next one starts. */
export function reusable(ledger: DeviceLedger, pod: Pod, o: { container: string; resource: string }): string[] {
  const free = new Set<string>();
  for (const { container, handsOn } of allocationOrder(pod)) {
    if (container.name === o.container) break;
    const held = allocationOf(ledger, pod.metadata.uid, { container: container.name, resource: o.resource });
    for (const id of held === undefined ? [] : deviceIds(held)) {
      if (handsOn) free.add(id);
      else free.delete(id);
    }
  }
  return [...free].sort();
}

export interface AllocationQuestion extends DeviceRequest {
  pod: Pod;
  container: string;
  /** It runs: nothing that is known of its devices changes that. */
  running: boolean;
  /** Devices that others are being given just now. */
  reserved: ReadonlySet<string>;
}

export type AllocationPlan =
  /** Not a plugin's. */
  | { kind: 'none' }
  /** It has them, or runs without. */
  | { kind: 'held' }
  /** Its plugin is not back after a restart of this node. */
  | { kind: 'wait'; message: string }
  | { kind: 'refused'; message: string; reason?: string }
  /** `must` is given in any case; of `available` so many more that there are `count`. */
  | { kind: 'choose'; must: readonly string[]; available: readonly string[]; count: number };

export function planAllocation(ledger: DeviceLedger, q: AllocationQuestion): AllocationPlan {
  const { resource, count, container, pod } = q;
  const { uid } = pod.metadata;
  const state = ledger.resources.get(resource);
  const held = allocationOf(ledger, uid, { container, resource });
  if (held !== undefined) return judgeHeld(held, state, q);
  if (q.running) return { kind: 'held' };
  if (state === undefined) {
    if (ledger.gone.has(resource)) {
      const message = `Node didn't have enough resource: ${resource}, requested: ${count}, used: 0, capacity: 0`;
      return { kind: 'refused', message, reason: `OutOf${resource}` };
    }
    // A container held it, so it is known to be a plugin's.
    if (ledger.allocations.some((a) => a.resource === resource)) return refuse(`can't allocate unregistered device ${resource}`);
    return { kind: 'none' };
  }
  const must = reusable(ledger, pod, q).slice(0, count);
  const taken = new Set(ledger.allocations.filter((a) => a.resource === resource).flatMap(deviceIds));
  const available = [...state.healthy].filter((id) => !taken.has(id) && !q.reserved.has(id)).sort();
  const needed = count - must.length;
  if (available.length < needed) {
    return refuse(`requested number of devices unavailable for ${resource}. Requested: ${needed}, Available: ${available.length}`);
  }
  return { kind: 'choose', must, available, count };
}

function judgeHeld(held: Allocation, state: ResourceDevices | undefined, q: AllocationQuestion): AllocationPlan {
  const { resource, count, container, pod } = q;
  const ids = deviceIds(held);
  if (ids.length !== count) {
    return refuse(
      `pod "${pod.metadata.uid}" container "${container}" changed request for resource "${resource}" from ${ids.length} to ${count}`,
    );
  }
  if (q.running) return { kind: 'held' };
  if (state?.returning === true) {
    return { kind: 'wait', message: `the plugin of ${resource} has not registered again since this node started` };
  }
  if (state === undefined) return refuse(`can't allocate unregistered device ${resource}`);
  if (state.healthy.size === 0) return refuse(`no healthy devices present; cannot allocate unhealthy devices ${resource}`);
  if (!ids.every((id) => state.healthy.has(id))) return refuse(`previously allocated devices are no longer healthy; ${resource}`);
  return { kind: 'held' };
}

function refuse(message: string): AllocationPlan {
  return { kind: 'refused', message };
}

/** What the plugin would rather give goes first, as far as it can be given. */
export function chooseDevices(plan: Extract<AllocationPlan, { kind: 'choose' }>, preferred: readonly string[]): string[] {
  const chosen = new Set(plan.must);
  const offered = new Set(plan.available);
  for (const id of [...preferred.filter((p) => offered.has(p)), ...plan.available]) {
    if (chosen.size >= plan.count) break;
    chosen.add(id);
  }
  return [...chosen].sort();
}

/** As the checkpoint keeps them. */
export function byNode(state: Pick<ResourceDevices, 'numa'> | undefined, ids: readonly string[]): Record<string, string[]> {
  const nodes = new Map<string, string[]>();
  for (const id of ids) {
    for (const node of state?.numa.get(id)?.map(String) ?? [NO_NODE]) {
      const at = nodes.get(node);
      if (at === undefined) nodes.set(node, [id]);
      else at.push(id);
    }
  }
  return Object.fromEntries([...nodes].sort(([a], [b]) => Number(a) - Number(b)));
}
