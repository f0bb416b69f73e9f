/** Which files of the folder of drop-ins count, and in which order: as the reference walks it. Reads names only. */
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../machines/text/errors.ts';
import type { Problem } from '../errors.ts';

export interface DropInFiles {
  files: string[];
  /** Not read: another ending than `.conf`. */
  skipped: string[];
  errors: Problem[];
  warnings: Problem[];
}

const WHERE = '--config-dir';

/**
 * Names ending in `.conf`, dot files and links to files too, depth first in the order of their bytes. Links to folders are
 * not followed, neither in the folder nor as the folder itself.
 */
export async function dropInFiles(dir: string): Promise<DropInFiles> {
  const out: DropInFiles = { files: [], skipped: [], errors: [], warnings: [] };
  try {
    const info = await lstat(dir);
    if (info.isDirectory()) {
      await walk(dir, out);
      return out;
    }
    take(dir, out);
    const what = info.isSymbolicLink() ? 'a link, which is not followed: write a slash behind it' : 'no folder';
    if (out.files.length === 0) out.warnings.push({ where: WHERE, what: `${dir} is ${what}; there are no drop-ins` });
  } catch (error) {
    out.errors.push({ where: WHERE, what: `cannot list ${dir}: ${messageOf(error)}` });
  }
  return out;
}

function take(path: string, out: DropInFiles): void {
  (path.endsWith('.conf') ? out.files : out.skipped).push(path);
}

async function walk(dir: string, out: DropInFiles): Promise<void> {
  const entries = await readdir(dir, { withFileTypes: true });
  for (const entry of entries.sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)))) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) await walk(path, out);
    else take(path, out);
  }
}
