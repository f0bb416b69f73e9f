/**
 * Operations on volumes, one at a time for each volume no matter which actor began them. A volume manager that is killed leaves its
 * operations under way: no call to the disk can be taken back, and one on a slow disk may have its effect long after. They
 * end at their next step, and the manager that comes after waits for that, volume by volume: what the old one still does
 * would be done to what the new one has set up, up to the removal of files that containers have written since.
 */
import { type VolumeRef, volumeKey } from '../../../machines/pod/volumes/volumePaths.ts';
import type { HostFs } from '../../../ports/ports.ts';

export class VolumeOperations {
  readonly #last = new Map<string, { ref: VolumeRef; over: Promise<void> }>();

  /** Volumes that something is being done to: after a restart they may come to be, whatever a look at the disk shows. */
  underWay(): VolumeRef[] {
    return [...this.#last.values()].map((o) => o.ref);
  }

  /** After all that was begun on that volume before, however it ended. Rejects with the signal's reason where that comes first. */
  async run(ref: VolumeRef, signal: AbortSignal, operation: () => Promise<void>): Promise<void> {
    const key = volumeKey(ref);
    const before = this.#last.get(key)?.over;
    const work = async () => {
      await before;
      signal.throwIfAborted();
      await operation();
    };
    const done = work();
    const nothing = () => undefined;
    const mine = { ref: { uid: ref.uid, plugin: ref.plugin, name: ref.name }, over: done.then(nothing, nothing) };
    this.#last.set(key, mine);
    try {
      await done;
    } finally {
      if (this.#last.get(key) === mine) this.#last.delete(key);
    }
  }
}

/** A file system on which nothing more begins once the signal was given: each call rejects with its reason. */
export function fsUntil(fs: HostFs, signal: AbortSignal): HostFs {
  const step =
    <A extends unknown[], R>(call: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      signal.throwIfAborted();
      return call(...args);
    };
  return {
    readFile: step(fs.readFile.bind(fs)),
    readTail: step(fs.readTail.bind(fs)),
    openRead: step(fs.openRead.bind(fs)),
    writeFile: step(fs.writeFile.bind(fs)),
    rename: step(fs.rename.bind(fs)),
    fsyncDir: step(fs.fsyncDir.bind(fs)),
    mkdirp: step(fs.mkdirp.bind(fs)),
    readdir: step(fs.readdir.bind(fs)),
    stat: step(fs.stat.bind(fs)),
    lstat: step(fs.lstat.bind(fs)),
    readlink: step(fs.readlink.bind(fs)),
    symlink: step(fs.symlink.bind(fs)),
    chmod: step(fs.chmod.bind(fs)),
    unlink: step(fs.unlink.bind(fs)),
    rmdir: step(fs.rmdir.bind(fs)),
    statfs: step(fs.statfs.bind(fs)),
  };
}
