/** What /stats/summary has from cgroups and network namespaces: pressure, networks of pods, groups of the machine. Pure. */

import { known } from '../../figures/figure.ts';
import { type GroupFigures, type GroupUse, groupFigures, groupUse, type Psi, psiOf } from '../../figures/groupStats.ts';
import { containerKey, type GroupReading } from './cadvisorMetrics.ts';
import { networkStats } from './procStats.ts';
import {
  type ContainerStats,
  type CpuStats,
  type MemoryStats,
  type NodeStats,
  type PodStats,
  type Summary,
  type SwapStats,
  swapOf,
} from './stats.ts';

/** The reference's names: the agent, the container runtime, other programs, all pods. */
export const SYSTEM_GROUPS = ['kubelet', 'runtime', 'misc', 'pods'] as const;
export interface SystemGroup {
  name: (typeof SYSTEM_GROUPS)[number];
  /** When the group was made. */
  startTime: string | null;
  /** Texts of its files, by name. */
  texts: ReadonlyMap<string, string>;
}

/**
 * @param o.rate Nanoseconds of processor time per second, from those used by now.
 * @param o.machine Swap of the machine; absent: it does not tell.
 */
export function systemContainer(
  { name, startTime, texts }: SystemGroup,
  o: { time: string; rate: (usedNs: bigint) => number | undefined; machine?: SwapStats | undefined },
): ContainerStats {
  const { time } = o;
  const psi = psiOf((what) => texts.get(`${what}.pressure`) ?? '');
  const { cpu, memory } = useStats(groupUse(texts), { ...o, psi });
  const swap = memory === undefined ? undefined : swapOfGroup(groupFigures(texts), o.machine, time);
  return known<ContainerStats>({ name, startTime, cpu, memory, rootfs: undefined, logs: undefined, swap, io: ioOf(psi, time) });
}

/** Processor and memory of a group. `rate`: nanoseconds of processor time per second, from those used by now. */
export function useStats(
  { cpuNs, memory }: GroupUse,
  o: { time: string; rate: (usedNs: bigint) => number | undefined; psi?: Psi },
): Pick<ContainerStats, 'cpu' | 'memory'> {
  const { time, psi = {} } = o;
  const cpu = cpuNs === undefined ? undefined : { time, usageNanoCores: o.rate(cpuNs), usageCoreNanoSeconds: Number(cpuNs), psi: psi.cpu };
  return known<Pick<ContainerStats, 'cpu' | 'memory'>>({
    cpu: cpu && known<CpuStats>(cpu),
    memory: memory && known<MemoryStats>({ time, ...memory, psi: psi.memory }),
  });
}

/** Without a group of their own all pods are in the root group: its figures are the node's. */
export function podsAtRoot({ startTime, cpu, memory, swap, io }: NodeStats): ContainerStats {
  return known<ContainerStats>({ name: 'pods', startTime, cpu, memory, rootfs: undefined, logs: undefined, swap, io });
}

/** What a group uses of the machine's swap, and may still use. */
function swapOfGroup({ memory, limits }: GroupFigures, machine: SwapStats | undefined, time: string): SwapStats | undefined {
  const { swapAvailableBytes: free, swapUsageBytes: inUse } = machine ?? {};
  if (free === undefined || inUse === undefined) return undefined;
  if (free + inUse === 0) return { time, swapAvailableBytes: 0, swapUsageBytes: 0 };
  const used = memory?.swapBytes;
  if (used === undefined) return undefined;
  const room = limits?.swapRoomBytes;
  const mayUse = room === undefined ? undefined : room === null ? free : Math.min(free, Math.max(0, room - used));
  return known<SwapStats>({ time, swapAvailableBytes: mayUse, swapUsageBytes: used });
}

function ioOf(psi: Psi, time: string): { time: string; psi: NonNullable<Psi['io']> } | undefined {
  return psi.io === undefined ? undefined : { time, psi: psi.io };
}

/** The part of a summary that tells of one thing: a container, a pod, the node. */
type Part = Pick<ContainerStats, 'cpu' | 'memory' | 'io'>;
function withPsi<T extends Part>(part: T, psi: Psi | undefined, time: string): T {
  if (psi === undefined) return part;
  const io = ioOf(psi, time);
  return {
    ...part,
    ...(part.cpu === undefined || psi.cpu === undefined ? {} : { cpu: { ...part.cpu, psi: psi.cpu } }),
    ...(part.memory === undefined || psi.memory === undefined ? {} : { memory: { ...part.memory, psi: psi.memory } }),
    ...(io === undefined ? {} : { io }),
  };
}

/** Where the runtime does not tell. */
function withSwap(c: ContainerStats, figures: GroupFigures | undefined, machine: SwapStats | undefined, time: string): ContainerStats {
  const swap = c.swap === undefined && figures !== undefined ? swapOfGroup(figures, machine, time) : undefined;
  return swap === undefined ? c : { ...c, swap };
}

export function withGroups(summary: Summary, reading: GroupReading, time: string): Summary {
  const networks = new Map(reading.pods.map((p) => [`${p.namespace}/${p.name}`, p.interfaces]));
  const pods = summary.pods.map((pod): PodStats => {
    const { uid, namespace, name } = pod.podRef;
    const containers = pod.containers.map((c) => {
      const { figures } = reading.containers.get(containerKey(uid, c.name)) ?? {};
      return withSwap(withPsi(c, figures?.psi, time), figures, summary.node.swap, time);
    });
    const interfaces = networks.get(`${namespace}/${name}`);
    const swap = pod.swap === undefined && containers.every((c) => c.swap !== undefined) ? swapOf(containers) : {};
    const all = withPsi({ ...pod, containers, ...swap }, reading.podPsi.get(uid), time);
    const counts = pod.containers.flatMap((c) => reading.containers.get(containerKey(uid, c.name))?.figures?.tasks?.processes ?? []);
    return {
      ...all,
      ...(interfaces === undefined ? {} : { network: networkStats(interfaces, time) }),
      ...(counts.length === 0 ? {} : { process_stats: { process_count: counts.reduce((sum, n) => sum + n, 0) } }),
    };
  });
  return { node: withPsi(summary.node, reading.node.psi, time), pods };
}
