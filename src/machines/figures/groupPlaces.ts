/** Where cgroups are in the kernel's hierarchies of either version, from mountinfo and /proc/PID/cgroup. Pure. */

/** A mounted hierarchy: of one or more controllers, or the one of the second version. */
export interface GroupMount {
  at: string;
  /** The part of the hierarchy that is mounted there. */
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
  /** Path of the group from the root of its hierarchy on, for people. */
  path: string;
  /** Directory of each controller's figures; in the second version all are the same. */
  dirs: Readonly<Partial<Record<'cpu' | 'cpuacct' | 'memory' | 'blkio' | 'pids' | 'unified', string>>>;
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
const V1_CONTROLLERS = ['cpu', 'cpuacct', 'memory', 'blkio', 'pids'] as const;

/** Where a group of this path is in each hierarchy, or that of a process whose `/proc/PID/cgroup` it is. */
export function placeAt(at: { path: string } | { procCgroup: string }, mounts: readonly GroupMount[]): GroupPlace {
  const pathIn = (names: readonly string[] | null): string | undefined => {
    if ('path' in at) return at.path;
    for (const line of at.procCgroup.split('\n')) {
      const [, of, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
      if (of !== undefined && (names === null ? of === '' : of.split(',').some((c) => names.includes(c)))) return path;
    }
    return undefined;
  };
  const dirs: { -readonly [K in keyof GroupPlace['dirs']]: string } = {};
  for (const mount of mounts) {
    const path = pathIn(mount.controllers);
    // The root group is the machine.
    const dir = path === undefined || path === '/' ? undefined : directory(mount, path);
    if (dir === undefined) continue;
    if (mount.controllers === null) dirs.unified ??= dir;
    else for (const name of V1_CONTROLLERS) if (mount.controllers.includes(name)) dirs[name] ??= dir;
  }
  return { path: 'path' in at ? at.path : '', dirs };
}

/** The root group of each hierarchy: the machine. Empty where only a part of the hierarchy is mounted. */
export function rootPlace(mounts: readonly GroupMount[]): GroupPlace {
  const dirs: { -readonly [K in keyof GroupPlace['dirs']]: string } = {};
  for (const { at, root, controllers } of mounts) {
    if (root !== '/') continue;
    if (controllers === null) dirs.unified ??= at;
    else for (const name of V1_CONTROLLERS) if (controllers.includes(name)) dirs[name] ??= at;
  }
  return { path: '/', dirs };
}

/** The groups above this one, the nearest first, without the root group. */
export function placesAbove(place: GroupPlace, mounts: readonly GroupMount[]): GroupPlace[] {
  const roots = new Set(mounts.map((m) => m.at));
  const found: GroupPlace[] = [];
  for (let { path, dirs } = place; ; ) {
    path = path.slice(0, path.lastIndexOf('/'));
    const above = Object.entries(dirs).map(([name, dir]) => [name, dir.slice(0, dir.lastIndexOf('/'))] as const);
    dirs = Object.fromEntries(above.filter(([, dir]) => !roots.has(dir)));
    if (path === '' || Object.keys(dirs).length === 0) return found;
    found.push({ path, dirs });
  }
}

/** The group is that of this pod alone. */
export function isOfPod({ path }: GroupPlace, uid: string): boolean {
  const name = path.slice(path.lastIndexOf('/') + 1);
  // systemd's names have no dashes.
  return uid !== '' && (name.includes(uid) || name.includes(uid.replaceAll('-', '_')));
}

/** A container may have groups of its own below its group; the process may be in one of them. */
function ownPart(path: string, id: string): string {
  const end = path.indexOf('/', path.indexOf(id));
  return end === -1 ? path : path.slice(0, end);
}

function directory(mount: GroupMount, path: string): string | undefined {
  if (mount.root === '/') return `${mount.at}${path}`;
  return path === mount.root || path.startsWith(`${mount.root}/`) ? `${mount.at}${path.slice(mount.root.length)}` : undefined;
}
