/** The drivers on one machine of a fleet: they register with its kubelet. Those of CSI stage and publish volumes, the others prepare devices. */
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { Csi } from '@actorlet/kubelet/ports/sockets/csi.ts';
import type { Dra } from '@actorlet/kubelet/ports/sockets/dra.ts';
import type { SimMounts } from '@actorlet/world/src/disk/mounts.ts';
import type { SimDisk } from '@actorlet/world/src/disk/types.ts';
import { simDra } from '@actorlet/world/src/plugins/dra.ts';
import { SimDrivers } from '@actorlet/world/src/plugins/drivers.ts';
import { DRA_TYPE } from '@actorlet/world/src/plugins/machineDra.ts';
import { driverFs } from '@actorlet/world/src/plugins/machineDrivers.ts';
import type { DevicesSpec } from '../spec/hardware/devices.ts';
import type { StorageSpec } from '../spec/hardware/storage.ts';
import { ROOT_DIR } from './config.ts';

interface Machine {
  storage: readonly StorageSpec[];
  devices: readonly DevicesSpec[];
  node: string;
  disk: Pick<SimDisk, 'putSocket' | 'makeDir' | 'has' | 'drop'>;
  mounts: SimMounts;
  clock: Clock;
}

export interface MachineDrivers {
  /** For a daemon of the machine. */
  connect(): { csi: Csi; dra?: Dra };
  /** Nothing is staged, published or prepared any more. */
  powerLoss(): void;
}

/** Null: there are none. */
export function driversOf({ storage, devices, node, disk, mounts, clock }: Machine): MachineDrivers | null {
  if (storage.length === 0 && devices.length === 0) return null;
  const drivers = new SimDrivers();
  // Nobody reads what was asked, and it would grow for ever.
  drivers.onCall = () => {
    drivers.calls.length = 0;
  };
  const folder = `${ROOT_DIR}/plugins_registry`;
  disk.makeDir(folder);
  for (const { driver, volumesMax } of storage) {
    const socket = `${folder}/${driver}-reg.sock`;
    drivers.add(socket, { name: driver, nodeId: node, volumesMax });
    disk.putSocket(socket);
  }
  const dra = simDra();
  dra.onCall = () => {
    dra.calls.length = 0;
  };
  for (const { driver } of devices) {
    const socket = `${folder}/${driver}-dra-reg.sock`;
    drivers.add(socket, { name: driver, type: DRA_TYPE, versions: ['v1.DRAPlugin'] });
    dra.add(socket, { name: driver });
    disk.putSocket(socket);
  }
  const power = { on: true };
  return {
    connect: () => ({
      csi: drivers.connect({ fs: driverFs(disk), mounts, clock, power }),
      ...(devices.length === 0 ? {} : { dra: dra.connect({ clock, power }) }),
    }),
    powerLoss() {
      drivers.powerLoss();
      dra.powerLoss();
    },
  };
}
