/** The kernel settings of this machine. */
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { KernelSettings } from '../../../ports/machine/kernelSettings.ts';

export const PROC_SYS = '/proc/sys';
/** A number and a line break. */
const BYTES_MAX = 64;

/** @param root The folder of the settings; tests have another one. */
export function createKernelSettings(root: string): KernelSettings {
  return {
    async read(path) {
      await using handle = await open(join(root, path));
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(BYTES_MAX), 0, BYTES_MAX, 0);
      return buffer.toString('latin1', 0, bytesRead);
    },
    write: (path, value) => writeFile(join(root, path), String(value)),
  };
}
