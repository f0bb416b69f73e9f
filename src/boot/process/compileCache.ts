/**
 * Node's compile cache for the daemon: what V8 compiled in an earlier process is read from the disk, so a restart after a crash
 * renews the node's lease sooner. The cache is code, so it lies in the root directory, where only this user may write.
 */
import { lstatSync, mkdirSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

const DEFAULT_ROOT = '/var/lib/kubelet';
/** The daemon's own state, below the root directory. */
const STATE = 'actorlet';
const FOLDER = 'compile-cache';
const MODE = 0o700;
const WRITABLE_BY_OTHERS = 0o022;

/** Value of --root-dir, before the command line is parsed: the last one given. */
export function rootDirOf(argv: readonly string[]): string {
  const given = argv.flatMap((arg, i) => {
    if (arg.startsWith('--root-dir=')) return [arg.slice('--root-dir='.length)];
    return arg === '--root-dir' ? [argv[i + 1] ?? ''] : [];
  });
  return given.at(-1) ?? DEFAULT_ROOT;
}

function isOwn(dir: string, uid: number): boolean {
  const info = lstatSync(dir, { throwIfNoEntry: false });
  return info?.isDirectory() === true && info.uid === uid && (info.mode & WRITABLE_BY_OTHERS) === 0;
}

/** The folder of the cache, made where it is missing; null where another user could write to it, or before the first start. */
export function cacheFolder(rootDir: string, uid: number): string | null {
  try {
    const state = join(rootDir, STATE);
    if (!rootDir.startsWith('/') || !isOwn(rootDir, uid) || !isOwn(state, uid)) return null;
    const dir = join(state, FOLDER);
    mkdirSync(dir, { recursive: true, mode: MODE });
    return isOwn(dir, uid) ? dir : null;
  } catch {
    // A full or read-only disk: the daemon starts without.
    return null;
  }
}

/** To be called before the modules of the daemon are loaded. */
export function useCompileCache(argv: readonly string[]): void {
  const dir = cacheFolder(rootDirOf(argv), process.getuid?.() ?? -1);
  if (dir !== null) enableCompileCache(dir);
}
