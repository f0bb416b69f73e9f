/** Gathers what /stats/summary and /metrics/resource say: from the runtime's own statistics, /proc and the file systems. */

import { type GroupReading, NOTHING_READ } from '../../../machines/edge/stats/cadvisorMetrics.ts';
import { sandboxFigures, withSandboxes } from '../../../machines/edge/stats/criStats.ts';
import {
  bootTimeMs,
  nodeCpu,
  nodeMemory,
  nodeNetwork,
  nodeSwap,
  taskCount,
  taskLimit,
  usedCpuNs,
} from '../../../machines/edge/stats/procStats.ts';
import {
  type CpuSample,
  cpuRate,
  type FsRoom,
  fsStats,
  type NodeStats,
  podStats,
  type Summary,
} from '../../../machines/edge/stats/stats.ts';
import { podsAtRoot, type SystemGroup, systemContainer, useStats, withGroups } from '../../../machines/edge/stats/summaryGroups.ts';
import type { UsageLog } from '../../../machines/edge/stats/usageLog.ts';
import { figure, isoOfNanos, known } from '../../../machines/figures/figure.ts';
import type { GroupUse } from '../../../machines/figures/groupStats.ts';
import type { PodVolumes } from '../../../machines/figures/volumeStats.ts';
import { etcHostsPath } from '../../../machines/pod/names.ts';
import { isPathName } from '../../../machines/pod/pathName.ts';
import { containerLogDir } from '../../../machines/pod/runtime/logNames.ts';
import { CRI_LABELS } from '../../../machines/wire/cri.ts';
import type { CriContainerStats, CriSandboxStats, FilesystemUsage } from '../../../machines/wire/criStats.ts';
import type { Ports } from '../../../ports/ports.ts';
import type { CriClient } from '../../runtime/client.ts';
import type { VolumeUsageSource } from '../../services/client.ts';
import { type LogSize, logSize } from './logMetrics.ts';

export interface StatsOptions {
  ports: Ports;
  cri: CriClient;
  nodeName: string;
  rootDir: string;
  podLogsDir: string;
  volumes: VolumeUsageSource;
  /** Cgroups and networks of containers and pods; never rejects. Absent: they are not told. */
  groups?(): Promise<GroupReading>;
  /** Groups of the agent, the runtime, the system and all pods; never rejects. */
  system?(): Promise<SystemGroup[]>;
  /** What the groups of pods used, by UID; never rejects. Of a pod that is not there its containers' sum is told. */
  podUse?(): Promise<ReadonlyMap<string, GroupUse>>;
  /** Pods have no group of their own, so the root group stands for it. */
  podsAtRoot?: boolean;
  /** What the runtime tells of pods itself. Absent: it is not asked (gate PodAndContainerStatsFromCRI). */
  fromCri?: { sandboxes(signal: AbortSignal): Promise<readonly CriSandboxStats[] | null>; pressure: boolean };
  /** KubeletSeparateDiskGC: writable layers may have a file system of their own. */
  separateDisks?: boolean;
  /** Processor time of the machine so far: the first answer tells the rate since this source was made. */
  usedCpuNs?(): bigint | undefined;
  /** Keeps what was measured for a while. */
  usage?: UsageLog | undefined;
}
export interface StatsSource {
  /** Rejects where a part that must be there cannot be had. `brief`: processor and memory only. */
  summary(o: { brief: boolean; signal: AbortSignal }): Promise<Summary>;
}

const PROC_BYTES_MAX = 1024 * 1024;
/** Two samples closer than this say little; the earlier one is kept. */
const SAMPLE_GAP_NS = 1_000_000_000n;
/** Space on disk is given to files in whole blocks. */
const FILE_BLOCK_BYTES = 4096;
const NODE = 'node';

type Samples = Map<string, { base: CpuSample; rate: number | undefined }>;

/** The rate since the sample before; `next` keeps what the next one is compared with. */
function rateOf(samples: Samples, next: Samples, key: string, now: CpuSample): number | undefined {
  const before = samples.get(key);
  if (before !== undefined && now.atNs - before.base.atNs < SAMPLE_GAP_NS) {
    next.set(key, before);
    return before.rate;
  }
  const rate = cpuRate(before?.base, now);
  next.set(key, { base: now, rate });
  return rate;
}

function ratesOf(stats: readonly CriContainerStats[], samples: Samples, next: Samples): Map<string, number> {
  const rates = new Map<string, number>();
  for (const s of stats) {
    const sample = sampleOf(s);
    const rate = sample === undefined ? undefined : rateOf(samples, next, sample.id, sample);
    if (sample !== undefined && rate !== undefined) rates.set(sample.id, rate);
  }
  return rates;
}

/** Holds the last sample of each container, for rates where the runtime gives none. */
export function createStats(o: StatsOptions): StatsSource {
  let samples: Samples = new Map();
  const usedBefore = o.usedCpuNs?.();
  if (usedBefore !== undefined) samples.set(NODE, { base: { atNs: wallNs(o.ports), usedNs: usedBefore }, rate: undefined });
  return {
    async summary({ brief, signal }) {
      const read = { signal };
      const said = (await o.fromCri?.sandboxes(signal)) ?? null;
      const [listed, containers, sandboxes, proc, volumes, system, podUse, reading] = await Promise.all([
        said === null ? o.cri.read('ListContainerStats', {}, read) : { stats: [] },
        o.cri.read('ListContainers', { filter: { state: { state: 'CONTAINER_RUNNING' } } }, read),
        o.cri.read('ListPodSandbox', {}, read),
        readProc(o.ports.fs),
        brief ? new Map<string, PodVolumes>() : o.volumes(),
        o.system?.() ?? [],
        said === null ? (o.podUse?.() ?? new Map<string, GroupUse>()) : new Map<string, GroupUse>(),
        brief ? NOTHING_READ : (o.groups?.() ?? NOTHING_READ),
      ]);
      const ready = newestReady(sandboxes.items);
      const pressure = o.fromCri?.pressure === true;
      const told = said === null ? null : sandboxFigures(said, { ids: new Set(ready.map(({ id }) => id)), pressure });
      const stats = told?.containers ?? listed.stats;
      const nowNs = wallNs(o.ports);
      const next: Samples = new Map();
      const rates = ratesOf(stats, samples, next);
      const used = usedCpuNs(proc.stat);
      const nodeRate = used === undefined ? undefined : rateOf(samples, next, NODE, { atNs: nowNs, usedNs: used });
      const time = isoOfNanos(nowNs);
      const swap = nodeSwap(proc.meminfo, time);
      const rateOfGroup = (name: string) => (usedNs: bigint) => rateOf(samples, next, `group ${name}`, { atNs: nowNs, usedNs });
      const systemContainers = system.map((group) => systemContainer(group, { time, machine: swap, rate: rateOfGroup(group.name) }));
      const ofPods = new Map([...podUse].map(([uid, use]) => [uid, useStats(use, { time, rate: rateOfGroup(`pod ${uid}`) })]));
      // Only what still exists is kept.
      samples = next;
      const disks = brief ? NO_DISKS : await fileSystems(o, signal);
      const running = containers.containers.filter((c) => c.state === 'CONTAINER_RUNNING');
      const boot = bootTimeMs(proc.stat);
      const node: NodeStats = known<NodeStats>({
        nodeName: o.nodeName,
        systemContainers: systemContainers.length === 0 ? undefined : systemContainers,
        startTime: boot === undefined ? null : isoOfNanos(BigInt(boot) * 1_000_000n),
        cpu: nodeCpu(proc.stat, time, nodeRate),
        memory: nodeMemory(proc, time),
        network: brief ? undefined : nodeNetwork(proc.netDev, time),
        fs: brief ? undefined : fsStats(time, disks.node, usedOf(disks.node)),
        runtime: disks.runtime,
        rlimit: brief ? undefined : known({ time, maxpid: taskLimit(proc.pidMax, proc.threadsMax), curproc: taskCount(proc.loadavg) }),
        swap,
      });
      const logs = brief ? new Map<string, LogSize>() : await logSizes(o, running);
      const hostsBytes = brief ? new Map<string, number>() : await hostsSizes(o, ready);
      const summary: Summary = {
        node,
        pods: podStats({
          sandboxes: ready,
          hostsBytes,
          startedAtNs: new Map(running.map((c) => [c.id, BigInt(c.createdAt)])),
          stats,
          rates,
          groups: ofPods,
          logs: (uid, container) => logs.get(`${uid}/${container}`),
          volumes,
          nodeFs: disks.node,
          layerFs: disks.layers,
          noSwap: swap?.swapAvailableBytes === 0 && swap.swapUsageBytes === 0,
          brief,
        }),
      };
      const look = told === null ? reading : { ...NOTHING_READ, node: reading.node };
      const grouped = brief ? summary : withGroups(summary, look, time);
      const all = told === null ? grouped : withSandboxes(grouped, told, { pressure, brief });
      o.usage?.see(all, Number(nowNs / 1_000_000n));
      if (o.podsAtRoot !== true) return all;
      return { ...all, node: { ...all.node, systemContainers: [...systemContainers, podsAtRoot(all.node)] } };
    },
  };
}

const wallNs = ({ clock }: Pick<Ports, 'clock'>): bigint => BigInt(Math.round(clock.wallMs())) * 1_000_000n;

function sampleOf(s: CriContainerStats): (CpuSample & { id: string }) | undefined {
  const used = figure(s.cpu?.usageCoreNanoSeconds);
  if (s.attributes === null || s.cpu === null || used === undefined) return undefined;
  return { id: s.attributes.id, atNs: BigInt(s.cpu.timestamp), usedNs: BigInt(Math.round(used)) };
}

/** The newest sandbox of each pod, if it is ready. */
function newestReady(items: readonly { id: string; state: string; createdAt: string; labels: Record<string, string> }[]) {
  const newest = new Map<string, (typeof items)[number]>();
  for (const s of items) {
    const uid = s.labels[CRI_LABELS.podUid] ?? '';
    const other = newest.get(uid);
    if (other === undefined || BigInt(s.createdAt) > BigInt(other.createdAt)) newest.set(uid, s);
  }
  return [...newest]
    .filter(([, s]) => s.state === 'SANDBOX_READY')
    .map(([uid, s]) => ({
      id: s.id,
      ref: { uid, name: s.labels[CRI_LABELS.podName] ?? '', namespace: s.labels[CRI_LABELS.podNamespace] ?? '' },
      createdAtNs: BigInt(s.createdAt),
    }));
}

async function readProc(fs: Ports['fs']) {
  const read = async (path: string): Promise<string> => new TextDecoder().decode(await fs.readFile(path, { bytesMax: PROC_BYTES_MAX }));
  const [stat, meminfo, vmstat, netDev, loadavg, pidMax] = await Promise.all(
    ['/proc/stat', '/proc/meminfo', '/proc/vmstat', '/proc/net/dev', '/proc/loadavg', '/proc/sys/kernel/pid_max'].map(read),
  );
  return {
    stat: stat ?? '',
    meminfo: meminfo ?? '',
    vmstat: vmstat ?? '',
    netDev: netDev ?? '',
    loadavg: loadavg ?? '',
    pidMax: pidMax ?? '',
    threadsMax: await read('/proc/sys/kernel/threads-max').catch(() => ''),
  };
}

interface Disks {
  node: FsRoom | undefined;
  /** Of writable layers. */
  layers: FsRoom | undefined;
  runtime: NodeStats['runtime'];
}
const NO_DISKS: Disks = { node: undefined, layers: undefined, runtime: undefined };

async function fileSystems(o: StatsOptions, signal: AbortSignal): Promise<Disks> {
  const node = await o.ports.fs.statfs(o.rootDir);
  const { imageFilesystems, containerFilesystems } = await o.cri.read('ImageFsInfo', {}, { signal });
  const [images] = imageFilesystems;
  if (images === undefined) throw new Error('the runtime names no file system for images');
  const imageRoom = await roomOf(o, images);
  const imageFs = tellsOf(images, imageRoom);
  const layers = o.separateDisks === true ? await ownDisk(o, images, containerFilesystems?.[0]) : undefined;
  if (layers === undefined) return { node, layers: imageRoom, runtime: { imageFs, containerFs: imageFs } };
  const room = await roomOf(o, layers);
  return { node, layers: room, runtime: { imageFs, containerFs: tellsOf(layers, room) } };
}

/** The runtime may name a place that this process cannot see; then its room is not known. */
async function roomOf({ ports: { fs } }: StatsOptions, { fsId }: FilesystemUsage): Promise<FsRoom | undefined> {
  return fsId === null || fsId.mountpoint === '' ? undefined : await fs.statfs(fsId.mountpoint).catch(() => undefined);
}

/** File system of writable layers, where it is another than that of images: two places on one device are one. */
async function ownDisk(o: StatsOptions, images: FilesystemUsage, layers: FilesystemUsage | undefined) {
  const places = [images, layers].map((usage) => usage?.fsId?.mountpoint ?? '');
  if (places.includes('') || places[0] === places[1]) return undefined;
  const [here, there] = await Promise.all(
    places.map((path) =>
      o.ports.fs.stat(path).then(
        ({ dev }) => dev,
        () => undefined,
      ),
    ),
  );
  return here === undefined || there === undefined || here === there ? undefined : layers;
}

function tellsOf({ timestamp, usedBytes, inodesUsed }: FilesystemUsage, room: FsRoom | undefined) {
  return fsStats(isoOfNanos(BigInt(timestamp)), room, { bytes: figure(usedBytes), inodes: figure(inodesUsed) });
}

function usedOf(room: FsRoom | undefined): { bytes?: number; inodes?: number } {
  if (room === undefined) return {};
  return { bytes: room.bytesTotal - (room.bytesFree ?? room.bytesAvailable), inodes: room.inodesTotal - room.inodesFree };
}

/** A pod with a mount of its own at /etc/hosts has no such file. */
async function hostsSizes(o: StatsOptions, pods: readonly { ref: { uid: string } }[]): Promise<Map<string, number>> {
  const sizes = new Map<string, number>();
  for (const { uid } of pods.map(({ ref }) => ref)) {
    if (!isPathName(uid)) continue;
    const size = await o.ports.fs.stat(etcHostsPath(o.rootDir, uid)).then(
      (file) => file.size,
      () => undefined,
    );
    if (size !== undefined) sizes.set(uid, Math.ceil(size / FILE_BLOCK_BYTES) * FILE_BLOCK_BYTES);
  }
  return sizes;
}

async function logSizes(o: StatsOptions, running: readonly { labels: Record<string, string> }[]) {
  const sizes = new Map<string, LogSize>();
  for (const { labels } of running) {
    const [uid = '', name = '', namespace = '', container = ''] = (['podUid', 'podName', 'podNamespace', 'containerName'] as const).map(
      (l) => labels[CRI_LABELS[l]] ?? '',
    );
    if (!(isPathName(uid) && isPathName(name) && isPathName(namespace) && isPathName(container))) continue;
    const dir = containerLogDir(o.podLogsDir, { uid, name, namespace }, container);
    const size = await logSize(o.ports.fs, dir);
    if (size !== null) sizes.set(`${uid}/${container}`, size);
  }
  return sizes;
}
