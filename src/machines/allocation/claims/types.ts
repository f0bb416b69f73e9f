/** What is known of ResourceClaims on this node, and of the drivers that prepare them. */

/** A device that a driver prepared. */
export interface PreparedDevice {
  pool: string;
  device: string;
  shareId: string | null;
  /** Requests of the claim that it belongs to; none: all. */
  requests: readonly string[];
  /** What the runtime is given, such as `vendor.com/gpu=0`. */
  cdiIds: readonly string[];
}

/** A claim that pods of this node use. It is on disk before a driver hears of it. */
export interface ClaimRecord {
  namespace: string;
  name: string;
  uid: string;
  /** UIDs. */
  pods: ReadonlySet<string>;
  /** What each driver prepared; nothing before it did. */
  drivers: ReadonlyMap<string, readonly PreparedDevice[]>;
  /** Every driver has prepared it since the daemon started. Not on disk, as in the reference. */
  prepared: boolean;
  /** The runtime could not find a device of it: nothing is given to a container before it is prepared again. */
  doubted?: boolean;
}

/** By namespace and name: a namespace has one claim of a name at a time. */
export function claimKey({ namespace, name }: Pick<ClaimRecord, 'namespace' | 'name'>): string {
  return `${namespace}/${name}`;
}

/** Namespace and name of a {@link claimKey}. */
export function splitKey(key: string): { namespace: string; name: string } {
  const slash = key.indexOf('/');
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** By pool and name: a driver has one device of a name in a pool. */
export function deviceKey({ pool, device }: Pick<PreparedDevice, 'pool' | 'device'>): string {
  return `${pool}/${device}`;
}

/** Devices of one driver whose health is kept. */
export const HEALTH_MAX = 100_000;
export type Health = 'Healthy' | 'Unhealthy' | 'Unknown';
/** What a driver says of a device. It holds for so long, then the health is unknown. */
export interface DeviceHealth {
  pool: string;
  device: string;
  health: Health;
  message: string;
  timeoutMs: number;
}
