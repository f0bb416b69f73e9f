/** What a simulated disk holds at a path. */

export type Kind = 'file' | 'dir' | 'symlink' | 'other';
export interface Entry {
  kind: Kind;
  data: Uint8Array;
  /** Data is on the platter; true for directories and links. */
  synced: boolean;
  target: string;
  mode: number;
  mtimeMs: number;
  ino: number;
}

/** A file that somebody has open, whatever becomes of its name. */
export interface OpenFile {
  append(bytes: Uint8Array): void;
  /** Whether that name leads to this very file. */
  isAt(path: string): boolean;
  size(): number;
}

export const NOTHING = new Uint8Array(0);

export function failure(code: string, what: string): Error {
  return Object.assign(new Error(`${code}: ${what}`), { code });
}
export function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/'))) || '/';
}
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** What `stat` says of a file's size: below /sys one page, below /proc nothing, as the kernel has it. */
export function sizeSaid(path: string, bytes: number): number {
  return path.startsWith('/sys/') ? 4096 : path.startsWith('/proc/') ? 0 : bytes;
}

export function openFile(file: Entry, o: { isAt: OpenFile['isAt']; wallMs(): number }): OpenFile {
  return {
    append(bytes) {
      const data = new Uint8Array(file.data.length + bytes.length);
      data.set(file.data);
      data.set(bytes, file.data.length);
      Object.assign(file, { data, synced: false, mtimeMs: o.wallMs() });
    },
    isAt: o.isAt,
    size: () => file.data.length,
  };
}
