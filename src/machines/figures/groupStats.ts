/** What a container's cgroup tells beyond the runtime's statistics, from the kernel's files of either version. Pure. */
import { type GroupLimits, groupLimits, UNLIMITED, V1_LIMITS, V2_LIMITS } from './groupLimits.ts';
import type { GroupPlace } from './groupPlaces.ts';
import type { GroupTasks } from './groupTasks.ts';

/** Clock ticks are a hundredth of a second on every Linux of today (USER_HZ). */
const TICKS_PER_S = 100;
const NS_PER_S = 1e9;
const US_PER_S = 1e6;

export interface DeviceIo {
  readBytes?: number;
  writeBytes?: number;
  reads?: number;
  writes?: number;
}
/** Seconds that some of its tasks waited, and that none could go on. */
export interface Pressure {
  waitingSeconds?: number;
  stalledSeconds?: number;
}
export type PressureOf = 'cpu' | 'memory' | 'io';
export const PRESSURES: readonly PressureOf[] = ['cpu', 'memory', 'io'];
/** A line of a PSI file: microseconds since the group was made, and shares of the last 10, 60 and 300 seconds in percent. */
interface PsiData {
  total: number;
  avg10: number;
  avg60: number;
  avg300: number;
}
export interface PsiStats {
  full: PsiData;
  some: PsiData;
}
export type Psi = Readonly<Partial<Record<PressureOf, PsiStats>>>;

interface GroupCpu {
  usedSeconds?: number;
  userSeconds?: number;
  systemSeconds?: number;
  periods?: number;
  throttledPeriods?: number;
  throttledSeconds?: number;
  burstPeriods?: number;
  burstSeconds?: number;
}
interface GroupMemory {
  usageBytes?: number;
  workingSetBytes?: number;
  rssBytes?: number;
  cacheBytes?: number;
  mappedBytes?: number;
  swapBytes?: number;
  kernelBytes?: number;
  activeFileBytes?: number;
  inactiveFileBytes?: number;
  maxBytes?: number;
  limitHits?: number;
  oomKills?: number;
  /** Page faults of the group's own processes, and with those of the groups below it. The second version counts only all. */
  faults?: { own: number; all: number };
  majorFaults?: { own: number; all: number };
}
/** What a file does not have is left out. */
export interface GroupFigures {
  cpu?: GroupCpu;
  memory?: GroupMemory;
  /** By `major:minor`. */
  io?: ReadonlyMap<string, DeviceIo>;
  pressure?: Readonly<Partial<Record<PressureOf, Pressure>>>;
  psi?: Psi;
  limits?: GroupLimits;
  tasks?: GroupTasks;
}

/** Files to read, by the names that {@link groupFigures} knows them by. */
export function groupFiles(place: GroupPlace): ReadonlyMap<string, string> {
  const { dirs } = place;
  const files = new Map<string, string>();
  const add = (dir: string | undefined, ...names: string[]): void => {
    if (dir !== undefined) for (const name of names) files.set(name, `${dir}/${name}`);
  };
  // Beside the first version the second has no controllers, and no figures.
  if (dirs.cpu === undefined && dirs.memory === undefined) {
    add(dirs.unified, 'cpu.stat', 'memory.stat', 'memory.current', 'memory.swap.current', 'memory.peak', 'memory.events', 'io.stat');
    add(dirs.unified, 'pids.current', 'cpu.pressure', 'memory.pressure', 'io.pressure', ...V2_LIMITS);
    return files;
  }
  add(dirs.cpu, 'cpu.stat', ...V1_LIMITS.cpu);
  add(dirs.cpuacct, 'cpuacct.stat', 'cpuacct.usage');
  add(dirs.memory, 'memory.stat', 'memory.usage_in_bytes', 'memory.max_usage_in_bytes', 'memory.failcnt', 'memory.oom_control');
  add(dirs.memory, 'memory.kmem.usage_in_bytes', ...V1_LIMITS.memory);
  add(dirs.blkio, 'blkio.throttle.io_service_bytes', 'blkio.throttle.io_serviced');
  add(dirs.pids, 'pids.current', ...V1_LIMITS.pids);
  return files;
}

/** `texts`: by name of the file; one that could not be read is not there. */
export function groupFigures(texts: ReadonlyMap<string, string>): GroupFigures {
  const of = (name: string): string => texts.get(name) ?? '';
  const io = texts.has('io.stat') ? ioStat(of('io.stat')) : blkio(of('blkio.throttle.io_service_bytes'), of('blkio.throttle.io_serviced'));
  const pressure = PRESSURES.flatMap((what) => {
    const read = pressureOf(of(`${what}.pressure`));
    return read === undefined ? [] : [[what, read] as const];
  });
  const limits = groupLimits(of);
  const threads = number(of('pids.current'));
  return {
    ...useOf(texts),
    io,
    ...(pressure.length === 0 ? {} : { pressure: Object.fromEntries(pressure), psi: psiOf((what) => of(`${what}.pressure`)) }),
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
    ...(threads === undefined ? {} : { tasks: { threads } }),
  };
}

function useOf(texts: ReadonlyMap<string, string>): Required<Pick<GroupFigures, 'cpu' | 'memory'>> {
  const of = (name: string): string => texts.get(name) ?? '';
  const [cpu, acct, stat, events] = ['cpu.stat', 'cpuacct.stat', 'memory.stat', 'memory.events'].map((name) => fields(of(name)));
  const per = (value: number | undefined, unit: number): number | undefined => (value === undefined ? undefined : value / unit);
  const use = groupUse(texts);
  const inAll = (name: string): number | undefined => stat?.get(`total_${name}`) ?? stat?.get(name);
  const faults = (name: string): { own: number; all: number } | undefined => {
    const own = stat?.get(name);
    return own === undefined ? undefined : { own, all: inAll(name) ?? own };
  };
  return {
    cpu: known<GroupCpu>({
      usedSeconds: use.cpuNs === undefined ? undefined : Number(use.cpuNs) / NS_PER_S,
      userSeconds: per(cpu?.get('user_usec'), US_PER_S) ?? per(acct?.get('user'), TICKS_PER_S),
      systemSeconds: per(cpu?.get('system_usec'), US_PER_S) ?? per(acct?.get('system'), TICKS_PER_S),
      periods: cpu?.get('nr_periods'),
      throttledPeriods: cpu?.get('nr_throttled'),
      throttledSeconds: per(cpu?.get('throttled_usec'), US_PER_S) ?? per(cpu?.get('throttled_time'), NS_PER_S),
      burstPeriods: cpu?.get('nr_bursts'),
      burstSeconds: per(cpu?.get('burst_usec'), US_PER_S) ?? per(cpu?.get('burst_time'), NS_PER_S),
    }),
    memory: known<GroupMemory>({
      usageBytes: use.memory?.usageBytes,
      workingSetBytes: use.memory?.workingSetBytes,
      rssBytes: stat?.get('total_rss') ?? stat?.get('anon'),
      cacheBytes: stat?.get('total_cache') ?? stat?.get('file'),
      mappedBytes: stat?.get('total_mapped_file') ?? stat?.get('file_mapped'),
      swapBytes: stat?.get('total_swap') ?? number(of('memory.swap.current')),
      kernelBytes: number(of('memory.kmem.usage_in_bytes')) ?? stat?.get('kernel'),
      activeFileBytes: inAll('active_file'),
      inactiveFileBytes: inAll('inactive_file'),
      maxBytes: number(of('memory.max_usage_in_bytes')) ?? number(of('memory.peak')),
      limitHits: number(of('memory.failcnt')) ?? events?.get('max'),
      oomKills: fields(of('memory.oom_control')).get('oom_kill') ?? events?.get('oom_kill'),
      faults: faults('pgfault'),
      majorFaults: faults('pgmajfault'),
    }),
  };
}

export interface GroupUse {
  /** Processor time, nanoseconds. */
  cpuNs?: bigint;
  memory?: {
    availableBytes?: number;
    usageBytes: number;
    /** Without file pages that are easily reclaimed. */
    workingSetBytes: number;
    rssBytes?: number;
    pageFaults?: number;
    majorPageFaults?: number;
  };
}

/** Files that {@link groupUse} reads, in either version. */
export function useFiles({ dirs }: GroupPlace): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  const add = (dir: string | undefined, ...names: string[]): void => {
    if (dir !== undefined) for (const name of names) files.set(name, `${dir}/${name}`);
  };
  if (dirs.cpuacct === undefined && dirs.memory === undefined) {
    add(dirs.unified, 'cpu.stat', 'memory.current', 'memory.stat', 'memory.max', ...PRESSURES.map((what) => `${what}.pressure`));
    add(dirs.unified, 'memory.swap.current', 'memory.swap.max');
    return files;
  }
  add(dirs.cpuacct, 'cpuacct.usage');
  add(dirs.memory, 'memory.usage_in_bytes', 'memory.stat', 'memory.limit_in_bytes', 'memory.memsw.limit_in_bytes');
  return files;
}

export function groupUse(texts: ReadonlyMap<string, string>): GroupUse {
  const of = (name: string): string => texts.get(name) ?? '';
  const [cpu, memory] = [fields(of('cpu.stat')), fields(of('memory.stat'))];
  const us = cpu.get('usage_usec');
  const ns = /^(\d{1,18})\s*$/.exec(of('cpuacct.usage'))?.[1];
  const usage = number(of('memory.current')) ?? number(of('memory.usage_in_bytes'));
  const limit = number(of('memory.max')) ?? number(of('memory.limit_in_bytes'));
  const cpuNs = us !== undefined ? BigInt(us) * 1_000n : ns === undefined ? undefined : BigInt(ns);
  if (usage === undefined) return cpuNs === undefined ? {} : { cpuNs };
  const workingSetBytes = Math.max(0, usage - (memory.get('total_inactive_file') ?? memory.get('inactive_file') ?? 0));
  const found = known<NonNullable<GroupUse['memory']>>({
    availableBytes: limit === undefined || limit >= UNLIMITED ? undefined : Math.max(0, limit - workingSetBytes),
    usageBytes: usage,
    workingSetBytes,
    rssBytes: memory.get('total_rss') ?? memory.get('anon'),
    pageFaults: memory.get('total_pgfault') ?? memory.get('pgfault'),
    majorPageFaults: memory.get('total_pgmajfault') ?? memory.get('pgmajfault'),
  });
  return { ...(cpuNs === undefined ? {} : { cpuNs }), memory: found };
}

/** Reads the PSI files of a group or of the machine. A line that the kernel does not have is zero, as in the reference. */
export function psiOf(text: (what: PressureOf) => string): Psi {
  const number = (line: string, name: string): number => Number(new RegExp(`\\b${name}=([\\d.]+)`).exec(line)?.[1] ?? 0);
  const data = (all: string, kind: string): PsiData => {
    const line = all.split('\n').find((l) => l.startsWith(`${kind} `)) ?? '';
    const [total = 0, avg10 = 0, avg60 = 0, avg300 = 0] = ['total', 'avg10', 'avg60', 'avg300'].map((name) => number(line, name));
    return { total, avg10, avg60, avg300 };
  };
  const found = PRESSURES.flatMap((what) => {
    const all = text(what);
    return all.startsWith('some ') ? [[what, { full: data(all, 'full'), some: data(all, 'some') }] as const] : [];
  });
  return Object.fromEntries(found);
}

/** Reads a PSI file; undefined where the kernel has none. */
export function pressureOf(text: string): Pressure | undefined {
  const total = (line: string): number | undefined => {
    const us = new RegExp(`^${line} .*total=(\\d+)`, 'm').exec(text)?.[1];
    return us === undefined ? undefined : Number(us) / US_PER_S;
  };
  const read = known<Pressure>({ waitingSeconds: total('some'), stalledSeconds: total('full') });
  return Object.keys(read).length === 0 ? undefined : read;
}

/** Names of block devices by `major:minor`, from `/proc/diskstats`. */
export function deviceNames(diskstats: string): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const line of diskstats.split('\n')) {
    const [major, minor, name] = line.trim().split(/\s+/);
    if (major !== undefined && minor !== undefined && name !== undefined) names.set(`${major}:${minor}`, `/dev/${name}`);
  }
  return names;
}

/** The process that a verbose status tells of: runtimes put JSON with a `pid` under `info`. */
export function pidOf(info: Readonly<Record<string, string>>): number | undefined {
  const { pid } = verboseOf(info);
  return typeof pid === 'number' && Number.isInteger(pid) && pid > 1 ? pid : undefined;
}

/** The image of a sandbox's own container, from its verbose status. */
export function imageOf(info: Readonly<Record<string, string>>): string | undefined {
  const { image } = verboseOf(info);
  return typeof image === 'string' ? image : undefined;
}

function verboseOf(info: Readonly<Record<string, string>>): { pid?: unknown; image?: unknown } {
  try {
    const value: unknown = JSON.parse(info.info ?? '');
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}

/** Lines of `name value`. */
function fields(text: string): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const line of text.split('\n')) {
    const [name, value] = line.split(' ');
    if (name !== undefined && value !== undefined && /^\d+$/.test(value)) found.set(name, Number(value));
  }
  return found;
}

function number(text: string): number | undefined {
  return /^\d+\s*$/.test(text) ? Number(text) : undefined;
}

/** `8:0 rbytes=1 wbytes=2 rios=3 wios=4 ...` */
function ioStat(text: string): Map<string, DeviceIo> {
  const devices = new Map<string, DeviceIo>();
  for (const line of text.split('\n')) {
    const [device, ...pairs] = line.split(' ');
    if (device === undefined || !/^\d+:\d+$/.test(device)) continue;
    const f = fields(pairs.map((pair) => pair.replace('=', ' ')).join('\n'));
    devices.set(
      device,
      known<DeviceIo>({ readBytes: f.get('rbytes'), writeBytes: f.get('wbytes'), reads: f.get('rios'), writes: f.get('wios') }),
    );
  }
  return devices;
}

/** `8:0 Read 4096`, one file with bytes and one with operations. */
function blkio(bytes: string, operations: string): Map<string, DeviceIo> {
  const devices = new Map<string, DeviceIo>();
  for (const [text, kinds] of [
    [bytes, { Read: 'readBytes', Write: 'writeBytes' }],
    [operations, { Read: 'reads', Write: 'writes' }],
  ] as const) {
    for (const [, device = '', kind, value] of text.matchAll(/^(\d+:\d+) (Read|Write) (\d+)$/gm)) {
      devices.set(device, { ...devices.get(device), [kinds[kind === 'Read' ? 'Read' : 'Write']]: Number(value) });
    }
  }
  return devices;
}

function known<T extends object>(values: { [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(values).filter(([, v]) => v !== undefined)) as T;
}
