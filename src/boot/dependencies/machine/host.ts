/** The real Host port: name, addresses, boot id and size of this machine, and what this process uses of it. */
import { lookup } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { BlockList } from 'node:net';
import { arch, availableParallelism, cpus, hostname, networkInterfaces, platform, release, totalmem, uptime } from 'node:os';
import type { HostAddress } from '../../../machines/api/node/nodeAddresses.ts';
import { nodeMemory, taskCount, usedCpuNs } from '../../../machines/edge/stats/procStats.ts';
import { goArch } from '../../../machines/text/go/goArch.ts';
import type { Host, HostIdentity } from '../../../ports/ports.ts';
import { readCpus, readNumaNodes } from './cpuTopology.ts';
import { hostMemoryControl } from './memoryControl.ts';

/** `/proc` answers at once, so these few reads are synchronous. Empty where there is no such file. */
function readTrimmed(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}

/** Loopback, link-local, unspecified and multicast: they mean nothing to peers, or nothing without their interface. */
const LOCAL_ONLY = new BlockList();
for (const [net, bits] of [
  ['0.0.0.0', 8],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['224.0.0.0', 4],
] as const)
  LOCAL_ONLY.addSubnet(net, bits);
for (const [net, bits] of [
  ['::', 127],
  ['fe80::', 10],
  ['ff00::', 8],
] as const)
  LOCAL_ONLY.addSubnet(net, bits, 'ipv6');

export function hostAddresses(interfaces: ReturnType<typeof networkInterfaces>): HostAddress[] {
  const all = Object.entries(interfaces).flatMap(([name, addresses = []]) => addresses.map((a) => ({ ...a, name })));
  return all
    .filter((a) => !LOCAL_ONLY.check(a.address, a.family === 'IPv4' ? 'ipv4' : 'ipv6'))
    .sort((a, b) => Number(a.internal) - Number(b.internal))
    .map((a) => ({ ip: a.address, family: a.family === 'IPv4' ? 4 : 6, interface: a.name }));
}

/** The first namespace of a machine has all ids that there are. */
const ALL_IDS = /^\s*0\s+0\s+4294967295\s*$/;

/** Whether a map of ids (`/proc/self/uid_map`) is that of a user namespace; no map: it is not. */
export function isUserNamespace(map: string): boolean {
  return map !== '' && !ALL_IDS.test(map);
}

function identity(): HostIdentity {
  const pretty = /^PRETTY_NAME=(.*)$/m.exec(readTrimmed('/etc/os-release') || readTrimmed('/usr/lib/os-release'))?.[1] ?? '';
  return {
    machineId: readTrimmed('/etc/machine-id') || readTrimmed('/var/lib/dbus/machine-id'),
    systemUuid: readTrimmed('/sys/class/dmi/id/product_uuid') || readTrimmed('/etc/machine-id'),
    kernelVersion: release(),
    // The file is there with the module, and says Y where it is in use.
    appArmor: readTrimmed('/sys/module/apparmor/parameters/enabled').startsWith('Y'),
    osImage: pretty.replace(/^["']|["']$/g, ''),
    os: platform(),
    arch: goArch(arch()),
  };
}

/** @throws naming the file that does not tell. */
function memory(): { capacityBytes: number; availableBytes: number } {
  const read = nodeMemory({ meminfo: readTrimmed('/proc/meminfo'), vmstat: '' }, '');
  if (read?.availableBytes === undefined || read.workingSetBytes === undefined) throw new Error('/proc/meminfo does not tell');
  return { capacityBytes: read.availableBytes + read.workingSetBytes, availableBytes: read.availableBytes };
}

/** @throws naming the files that do not tell. */
function tasks(): { current: number; max: number } {
  const current = taskCount(readTrimmed('/proc/loadavg'));
  const max = Math.min(...['pid_max', 'threads-max'].map((name) => Number.parseInt(readTrimmed(`/proc/sys/kernel/${name}`), 10)));
  if (current === undefined || !(max > 0)) throw new Error('/proc/loadavg, /proc/sys/kernel/pid_max or threads-max does not tell');
  return { current, max };
}

/** Linux reports times to user space in hundredths of a second whatever the kernel's own tick is. */
const TICK_MS = 10;

/** Waiting for a disk is having nothing to do. NaN where the kernel does not tell. */
function idleMs(): number {
  const [, , , , idle = Number.NaN, waiting = 0] = (readTrimmed('/proc/stat').split('\n', 1)[0] ?? '').split(/\s+/).map(Number);
  return (idle + waiting) * TICK_MS;
}

/** `subordinateIds`: see the port. */
export function createHost(o: Pick<Host, 'subordinateIds'> = {}): Host {
  return {
    ...o,
    folders: { home: process.env.HOME ?? '', working: process.cwd() },
    identity,
    inUserNamespace: () => isUserNamespace(readTrimmed('/proc/self/uid_map')),
    memory,
    memoryControl: () => hostMemoryControl(),
    tasks,
    cpus: () => readCpus(),
    numaNodes: () => readNumaNodes(),
    hostname: () => hostname(),
    bootId: () => readTrimmed('/proc/sys/kernel/random/boot_id'),
    bootTimeMs: () => Date.now() - uptime() * 1000,
    capacity: () => ({ memoryBytes: totalmem(), cpus: cpus().length || availableParallelism() }),
    idleMs,
    usedCpuNs: () => usedCpuNs(readTrimmed('/proc/stat')),
    addresses: () => hostAddresses(networkInterfaces()),
    lookup: async (name) => (await lookup(name, { all: true })).map((a) => a.address),
    cpuUsageMs: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1000;
    },
    rssBytes: () => process.memoryUsage.rss(),
  };
}
