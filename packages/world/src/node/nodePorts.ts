/** The ports of one daemon on a simulated machine. */

import { documentsHere } from '@actorlet/kubelet/actors/pods/sources/document.ts';
import type { Clock, HostFs, Ports } from '@actorlet/kubelet/ports/ports.ts';
import type { SimDisk } from '../disk/types.ts';
import { md5Hex, sha256Hex } from '../globals.ts';
import { CPUS, cpusOfHost } from '../host/cpus.ts';
import { memoryOfHost } from '../host/memory.ts';
import { addressOf, identityPorts } from '../identity/identity.ts';
import { MEMORY_BYTES } from '../paths.ts';
import { driverFs } from '../plugins/machineDrivers.ts';
import type { SimRng } from '../rng.ts';
import type { Power, SimTime } from '../time.ts';
import { countingMetrics, simLogger } from './instruments.ts';
import { simProber } from './prober.ts';
import { simProfiler } from './profiler.ts';
import type { SimNode } from './types.ts';

export interface NodePortsOptions {
  node: SimNode;
  rng: SimRng;
  time: SimTime;
  machineClock: Clock;
  /** On as long as the daemon lives. */
  power: Power;
  log(level: string, text: string): void;
}

export function portsFor(o: NodePortsOptions): Ports {
  const { node, time, power } = o;
  const { net, tuning } = node;
  const clock = time.clockFor(power, () => node.wallOffsetMs);
  const { fs, watchDir } = node.disk.mount(power, clock);
  const own = o.rng.fork(`daemon-${node.boots}`);
  const chance = own.fork('jitter');
  const bytes = own.fork('entropy');
  return {
    clock,
    rng: { next: () => chance.next() },
    yield: time.yieldFor(power),
    fs,
    documents: documentsHere({ md5Hex }),
    sys: { watchDir, notify: () => false },
    net: net.connect(power, { http: () => node.http(), taken: tuning.portsTaken, closesBadly: tuning.closesBadly }),
    prober: simProber(power, clock, () => node.probed()),
    host: hostOf(node, own),
    entropy: { bytes: (count) => Uint8Array.from({ length: count }, () => bytes.int(256)), md5Hex, sha256Hex },
    ...connected({ node, machineClock: o.machineClock, clock, power, fs, own }),
    log: simLogger((level, text) => {
      if (power.on) o.log(level, text);
    }),
    metrics: countingMetrics(),
    profiler: simProfiler({ power, clock }),
  };
}

function hostOf(node: SimNode, rng: SimRng): Ports['host'] {
  const { name, index, tuning } = node;
  return {
    hostname: () => name,
    bootId: () => `boot-${name}`,
    capacity: () => ({ memoryBytes: MEMORY_BYTES, cpus: tuning.cpus?.count ?? CPUS }),
    ...cpusOfHost(tuning.cpus),
    memory: () => ({ capacityBytes: MEMORY_BYTES, availableBytes: node.memoryAvailable() }),
    ...memoryOfHost(tuning.throttles),
    tasks: () => ({ current: 500, max: 32_768 }),
    addresses: () => [{ ip: addressOf({ index, rng, certificates: tuning.certificates }), family: 4, interface: 'eth0' }],
    cpuUsageMs: () => 0,
    rssBytes: () => 0,
  };
}

interface Connecting {
  node: SimNode;
  machineClock: Clock;
  clock: Clock;
  power: Power;
  fs: HostFs;
  own: SimRng;
}

/** The daemon's connections to the parts of its machine. */
function connected({ node, machineClock, clock, power, fs, own }: Connecting) {
  const { kube, disk, name, tuning, mounts } = node;
  return {
    cri: node.runtime.connect({ power, clock, boot: node.boots }),
    ...(kube === undefined
      ? {}
      : identityPorts({
          kube,
          disk,
          name,
          rng: own,
          certificates: tuning.certificates,
          podKeys: tuning.podIdentities,
          daemon: { power, clock },
        })),
    mounter: mounts.connect({ disk: { fs, emptyDir: (path) => disk.emptyDir(path) }, clock, power }),
    ...(tuning.kernelLog ? { kernelLog: node.kernelLog.connect({ clock, power }) } : {}),
    ...(tuning.packetFilter ? { iptables: node.iptables.connect({ clock, power }) } : {}),
    ...(tuning.shutdown === null ? {} : { inhibitor: node.logind.connect({ clock, power }) }),
    ...(tuning.cgroups === null ? {} : { cgroups: node.cgroups.connect({ clock, power }) }),
    ...(tuning.devices === null ? {} : { devicePlugins: node.devices.connect({ clock, power, makeSocket: bindOn(disk) }) }),
    ...(tuning.claims === null ? {} : { dra: node.dra.connect({ clock, power }) }),
    ...(tuning.driver === null && tuning.claims === null
      ? {}
      : { csi: node.drivers.connect({ fs: driverFs(disk), mounts, clock: machineClock, power }) }),
    ...node.beside.connect({ power, clock, fs }),
  };
}

/** As binding does it: where a file is already, nobody can listen. */
function bindOn(disk: SimDisk): (path: string) => void {
  return (path) => {
    if (disk.has(path)) throw new Error(`bind ${path}: address already in use`);
    disk.putSocket(path);
  };
}
