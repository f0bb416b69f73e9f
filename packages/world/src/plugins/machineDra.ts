/** The drivers of dynamic resources beside a simulated machine. They register themselves where storage drivers do. */
import type { PreparedDevice } from '@actorlet/kubelet/machines/allocation/claims/types.ts';
import type { SimDisk } from '../disk/types.ts';
import { ROOT_DIR } from '../paths.ts';
import type { SimRng } from '../rng.ts';
import { type SimDra, simDra } from './dra.ts';
import type { SimDrivers } from './drivers.ts';

export interface DraTuning {
  /** Their names. The first has a part in every claim, the second in some. */
  drivers: readonly string[];
  /** Interfaces that each names. */
  versions: readonly string[];
  /** Drivers that tell of the health of their devices. */
  health: readonly string[];
  /** Longest ordinary latency of a call. */
  latencyMs: number;
}

export const DRA_TYPE = 'DRAPlugin';

export function draSocket(driver: string): string {
  return `${ROOT_DIR}/plugins_registry/${driver}-reg.sock`;
}

/** CDI devices of a claim name its UID. */
function cdiName(driver: string, uid: string, more = ''): string {
  return `${driver}/claim=${uid}${more}`;
}
/** Driver and UID of the claim that a CDI device is of; null: it is none of these. */
export function cdiOf(name: string): { driver: string; uid: string } | null {
  const [, driver, uid] = /^([^/]+)\/claim=([^.]+)/.exec(name) ?? [];
  return driver === undefined || uid === undefined ? null : { driver, uid };
}

/** `count`: devices of each claim. */
export function preparedDevices(driver: string, uid: string, count = 1): PreparedDevice[] {
  return Array.from({ length: count }, (_, i) => ({
    ...{ pool: 'node', device: `${uid}-${i}`, shareId: null, requests: [] },
    cdiIds: [cdiName(driver, uid, i === 0 ? '' : `.${i}`)],
  }));
}

/** They are there from the beginning; null: there are none. */
export function draOf(
  tuning: DraTuning | null,
  o: { disk: Pick<SimDisk, 'putSocket'>; drivers: Pick<SimDrivers, 'add'>; rng: SimRng },
): SimDra {
  const dra = simDra();
  if (tuning === null) return dra;
  dra.latencyMs = () => o.rng.between(0, tuning.latencyMs);
  for (const name of tuning.drivers) {
    const socket = draSocket(name);
    o.drivers.add(socket, { name, type: DRA_TYPE, versions: [...tuning.versions] });
    dra.add(socket, { name, devices: ({ uid }) => preparedDevices(name, uid), health: tuning.health.includes(name) ? [] : null });
    o.disk.putSocket(socket);
  }
  return dra;
}
