/** What a container's control group tells beyond the runtime's statistics, from the kernel's files of either version. Pure. */

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

/** What a file does not have is left out. */
export interface GroupFigures {
  cpu?: { userSeconds?: number; systemSeconds?: number; periods?: number; throttledPeriods?: number; throttledSeconds?: number };
  memory?: { cacheBytes?: number; mappedBytes?: number; swapBytes?: number; maxBytes?: number; limitHits?: number; oomKills?: number };
  /** By `major:minor`. */
  io?: ReadonlyMap<string, DeviceIo>;
  pressure?: Readonly<Partial<Record<PressureOf, Pressure>>>;
}

/** A mounted hierarchy: of one or more controllers, or the one of the second version. */
export interface GroupMount {
  at: string;
  /** What of the hierarchy is mounted there. */
  root: string;
  /** Null: the second version, with all controllers. */
  controllers: readonly string[] | null;
}

export function groupMounts(mountinfo: string): GroupMount[] {
  return mountinfo.split('\n').flatMap((line): GroupMount[] => {
    const [left = '', right = ''] = line.split(' - ');
    const [, , , root = '', at = ''] = left.split(' ');
    const [type, , options = ''] = right.split(' ');
    if (type === 'cgroup2') return [{ at, root, controllers: null }];
    return type === 'cgroup' ? [{ at, root, controllers: options.split(',') }] : [];
  });
}

export interface GroupPlace {
  /** Of the group from the root of its hierarchy on, for people. */
  path: string;
  /** Directory of each controller's figures; in the second version all are the same. */
  dirs: Readonly<Partial<Record<'cpu' | 'cpuacct' | 'memory' | 'blkio' | 'unified', string>>>;
}

/** Where the groups of a process are that belong to `id` alone, from `/proc/PID/cgroup`; undefined where none does. */
export function groupPlace(procCgroup: string, id: string, mounts: readonly GroupMount[]): GroupPlace | undefined {
  const dirs: { -readonly [K in keyof GroupPlace['dirs']]: string } = {};
  let shown: string | undefined;
  for (const line of procCgroup.split('\n')) {
    const [, names, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    // A group that others share would tell of them too.
    if (names === undefined || path === undefined || !path.includes(id)) continue;
    const wanted = names === '' ? (['unified'] as const) : V1_CONTROLLERS.filter((c) => names.split(',').includes(c));
    for (const name of wanted) {
      const mount = mounts.find((m) => (name === 'unified' ? m.controllers === null : m.controllers?.includes(name)));
      const own = ownPart(path, id);
      const dir = mount === undefined ? undefined : directory(mount, own);
      if (dir === undefined) continue;
      dirs[name] = dir;
      shown ??= own;
    }
  }
  return shown === undefined ? undefined : { path: shown, dirs };
}
const V1_CONTROLLERS = ['cpu', 'cpuacct', 'memory', 'blkio'] as const;

/** A container may have groups of its own below its group; the process may be in one of them. */
function ownPart(path: string, id: string): string {
  const end = path.indexOf('/', path.indexOf(id));
  return end === -1 ? path : path.slice(0, end);
}

function directory(mount: GroupMount, path: string): string | undefined {
  if (mount.root === '/') return `${mount.at}${path}`;
  return path === mount.root || path.startsWith(`${mount.root}/`) ? `${mount.at}${path.slice(mount.root.length)}` : undefined;
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
    add(dirs.unified, 'cpu.stat', 'memory.stat', 'memory.swap.current', 'memory.peak', 'memory.events', 'io.stat');
    add(dirs.unified, 'cpu.pressure', 'memory.pressure', 'io.pressure');
    return files;
  }
  add(dirs.cpu, 'cpu.stat');
  add(dirs.cpuacct, 'cpuacct.stat');
  add(dirs.memory, 'memory.stat', 'memory.max_usage_in_bytes', 'memory.failcnt', 'memory.oom_control');
  add(dirs.blkio, 'blkio.throttle.io_service_bytes', 'blkio.throttle.io_serviced');
  return files;
}

/** `texts`: by name of the file; one that could not be read is not there. */
export function groupFigures(texts: ReadonlyMap<string, string>): GroupFigures {
  const of = (name: string): string => texts.get(name) ?? '';
  const [cpu, acct, memory, events] = [
    fields(of('cpu.stat')),
    fields(of('cpuacct.stat')),
    fields(of('memory.stat')),
    fields(of('memory.events')),
  ];
  const per = (value: number | undefined, unit: number): number | undefined => (value === undefined ? undefined : value / unit);
  const io = texts.has('io.stat') ? ioStat(of('io.stat')) : blkio(of('blkio.throttle.io_service_bytes'), of('blkio.throttle.io_serviced'));
  const pressure = (['cpu', 'memory', 'io'] as const).flatMap((what) => {
    const read = pressureOf(of(`${what}.pressure`));
    return read === undefined ? [] : [[what, read] as const];
  });
  return {
    cpu: known({
      userSeconds: per(cpu.get('user_usec'), US_PER_S) ?? per(acct.get('user'), TICKS_PER_S),
      systemSeconds: per(cpu.get('system_usec'), US_PER_S) ?? per(acct.get('system'), TICKS_PER_S),
      periods: cpu.get('nr_periods'),
      throttledPeriods: cpu.get('nr_throttled'),
      throttledSeconds: per(cpu.get('throttled_usec'), US_PER_S) ?? per(cpu.get('throttled_time'), NS_PER_S),
    }),
    memory: known({
      cacheBytes: memory.get('total_cache') ?? memory.get('file'),
      mappedBytes: memory.get('total_mapped_file') ?? memory.get('file_mapped'),
      swapBytes: memory.get('total_swap') ?? number(of('memory.swap.current')),
      maxBytes: number(of('memory.max_usage_in_bytes')) ?? number(of('memory.peak')),
      limitHits: number(of('memory.failcnt')) ?? events.get('max'),
      oomKills: fields(of('memory.oom_control')).get('oom_kill') ?? events.get('oom_kill'),
    }),
    io,
    ...(pressure.length === 0 ? {} : { pressure: Object.fromEntries(pressure) }),
  };
}

/** Of a PSI file; undefined where the kernel has none. */
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
  try {
    const value: unknown = JSON.parse(info.info ?? '');
    const pid = typeof value === 'object' && value !== null && 'pid' in value ? value.pid : undefined;
    return typeof pid === 'number' && Number.isInteger(pid) && pid > 1 ? pid : undefined;
  } catch {
    return undefined;
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
