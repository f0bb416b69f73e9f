/** Project quotas: xfs and ext4 count what the files of a project hold, so nobody walks them. In the kubelet's own files and numbers. Pure. */

import type { MountEntry } from '../../../host/mountinfo.ts';
import type { ToolAnswer } from './format.ts';

/** What both files of the host say: lines `ID:DIRECTORY` and `NAME:ID`. */
export interface ProjectFiles {
  projects: string;
  ids: string;
}
export const PROJECTS_FILE = '/etc/projects';
export const PROJECT_IDS_FILE = '/etc/projid';

/** The kubelet's first project. */
const FIRST_PROJECT = 1_048_577;
/** Projects that may turn out to be in use before the search ends, as in the kubelet. */
const SEARCH_MAX = 128;
const KIB = 1024;
/** A limit that nobody reaches: without one, ext4 counts nothing. */
const LIMIT_BYTES: Readonly<Record<string, string>> = { xfs: '9223372036854775807', ext4: '288230376151711743' };

/** The mount in which a directory lies, if its file system may count by project. */
export function quotaMount(mounts: readonly MountEntry[], dir: string): MountEntry | null {
  const around = mounts.filter(({ path }) => dir === path || dir.startsWith(path === '/' ? '/' : `${path}/`));
  const longest = Math.max(...around.map(({ path }) => path.length));
  const mount = around.findLast(({ path }) => path.length === longest);
  // Names with spaces cannot be written in a command of xfs_quota.
  if (mount === undefined || LIMIT_BYTES[mount.type] === undefined || /\s/.test(dir + mount.path)) return null;
  return mount;
}

export function projectOf({ projects }: ProjectFiles, dir: string): number | null {
  return dirsOf(projects).find((p) => p.dir === dir)?.id ?? null;
}
function dirsOf(projects: string): { id: number; dir: string; line: string }[] {
  return projects.split('\n').flatMap((line) => {
    const [, id = '', dir = ''] = /^(\d+):(.*)$/.exec(line) ?? [];
    return dir === '' ? [] : [{ id: Number(id), dir, line }];
  });
}
function namesOf(ids: string): { id: number; line: string }[] {
  return ids.split('\n').flatMap((line) => {
    const [, id = ''] = /^[^#:][^:]*:(\d+)$/.exec(line) ?? [];
    return id === '' ? [] : [{ id: Number(id), line }];
  });
}

/** Projects that no file names; a file system may use them all the same. */
export function freeProjects(files: ProjectFiles): number[] {
  const taken = new Set([...dirsOf(files.projects), ...namesOf(files.ids)].map(({ id }) => id));
  const free: number[] = [];
  for (let id = FIRST_PROJECT; free.length <= SEARCH_MAX; id++) if (!taken.has(id)) free.push(id);
  return free;
}
const withLine = (text: string, line: string): string => `${text === '' || text.endsWith('\n') ? text : `${text}\n`}${line}\n`;
export function withProject(files: ProjectFiles, dir: string, id: number): ProjectFiles {
  const named = namesOf(files.ids).some((n) => n.id === id);
  return { projects: withLine(files.projects, `${id}:${dir}`), ids: named ? files.ids : withLine(files.ids, `volume${id}:${id}`) };
}
export function withoutProject(files: ProjectFiles, dir: string, id: number): ProjectFiles {
  const without = (text: string, gone: readonly string[]) =>
    text
      .split('\n')
      .filter((line) => !gone.includes(line))
      .join('\n');
  const dirs = dirsOf(files.projects);
  const projects = without(
    files.projects,
    dirs.filter((d) => d.dir === dir && d.id === id).map(({ line }) => line),
  );
  if (dirsOf(projects).some((d) => d.id === id)) return { ...files, projects };
  return { projects, ids: without(files.ids, [`volume${id}:${id}`]) };
}

/** Commands of xfs_quota, which serves ext4 too. */
export const quotaCommand = {
  state: 'state -p',
  limit: (id: number, type: string) => `limit -p bhard=${LIMIT_BYTES[type]} bsoft=${LIMIT_BYTES[type]} ${id}`,
  unlimited: (id: number) => `limit -p bhard=0 bsoft=0 ${id}`,
  assign: (dir: string, id: number) => `project -s -p ${dir} ${id}`,
  use: (id: number, what: 'b' | 'i') => `quota -p -N -n -v -${what} ${id}`,
} as const;

export function countsProjects({ code, out }: ToolAnswer): boolean {
  return code === 0 && out.includes('Accounting: ON');
}
/** In bytes and inodes; null for what is no answer. xfs says nothing of a project that has nothing. */
export function projectUse(blocks: ToolAnswer, inodes: ToolAnswer): { bytes: number; inodes: number } | null {
  const figure = ({ code, out }: ToolAnswer): number | null => {
    if (code !== 0) return null;
    if (out.trim() === '') return 0;
    const [, digits] = /^\S*\s*(\d+)/.exec(out) ?? [];
    return digits === undefined ? null : Number(digits);
  };
  const [kib, count] = [figure(blocks), figure(inodes)];
  return kib === null || count === null ? null : { bytes: kib * KIB, inodes: count };
}
/** `lsattr -pd`: `  1048577 -----------------P-- DIR`. Null: none. */
export function projectShown({ code, out }: ToolAnswer): number | null {
  const id = code === 0 ? Number(/^\s*(\d+)\s/.exec(out)?.[1] ?? 0) : 0;
  return id === 0 ? null : id;
}
