/**
 * One after the other for whoever writes the same file. A killed actor's calls go on: what it still writes, or renames, would
 * come after what its successor writes, and undo it. Such calls end with the process, and so does this.
 */
import type { HostFs } from './ports.ts';

const turns = new WeakMap<HostFs, Map<string, Promise<void>>>();

/** Does `work` when all that was begun for this path before has ended, whatever came of it. */
export async function inTurn<T>(fs: HostFs, path: string, work: () => Promise<T>): Promise<T> {
  const paths = turns.get(fs) ?? new Map<string, Promise<void>>();
  turns.set(fs, paths);
  const mine = (paths.get(path) ?? Promise.resolve()).then(work);
  const over = mine.then(
    () => {},
    () => {},
  );
  paths.set(path, over);
  try {
    return await mine;
  } finally {
    if (paths.get(path) === over) paths.delete(path);
  }
}
