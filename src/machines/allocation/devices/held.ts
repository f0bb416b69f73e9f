/** Which devices the pod resources API shows. Pure. */
import type { ContainerDevices, Held } from '../messages.ts';
import { type Allocation, type DeviceLedger, NO_NODE } from './types.ts';

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
