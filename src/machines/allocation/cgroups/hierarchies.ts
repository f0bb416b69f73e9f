/** Where the kernel's cgroups are mounted (resources 1.4, detection). Pure. */

/** Pods cannot be held without these. */
const MANDATORY = ['cpu', 'memory', 'pids'] as const;
/** What a group of the second version is given, as far as the kernel has it. */
export const WANTED_V2 = ['cpu', 'cpuset', 'memory', 'hugetlb', 'pids'] as const;
/** What may fail to be given. */
export const OPTIONAL_V2: readonly string[] = ['hugetlb', 'cpuset'];

/** A group of the first version is there when it is in the hierarchies of these. Others are made with it: blkio, freezer, `name=`. */
const LOOKED_AT_V1: readonly string[] = ['cpu', 'cpuacct', 'cpuset', 'memory', 'hugetlb', 'pids'];

export interface Hierarchy {
  path: string;
  /** Empty: it has none of its own (`name=systemd`, or the second version beside the first). */
  controllers: readonly string[];
}

/** Hierarchies of the first version, and the second where it stands beside: a group is in all of them. In the order of the mount table. */
export function hierarchiesOf(mountinfo: string, below: string): Hierarchy[] {
  const found = new Map<string, Hierarchy>();
  for (const line of mountinfo.split('\n')) {
    const [left, right] = line.split(' - ');
    const path = left?.split(' ')[4];
    const [type, , options = ''] = right?.split(' ') ?? [];
    if (path === undefined || !(path === below || path.startsWith(`${below}/`))) continue;
    if (type !== 'cgroup' && type !== 'cgroup2') continue;
    const controllers = type === 'cgroup2' ? [] : options.split(',').filter((o) => !['rw', 'ro', 'xattr', 'noprefix'].includes(o));
    const own = controllers.filter((c) => !c.startsWith('name=') && !c.includes('='));
    // The same one may be mounted twice.
    const key = type === 'cgroup2' ? type : controllers.join(',');
    if (!found.has(key)) found.set(key, { path, controllers: own });
  }
  return [...found.values()];
}

/** Whether a group that is missing there is missing. */
export function isLookedAt({ controllers }: Hierarchy, version: 1 | 2): boolean {
  return version === 2 || controllers.some((c) => LOOKED_AT_V1.includes(c));
}

export function missingGroup(name: string): string {
  return `${name} does not exist in the hierarchies of ${LOOKED_AT_V1.join(', ')}`;
}

export function missingControllers(there: readonly string[]): string[] {
  return MANDATORY.filter((c) => !there.includes(c));
}

/** `hugepages-2048kB`, as the kernel names their folder, is `2MB` in the names of files; null: it is no such folder. */
export function pageSizeOf(folder: string): string | null {
  const units = ['KB', 'MB', 'GB', 'TB'];
  let kib = Number(/^hugepages-(\d+)kB$/.exec(folder)?.[1] ?? 0);
  if (kib === 0) return null;
  let unit = 0;
  for (; kib % 1024 === 0 && unit < units.length - 1; unit++) kib /= 1024;
  return `${kib}${units[unit]}`;
}
