/** Reads what groups use whose paths are known. */
import { type GroupMount, type GroupPlace, groupMounts } from '../../../machines/figures/groupPlaces.ts';
import { useFiles } from '../../../machines/figures/groupStats.ts';
import type { Ports } from '../../../ports/ports.ts';
import { groupText, MOUNTS_BYTES_MAX } from './groupFiles.ts';

interface GroupTexts {
  /** Where cgroups are mounted. Read once; a table that could not be read is read again. */
  mounts(): Promise<readonly GroupMount[]>;
  /** Undefined: not on this kernel, or there is no such group. */
  text(path: string): Promise<string | undefined>;
  /** Texts of the files with these names, by name. Empty: there is no such group. */
  of(at: GroupPlace, wanted: (file: string) => boolean): Promise<ReadonlyMap<string, string>>;
}

export function groupTexts(fs: Pick<Ports['fs'], 'readFile'>): GroupTexts {
  let mounts: readonly GroupMount[] | undefined;
  const text = (path: string, bytesMax?: number) => groupText(fs, path, bytesMax);
  return {
    text,
    async mounts() {
      if (mounts !== undefined) return mounts;
      const table = await text('/proc/self/mountinfo', MOUNTS_BYTES_MAX);
      if (table === undefined) return [];
      mounts = groupMounts(table);
      return mounts;
    },
    async of(at, wanted) {
      const texts = new Map<string, string>();
      for (const [file, path] of useFiles(at)) {
        const found = wanted(file) ? await text(path) : undefined;
        if (found !== undefined) texts.set(file, found);
      }
      return texts;
    },
  };
}
