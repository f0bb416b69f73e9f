/** Removing files and directories with care: what is not there is not an error, links are never followed. */
import { ifThere } from '../../ports/ifThere.ts';
import type { HostFs } from '../../ports/ports.ts';

/** Follows links: what is at the end; null when there is nothing. */
export function statIfThere(fs: HostFs, path: string): Promise<Awaited<ReturnType<HostFs['stat']>> | null> {
  return ifThere(fs.stat(path));
}
/** The same, for those who want to know no more. */
export async function exists(fs: HostFs, path: string): Promise<boolean> {
  return (await statIfThere(fs, path)) !== null;
}

/**
 * Never crosses into another file system: something mounted inside stops it with an error that names the place. `goOn` is
 * asked before each removal; on its no, what is left stays and the answer is false.
 */
export async function removeTree(fs: HostFs, at: { dir: string; dev: number }, goOn: () => boolean = () => true): Promise<boolean> {
  const { dir, dev } = at;
  for (const name of await fs.readdir(dir)) {
    const path = `${dir}/${name}`;
    const info = await fs.lstat(path);
    // Files of an overlay say the device of their layer, and one that something is mounted on cannot be unlinked.
    if (info.kind === 'dir' && info.dev !== dev) throw new Error(`${path} lies on another file system (a mount?); ${dir} is left alone`);
    if (!goOn()) return false;
    if (info.kind !== 'dir') await fs.unlink(path);
    else if (!(await removeTree(fs, { dir: path, dev }, goOn))) return false;
  }
  if (!goOn()) return false;
  await fs.rmdir(dir);
  return true;
}
