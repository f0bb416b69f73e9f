/** Which devices there are, and what the node says of them (resources 2.5, trap 27). Pure. */
import type { NodeResources } from '../messages.ts';
import type { DeviceLedger, PluginDevice, ResourceDevices } from './types.ts';

/** After so long without its plugin a resource is no more. */
export const STOPPED_GRACE_MS = 300_000;

const NOTHING: ResourceDevices = { healthy: new Set(), unhealthy: new Set(), numa: new Map(), returning: false };

function withResource(ledger: DeviceLedger, resource: string, state: ResourceDevices): DeviceLedger {
  const gone = new Set(ledger.gone);
  gone.delete(resource);
  return { ...ledger, gone, resources: new Map(ledger.resources).set(resource, state) };
}

/** A plugin has come: what was known of its devices stays until it tells of them. */
export function connected(ledger: DeviceLedger, resource: string): DeviceLedger {
  return withResource(ledger, resource, { ...(ledger.resources.get(resource) ?? NOTHING), returning: false });
}

/** The list takes the place of all that was known. */
export function listed(ledger: DeviceLedger, resource: string, devices: readonly PluginDevice[]): DeviceLedger {
  const ids = (healthy: boolean) => new Set(devices.filter((d) => d.healthy === healthy).map((d) => d.id));
  const numa = new Map(devices.filter((d) => d.numaNodes.length > 0).map((d) => [d.id, d.numaNodes]));
  const healthy = ids(true);
  // A device that is named twice is as well as its worst word.
  const unhealthy = ids(false);
  for (const id of unhealthy) healthy.delete(id);
  return withResource(ledger, resource, { healthy, unhealthy, numa, returning: false });
}

/** Its plugin has gone: none of its devices is given. */
export function stopped(ledger: DeviceLedger, resource: string): DeviceLedger {
  const before = ledger.resources.get(resource);
  if (before === undefined) return ledger;
  return withResource(ledger, resource, {
    ...before,
    healthyLast: before.healthyLast ?? before.healthy,
    healthy: new Set(),
    unhealthy: new Set([...before.unhealthy, ...before.healthy]),
  });
}

/** ... for too long. */
export function expired(ledger: DeviceLedger, resource: string): DeviceLedger {
  if (!ledger.resources.has(resource)) return ledger;
  const resources = new Map(ledger.resources);
  resources.delete(resource);
  return { ...ledger, resources, gone: new Set(ledger.gone).add(resource) };
}

/** Resources of an earlier daemon: nothing of them is to be given before their plugins are back. */
export function remembered(resources: readonly string[]): DeviceLedger['resources'] {
  return new Map(resources.map((name) => [name, { ...NOTHING, returning: true }]));
}

/** What the node's status says. Of one that is remembered there is nothing, since only its plugin can count. */
export function nodeDevices(ledger: DeviceLedger): Omit<NodeResources, 'recreated'> {
  const capacity: Record<string, string> = {};
  const allocatable: Record<string, string> = {};
  for (const [name, { healthy, unhealthy }] of [...ledger.resources].sort(([a], [b]) => (a < b ? -1 : 1))) {
    capacity[name] = String(healthy.size + unhealthy.size);
    allocatable[name] = String(healthy.size);
  }
  for (const name of [...ledger.gone].sort()) {
    capacity[name] = '0';
    allocatable[name] = '0';
  }
  return { capacity, allocatable };
}
