/** The manifest files of one node. Their directory may be away: then nothing is written or removed. */
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { MANIFESTS, ONE_MANIFEST } from '@actorlet/world/src/paths.ts';

export class ManifestFiles {
  readonly #node: Pick<SimNode, 'disk' | 'tuning'>;
  #away = false;

  constructor(node: Pick<SimNode, 'disk' | 'tuning'>) {
    this.#node = node;
  }

  get areAway(): boolean {
    return this.#away;
  }

  /** The static pod path is one file, of one pod. */
  get areOne(): boolean {
    return this.#node.tuning.oneManifest;
  }

  write(name: string, text: string): void {
    if (!this.#away) this.#node.disk.put(this.#pathOf(name), text);
  }

  drop(name: string): void {
    if (!this.#away) this.#node.disk.drop(this.#pathOf(name));
  }

  /** Removes the directory. False: there is none. */
  take(): boolean {
    if (this.#away || !this.#node.disk.takeDir(MANIFESTS)) return false;
    this.#away = true;
    return true;
  }

  /** Makes the directory where it is away. */
  bring(): void {
    if (this.#away) this.#node.disk.makeDir(MANIFESTS);
    this.#away = false;
  }

  /** Puts another directory with the same files in its place. False: there is none. */
  swap(): boolean {
    return !this.#away && this.#node.disk.swapDir(MANIFESTS);
  }

  #pathOf(name: string): string {
    return this.areOne ? ONE_MANIFEST : `${MANIFESTS}/${name}.json`;
  }
}
