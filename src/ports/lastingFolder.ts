/** A folder of the node's own whose files outlive a power failure: a name lasts when the folder that it stands in is synced. */
import type { HostFs } from './ports.ts';

export class LastingFolder {
  readonly #fs: HostFs;
  readonly #dir: string;
  readonly #mode: number;
  readonly #root: string;
  #lasts = false;

  /** `root` is above `dir` and older than the node. */
  constructor(fs: HostFs, dir: string, o: { mode: number; root: string }) {
    this.#fs = fs;
    this.#dir = dir;
    this.#mode = o.mode;
    this.#root = o.root;
  }

  /** Before each write: the folder may have been taken away. What it stands in is synced once, since nobody knows who made it, and when. */
  async make(): Promise<void> {
    await this.#fs.mkdirp(this.#dir, this.#mode);
    if (this.#lasts) return;
    for (let at = this.#dir; at.length > this.#root.length; ) {
      at = at.slice(0, at.lastIndexOf('/'));
      await this.#fs.fsyncDir(at);
    }
    this.#lasts = true;
  }
}
