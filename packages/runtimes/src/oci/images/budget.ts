/** What one image may cost, watched while programs work on it: bytes, files and time. */
import { readdirSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { runProgram } from '../run.ts';

export interface Limits {
  /** Limit of the download, and again of the unpacked root file system. */
  bytesMax: number;
  inodesMax: number;
  layersMax: number;
  /** Until the registry has answered. */
  answerMs: number;
  /** Without a byte more. */
  stallMs: number;
  totalMs: number;
}
export const LIMITS: Limits = {
  bytesMax: 16 * 1024 ** 3,
  inodesMax: 2_000_000,
  layersMax: 256,
  answerMs: 30_000,
  stallMs: 60_000,
  totalMs: 30 * 60_000,
};
/** One image takes so much of the free space at most: the node's own files need the rest. */
const SHARE_OF_FREE = 0.9;

type Watch = () => string | null;
const seconds = (ms: number): string => `${Math.round(ms / 100) / 10} s`;

/** Ends what takes longer. */
export function within(ms: number, what: string): Watch {
  const began = performance.now();
  return () => (performance.now() - began > ms ? `${what} within ${seconds(ms)}` : null);
}

/** Watches a download into `dir`. */
export function watchDownload(dir: string, o: { limits: Limits; registry: string }): Watch {
  const { bytesMax, stallMs, totalMs } = o.limits;
  const most = Math.min(bytesMax, room(dir).bytes * SHARE_OF_FREE);
  const total = within(totalMs, 'the download did not end');
  let bytes = -1;
  let movedMs = performance.now();
  return () => {
    const now = bytesBelow(dir);
    if (now !== bytes) movedMs = performance.now();
    bytes = now;
    if (now > most) return tooLarge('download', most);
    if (performance.now() - movedMs > stallMs) return `${o.registry} sent nothing for ${seconds(stallMs)}`;
    return total();
  };
}

/** Watches what is unpacked into `dir`. Counts the whole file system: a look takes microseconds, and what others write counts too. */
export function watchUnpacking(dir: string, limits: Limits): Watch {
  const before = room(dir);
  const most = Math.min(limits.bytesMax, before.bytes * SHARE_OF_FREE);
  const total = within(limits.totalMs, 'unpacking did not end');
  return () => {
    const now = room(dir);
    const taken = { bytes: before.bytes - now.bytes, inodes: before.inodes - now.inodes };
    return tooMuch(taken, { ...limits, bytesMax: most }) ?? total();
  };
}

/** Of an unpacked image; null where it may take that. */
export function tooMuch(
  taken: { bytes: number; inodes: number },
  { bytesMax, inodesMax }: Pick<Limits, 'bytesMax' | 'inodesMax'>,
): string | null {
  // Many files take many blocks, so this is the closer reason where both are passed.
  if (taken.inodes > inodesMax) return `the image has more than ${inodesMax} files`;
  return taken.bytes > bytesMax ? tooLarge('unpacked image', bytesMax) : null;
}

/** Bytes and files that a folder takes on disk. */
export async function diskUsage(dir: string): Promise<{ bytes: number; inodes: number }> {
  const [bytes, inodes] = await Promise.all(
    ['--block-size=1', '--inodes'].map(async (unit) => Number.parseInt((await runProgram('du', ['-s', unit, dir])).toString(), 10)),
  );
  return { bytes: bytes ?? 0, inodes: inodes ?? 0 };
}

/** Free bytes and files where `dir` is. */
function room(dir: string): { bytes: number; inodes: number } {
  const s = statfsSync(dir);
  return { bytes: s.bavail * s.bsize, inodes: s.ffree };
}

function tooLarge(what: string, most: number): string {
  return `the ${what} is larger than ${(most / 1024 ** 2).toFixed(0)} MiB, the most that one image may take here`;
}

function bytesBelow(dir: string): number {
  let sum = 0;
  try {
    for (const entry of readdirSync(dir, { withFileTypes: true, recursive: true })) {
      if (entry.isFile()) sum += statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0;
    }
  } catch {
    // A folder that went while it was read.
  }
  return sum;
}
