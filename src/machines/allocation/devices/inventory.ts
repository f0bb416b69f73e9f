/** Which devices there are, and what the node says of them (resources 2.5, trap 27). Pure. */
import type { DeviceBook, PluginDevice, ResourceDevices } from './types.ts';

/** After so long without its plugin a resource is no more. */
export const STOPPED_GRACE_MS = 300_000;

const NOTHING: ResourceDevices = { healthy: new Set(), unhealthy: new Set(), numa: new Map(), returning: false };

function withResource(book: DeviceBook, resource: string, state: ResourceDevices): DeviceBook {
  const gone = new Set(book.gone);
  gone.delete(resource);
  return { ...book, gone, resources: new Map(book.resources).set(resource, state) };
}

/** A plugin has come: what was known of its devices stays until it tells of them. */
export function connected(book: DeviceBook, resource: string): DeviceBook {
  return withResource(book, resource, { ...(book.resources.get(resource) ?? NOTHING), returning: false });
}

/** The list takes the place of all that was known. */
export function listed(book: DeviceBook, resource: string, devices: readonly PluginDevice[]): DeviceBook {
  const ids = (healthy: boolean) => new Set(devices.filter((d) => d.healthy === healthy).map((d) => d.id));
  const numa = new Map(devices.filter((d) => d.numaNodes.length > 0).map((d) => [d.id, d.numaNodes]));
  const healthy = ids(true);
  // One that is named twice is as well as its worst word.
  const unhealthy = ids(false);
  for (const id of unhealthy) healthy.delete(id);
  return withResource(book, resource, { healthy, unhealthy, numa, returning: false });
}

/** Its plugin has gone: nobody knows how its devices are. */
export function stopped(book: DeviceBook, resource: string): DeviceBook {
  const before = book.resources.get(resource);
  if (before === undefined) return book;
  return withResource(book, resource, {
    ...before,
    healthy: new Set(),
    unhealthy: new Set([...before.unhealthy, ...before.healthy]),
  });
}

/** ... for too long. */
export function expired(book: DeviceBook, resource: string): DeviceBook {
  if (!book.resources.has(resource)) return book;
  const resources = new Map(book.resources);
  resources.delete(resource);
  return { ...book, resources, gone: new Set(book.gone).add(resource) };
}

/** Resources of an earlier daemon: nothing of them is to be given before their plugins are back. */
export function remembered(resources: readonly string[]): DeviceBook['resources'] {
  return new Map(resources.map((name) => [name, { ...NOTHING, returning: true }]));
}

export interface NodeDevices {
  capacity: Readonly<Record<string, string>>;
  allocatable: Readonly<Record<string, string>>;
}

/** What the node's status says. One that is remembered is left as it stands in the capacity, since only its plugin can count. */
export function nodeDevices(book: DeviceBook): NodeDevices {
  const capacity: Record<string, string> = {};
  const allocatable: Record<string, string> = {};
  for (const [name, { healthy, unhealthy, returning }] of [...book.resources].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (!returning) capacity[name] = String(healthy.size + unhealthy.size);
    allocatable[name] = String(healthy.size);
  }
  for (const name of [...book.gone].sort()) {
    capacity[name] = '0';
    allocatable[name] = '0';
  }
  return { capacity, allocatable };
}
