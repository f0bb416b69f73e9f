/** Removing what may be in use. */
import { codeOf } from '../machines/text/errors.ts';
import type { HostFs } from './ports.ts';

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
