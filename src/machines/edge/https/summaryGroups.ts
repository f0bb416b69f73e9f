/** What /stats/summary has from cgroups and network namespaces: pressure, networks of pods, groups of the machine. Pure. */
import { containerKey, type GroupReading } from './cadvisorMetrics.ts';
import { groupUse, type Psi, psiOf } from './groupStats.ts';
import { networkStats } from './procStats.ts';
import { type ContainerStats, type CpuStats, known, type MemoryStats, type PodStats, type Summary } from './stats.ts';

/** The reference's names: the agent, the container runtime, other programs, all pods. */
export const SYSTEM_GROUPS = ['kubelet', 'runtime', 'misc', 'pods'] as const;
export interface SystemGroup {
  name: (typeof SYSTEM_GROUPS)[number];
  /** When the group was made. */
  startTime: string | null;
  /** Of its files, by name. */
  texts: ReadonlyMap<string, string>;
}

/** @param o.rate Nanoseconds of processor time per second, from those used by now. */
export function systemContainer(
  { name, startTime, texts }: SystemGroup,
  o: { time: string; rate: (usedNs: bigint) => number | undefined },
): ContainerStats {
  const { time } = o;
  const use = groupUse(texts);
  const psi = psiOf((what) => texts.get(`${what}.pressure`) ?? '');
  const usedNs = use.cpuNs;
  const cpu =
    usedNs === undefined
      ? undefined
      : known<CpuStats>({ time, usageNanoCores: o.rate(usedNs), usageCoreNanoSeconds: Number(usedNs), psi: psi.cpu });
  const memory = use.memory === undefined ? undefined : known<MemoryStats>({ time, ...use.memory, psi: psi.memory });
  return known<ContainerStats>({ name, startTime, cpu, memory, rootfs: undefined, logs: undefined, swap: undefined, io: ioOf(psi, time) });
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

export function withGroups(summary: Summary, reading: GroupReading, time: string): Summary {
  const networks = new Map(reading.pods.map((p) => [`${p.namespace}/${p.name}`, p.interfaces]));
  const pods = summary.pods.map((pod): PodStats => {
    const { uid, namespace, name } = pod.podRef;
    const containers = pod.containers.map((c) => withPsi(c, reading.containers.get(containerKey(uid, c.name))?.figures?.psi, time));
    const interfaces = networks.get(`${namespace}/${name}`);
    const all = withPsi({ ...pod, containers }, reading.podPsi.get(uid), time);
    return interfaces === undefined ? all : { ...all, network: networkStats(interfaces, time) };
  });
  return { node: withPsi(summary.node, reading.node.psi, time), pods };
}
