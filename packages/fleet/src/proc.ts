/** Files of /proc on a machine of a fleet: what its node tells of processor and memory follows the containers that run there. */
import type { Clock, HostFs } from '@actorlet/kubelet/ports/ports.ts';

/** Cores and bytes that the machine itself uses, besides what its containers do. */
const OWN = { cores: 0.05, memoryBytes: 512 * 2 ** 20 };
/** USER_HZ. */
const TICKS_PER_SECOND = 100;
const KIB = 1024;
const STATIC: Readonly<Record<string, string>> = {
  '/proc/vmstat': 'pgfault 0\npgmajfault 0\n',
  '/proc/net/dev': 'Inter-|\n face |\n  eth0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n',
  '/proc/loadavg': '0.00 0.00 0.00 1/200 1000\n',
  '/proc/sys/kernel/pid_max': '4194304\n',
  '/proc/sys/kernel/threads-max': '127000\n',
};

export interface MachineFacts {
  clock: Clock;
  cpus: number;
  memoryBytes: number;
  /** What the containers use now. */
  used(): { cores: number; memoryBytes: number };
}

/** The file system of a machine, its /proc included. */
export function withProc(fs: HostFs, facts: MachineFacts): HostFs {
  const { clock, cpus, memoryBytes, used } = facts;
  const bootSeconds = Math.floor(clock.wallMs() / 1000);
  const usage = { coreSeconds: 1, atMs: clock.monoMs() };
  const stat = (): string => {
    const nowMs = clock.monoMs();
    const cores = Math.min(cpus, OWN.cores + used().cores);
    usage.coreSeconds += (cores * (nowMs - usage.atMs)) / 1000;
    usage.atMs = nowMs;
    return `cpu  ${Math.round(usage.coreSeconds * TICKS_PER_SECOND)} 0 0 0 0 0 0 0 0 0\nbtime ${bootSeconds}\n`;
  };
  const meminfo = (): string => {
    const inUse = Math.min(memoryBytes, OWN.memoryBytes + used().memoryBytes);
    const kib = (bytes: number): string => `${Math.floor(bytes / KIB)} kB`;
    return `MemTotal: ${kib(memoryBytes)}\nMemFree: ${kib(memoryBytes - inUse)}\nAnonPages: ${kib(inUse)}\nInactive(file): 0 kB\n`;
  };
  const textOf = (path: string): string | undefined => {
    if (path === '/proc/stat') return stat();
    return path === '/proc/meminfo' ? meminfo() : STATIC[path];
  };
  return {
    ...fs,
    readFile: async (path, o) => {
      const text = textOf(path);
      return text === undefined ? fs.readFile(path, o) : new TextEncoder().encode(text);
    },
  };
}
