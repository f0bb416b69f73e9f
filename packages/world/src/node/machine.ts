/** The parts of a simulated machine that outlive its daemons. */

import { FAMILIES } from '@actorlet/kubelet/machines/services/iptables/families.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import { besideNode, type SimBeside } from '../beside/beside.ts';
import { simDisk } from '../disk/disk.ts';
import { SimMounts } from '../disk/mounts.ts';
import type { SimDisk } from '../disk/types.ts';
import { type SimIptables, simIptables } from '../host/iptables.ts';
import { type SimKernelLog, simKernelLog } from '../host/kernelLog.ts';
import { type SimKernelSettings, simKernelSettings } from '../host/kernelSettings.ts';
import { SimLogind } from '../host/logind.ts';
import { type SimNet, simNet } from '../host/net.ts';
import { leaveFiles } from '../identity/identity.ts';
import type { SimKube } from '../kube/types.ts';
import { CLAIMED_DIRS, DEVICE_FOLDER, DRIVER_SOCKET, HUGE_PAGES, IMAGES, LAYERS, MANIFESTS, nodeName, ROOT_DIR } from '../paths.ts';
import type { SimDevicePlugins } from '../plugins/devicePlugins.ts';
import type { SimDra } from '../plugins/dra.ts';
import type { SimDrivers } from '../plugins/drivers.ts';
import { devicesOf } from '../plugins/machineDevices.ts';
import { draOf } from '../plugins/machineDra.ts';
import { driversOf } from '../plugins/machineDrivers.ts';
import type { SimRng } from '../rng.ts';
import { type SimCgroups, tunedCgroups } from '../runtime/cgroupTrouble.ts';
import { simRuntime } from '../runtime/runtime.ts';
import type { SimRuntime } from '../runtime/types.ts';
import type { SimTime } from '../time.ts';
import type { NodeTuning } from './nodeTuning.ts';

export interface SimMachine {
  readonly name: string;
  readonly index: number;
  readonly disk: SimDisk;
  readonly runtime: SimRuntime;
  readonly mounts: SimMounts;
  readonly net: SimNet;
  readonly kernelLog: SimKernelLog;
  readonly logind: SimLogind;
  readonly iptables: SimIptables;
  readonly kernelSettings: SimKernelSettings;
  readonly cgroups: SimCgroups;
  readonly devices: SimDevicePlugins;
  readonly drivers: SimDrivers;
  readonly dra: SimDra;
  readonly beside: SimBeside;
  readonly tuning: NodeTuning;
  /** The API server of its cluster; undefined: it stands alone. */
  readonly kube: SimKube | undefined;
}

export interface SimMachineOptions {
  index: number;
  rng: SimRng;
  time: SimTime;
  /** The machine's clock. */
  clock: Clock;
  tuning: NodeTuning;
  kube?: SimKube | undefined;
}

export function simMachine(o: SimMachineOptions): SimMachine {
  const { index, rng, clock, tuning, kube } = o;
  const name = nodeName(index);
  const latency = rng.fork('latency');
  const disk = diskOf(name, o);
  const mounts = new SimMounts();
  const runtime = simRuntime({
    ...(tuning.cgroups?.systemd === true ? { cgroupDriver: 'SYSTEMD' as const } : {}),
    ...(tuning.network?.writes === true ? { held: ({ pod }: { pod: { uid: string } }) => mounts.holds(pod.uid) } : {}),
    ...(tuning.splitDisks ? { layerDir: LAYERS } : {}),
    clock,
    rng: rng.fork('runtime'),
    latencyMs: () => latency.between(0, tuning.callLatencyMs),
  });
  disk.isMountPoint = (path) => mounts.table.some((m) => m.path === path);
  const kernelSettings = simKernelSettings();
  kernelSettings.reboot(tuning.kernel?.protect === true);
  const drivers = driversOf(tuning.driver, { disk, nodeId: name, socket: DRIVER_SOCKET, rng: rng.fork('driver-latency') });
  const machine = {
    name,
    index,
    tuning,
    kube,
    disk,
    runtime,
    mounts,
    net: simNet(),
    kernelLog: simKernelLog(clock),
    logind: new SimLogind(clock),
    iptables: simIptables(),
    kernelSettings,
    drivers,
    dra: draOf(tuning.claims, { disk, drivers, rng: rng.fork('dra-latency') }),
    beside: besideNode(tuning.beside, { disk, runtime, clock, rng: rng.fork('beside') }),
    cgroups: tunedCgroups({ tuning: tuning.cgroups, runtime: runtime.hollow, clock, rng: rng.fork('cgroups') }),
    devices: devicesOf(tuning.devices, { folder: DEVICE_FOLDER, clock, rng: rng.fork('device-latency') }),
  };
  disk.trouble.delayMs = () => latency.between(0, tuning.diskLatencyMs);
  runtime.trouble.noHints = !tuning.hints;
  runtime.trouble.anonymousHints = tuning.anonymousHints;
  runtime.trouble.lagMs = tuning.lagMs;
  return machine;
}

function diskOf(name: string, { time, clock, rng, tuning }: SimMachineOptions): SimDisk {
  const disk = simDisk({ time, clock });
  for (const dir of [MANIFESTS, ROOT_DIR, '/var/log', IMAGES, ...CLAIMED_DIRS]) disk.makeDir(dir);
  if (tuning.splitDisks) {
    disk.makeDir(LAYERS);
    disk.deviceOf = (path) => (path === IMAGES ? 2 : 1);
  }
  disk.put('/etc/hosts', '127.0.0.1 localhost\n');
  disk.put(HUGE_PAGES.path, `${HUGE_PAGES.count}\n`);
  leaveFiles(disk, { name, rng: rng.fork('files'), certificates: tuning.certificates });
  return disk;
}

/** What a pulled plug does to all but the runtime; `rng`: decides what the disk keeps. */
export function losePower(machine: SimMachine, rng: SimRng): void {
  const { mounts, disk, drivers, dra, cgroups, logind, iptables, kernelSettings, tuning } = machine;
  mounts.powerLoss(disk);
  drivers.powerLoss();
  dra.powerLoss();
  cgroups.powerLoss();
  logind.reboot();
  for (const family of FAMILIES) iptables.flush(family);
  kernelSettings.reboot(tuning.kernel?.protect === true);
  disk.powerLoss(rng);
}
