/** Files of volumes: looking and removing with care. Links are never followed. */

import { type MountEntry, mountsBelow } from '../../../../machines/host/mountinfo.ts';
import { ifThere, removeTree } from '../../../../ports/ifThere.ts';
import type { FileInfo, HostFs } from '../../../../ports/ports.ts';

/** Behind the name of a file, while it is written. */
export const NEW = '.new';

/** Null when there is nothing at that path. */
export function lstatIfThere(fs: HostFs, path: string): Promise<FileInfo | null> {
  return ifThere(fs.lstat(path));
}
/** A directory that is not empty is an error. */
export async function rmdirIfThere(fs: HostFs, dir: string): Promise<void> {
  await ifThere(fs.rmdir(dir));
}
/** A directory that is not empty, or not there, is left as it is. */
export async function rmdirIfEmpty(fs: HostFs, dir: string): Promise<void> {
  await ifThere(fs.rmdir(dir), ['ENOENT', 'ENOTEMPTY', 'EEXIST']);
}

/** What is mounted there stops it, also a bind of the same file system, which only the mount table shows (trap 70). */
export async function removeVolume(fs: HostFs, dir: string, mounts: readonly MountEntry[]): Promise<void> {
  const [mount] = mounts.filter((m) => m.path === dir).concat(mountsBelow(mounts, dir));
  if (mount !== undefined) throw new Error(`${mount.path} is still mounted (${mount.type}); nothing below ${dir} is removed`);
  const top = await lstatIfThere(fs, dir);
  if (top?.kind === 'dir') await removeTree(fs, { dir, dev: top.dev });
  else if (top !== null) await fs.unlink(dir);
}

/** All of it or nothing, also after a power failure: a part of a text may mean something else. */
export async function writeWhole(fs: HostFs, path: string, text: string | Uint8Array): Promise<void> {
  const fresh = `${path}${NEW}`;
  await fs.writeFile(fresh, text, { fsync: true });
  await fs.rename(fresh, path);
}
