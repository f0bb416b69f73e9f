/** Memory and CPU limits, where the machine has cgroup v2 and this user a part of it. A group for each container, and crun's below it. */
import { existsSync, mkdirSync, readFileSync, rmdirSync, statfsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const ROOT = '/sys/fs/cgroup';
const CGROUP2_MAGIC = 0x63677270;
const NEEDED = ['cpu', 'memory'];
const CONTROL = 'cgroup.subtree_control';
const ENABLE = NEEDED.map((c) => `+${c}`).join(' ');

export interface Cgroups {
  /** Below the mount of cgroups: where containers have theirs; null where limits cannot be had. */
  parent: string | null;
  /** One sentence, for the log and `--check`. */
  reason: string;
}

/** Tried once at the start: makes the parent group. `name` is its own for each root directory. */
export function findCgroups(name: string, o: { root: boolean }): Cgroups {
  const none = (why: string): Cgroups => ({ parent: null, reason: `CPU and memory limits are not applied: ${why}` });
  if (statfsSync(ROOT, { bigint: false }).type !== CGROUP2_MAGIC) return none('the machine does not have cgroup v2 alone');
  const own = /^0::(.*)$/m.exec(readText('/proc/self/cgroup'))?.[1] ?? '/';
  // The nearest group above that hands the controllers on, and that this user may write to.
  for (let at = o.root ? '/' : own; ; at = dirname(at)) {
    const here = join(ROOT, at);
    const parent = join(at, name);
    if (handsOn(here) || handOn(here)) {
      try {
        mkdirSync(join(ROOT, parent), { recursive: true });
        writeFileSync(join(ROOT, parent, CONTROL), ENABLE);
        return { parent, reason: `CPU and memory limits are applied, in ${join(ROOT, parent)}` };
      } catch (error) {
        if (o.root) return none((error as Error).message);
        // Not delegated to this user: further up.
      }
    }
    if (at === '/' || at === '.') break;
  }
  return none('no part of cgroup v2 is delegated to this user. Start it with systemd-run --user --scope -p Delegate=yes');
}

function handsOn(dir: string): boolean {
  const on = readText(join(dir, CONTROL)).trim().split(' ');
  return NEEDED.every((c) => on.includes(c));
}

/** The kernel refuses where processes are in the group itself, and where it is not this user's. */
function handOn(dir: string): boolean {
  try {
    writeFileSync(join(dir, CONTROL), ENABLE);
    return true;
  } catch {
    return false;
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** The group of a container: its events stay when crun has removed its own below. `cgroupsPath`: crun's. */
export function makeGroup(cgroupsPath: string): void {
  const own = join(ROOT, dirname(cgroupsPath));
  const parent = dirname(dirname(cgroupsPath));
  // The group of a pod has no processes of its own, and hands nothing on yet.
  if (!handsOn(join(ROOT, parent))) handOn(join(ROOT, parent));
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, CONTROL), ENABLE);
}

/** Where containers of a pod have their groups: in the group that the node made for it, whose limits are the pod's, else in `fallback`. */
export function parentOf(ofPod: string | undefined, fallback: string, o: { root: boolean }): string {
  return o.root && ofPod && existsSync(join(ROOT, ofPod, 'cgroup.procs')) ? join('/', ofPod) : fallback;
}

/** Whether the kernel killed a process of it for memory. */
export function wasOomKilled(cgroupsPath: string): boolean {
  return Number(/^oom_kill (\d+)$/m.exec(readText(join(ROOT, dirname(cgroupsPath), 'memory.events')))?.[1] ?? 0) > 0;
}

/** What it uses now; null where the kernel does not say. */
export function usageOf(cgroupsPath: string): { cpuNs: number; bytes: number; workingBytes: number } | null {
  const dir = join(ROOT, dirname(cgroupsPath));
  const bytes = Number.parseInt(readText(join(dir, 'memory.current')), 10);
  const usec = Number(/^usage_usec (\d+)$/m.exec(readText(join(dir, 'cpu.stat')))?.[1] ?? Number.NaN);
  if (Number.isNaN(bytes) || Number.isNaN(usec)) return null;
  const inactive = Number(/^inactive_file (\d+)$/m.exec(readText(join(dir, 'memory.stat')))?.[1] ?? 0);
  return { cpuNs: usec * 1000, bytes, workingBytes: Math.max(0, bytes - inactive) };
}

/** Ends what is left in it, and removes it. */
export function dropGroup(cgroupsPath: string): void {
  const own = join(ROOT, dirname(cgroupsPath));
  for (const dir of [join(ROOT, cgroupsPath), own]) {
    try {
      rmdirSync(dir);
    } catch {
      // It is gone, or processes of it are just ending: the next start of the runtime removes it.
    }
  }
}

/** With the last container: the kernel keeps one that is in use. */
export function dropParent(parent: string): void {
  try {
    rmdirSync(join(ROOT, parent));
  } catch {
    // Containers are in it.
  }
}
