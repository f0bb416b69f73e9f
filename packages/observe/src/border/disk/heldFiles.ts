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
  #bytes = 0;

  get(path: string): HeldFile | undefined {
    return this.#files.get(path);
  }

  put(path: string, file: Partial<HeldFile> & Pick<HeldFile, 'kind' | 'mode' | 'atMs'>): void {
    this.drop(path);
    const whole: HeldFile = { data: NOTHING, target: '', ...file };
    this.#files.set(path, whole);
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
    return this.#files.delete(path);
  }

  /** True: something was there. */
  dropTree(path: string): boolean {
    const all = [...this.#files.keys()].filter((at) => at === path || at.startsWith(`${path}/`));
    for (const at of all) this.drop(at);
    return all.length > 0;
  }

  /** Names right below. */
  names(path: string): string[] {
    const prefix = `${path}/`;
    const names = new Set<string>();
    for (const at of this.#files.keys()) if (at.startsWith(prefix)) names.add(at.slice(prefix.length).split('/', 1)[0] ?? '');
    return [...names];
  }
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
