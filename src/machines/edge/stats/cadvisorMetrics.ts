/**
 * /metrics/cadvisor: the families that people's dashboards ask for, as far as the runtime's statistics, cgroups and
 * /proc have the figures. Pure.
 */

import type { FsStats } from '../../figures/figure.ts';
import type { DeviceIo, GroupFigures, Psi } from '../../figures/groupStats.ts';
import { DEVICE_FAMILIES, DISK_FAMILIES, GROUP_FAMILIES, NETWORK_FAMILIES, PRESSURE_FAMILIES } from './cadvisorFamilies.ts';
import type { Disk } from './diskStats.ts';
import type { InterfaceCounters } from './procStats.ts';
import type { ContainerStats, CpuStats, MemoryStats, Summary } from './stats.ts';

const NS_PER_S = 1e9;

/** What a container is called where the summary has only its name, and what its cgroup tells. */
export interface FoundContainer {
  id: string;
  image: string;
  /** Path of its group; absent where it has none of its own. */
  path?: string;
  figures?: GroupFigures;
}
export interface FoundPod {
  /** Id of its sandbox. */
  id: string;
  namespace: string;
  name: string;
  /** Interfaces of its network namespace. For a pod on the host's network: the host's, as in the reference. */
  interfaces: readonly InterfaceCounters[];
  /** Image of its sandbox's container. */
  image?: string;
  path?: string;
  figures?: GroupFigures;
  madeMs?: number;
}
/** A group above those of containers: of a pod, of a QoS class, of all pods. */
export interface FoundGroup {
  path: string;
  figures: GroupFigures;
  madeMs?: number;
  /** The pod that it is the group of. */
  pod?: { namespace: string; name: string };
}
export interface GroupReading {
  containers: ReadonlyMap<string, FoundContainer>;
  pods: readonly FoundPod[];
  groups: readonly FoundGroup[];
  /** Names of block devices by `major:minor`. */
  devices: ReadonlyMap<string, string>;
  /** Pressure in the groups of pods, by UID. */
  podPsi: ReadonlyMap<string, Psi>;
  /** What the file system of images, and of containers' writable layers, was mounted from. */
  imageDevice?: string;
  node: {
    interfaces: readonly InterfaceCounters[];
    pressure: GroupFigures['pressure'];
    psi: Psi;
    /** Figures of the root group. */
    figures?: GroupFigures;
    disks?: readonly Disk[];
  };
}
export const NOTHING_READ: GroupReading = {
  containers: new Map(),
  pods: [],
  groups: [],
  devices: new Map(),
  podPsi: new Map(),
  node: { interfaces: [], pressure: {}, psi: {} },
};
/** What never changes while the machine runs. '' or absent: it does not tell. */
export interface MachineFigures {
  cpus: number;
  memoryBytes: number;
  physicalCores?: number;
  sockets?: number;
  bootId?: string;
  machineId?: string;
  systemUuid?: string;
  kernelVersion?: string;
  osImage?: string;
  /** Version of the program that tells all this. */
  version?: string;
  revision?: string;
}
export interface CadvisorInput {
  /** Null: it could not be made; then only the machine and its groups are told, and that there was an error. */
  summary: Summary | null;
  groups: GroupReading;
  machine: MachineFigures;
  /** Wall clock; absent: no row says when it was seen. */
  nowMs?: number;
}
type Labels = Readonly<Record<string, string>>;
type Sample = readonly [labels: Labels, value: number | undefined, time?: string | undefined];
type Family = (name: string, type: 'counter' | 'gauge', help: string, samples: readonly Sample[]) => void;
/** A cgroup, and what the runtime or /proc tell of it besides its files. */
interface Row {
  labels: Labels;
  figures: GroupFigures;
  startS?: number | undefined;
  cpu?: CpuStats | undefined;
  memory?: MemoryStats | undefined;
  /** The writable layer. */
  layer?: FsStats | undefined;
}

/** Key of {@link GroupReading.containers}. */
export function containerKey(uid: string, container: string): string {
  return `${uid}/${container}`;
}

function familiesInto(out: string[]): Family {
  return (name, type, help, samples) => {
    const lines = samples.flatMap(([labels, value, time]) =>
      value === undefined ? [] : [metricLine(name, labels, value, time === undefined ? undefined : Date.parse(time))],
    );
    if (lines.length > 0) out.push(`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`);
  };
}

/** Of the machine alone: the runtime tells of its containers. */
export function machineMetrics(o: Pick<CadvisorInput, 'machine' | 'summary'>): string {
  const out: string[] = [];
  machineFamilies(familiesInto(out), o);
  return out.join('');
}

/** The page as Prometheus text. */
export function cadvisorMetrics(o: CadvisorInput): string {
  const out: string[] = [];
  const family = familiesInto(out);
  const root = rootRow(o);
  const rows = [root, ...o.groups.groups.map(groupRow), ...o.groups.pods.map(sandboxRow), ...containerRows(o)];
  useFamilies(family, rows, o.nowMs);
  for (const [name, type, help, of] of GROUP_FAMILIES)
    family(
      name,
      type,
      help,
      rows.map((row) => [row.labels, of(row.figures)] as const),
    );
  fileSystemFamilies(family, { root, rows }, o.groups);
  for (const [name, what, field, help] of PRESSURE_FAMILIES)
    family(
      name,
      'counter',
      help,
      rows.map(({ labels, figures }) => [labels, figures.pressure?.[what]?.[field]] as const),
    );
  const networks = [
    { labels: root.labels, interfaces: o.groups.node.interfaces },
    ...o.groups.pods.map((p) => ({ ...p, ...sandboxRow(p) })),
  ];
  for (const [name, field, help] of NETWORK_FAMILIES)
    family(
      name,
      'counter',
      help,
      networks.flatMap(({ labels, interfaces }) => interfaces.map((i): Sample => [{ ...labels, interface: i.name }, i[field]])),
    );
  machineFamilies(family, o);
  family('container_scrape_error', 'gauge', '1 if there was an error while getting container metrics, 0 otherwise', [
    [{}, o.summary === null ? 1 : 0],
  ]);
  return out.join('');
}

const labelsOf = (id: string, more: Labels = {}): Labels => ({ container: '', id, image: '', name: '', namespace: '', pod: '', ...more });
const secondsOf = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : ms / 1000);
const parsed = (time: string | null | undefined): number | undefined =>
  time === null || time === undefined ? undefined : Date.parse(time) / 1000;

function rootRow({ summary, groups, machine }: CadvisorInput): Row {
  const { figures = {}, pressure } = groups.node;
  const swapBytes = swapOf(summary);
  const swap = swapBytes === undefined ? {} : { swapBytes };
  const limits = { memoryReservedBytes: 0, ...figures.limits, memoryBytes: machine.memoryBytes, ...swap };
  const node = summary?.node;
  const own = { ...figures, limits, ...(pressure === undefined ? {} : { pressure }) };
  return { labels: labelsOf('/'), figures: own, startS: parsed(node?.startTime), cpu: node?.cpu, memory: node?.memory };
}

function groupRow({ path, figures, madeMs, pod }: FoundGroup): Row {
  return { labels: labelsOf(path, { namespace: pod?.namespace ?? '', pod: pod?.name ?? '' }), figures, startS: secondsOf(madeMs) };
}

function sandboxRow({ id, namespace, name, image = '', path = `/${id}`, figures = {}, madeMs }: FoundPod): Row {
  return { labels: labelsOf(path, { image, name: id, namespace, pod: name }), figures, startS: secondsOf(madeMs) };
}

function containerRows({ summary, groups }: CadvisorInput): Row[] {
  const row = (c: ContainerStats, pod: { uid: string; namespace: string; name: string }): Row => {
    const { id = '', image = '', path = `/${id}`, figures = {} } = groups.containers.get(containerKey(pod.uid, c.name)) ?? {};
    return {
      labels: { container: c.name, id: path, image, name: id, namespace: pod.namespace, pod: pod.name },
      ...{ figures, startS: parsed(c.startTime), cpu: c.cpu, memory: c.memory, layer: c.rootfs },
    };
  };
  return (summary?.pods ?? []).flatMap((p) => p.containers.map((c) => row(c, p.podRef)));
}

/** Families whose values the runtime has too: with the time at which it read them. */
function useFamilies(family: Family, rows: readonly Row[], nowMs: number | undefined): void {
  const each = (of: (row: Row) => readonly [number | undefined, string?], more: Labels = {}): Sample[] =>
    rows.map((row) => [{ ...row.labels, ...more }, ...of(row)] as const);
  const memory = (told: (m: MemoryStats) => number | undefined, read: (m: NonNullable<GroupFigures['memory']>) => number | undefined) =>
    each(({ memory: m, figures }) => {
      const value = m === undefined ? undefined : told(m);
      if (m !== undefined && value !== undefined) return [value, m.time];
      return [figures.memory === undefined ? undefined : read(figures.memory)];
    });
  family(
    'container_cpu_usage_seconds_total',
    'counter',
    'Cumulative cpu time consumed in seconds.',
    each(
      ({ cpu, figures }) => {
        const ns = cpu?.usageCoreNanoSeconds;
        return cpu === undefined || ns === undefined ? [figures.cpu?.usedSeconds] : [ns / NS_PER_S, cpu.time];
      },
      { cpu: 'total' },
    ),
  );
  const workingSet = memory(
    (m) => m.workingSetBytes,
    (m) => m.workingSetBytes,
  );
  family('container_memory_working_set_bytes', 'gauge', 'Current working set in bytes.', workingSet);
  family(
    'container_memory_usage_bytes',
    'gauge',
    'Current memory usage in bytes, including all memory regardless of when it was accessed.',
    memory(
      (m) => m.usageBytes,
      (m) => m.usageBytes,
    ),
  );
  family(
    'container_memory_rss',
    'gauge',
    'Size of RSS in bytes.',
    memory(
      (m) => m.rssBytes,
      (m) => m.rssBytes,
    ),
  );
  family('container_memory_failures_total', 'counter', 'Page faults, minor and major', rows.flatMap(faults));
  family(
    'container_start_time_seconds',
    'gauge',
    'Start time of the container since unix epoch in seconds.',
    // In whole seconds, as in the reference.
    each((row) => [row.startS === undefined ? undefined : Math.floor(row.startS)]),
  );
  const seen = nowMs === undefined ? undefined : Math.floor(nowMs / 1000);
  family(
    'container_last_seen',
    'gauge',
    'When this page was made, in seconds since the Unix epoch',
    each(() => [seen]),
  );
  const openFiles = each(({ figures }) => [figures.tasks?.openFilesMax], { ulimit: 'max_open_files' });
  family('container_ulimits_soft', 'gauge', 'Soft limit of the first process, -1 where it is unlimited', openFiles);
}

function faults({ labels, figures: { memory } }: Row): Sample[] {
  const kinds = [
    ['pgfault', memory?.faults],
    ['pgmajfault', memory?.majorFaults],
  ] as const;
  return kinds.flatMap(([kind, of]): Sample[] => [
    [{ ...labels, failure_type: kind, scope: 'container' }, of?.own],
    [{ ...labels, failure_type: kind, scope: 'hierarchy' }, of?.all],
  ]);
}

/** Writable layers of containers, disks of the machine. */
function fileSystemFamilies(family: Family, { root, rows }: { root: Row; rows: readonly Row[] }, groups: GroupReading): void {
  const { disks = [] } = groups.node;
  const ofDisks = (of: (disk: Disk) => number | undefined): Sample[] =>
    disks.map((disk) => [{ ...root.labels, device: disk.device }, of(disk)] as const);
  const room = (name: string, help: string, of: readonly [(disk: Disk) => number | undefined, (layer: FsStats) => number | undefined]) => {
    const layers = rows.flatMap(({ labels, layer }): Sample[] =>
      layer === undefined ? [] : [[{ ...labels, device: groups.imageDevice ?? '' }, of[1](layer), layer.time]],
    );
    family(name, 'gauge', help, [...ofDisks(of[0]), ...layers]);
  };
  room('container_fs_usage_bytes', 'Number of bytes that are consumed by the container on its writable layer.', [
    ({ room: r }) => (r === undefined ? undefined : r.bytesTotal - (r.bytesFree ?? r.bytesAvailable)),
    (layer) => layer.usedBytes,
  ]);
  room('container_fs_limit_bytes', 'Size of the file system in bytes', [(disk) => disk.room?.bytesTotal, (layer) => layer.capacityBytes]);
  room('container_fs_inodes_total', 'Inodes of the file system', [(disk) => disk.room?.inodesTotal, (layer) => layer.inodes]);
  room('container_fs_inodes_free', 'Free inodes of the file system', [(disk) => disk.room?.inodesFree, (layer) => layer.inodesFree]);
  for (const [name, field, help] of DEVICE_FAMILIES) {
    // The kernel counts the operations of disks whether a group had them or not.
    const counted = ofDisks((disk) => (field === 'reads' || field === 'writes' ? disk.io?.[field] : undefined));
    const told = counted.some(([, value]) => value !== undefined);
    const ofRow = ({ labels, figures }: Row): Sample[] =>
      [...(figures.io ?? [])].map(([device, io]: readonly [string, DeviceIo]) => [
        { ...labels, device: groups.devices.get(device) ?? device },
        io[field],
      ]);
    family(name, 'counter', help, [...counted, ...rows.filter((row) => row !== root || !told).flatMap(ofRow)]);
  }
  for (const [name, type, help, of] of DISK_FAMILIES) family(name, type, help, ofDisks(of));
}

function machineFamilies(family: Family, { machine, summary }: Pick<CadvisorInput, 'machine' | 'summary'>): void {
  const labels = { boot_id: machine.bootId ?? '', machine_id: machine.machineId ?? '', system_uuid: machine.systemUuid ?? '' };
  const gauge = (name: string, help: string, value: number | undefined) => family(name, 'gauge', help, [[labels, value]]);
  gauge('machine_cpu_cores', 'Number of logical CPU cores.', machine.cpus);
  gauge('machine_cpu_physical_cores', 'Cores of all processors; threads of a core count once', machine.physicalCores);
  gauge('machine_cpu_sockets', 'Processor packages', machine.sockets);
  gauge('machine_memory_bytes', 'Amount of memory installed on the machine.', machine.memoryBytes);
  gauge('machine_swap_bytes', 'All swap of the machine in bytes', swapOf(summary));
  family('machine_scrape_error', 'gauge', '1 if the figures of the machine could not be read, else 0', [[{}, 0]]);
  const { version = '', revision = '', kernelVersion = '', osImage = '' } = machine;
  const info = { cadvisorRevision: revision, cadvisorVersion: version, dockerVersion: '', kernelVersion, osVersion: osImage };
  family('cadvisor_version_info', 'gauge', 'Always 1; its labels name the versions of this program, the kernel and the system', [
    [info, 1],
  ]);
}

function swapOf(summary: Summary | null): number | undefined {
  const { swapAvailableBytes: free, swapUsageBytes: used } = summary?.node.swap ?? {};
  return free === undefined || used === undefined ? undefined : free + used;
}

/** One row. `atMs`: when it was read; absent: now. */
export function metricLine(name: string, labels: Labels, value: number, atMs: number | undefined): string {
  const pairs = Object.entries(labels)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([k, v]) => `${k}="${v.replace(/[\\"\n]/g, (c) => (c === '\n' ? '\\n' : `\\${c}`))}"`);
  const at = atMs === undefined ? '' : ` ${atMs}`;
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}${at}\n`;
}
