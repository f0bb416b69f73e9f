/** What device plugins say, in the JSON shape in which `proto/deviceplugin` is read, and what is kept of it. Pure. */
import type { Device } from '../../wire/cri.ts';

/** What a plugin says of itself. */
export interface PluginOptions {
  preStartRequired: boolean;
  getPreferredAllocationAvailable: boolean;
}
export interface RegisterRequest {
  version: string;
  /** File name of its socket in the folder of ours. */
  endpoint: string;
  resourceName: string;
  options: PluginOptions | null;
}
export interface PluginDevice {
  id: string;
  healthy: boolean;
  /** NUMA nodes it is near to; empty: the plugin does not say. */
  numaNodes: readonly number[];
}
type Strings = Readonly<Record<string, string>>;

/** What a container gets with its devices. */
export interface ContainerResponse {
  envs: Strings;
  mounts: readonly { containerPath: string; hostPath: string; readOnly: boolean }[];
  devices: readonly Device[];
  annotations: Strings;
  cdiDevices: readonly string[];
}

/** Devices of one resource that one container holds. */
export interface Allocation {
  uid: string;
  container: string;
  resource: string;
  /** By NUMA node, -1 where the plugin names none. A device that is near to several is under each. */
  devices: Readonly<Record<string, readonly string[]>>;
  response: ContainerResponse;
}

/** One resource, as its plugin last told of it. */
export interface ResourceDevices {
  healthy: ReadonlySet<string>;
  unhealthy: ReadonlySet<string>;
  /** NUMA nodes by device; a device that is near to none in particular is not in it. */
  numa: ReadonlyMap<string, readonly number[]>;
  /** Its plugin is away: what it last called healthy. None of it is given, and statuses say it on. */
  healthyLast?: ReadonlySet<string>;
  /** Known from before the start of this daemon alone: its plugin has not been back yet. */
  returning: boolean;
}
export interface DeviceLedger {
  resources: ReadonlyMap<string, ResourceDevices>;
  /** Resources that were here and are no more: the node says 0 of them. */
  gone: ReadonlySet<string>;
  allocations: readonly Allocation[];
}
export const NO_DEVICES: DeviceLedger = { resources: new Map(), gone: new Set(), allocations: [] };

/** The NUMA node of devices whose plugin names none. */
export const NO_NODE = '-1';

/** Every device of an allocation, once, in order. */
export function deviceIds(allocation: Pick<Allocation, 'devices'>): string[] {
  return [...new Set(Object.values(allocation.devices).flat())].sort();
}
