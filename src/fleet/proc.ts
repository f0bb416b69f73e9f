/** Files of /proc on a machine of a fleet: what its node tells of processor and memory follows the containers that run there. */
import type { Clock, HostFs } from '../ports/ports.ts';

/** Cores that the machine itself uses, and each running container besides. */
const CORES = { machine: 0.05, container: 0.01 };
/** Bytes, as above. */
const MEMORY = { machine: 512 * 2 ** 20, container: 16 * 2 ** 20 };
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
  /** Containers that run now. */
  running(): number;
}

/** The file system of a machine, its /proc included. */
export function withProc(fs: HostFs, facts: MachineFacts): HostFs {
  const { clock, cpus, memoryBytes, running } = facts;
  const bootSeconds = Math.floor(clock.wallMs() / 1000);
  const usage = { coreSeconds: 1, atMs: clock.monoMs() };
  const stat = (): string => {
    const nowMs = clock.monoMs();
    const cores = Math.min(cpus, CORES.machine + CORES.container * running());
    usage.coreSeconds += (cores * (nowMs - usage.atMs)) / 1000;
    usage.atMs = nowMs;
    return `cpu  ${Math.round(usage.coreSeconds * TICKS_PER_SECOND)} 0 0 0 0 0 0 0 0 0\nbtime ${bootSeconds}\n`;
  };
  const meminfo = (): string => {
    const used = Math.min(memoryBytes, MEMORY.machine + MEMORY.container * running());
    const kib = (bytes: number): string => `${Math.floor(bytes / KIB)} kB`;
    return `MemTotal: ${kib(memoryBytes)}\nMemFree: ${kib(memoryBytes - used)}\nAnonPages: ${kib(used)}\nInactive(file): 0 kB\n`;
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
