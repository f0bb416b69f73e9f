/** Which devices the pod resources API shows. Pure. */
import type { ResourceStatus } from '../../kube/types.ts';
import type { ContainerDevices, Held } from '../messages.ts';
import { type Allocation, type DeviceLedger, deviceIds, NO_NODE } from './types.ts';

export function heldDevices({ allocations, resources }: DeviceLedger): Held {
  const byPod = Map.groupBy(allocations, (a) => a.uid);
  return {
    of: (uid, container) => ({ devices: (byPod.get(uid) ?? []).filter((a) => a.container === container).flatMap(devicesOf) }),
    allocatable: () => ({
      devices: [...resources].flatMap(([resource, { healthy, numa }]) =>
        [...healthy].flatMap((id) => {
          const nodes = numa.get(id) ?? [];
          return nodes.length === 0 ? [device(resource, id)] : nodes.map((node) => device(resource, id, node));
        }),
      ),
    }),
  };
}

function devicesOf({ resource, devices }: Allocation): ContainerDevices[] {
  return Object.entries(devices).flatMap(([node, ids]) =>
    ids.map((id) => (node === NO_NODE ? device(resource, id) : device(resource, id, Number(node)))),
  );
}

function device(resourceName: string, id: string, node?: number): ContainerDevices {
  return { resourceName, deviceIds: [id], ...(node === undefined ? {} : { topology: { nodes: [{ ID: node }] } }) };
}

/** For the status of a container. A plugin that restarts changes nothing; one that is not back, or has gone for good, says nothing. */
export function devicesHealth(ledger: DeviceLedger, uid: string, container: string): ResourceStatus[] {
  return ledger.allocations
    .filter((a) => a.uid === uid && a.container === container)
    .map((a) => ({
      name: a.resource,
      resources: deviceIds(a).map((id) => ({ resourceID: id, health: healthOf(ledger, a.resource, id) })),
    }));
}

function healthOf({ resources }: DeviceLedger, resource: string, id: string): string {
  const state = resources.get(resource);
  if ((state?.healthyLast ?? state?.healthy)?.has(id) === true) return 'Healthy';
  return state?.unhealthy.has(id) === true ? 'Unhealthy' : 'Unknown';
}

/** Pods of which a device is not as it was. */
export function podsWithOtherHealth(before: DeviceLedger, now: DeviceLedger): Set<string> {
  const changed = now.allocations.filter(
    (a) =>
      before.resources.get(a.resource) !== now.resources.get(a.resource) &&
      deviceIds(a).some((id) => healthOf(before, a.resource, id) !== healthOf(now, a.resource, id)),
  );
  return new Set(changed.map((a) => a.uid));
}
