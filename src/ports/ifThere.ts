/** Files that may not be there, and removing what may be in use. */
import { codeOf } from '../machines/text/errors.ts';
import type { HostFs } from './ports.ts';

const GONE: readonly string[] = ['ENOENT'];

/** Null where the file or directory is not there: `codes` say so. */
export async function ifThere<T>(work: Promise<T>, codes = GONE): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (codes.includes(codeOf(error))) return null;
    throw error;
  }
}
/** A text that this node wrote; null where the file is not there. */
export async function textIfThere(fs: Pick<HostFs, 'readFile'>, path: string, bytesMax: number): Promise<string | null> {
  const bytes = await ifThere(fs.readFile(path, { bytesMax, own: true }));
  return bytes === null ? null : new TextDecoder().decode(bytes);
}
const NOT_OURS: readonly string[] = ['ENOENT', 'ENOTDIR', 'EFBIG', 'EINVAL'];
/** The same; null also where something stands that this node did not write. */
export async function ownTextIfThere(fs: Pick<HostFs, 'readFile'>, path: string, bytesMax: number): Promise<string | null> {
  return ifThere(textIfThere(fs, path, bytesMax), NOT_OURS);
}
/** Names in a directory; none where it is not there. */
export async function listIfThere(fs: Pick<HostFs, 'readdir'>, dir: string): Promise<string[]> {
  return (await ifThere(fs.readdir(dir))) ?? [];
}
export async function unlinkIfThere(fs: Pick<HostFs, 'unlink'>, path: string): Promise<void> {
  await ifThere(fs.unlink(path));
}

const NOT_FREE: readonly string[] = ['ENOTEMPTY', 'EEXIST', 'EBUSY', 'ENOTDIR'];

/** True when the directory is gone; false where something is in it or mounted on it, and where it is no directory. */
export async function rmdirIfFree(fs: Pick<HostFs, 'rmdir'>, dir: string): Promise<boolean> {
  try {
    await fs.rmdir(dir);
    return true;
  } catch (error) {
    const code = codeOf(error);
    if (code !== 'ENOENT' && !NOT_FREE.includes(code)) throw error;
    return code === 'ENOENT';
  }
}

/** Names of a directory that are read at once: a pod may have a million files in one. */
const NAMES_AT_ONCE = 1_000;
/** A container can make directories in each other until no path leads to the last: the kernel takes 4,096 bytes. */
const PATH_CHARS_MAX = 1_000;
/**
 * Removes a directory and what is below it. Never follows a link, and never crosses into another file system: something mounted inside
 * stops it with an error that names the place. `goOn` is asked before each removal; on its no, what is left stays and the answer is false.
 */
export async function removeTree(
  fs: HostFs,
  { dir, dev, top = { dir, moved: 0 } }: { dir: string; dev: number; top?: { dir: string; moved: number } },
  goOn: () => boolean = () => true,
): Promise<boolean> {
  for (let more = true; more; ) {
    const { moved } = top;
    const names = await fs.readdir(dir, { max: NAMES_AT_ONCE });
    more = names.length >= NAMES_AT_ONCE;
    for (const name of names) {
      const path = `${dir}/${name}`;
      const info = await fs.lstat(path);
      // Files of an overlay say the device of their layer, and one that something is mounted on cannot be unlinked.
      if (info.kind === 'dir' && info.dev !== dev) throw new Error(`${path} lies on another file system (a mount?); ${dir} is left alone`);
      if (!goOn()) return false;
      if (info.kind !== 'dir') await fs.unlink(path);
      else if (path.length - top.dir.length > PATH_CHARS_MAX) await moveUp(fs, path, top);
      else if (!(await removeTree(fs, { dir: path, dev, top }, goOn))) return false;
    }
    more ||= dir === top.dir && top.moved > moved;
  }
  if (!goOn()) return false;
  await fs.rmdir(dir);
  return true;
}

/** To the top of its tree, by a name that nothing there has. */
async function moveUp(fs: Pick<HostFs, 'lstat' | 'rename'>, path: string, top: { dir: string; moved: number }): Promise<void> {
  let to: string;
  do {
    top.moved += 1;
    to = `${top.dir}/.${top.moved}`;
  } while ((await ifThere(fs.lstat(to))) !== null);
  await fs.rename(path, to);
}
