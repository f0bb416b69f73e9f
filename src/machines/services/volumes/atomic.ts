/**
 * The atomic writer's decisions (resources and volumes 8.14): a volume's files stand in a directory of their own, and one
 * rename of the link `..data` shows all of them at once. Pure.
 */

export const DATA_LINK = '..data';
export const DATA_LINK_NEW = '..data_tmp';
const PATH_CHARS_MAX = 4096;
const NAME_CHARS_MAX = 255;
const SET_GID = 0o2000;
const DIR_EXEC = 0o110;
const GROUP_RW = 0o660;
const GROUP_RO = 0o440;

/** Why a file may not stand at that path inside a volume, or null. */
export function pathProblem(path: string): string | null {
  if (path === '') return 'must not be empty';
  if (path.startsWith('/')) return 'must be relative';
  if (path.length > PATH_CHARS_MAX) return `must be at most ${PATH_CHARS_MAX} characters`;
  const parts = path.split('/');
  if (parts.includes('..')) return "must not contain '..'";
  if (path.startsWith('..')) return "must not start with '..'";
  if (parts.some((p) => p.length > NAME_CHARS_MAX)) return `each part must be at most ${NAME_CHARS_MAX} characters`;
  if (path.includes('\0')) return 'must not contain a zero byte';
  return null;
}

/** Only first path elements are links into the data directory; nested files live below one of them (trap 52). */
export function topNames(paths: Iterable<string>): Set<string> {
  return new Set([...paths].map((p) => p.split('/')[0] ?? p));
}

/** Every directory that the paths need, parents first. */
export function directoriesOf(paths: Iterable<string>): string[] {
  const dirs = new Set<string>();
  for (const path of paths) {
    for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) dirs.add(path.slice(0, at));
  }
  return [...dirs].sort();
}

export interface WrittenFile {
  data: Uint8Array;
  mode: number;
}
/** Equal names, bytes and modes: nothing is written, and nobody who watches sees anything (trap 51). */
export function isUnchanged(old: ReadonlyMap<string, WrittenFile>, wanted: ReadonlyMap<string, WrittenFile>): boolean {
  if (old.size !== wanted.size) return false;
  for (const [path, file] of wanted) {
    const was = old.get(path);
    if (was === undefined || was.mode !== file.mode || was.data.length !== file.data.length) return false;
    for (let i = 0; i < was.data.length; i++) if (was.data[i] !== file.data[i]) return false;
  }
  return true;
}

/** `..2024_05_01_12_00_00.RANDOM`, UTC. */
export function dataDirName(wallMs: number, random: Uint8Array): string {
  const at = new Date(wallMs).toISOString().slice(0, 19).replaceAll(/[-T:]/g, '_');
  const tail = new DataView(random.buffer, random.byteOffset).getUint32(0);
  return `..${at}.${tail}`;
}

/** Mode with what fsGroup adds: the group may read, and write where the volume is writable; directories pass the group on. */
export function groupMode(mode: number, of: { dir: boolean; readOnly: boolean }): number {
  return mode | (of.readOnly ? GROUP_RO : GROUP_RW) | (of.dir ? SET_GID | DIR_EXEC : 0);
}
