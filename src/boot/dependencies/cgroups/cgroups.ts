/** The real cgroups of this machine, through the kernel's files, and those that are slices through systemd as well. */

import { access, constants, mkdir, readdir, readFile, readlink, rmdir, stat, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { GroupLayout } from '../../../machines/allocation/cgroups/files.ts';
import {
  type Hierarchy,
  hierarchiesOf,
  isLookedAt,
  missingControllers,
  OPTIONAL_V2,
  pageSizeOf,
  WANTED_V2,
} from '../../../machines/allocation/cgroups/hierarchies.ts';
import { sliceOf } from '../../../machines/allocation/cgroups/names.ts';
import { newSlice, unitProperties } from '../../../machines/allocation/cgroups/units.ts';
import type { GroupDriver } from '../../../machines/nodeFacts.ts';
import { codeOf, messageOf } from '../../../machines/text/errors.ts';
import { ifThere } from '../../../ports/ifThere.ts';
import type { Cgroups } from '../../../ports/machine/cgroups.ts';
import type { Slices } from './systemd.ts';

/** statfs type of the second version, at the root of the hierarchies. */
const CGROUP2_MAGIC = 0x63677270;
const DIR_MODE = 0o755;
/** A new group of processors may run nowhere until it was told where. */
const CPUSET_FILES = ['cpuset.cpus', 'cpuset.mems'] as const;

export interface CgroupsOptions {
  /** Where hierarchies are mounted. Default `/sys/fs/cgroup`. */
  root?: string;
  mountinfo?: () => Promise<string>;
  /** Default: asks the kernel. */
  version?: () => Promise<1 | 2>;
  pageFolders?: () => Promise<string[]>;
  /** Takes a group's directory away; the kernel does so although there are files in it. */
  removeDir?: (path: string) => Promise<void>;
  kill?: (pid: number) => void;
  /** Needed with the driver systemd alone. */
  slices?: () => Promise<Slices>;
}

/** What the boot asks beside the port. */
export interface HostCgroups extends Cgroups {
  /** Why this process may not make groups, for each hierarchy where it may not. */
  unwritable(): Promise<string[]>;
}

export function createCgroups(o: CgroupsOptions = {}): HostCgroups {
  return new RealCgroups({
    root: '/sys/fs/cgroup',
    mountinfo: () => readFile('/proc/self/mountinfo', 'utf8'),
    version: async () => ((await statfs('/sys/fs/cgroup')).type === CGROUP2_MAGIC ? 2 : 1),
    pageFolders: () => readdir('/sys/kernel/mm/hugepages').catch(() => []),
    removeDir: rmdir,
    kill: (pid) => process.kill(pid, 'SIGKILL'),
    // Loaded where it is needed: most of what it costs is memory.
    slices: async () => (await import('./systemd.ts')).createSlices(),
    ...o,
  });
}

interface Systemd {
  slices: Slices;
  version: number;
}

interface Found {
  layout: GroupLayout;
  /** One, of all controllers, in the second version. */
  hierarchies: readonly Hierarchy[];
}

class RealCgroups implements HostCgroups {
  readonly #o: Required<CgroupsOptions>;
  #found: Promise<Found> | null = null;
  /** Null with the driver cgroupfs. */
  #systemd: Systemd | null = null;
  /** The end of what changes groups, so far. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(o: Required<CgroupsOptions>) {
    this.#o = o;
  }

  async detect(driver: GroupDriver): Promise<GroupLayout> {
    const { layout } = await this.#machine();
    if (driver === 'cgroupfs') {
      this.#systemd?.slices.close();
      this.#systemd = null;
    } else {
      const slices = this.#systemd?.slices ?? (await this.#o.slices());
      this.#systemd = { slices, version: await slices.version() };
    }
    return layout;
  }

  async unwritable(): Promise<string[]> {
    const { hierarchies } = await this.#machine();
    const found: string[] = [];
    for (const { path } of hierarchies) {
      await access(path, constants.W_OK).catch((error: unknown) => found.push(messageOf(error)));
    }
    return found;
  }

  async exists(path: string): Promise<boolean> {
    const { layout, hierarchies } = await this.#machine();
    for (const h of hierarchies) {
      if (isLookedAt(h, layout.version) && !(await isDirectory(join(h.path, path)))) return false;
    }
    if (layout.version === 1 || path === '/') return true;
    const given = words(await readIfThere(join(this.#o.root, path, 'cgroup.controllers')));
    return layout.controllers.every((c) => given.includes(c) || OPTIONAL_V2.includes(c));
  }

  create(path: string): Promise<void> {
    return this.#inTurn(async () => {
      const { layout, hierarchies } = await this.#machine();
      await this.#makeSlices(path, layout.version);
      // What systemd left out: hierarchies and controllers that it does not know.
      for (const h of hierarchies) {
        let at = h.path;
        for (const part of path.split('/').filter((p) => p !== '')) {
          if (layout.version === 2) await this.#giveOn(at, layout.controllers);
          const parent = at;
          at = join(at, part);
          await mkdir(at, { recursive: true, mode: DIR_MODE });
          if (h.controllers.includes('cpuset')) await inheritCpus(parent, at);
        }
      }
    });
  }

  apply(path: string, writes: Parameters<Cgroups['apply']>[1]): Promise<void> {
    return this.#inTurn(async () => {
      const slice = this.#slice(path);
      if (slice !== null) await slice.slices.set(slice.name, unitProperties(writes, slice.version));
      for (const { controller, file, value } of writes) {
        const at = await this.#file(path, controller, file);
        try {
          // Not created: a file that the kernel does not have must not come to be in its place.
          await writeFile(at, value, { flag: 'r+' });
        } catch (error) {
          throw Object.assign(new Error(`${value} could not be written to ${at}: ${messageOf(error)}`), { code: codeOf(error) });
        }
      }
    });
  }

  async read(path: string, files: Parameters<Cgroups['read']>[1]): Promise<string[]> {
    const texts: string[] = [];
    for (const { controller, file } of files) texts.push(await readIfThere(await this.#file(path, controller, file)));
    return texts;
  }

  async list(path: string): Promise<string[]> {
    const { hierarchies } = await this.#machine();
    const names = new Set<string>();
    for (const h of hierarchies) for (const name of await directories(join(h.path, path))) names.add(name);
    return [...names].sort();
  }

  async pids(path: string): Promise<number[]> {
    const { hierarchies } = await this.#machine();
    const pids = new Set<number>();
    for (const h of hierarchies) for (const dir of await tree(join(h.path, path))) for (const pid of await processes(dir)) pids.add(pid);
    return [...pids].sort((a, b) => a - b);
  }

  enter(path: string): Promise<void> {
    return this.#inTurn(() => this.#move([process.pid], path));
  }

  moveFromRoot(path: string): Promise<number> {
    return this.#inTurn(async () => {
      const { hierarchies } = await this.#machine();
      const there = new Set<number>();
      for (const h of hierarchies) for (const pid of await processes(h.path)) there.add(pid);
      const programs: number[] = [];
      for (const pid of there) if (pid > 1 && (await isProgram(pid))) programs.push(pid);
      await this.#move(programs, path);
      return programs.length;
    });
  }

  /** A process that ended meanwhile did not stay. */
  async #move(pids: readonly number[], path: string): Promise<void> {
    const { hierarchies } = await this.#machine();
    for (const h of hierarchies) {
      for (const pid of pids) {
        const file = join(h.path, path, 'cgroup.procs');
        await writeFile(file, String(pid), { flag: 'r+' }).catch((error: unknown) => {
          if (codeOf(error) !== 'ESRCH')
            throw Object.assign(new Error(`${pid} could not be moved to ${file}: ${messageOf(error)}`), { code: codeOf(error) });
        });
      }
    }
  }

  async kill(path: string): Promise<void> {
    for (const pid of await this.pids(path)) {
      // 0 stands for a process of another namespace, which cannot be named from here.
      if (pid <= 1) continue;
      try {
        this.#o.kill(pid);
      } catch (error) {
        // It has ended meanwhile.
        if (codeOf(error) !== 'ESRCH') throw error;
      }
    }
  }

  remove(path: string): Promise<void> {
    return this.#inTurn(async () => {
      if (path.split('/').every((part) => part === '')) throw new Error('the root of the cgroups is not removed');
      const { hierarchies } = await this.#machine();
      const slice = this.#slice(path);
      if (slice !== null) {
        // systemd would end what runs in it.
        if ((await this.pids(path)).length > 0) throw Object.assign(new Error(`EBUSY: processes are in ${path}`), { code: 'EBUSY' });
        await slice.slices.stop(slice.name);
      }
      for (const h of hierarchies) {
        for (const dir of (await tree(join(h.path, path))).reverse()) {
          await ifThere(this.#o.removeDir(dir));
        }
      }
    });
  }

  #slice(path: string): (Systemd & { name: string }) | null {
    const name = sliceOf(path);
    return this.#systemd === null || name === null ? null : { ...this.#systemd, name };
  }

  /** Its parents too: those that systemd makes for a slice by itself count nothing. */
  async #makeSlices(path: string, version: 1 | 2): Promise<void> {
    let at = '';
    for (const part of path.split('/').filter((p) => p !== '')) {
      at = `${at}/${part}`;
      const slice = this.#slice(at);
      if (slice !== null && !(await this.exists(at))) await slice.slices.start(slice.name, newSlice(slice.name, version));
    }
  }

  #machine(): Promise<Found> {
    this.#found ??= this.#look().catch((error: unknown) => {
      this.#found = null;
      throw error;
    });
    return this.#found;
  }

  async #look(): Promise<Found> {
    const { root } = this.#o;
    const version = await this.#o.version();
    const all = version === 2 ? words(await readIfThere(join(root, 'cgroup.controllers'))) : null;
    const hierarchies = all === null ? hierarchiesOf(await this.#o.mountinfo(), root) : [{ path: root, controllers: all }];
    const there = hierarchies.flatMap((h) => h.controllers);
    const missing = missingControllers(there);
    if (missing.length > 0) throw new Error(`this machine has no cgroup controller ${missing.join(', ')}`);
    const controllers = version === 1 ? [...new Set(there)] : WANTED_V2.filter((c) => there.includes(c));
    const sizes = controllers.includes('hugetlb') ? (await this.#o.pageFolders()).flatMap((name) => pageSizeOf(name) ?? []) : [];
    return { layout: { version, controllers, pageSizes: sizes.sort() }, hierarchies };
  }

  async #file(path: string, controller: string, file: string): Promise<string> {
    const { layout, hierarchies } = await this.#machine();
    const h = layout.version === 2 ? hierarchies[0] : hierarchies.find((one) => one.controllers.includes(controller));
    if (h === undefined) throw new Error(`this machine has no cgroup controller ${controller}`);
    return join(h.path, path, file);
  }

  /** What is below may have these controllers. */
  async #giveOn(dir: string, controllers: readonly string[]): Promise<void> {
    const file = join(dir, 'cgroup.subtree_control');
    const given = words(await readIfThere(file));
    for (const c of controllers.filter((name) => !given.includes(name))) {
      try {
        await writeFile(file, `+${c}`, { flag: 'r+' });
      } catch (error) {
        if (!OPTIONAL_V2.includes(c)) throw new Error(`the controller ${c} could not be enabled in ${file}: ${messageOf(error)}`);
      }
    }
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#turn.then(work);
    this.#turn = mine.catch(() => {});
    return mine;
  }
}

async function inheritCpus(parent: string, dir: string): Promise<void> {
  for (const name of CPUSET_FILES) {
    const own = (await readIfThere(join(dir, name))).trim();
    const above = (await readIfThere(join(parent, name))).trim();
    if (own === '' && above !== '') await writeFile(join(dir, name), above, { flag: 'r+' });
  }
}

function words(text: string): string[] {
  return text.split(/\s+/).filter((w) => w !== '');
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    if (isGone(error)) return false;
    throw error;
  }
}

/** Parents first; none where it is not there. */
async function tree(dir: string): Promise<string[]> {
  if (!(await isDirectory(dir))) return [];
  const all = [dir];
  for (const name of await directories(dir)) all.push(...(await tree(join(dir, name))));
  return all;
}

async function directories(dir: string): Promise<string[]> {
  try {
    return (await readdir(dir, { withFileTypes: true })).filter((e) => e.isDirectory()).map((e) => e.name);
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
}

/** A thread of the kernel has no file that it runs. */
async function isProgram(pid: number): Promise<boolean> {
  return readlink(`/proc/${pid}/exe`).then(
    () => true,
    () => false,
  );
}

async function processes(dir: string): Promise<number[]> {
  return words(await readIfThere(join(dir, 'cgroup.procs'))).map(Number);
}

async function readIfThere(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isGone(error)) return '';
    throw error;
  }
}

/** The kernel answers so for a file of a group that is just going. */
function isGone(error: unknown): boolean {
  return codeOf(error) === 'ENOENT' || codeOf(error) === 'ENODEV';
}
