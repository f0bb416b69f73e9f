/** The storage driver beside a simulated machine: how it is, and what it does with directories. */
import type { SimDisk } from '../disk/types.ts';
import type { SimRng } from '../rng.ts';
import { type DriverFs, SimDrivers } from './drivers.ts';

/** Its name in the cluster. */
export const DRIVER = 'csi.sim';

export interface DriverTuning {
  /** It stages volumes before it publishes them. */
  stages: boolean;
  /** Longest ordinary latency of a call. */
  latencyMs: number;
}

/** It is there from the beginning; null: there is none. */
export function driversOf(
  tuning: DriverTuning | null,
  o: { disk: Pick<SimDisk, 'putSocket'>; nodeId: string; socket: string; rng: SimRng },
): SimDrivers {
  const drivers = new SimDrivers();
  if (tuning === null) return drivers;
  drivers.latencyMs = () => o.rng.between(0, tuning.latencyMs);
  drivers.add(o.socket, {
    name: DRIVER,
    nodeId: o.nodeId,
    capabilities: new Set([...(tuning.stages ? (['STAGE_UNSTAGE_VOLUME'] as const) : []), 'EXPAND_VOLUME']),
  });
  o.disk.putSocket(o.socket);
  return drivers;
}

/** A driver's own hands: faults of the disk are the node's to meet. */
export function driverFs(disk: Pick<SimDisk, 'has' | 'makeDir' | 'drop'>): DriverFs {
  return {
    async lstat(path) {
      if (!disk.has(path)) throw Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' });
      return { kind: 'dir', size: 0, diskBytes: 0, links: 1, mode: 0o750, mtimeMs: 0, ctimeMs: 0, dev: 1, ino: 0 };
    },
    async mkdirp(path) {
      const isNew = !disk.has(path);
      disk.makeDir(path);
      return isNew;
    },
    async rmdir(path) {
      if (disk.has(path)) disk.drop(path);
    },
  };
}
