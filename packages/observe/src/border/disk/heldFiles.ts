/** Files that the tree made and the disk does not have: they are held in memory, and what the disk shows goes before them. */
import type { FileInfo } from '@actorlet/kubelet/ports/ports.ts';

export interface HeldFile {
  kind: 'file' | 'dir' | 'symlink';
  data: Uint8Array;
  target: string;
  mode: number;
  atMs: number;
}

const ENTRIES_MAX = 20_000;
const BYTES_MAX = 8 * 1024 * 1024;
const NOTHING = new Uint8Array(0);

export class HeldFiles {
  readonly #files = new Map<string, HeldFile>();
  /** By folder, the names of what is held somewhere below it. */
  readonly #names = new Map<string, Set<string>>();
  #bytes = 0;

  get(path: string): HeldFile | undefined {
    return this.#files.get(path);
  }

  put(path: string, file: Partial<HeldFile> & Pick<HeldFile, 'kind' | 'mode' | 'atMs'>): void {
    this.drop(path);
    const whole: HeldFile = { data: NOTHING, target: '', ...file };
    this.#files.set(path, whole);
    for (let [folder, name] = split(path); name !== ''; [folder, name] = split(folder)) {
      const names = this.#names.get(folder);
      names?.add(name);
      // Its own name is known above.
      if (names !== undefined) break;
      this.#names.set(folder, new Set([name]));
    }
    this.#bytes += whole.data.length;
    // The oldest are of pods that are long gone.
    for (const old of this.#files.keys()) {
      if (this.#files.size <= ENTRIES_MAX && this.#bytes <= BYTES_MAX) break;
      this.drop(old);
    }
  }

  drop(path: string): boolean {
    const had = this.#files.get(path);
    if (had === undefined) return false;
    this.#bytes -= had.data.length;
    this.#files.delete(path);
    for (let [folder, name] = split(path), at = path; name !== '' && !this.#files.has(at) && !this.#names.has(at); ) {
      const names = this.#names.get(folder);
      names?.delete(name);
      if (names?.size === 0) this.#names.delete(folder);
      at = folder;
      [folder, name] = split(folder);
    }
    return true;
  }

  /** True: something was there. */
  dropTree(path: string): boolean {
    const had = this.#names.has(path);
    for (const name of this.names(path)) this.dropTree(`${path}/${name}`);
    return this.drop(path) || had;
  }

  /** Names right below. */
  names(path: string): string[] {
    return [...(this.#names.get(path) ?? [])];
  }
}

/** The folder of a path, and its name; '' = there is none above. */
function split(path: string): [string, string] {
  const at = path.lastIndexOf('/');
  return at < 0 ? ['', ''] : [path.slice(0, at), path.slice(at + 1)];
}

export function infoOf(file: HeldFile): FileInfo {
  return {
    kind: file.kind,
    size: file.data.length,
    diskBytes: 0,
    links: 1,
    mode: file.mode,
    mtimeMs: file.atMs,
    ctimeMs: file.atMs,
    dev: 0,
    ino: 0,
  };
}
