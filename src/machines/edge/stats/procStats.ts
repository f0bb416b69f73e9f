/** A node's own figures from the text of /proc. Pure. */

import { known } from '../../figures/figure.ts';
import type { CpuStats, InterfaceStats, MemoryStats, NetworkStats, SwapStats } from './stats.ts';

/** Clock ticks are a hundredth of a second on every Linux of today (USER_HZ). */
const TICK_NS = 10_000_000n;
const KIB = 1024;
/** Fields of the `cpu` line that are work: user, nice, system, irq, softirq, steal. Idle and waiting are not. */
const BUSY_FIELDS = [0, 1, 2, 5, 6, 7];

export interface ProcTexts {
  stat: string;
  meminfo: string;
  vmstat: string;
  netDev: string;
}

/** Nanoseconds of processor time used by everything since the boot. */
export function usedCpuNs(stat: string): bigint | undefined {
  const fields = /^cpu\s+([\d ]+)$/m.exec(stat)?.[1]?.trim().split(/\s+/);
  if (fields === undefined) return undefined;
  return BUSY_FIELDS.reduce((sum, i) => sum + BigInt(fields[i] ?? '0'), 0n) * TICK_NS;
}

/** Wall milliseconds of the boot. */
export function bootTimeMs(stat: string): number | undefined {
  const seconds = /^btime (\d+)$/m.exec(stat)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}

export function nodeCpu(stat: string, time: string, rate: number | undefined): CpuStats | undefined {
  const used = usedCpuNs(stat);
  if (used === undefined) return undefined;
  return known<CpuStats>({ time, usageNanoCores: rate, usageCoreNanoSeconds: Number(used) });
}

function field(text: string, name: string): number | undefined {
  const value = new RegExp(`^${name}:?\\s+(\\d+)`, 'm').exec(text)?.[1];
  return value === undefined ? undefined : Number(value);
}

/** Working set: what is used without the file pages that are easily reclaimed. */
export function nodeMemory(t: Pick<ProcTexts, 'meminfo' | 'vmstat'>, time: string): MemoryStats | undefined {
  const total = field(t.meminfo, 'MemTotal');
  const free = field(t.meminfo, 'MemFree');
  if (total === undefined || free === undefined) return undefined;
  const usage = (total - free) * KIB;
  const workingSet = Math.max(0, usage - (field(t.meminfo, 'Inactive\\(file\\)') ?? 0) * KIB);
  const anonymous = field(t.meminfo, 'AnonPages');
  return known<MemoryStats>({
    time,
    availableBytes: Math.max(0, total * KIB - workingSet),
    usageBytes: usage,
    workingSetBytes: workingSet,
    rssBytes: anonymous === undefined ? undefined : anonymous * KIB,
    pageFaults: field(t.vmstat, 'pgfault'),
    majorPageFaults: field(t.vmstat, 'pgmajfault'),
  });
}

/** Undefined where the kernel knows no swap. */
export function nodeSwap(meminfo: string, time: string): SwapStats | undefined {
  const total = field(meminfo, 'SwapTotal');
  const free = field(meminfo, 'SwapFree');
  if (total === undefined || free === undefined) return undefined;
  return { time, swapAvailableBytes: free * KIB, swapUsageBytes: Math.max(0, total - free) * KIB };
}

/** How many processes and threads there may be: the lesser of the two limits of the kernel. */
export function taskLimit(...texts: readonly string[]): number | undefined {
  const limits = texts.map((t) => Number.parseInt(t, 10)).filter((n) => n > 0);
  return limits.length === 0 ? undefined : Math.min(...limits);
}

export interface InterfaceCounters extends InterfaceStats {
  rxPackets: number;
  rxDropped: number;
  txPackets: number;
  txDropped: number;
}

/** The loopback, and the host's ends of containers' interfaces: each pod tells its own. The reference leaves out the same. */
const NOT_TOLD = /^(?:lo|veth|docker|nerdctl)/i;

/** Reads `/proc/net/dev`. */
export function interfaceCounters(netDev: string): InterfaceCounters[] {
  return netDev.split('\n').flatMap((line) => {
    const [name = '', figures] = line.split(':', 2).map((part) => part.trim());
    if (figures === undefined || name === '' || NOT_TOLD.test(name) || /\s/.test(name)) return [];
    const [rxBytes = 0, rxPackets = 0, rxErrors = 0, rxDropped = 0, , , , , txBytes = 0, txPackets = 0, txErrors = 0, txDropped = 0] =
      figures.split(/\s+/).map(Number);
    return { name, rxBytes, rxPackets, rxErrors, rxDropped, txBytes, txPackets, txErrors, txDropped };
  });
}

/** As the summary has it; the top fields are those of `eth0`, where there is one. */
export function nodeNetwork(netDev: string, time: string): NetworkStats {
  return networkStats(interfaceCounters(netDev), time);
}
export function networkStats(counters: readonly InterfaceCounters[], time: string): NetworkStats {
  const interfaces = counters.map(
    ({ name, rxBytes, rxErrors, txBytes, txErrors }): InterfaceStats => ({ name, rxBytes, rxErrors, txBytes, txErrors }),
  );
  const eth0 = interfaces.find((i) => i.name === 'eth0');
  return { time, name: '', ...eth0, interfaces };
}

/** Processes and threads that exist: the figure behind the slash of /proc/loadavg. */
export function taskCount(loadavg: string): number | undefined {
  const count = /^\S+ \S+ \S+ \d+\/(\d+)/.exec(loadavg)?.[1];
  return count === undefined ? undefined : Number(count);
}
