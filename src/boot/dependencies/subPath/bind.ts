/** Binds what `openBelow` opened. Runs in the daemon for volumes of its own, and in a helper process for others. */

import { lstat, mkdir, open, readFile, realpath, rmdir, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { mountsAt, parseMountinfo } from '../../../machines/host/mountinfo.ts';
import { codeOf, messageOf } from '../../../machines/text/errors.ts';
import type { SubPathRequest, SubPathResult } from '../../../ports/machine/mounter.ts';
import { openBelow, SubPathError } from './walk.ts';

const TARGET_DIR_MODE = 0o750;
const TARGET_FILE_MODE = 0o640;
/** Mounts one over another at one path: more are not undone in one go. */
const STACKED_MAX = 8;

/** Runs a command to its end; rejects where it fails. */
export type Run = (command: string, args: readonly string[]) => Promise<unknown>;

async function isMounted(target: string): Promise<boolean> {
  return mountsAt(parseMountinfo(await readFile('/proc/self/mountinfo', 'utf8')), target).length > 0;
}

/** An empty directory, or an empty file: what is bound decides. */
async function makeTarget(target: string, dir: boolean): Promise<void> {
  try {
    const there = await lstat(target);
    if (there.isDirectory() === dir && (dir || there.isFile())) return;
    await (there.isDirectory() ? rmdir(target) : unlink(target));
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
  if (dir) await mkdir(target, { mode: TARGET_DIR_MODE });
  else await (await open(target, 'wx', TARGET_FILE_MODE)).close();
}

export async function bindSubPath(request: SubPathRequest, run: Run): Promise<SubPathResult> {
  const { volume, subPath } = request;
  try {
    // The mount table has no links.
    const target = join(await realpath(dirname(request.target)), basename(request.target));
    const found = await openBelow(volume, subPath);
    try {
      const wanted = await found.stat();
      for (let i = 0; await isMounted(target); i++) {
        // None of a mount whose server is gone.
        const there = await stat(target).catch(() => null);
        if (there?.dev === wanted.dev && there.ino === wanted.ino) return { kind: 'bound' };
        if (i >= STACKED_MAX) throw new Error(`${target} is still mounted after ${STACKED_MAX} unmounts`);
        await run('umount', ['--', target]);
      }
      await makeTarget(target, wanted.isDirectory());
      // Not canonicalized: mount(8) would make a path of it again, which somebody may have changed.
      await run('mount', ['--no-canonicalize', '-o', 'bind', '--', `/proc/${process.pid}/fd/${found.fd}`, target]);
      return { kind: 'bound' };
    } finally {
      await found.close();
    }
  } catch (error) {
    if (['ETIMEDOUT', 'ECANCELED'].includes(codeOf(error))) throw error;
    return { kind: 'refused', step: error instanceof SubPathError ? error.step : 'prepare', why: messageOf(error) };
  }
}
