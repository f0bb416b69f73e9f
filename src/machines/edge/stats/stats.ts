/** The shapes of /stats/summary (stats.k8s.io v1alpha1, boot-and-node 8.4), and its figures from what was read. Pure. */
import { type FsStats, figure, isoOfNanos, known } from '../../figures/figure.ts';
import type { PsiStats } from '../../figures/groupStats.ts';
import type { PodVolumes, VolumeStats } from '../../figures/volumeStats.ts';
import type { PodRef } from '../../pod/names.ts';
import { CRI_LABELS } from '../../wire/cri.ts';
import type { CriContainerStats, FilesystemUsage } from '../../wire/criStats.ts';

export interface CpuStats {
  time: string;
  usageNanoCores?: number;
  usageCoreNanoSeconds?: number;
  psi?: PsiStats;
}
export interface MemoryStats {
  time: string;
  availableBytes?: number;
  usageBytes?: number;
  workingSetBytes?: number;
  rssBytes?: number;
  pageFaults?: number;
  majorPageFaults?: number;
  psi?: PsiStats;
}
interface IoStats {
  time: string;
  psi?: PsiStats;
}
export interface SwapStats {
  time: string;
  swapAvailableBytes?: number;
  swapUsageBytes?: number;
}

export interface InterfaceStats {
  name: string;
  rxBytes: number;
  rxErrors: number;
  txBytes: number;
  txErrors: number;
}
export interface NetworkStats extends Partial<InterfaceStats> {
  time: string;
  name: string;
  interfaces?: readonly InterfaceStats[];
}
export interface ContainerStats {
  name: string;
  startTime: string | null;
  cpu?: CpuStats;
  memory?: MemoryStats;
  rootfs?: FsStats;
  logs?: FsStats;
  swap?: SwapStats;
  io?: IoStats;
}
export interface PodStats {
  podRef: PodRef;
  startTime: string | null;
  containers: readonly ContainerStats[];
  cpu?: CpuStats;
  memory?: MemoryStats;
  io?: IoStats;
  network?: NetworkStats;
  volume?: readonly VolumeStats[];
  'ephemeral-storage'?: FsStats;
  swap?: SwapStats;
  /** Processes of its containers, without the sandbox. */
  process_stats?: { process_count: number };
}
export interface NodeStats {
  nodeName: string;
  systemContainers?: readonly ContainerStats[];
  startTime: string | null;
  io?: IoStats;
  cpu?: CpuStats;
  memory?: MemoryStats;
  network?: NetworkStats;
  fs?: FsStats;
  runtime?: { imageFs?: FsStats; containerFs?: FsStats };
  rlimit?: { time: string; maxpid?: number; curproc?: number };
  swap?: SwapStats;
}
export interface Summary {
  node: NodeStats;
  pods: readonly PodStats[];
}

/** Cumulative processor time at a moment. */
export interface CpuSample {
  atNs: bigint;
  usedNs: bigint;
}

/** Nanoseconds of processor time per second between two samples; undefined where they say nothing. */
export function cpuRate(from: CpuSample | undefined, to: CpuSample): number | undefined {
  if (from === undefined || to.atNs <= from.atNs || to.usedNs < from.usedNs) return undefined;
  return Math.round((Number(to.usedNs - from.usedNs) / Number(to.atNs - from.atNs)) * 1e9);
}

/** Size and room of one file system, as statfs has them. */
export interface FsRoom {
  bytesTotal: number;
  /** To everybody. */
  bytesAvailable: number;
  /** With what is set aside for root; absent: as much as is available. */
  bytesFree?: number;
  inodesTotal: number;
  inodesFree: number;
}
export function fsStats(
  time: string,
  room: FsRoom | undefined,
  used: { bytes?: number | undefined; inodes?: number | undefined },
): FsStats {
  return known<FsStats>({
    time,
    availableBytes: room?.bytesAvailable,
    capacityBytes: room?.bytesTotal,
    usedBytes: used.bytes,
    inodesFree: room?.inodesFree,
    inodes: room?.inodesTotal,
    inodesUsed: used.inodes,
  });
}

/** What the summary is made of, besides the node's own figures. */
export interface RuntimeFigures {
  /** Pods whose newest sandbox is ready, with their creation times. */
  sandboxes: readonly { ref: PodRef; createdAtNs: bigint }[];
  /** Start of running containers by id. */
  startedAtNs: ReadonlyMap<string, bigint>;
  stats: readonly CriContainerStats[];
  rates: ReadonlyMap<string, number>;
  /** Processor and memory of the groups of pods, by UID: also what ended containers used. */
  groups: ReadonlyMap<string, Pick<PodStats, 'cpu' | 'memory'>>;
  /** Bytes and files of a container's log folder, by UID and container. */
  logs(uid: string, container: string): { bytes: number; files: number } | undefined;
  /** Bytes on disk of the file that pods have at /etc/hosts, by UID. */
  hostsBytes: ReadonlyMap<string, number>;
  /** By UID. */
  volumes: ReadonlyMap<string, PodVolumes>;
  nodeFs: FsRoom | undefined;
  /** Of writable layers. */
  layerFs: FsRoom | undefined;
  /** The machine has no swap, so a container of which the runtime does not tell uses none. */
  noSwap: boolean;
  /** Processor and memory only. */
  brief: boolean;
}

/** Pods whose newest sandbox is ready and of which a container runs. */
export function podStats(f: RuntimeFigures): PodStats[] {
  const byUid = new Map<string, { container: ContainerStats; stats: CriContainerStats }[]>();
  for (const s of f.stats) {
    const { attributes } = s;
    const startedAt = attributes === null ? undefined : f.startedAtNs.get(attributes.id);
    // Without a start it is not a running container of this node.
    if (attributes === null || startedAt === undefined) continue;
    const uid = attributes.labels[CRI_LABELS.podUid] ?? '';
    const container = containerStats(f, s, { uid, id: attributes.id, startedAt, name: attributes.labels[CRI_LABELS.containerName] ?? '' });
    const list = byUid.get(uid) ?? [];
    list.push({ container, stats: s });
    byUid.set(uid, list);
  }
  return f.sandboxes.flatMap(({ ref, createdAtNs }) => {
    const mine = (byUid.get(ref.uid) ?? []).map((m) => m.container);
    if (mine.length === 0) return [];
    return {
      podRef: { name: ref.name, namespace: ref.namespace, uid: ref.uid },
      startTime: isoOfNanos(createdAtNs),
      containers: mine,
      ...useOf(f, mine, ref.uid),
      ...(f.brief ? {} : storage(f, mine, ref.uid)),
      ...swapOf(mine),
    };
  });
}

function containerStats(
  f: RuntimeFigures,
  s: CriContainerStats,
  of: { uid: string; id: string; startedAt: bigint; name: string },
): ContainerStats {
  const cpu =
    s.cpu === null
      ? undefined
      : known<CpuStats>({
          time: isoOfNanos(BigInt(s.cpu.timestamp)),
          usageNanoCores: figure(s.cpu.usageNanoCores) ?? f.rates.get(of.id),
          usageCoreNanoSeconds: figure(s.cpu.usageCoreNanoSeconds),
        });
  const memory =
    s.memory === null
      ? undefined
      : known<MemoryStats>({
          time: isoOfNanos(BigInt(s.memory.timestamp)),
          availableBytes: figure(s.memory.availableBytes) || undefined,
          usageBytes: figure(s.memory.usageBytes) || undefined,
          workingSetBytes: figure(s.memory.workingSetBytes),
          rssBytes: figure(s.memory.rssBytes) || undefined,
          pageFaults: figure(s.memory.pageFaults),
          majorPageFaults: figure(s.memory.majorPageFaults),
        });
  const brief = known<ContainerStats>({
    name: of.name,
    startTime: isoOfNanos(of.startedAt),
    cpu,
    memory,
    rootfs: undefined,
    logs: undefined,
    swap: swapStats(s) ?? (f.noSwap ? noSwap(cpu?.time ?? memory?.time) : undefined),
  });
  if (f.brief) return brief;
  const layer: FilesystemUsage | null = s.writableLayer;
  const logs = f.logs(of.uid, of.name);
  const time = cpu?.time ?? memory?.time ?? brief.startTime ?? '';
  return known<ContainerStats>({
    ...brief,
    cpu,
    memory,
    rootfs:
      layer === null
        ? undefined
        : fsStats(isoOfNanos(BigInt(layer.timestamp)), f.layerFs, { bytes: figure(layer.usedBytes), inodes: figure(layer.inodesUsed) }),
    logs: logs === undefined ? undefined : fsStats(time, f.nodeFs, { bytes: logs.bytes, inodes: logs.files }),
  });
}

function swapStats({ swap }: CriContainerStats): SwapStats | undefined {
  if (swap === undefined || swap === null) return undefined;
  return known<SwapStats>({
    time: isoOfNanos(BigInt(swap.timestamp)),
    swapAvailableBytes: figure(swap.swapAvailableBytes),
    swapUsageBytes: figure(swap.swapUsageBytes),
  });
}

function noSwap(time: string | undefined): SwapStats | undefined {
  return time === undefined ? undefined : { time, swapAvailableBytes: 0, swapUsageBytes: 0 };
}

/** Swap of a pod: the sum of its containers. */
export function swapOf(containers: readonly ContainerStats[]): Pick<PodStats, 'swap'> {
  const all = containers.flatMap((c) => c.swap ?? []);
  if (all.length === 0) return {};
  const swap = known<SwapStats>({
    time: latest(all),
    swapAvailableBytes: total(all.map((s) => s.swapAvailableBytes)),
    swapUsageBytes: total(all.map((s) => s.swapUsageBytes)),
  });
  return { swap };
}

/**
 * Of its group: the sum of its containers falls when one of them starts anew. What the group does not tell is that sum, such as
 * the rate at the first look.
 */
function useOf(f: RuntimeFigures, containers: readonly ContainerStats[], uid: string): Pick<PodStats, 'cpu' | 'memory'> {
  const summed = sums(containers);
  const own = f.groups.get(uid);
  const cpu = own?.cpu && known<CpuStats>({ ...own.cpu, usageNanoCores: own.cpu.usageNanoCores ?? summed.cpu?.usageNanoCores });
  return { ...summed, ...own, ...(cpu === undefined ? {} : { cpu }) };
}

function sums(containers: readonly ContainerStats[]): { cpu?: CpuStats; memory?: MemoryStats } {
  const cpus = containers.flatMap((c) => c.cpu ?? []);
  const memories = containers.flatMap((c) => c.memory ?? []);
  return {
    ...(cpus.length === 0
      ? {}
      : {
          cpu: known<CpuStats>({
            time: latest(cpus),
            usageNanoCores: total(cpus.map((c) => c.usageNanoCores)),
            usageCoreNanoSeconds: total(cpus.map((c) => c.usageCoreNanoSeconds)),
          }),
        }),
    ...(memories.length === 0
      ? {}
      : {
          memory: known<MemoryStats>({
            time: latest(memories),
            availableBytes: total(memories.map((m) => m.availableBytes)),
            usageBytes: total(memories.map((m) => m.usageBytes)),
            workingSetBytes: total(memories.map((m) => m.workingSetBytes)),
            rssBytes: total(memories.map((m) => m.rssBytes)),
            pageFaults: total(memories.map((m) => m.pageFaults)),
            majorPageFaults: total(memories.map((m) => m.majorPageFaults)),
          }),
        }),
  };
}

function storage(f: RuntimeFigures, containers: readonly ContainerStats[], uid: string): Pick<PodStats, 'volume' | 'ephemeral-storage'> {
  const volumes = f.volumes.get(uid);
  const hostsBytes = f.hostsBytes.get(uid);
  const parts: FsStats[] = [...containers.flatMap((c) => [c.rootfs ?? [], c.logs ?? []].flat()), ...(volumes?.ephemeral ?? [])];
  const hosts = hostsBytes === undefined ? { usedBytes: 0, inodesUsed: 0 } : { usedBytes: hostsBytes, inodesUsed: 1 };
  const add = (field: 'usedBytes' | 'inodesUsed') => parts.reduce((sum, p) => sum + (p[field] ?? 0), hosts[field]);
  return {
    ...(volumes === undefined ? {} : { volume: volumes.all }),
    ...(parts.length === 0
      ? {}
      : { 'ephemeral-storage': fsStats(latest(parts), f.nodeFs, { bytes: add('usedBytes'), inodes: add('inodesUsed') }) }),
  };
}

/** Unknown as soon as one part is: a sum that leaves something out misleads. */
function total(values: readonly (number | undefined)[]): number | undefined {
  let sum = 0;
  for (const v of values) {
    if (v === undefined) return undefined;
    sum += v;
  }
  return sum;
}
function latest(of: readonly { time: string }[]): string {
  return of.reduce((max, { time }) => (time > max ? time : max), '');
}
