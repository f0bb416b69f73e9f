/** Reads the kernel's files about cgroups, processes and disks. One that is not there says nothing. */
import type { FoundPod, GroupReading } from '../../../machines/edge/stats/cadvisorMetrics.ts';
import { type Disk, type DiskMount, diskIo } from '../../../machines/edge/stats/diskStats.ts';
import { interfaceCounters } from '../../../machines/edge/stats/procStats.ts';
import { type GroupPlace, rootPlace } from '../../../machines/figures/groupPlaces.ts';
import {
  type GroupFigures,
  groupFigures,
  groupFiles,
  PRESSURES,
  type PressureOf,
  pressureOf,
  psiOf,
} from '../../../machines/figures/groupStats.ts';
import { type GroupTasks, isSocket, openFileSlots, openFilesMax, processIds } from '../../../machines/figures/groupTasks.ts';
import type { Ports } from '../../../ports/ports.ts';

/** The kernel's own files are some kB; one that never ends is not read on. */
const FILE_BYTES_MAX = 256 * 1024;
/** Undefined: not on this kernel, or gone with its container. */
export async function groupText(fs: Pick<Ports['fs'], 'readFile'>, path: string, bytesMax = FILE_BYTES_MAX): Promise<string | undefined> {
  try {
    return new TextDecoder().decode(await fs.readFile(path, { bytesMax }));
  } catch {
    return undefined;
  }
}
/** A line for each mount, and a pod may have a hundred. */
export const MOUNTS_BYTES_MAX = 16 * 1024 * 1024;
/** Open files are not counted in a group with more processes. */
const PROCESSES_MAX = 512;
/**
 * The kernel lists the open files of a process all at once, and a pod may open a million. A group with more than
 * this is not counted, nor is one that comes after so many names on one page.
 */
const NAMES_MAX = 16_384;
const NAMES_OF_PAGE_MAX = 131_072;
/** Open files that are looked at to tell sockets: in one group, and for one page. */
const LINKS_MAX = 4096;
const LINKS_OF_PAGE_MAX = 32_768;
const INIT_PID = 1;

export interface GroupFilesOptions {
  fs: Pick<Ports['fs'], 'readFile' | 'readdir' | 'readlink' | 'stat' | 'statfs'>;
  /** Pressure is told, where the kernel has it. */
  pressure: boolean;
}
/** How many links one page may still follow, and how many names of them it may still list. */
export interface LinkBudget {
  left: number;
  names: number;
}
export function linkBudget(): LinkBudget {
  return { left: LINKS_OF_PAGE_MAX, names: NAMES_OF_PAGE_MAX };
}

export class GroupFiles {
  readonly #o: GroupFilesOptions;

  constructor(o: GroupFilesOptions) {
    this.#o = o;
  }

  read(path: string, bytesMax?: number): Promise<string | undefined> {
    return groupText(this.#o.fs, path, bytesMax);
  }

  /** @param only Names of the files that are read; absent: all that the figures are made of. */
  async figures(at: GroupPlace, only?: ReadonlySet<string>): Promise<GroupFigures> {
    const texts = new Map<string, string>();
    for (const [name, path] of groupFiles(at)) {
      if (only?.has(name) === false) continue;
      if (!this.#o.pressure && name.endsWith('.pressure')) continue;
      const text = await this.read(path);
      if (text !== undefined) texts.set(name, text);
    }
    return groupFigures(texts);
  }

  async processes(at: GroupPlace): Promise<readonly number[] | undefined> {
    const { dirs } = at;
    const procs = await this.read(`${dirs.cpu ?? dirs.memory ?? dirs.unified ?? ''}/cgroup.procs`);
    return procs === undefined ? undefined : processIds(procs);
  }

  /** @param first The process whose limits are told, if it is one of the group's own. */
  async tasks(at: GroupPlace, first: number | undefined, budget: LinkBudget): Promise<GroupTasks> {
    const pids = await this.processes(at);
    if (pids === undefined) return {};
    const own = first !== undefined && (at.path === '/' || pids.includes(first));
    const limit = own ? openFilesMax((await this.read(`/proc/${first}/limits`)) ?? '') : undefined;
    return {
      processes: pids.length,
      ...(limit === undefined ? {} : { openFilesMax: limit }),
      ...(pids.length > PROCESSES_MAX ? {} : await this.#openFiles(pids, budget)),
    };
  }

  async #openFiles(pids: readonly number[], budget: LinkBudget): Promise<Pick<GroupTasks, 'descriptors' | 'sockets'>> {
    const { fs } = this.#o;
    const links: string[] = [];
    for (const pid of pids) {
      const most = Math.min(NAMES_MAX, budget.names);
      if (openFileSlots((await this.read(`/proc/${pid}/status`)) ?? '') > most) return {};
      // Without the right to look, or after its end, a process has none.
      const names = await fs.readdir(`/proc/${pid}/fd`).catch(() => []);
      budget.names -= names.length;
      for (const name of names) links.push(`/proc/${pid}/fd/${name}`);
      if (links.length > most) return {};
    }
    if (links.length > Math.min(LINKS_MAX, budget.left)) return { descriptors: links.length };
    budget.left -= links.length;
    let sockets = 0;
    for (const link of links) if (isSocket(await fs.readlink(link).catch(() => ''))) sockets += 1;
    return { descriptors: links.length, sockets };
  }

  async network(id: string, pid: number): Promise<FoundPod['interfaces'] | undefined> {
    // The number may be another process's by now.
    const [groups, netDev] = [await this.read(`/proc/${pid}/cgroup`), await this.read(`/proc/${pid}/net/dev`)];
    return netDev === undefined || groups?.includes(id) !== true ? undefined : interfaceCounters(netDev);
  }

  /** When the group was made. Its folder changes with the groups below it, these files do not. */
  async madeMs({ dirs }: GroupPlace): Promise<number | undefined> {
    const v1 = dirs.memory ?? dirs.cpu;
    const dir = v1 ?? dirs.unified;
    if (dir === undefined) return undefined;
    const timeOf = async (path: string) => (await this.#o.fs.stat(path).catch(() => undefined))?.mtimeMs;
    const times = [await timeOf(dir), await timeOf(`${dir}/${v1 === undefined ? 'cgroup.events' : 'cgroup.clone_children'}`)];
    const known = times.filter((t) => t !== undefined);
    return known.length === 0 ? undefined : Math.min(...known);
  }

  async node(): Promise<GroupReading['node']> {
    const pressure = new Map<PressureOf, NonNullable<ReturnType<typeof pressureOf>>>();
    const texts = new Map<PressureOf, string>();
    for (const what of this.#o.pressure ? PRESSURES : []) {
      const text = (await this.read(`/proc/pressure/${what}`)) ?? '';
      texts.set(what, text);
      const of = pressureOf(text);
      if (of !== undefined) pressure.set(what, of);
    }
    const interfaces = interfaceCounters((await this.read('/proc/net/dev')) ?? '');
    return { interfaces, pressure: Object.fromEntries(pressure), psi: psiOf((what) => texts.get(what) ?? '') };
  }

  /** The root group: the machine. */
  async root(mounts: Parameters<typeof rootPlace>[0], budget: LinkBudget): Promise<GroupFigures> {
    const at = rootPlace(mounts);
    const figures = await this.figures(at);
    return { ...figures, tasks: { ...figures.tasks, ...(await this.tasks(at, INIT_PID, budget)) } };
  }

  async disks(mounts: readonly DiskMount[], diskstats: string): Promise<Disk[]> {
    const io = diskIo(diskstats);
    return Promise.all(
      mounts.map(async ({ device, path }): Promise<Disk> => {
        const [room, own] = [await this.#o.fs.statfs(path).catch(() => undefined), io.get(device)];
        return { device, ...(room === undefined ? {} : { room }), ...(own === undefined ? {} : { io: own }) };
      }),
    );
  }
}
