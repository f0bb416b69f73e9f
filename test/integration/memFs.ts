/** A whole file system in memory with directories, links, delays in virtual time, and watches: what a virtual node lives on. */
import { sizeSaid } from '@actorlet/world/src/disk/diskEntry.ts';
import type { Clock, FileInfo, FsEvent, HostFs, Sys } from '../../src/ports/ports.ts';

type Entry = { kind: FileInfo['kind']; data: Uint8Array; target: string; mode: number; mtimeMs: number; ino: number };

export interface MemFs extends HostFs {
  /** Virtual milliseconds that an operation (`readdir`, `mkdirp`, ...) takes on a path; default none. */
  delayMs: (op: string, path: string) => number;
  /** A code (`EIO`, `EACCES`) makes the operation fail; default none. */
  failing: (op: string, path: string) => string | undefined;
  /** Without delay: what a person at the machine does. A write is renamed into place. */
  put(path: string, text: string): void;
  drop(path: string): void;
  /** Removes a directory and all below it, watches included. */
  dropTree(path: string): void;
  makeDir(path: string): void;
  /** Another one than was there before, as far as anybody can tell. */
  makeSocket(path: string): void;
  has(path: string): boolean;
  /** Undefined: there is no such file. */
  textOf(path: string): string | undefined;
  /** Every path below, files and directories. */
  below(path: string): string[];
  watchDir: Sys['watchDir'];
  /** Every open watch ends with this error. */
  breakWatches(message: string): void;
  /** Not undefined: opening a watch throws an error of this code. */
  watchRefused: string | undefined;
  /** Something is mounted there: it cannot be removed. */
  isMountPoint(path: string): boolean;
  /** File systems of their own, by the folder that they are mounted on. */
  disks: Map<string, { dev: number; room: Awaited<ReturnType<HostFs['statfs']>> }>;
  /** Of the file system that all else is on. */
  room: Awaited<ReturnType<HostFs['statfs']>>;
}

interface Watch {
  path: string;
  onEvent(e: FsEvent): void;
  onEnd(error: Error): void;
}

function failure(code: string, what: string): Error {
  return Object.assign(new Error(`${code}: ${what}`), { code });
}
function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/'))) || '/';
}
function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
const NOTHING = new Uint8Array(0);

export function memFs(clock: Clock): MemFs {
  const entries = new Map<string, Entry>();
  const watches = new Set<Watch>();
  let lastIno = 1;
  const entry = (kind: Entry['kind'], over: Partial<Entry> = {}): Entry => ({
    kind,
    data: NOTHING,
    target: '',
    mode: 0o644,
    mtimeMs: clock.wallMs(),
    ino: ++lastIno,
    ...over,
  });
  entries.set('/', entry('dir'));
  const tell = (path: string, kind: FsEvent['kind']) => {
    for (const w of [...watches]) if (w.path === parentOf(path)) w.onEvent({ kind, name: nameOf(path) });
  };
  const found = (path: string): Entry => {
    const e = entries.get(path);
    if (e === undefined) throw failure('ENOENT', path);
    return e;
  };
  const follow = (path: string): Entry => {
    const e = found(path);
    return e.kind === 'symlink' ? follow(e.target.startsWith('/') ? e.target : `${parentOf(path)}/${e.target}`) : e;
  };
  const diskAt = (path: string) => [...self.disks].find(([dir]) => path === dir || path.startsWith(`${dir}/`))?.[1];
  const info = (path: string, e: Entry): FileInfo => {
    const { kind, data, mode, mtimeMs, ino } = e;
    const size = sizeSaid(path, data.length);
    return { kind, size, diskBytes: data.length, links: 1, mode, mtimeMs, ctimeMs: mtimeMs, dev: diskAt(path)?.dev ?? 1, ino };
  };
  const makeDir = (path: string) => {
    if (path === '' || entries.has(path)) return;
    makeDir(parentOf(path));
    entries.set(path, entry('dir'));
    tell(path, 'create');
  };
  const store = (path: string, e: Entry) => {
    if (entries.get(parentOf(path))?.kind !== 'dir') throw failure('ENOENT', path);
    const was = entries.has(path);
    entries.set(path, e);
    tell(path, was ? 'modify' : 'create');
  };
  const remove = (path: string) => {
    found(path);
    entries.delete(path);
    tell(path, 'delete');
  };
  const op = async (name: string, path: string) => {
    const ms = self.delayMs(name, path);
    if (ms > 0) await new Promise<void>((wake) => void clock.setTimeout(wake, ms));
    const code = self.failing(name, path);
    if (code !== undefined) throw failure(code, `${name} ${path}`);
  };
  const bytes = (data: string | Uint8Array) => (typeof data === 'string' ? new TextEncoder().encode(data) : data);
  const childrenOf = (path: string) => {
    const prefix = path === '/' ? '/' : `${path}/`;
    return [...entries.keys()].filter((p) => p !== '/' && p.startsWith(prefix));
  };

  const self: MemFs = {
    delayMs: () => 0,
    failing: () => undefined,
    watchRefused: undefined,
    isMountPoint: () => false,
    disks: new Map(),
    room: { bytesTotal: 1e12, bytesAvailable: 5e11, inodesTotal: 1e6, inodesFree: 5e5 },
    put: (path, text) => store(path, entry('file', { data: bytes(text) })),
    drop: remove,
    dropTree(path) {
      for (const p of childrenOf(path)) entries.delete(p);
      remove(path);
      for (const w of [...watches]) {
        if (w.path !== path) continue;
        watches.delete(w);
        w.onEnd(failure('ENOENT', `${path} is gone`));
      }
    },
    makeDir,
    makeSocket(path) {
      makeDir(parentOf(path));
      store(path, entry('other'));
    },
    has: (path) => entries.has(path),
    textOf(path) {
      const e = entries.get(path);
      return e?.kind === 'file' ? new TextDecoder().decode(e.data) : undefined;
    },
    below: childrenOf,
    async readFile(path, { bytesMax }) {
      await op('readFile', path);
      const e = follow(path);
      if (e.data.length > bytesMax) throw failure('EFBIG', path);
      return e.data;
    },
    async readTail(path, { bytesMax }) {
      await op('readTail', path);
      return follow(path).data.slice(-bytesMax);
    },
    async openRead(path) {
      await op('openRead', path);
      const e = follow(path);
      return {
        read: async (offset, bytesMax) => e.data.slice(offset, offset + bytesMax),
        stat: () => self.stat(path),
        close: async () => {},
      };
    },
    async writeFile(path, data, o) {
      await op('writeFile', path);
      if (o?.exclusive === true && entries.has(path)) throw failure('EEXIST', path);
      store(path, entry('file', { data: bytes(data), mode: o?.mode ?? 0o644 }));
    },
    async rename(from, to) {
      await op('rename', to);
      const e = found(from);
      entries.delete(from);
      tell(from, 'delete');
      store(to, e);
    },
    fsyncDir: (path) => op('fsyncDir', path),
    async mkdirp(path) {
      await op('mkdirp', path);
      const isNew = !entries.has(path);
      makeDir(path);
      return isNew;
    },
    async readdir(path) {
      await op('readdir', path);
      if (follow(path).kind !== 'dir') throw failure('ENOTDIR', path);
      return childrenOf(path)
        .filter((p) => parentOf(p) === path)
        .map(nameOf)
        .sort();
    },
    async stat(path) {
      await op('stat', path);
      return info(path, follow(path));
    },
    async lstat(path) {
      await op('lstat', path);
      return info(path, found(path));
    },
    async readlink(path) {
      await op('readlink', path);
      return found(path).target;
    },
    async symlink(target, path) {
      await op('symlink', path);
      if (entries.has(path)) throw failure('EEXIST', path);
      store(path, entry('symlink', { target }));
    },
    async chmod(path, mode) {
      await op('chmod', path);
      follow(path).mode = mode;
    },
    async unlink(path) {
      await op('unlink', path);
      if (found(path).kind === 'dir') throw failure('EISDIR', path);
      remove(path);
    },
    async rmdir(path) {
      await op('rmdir', path);
      if (found(path).kind !== 'dir') throw failure('ENOTDIR', path);
      if (self.isMountPoint(path)) throw failure('EBUSY', path);
      if (childrenOf(path).length > 0) throw failure('ENOTEMPTY', path);
      remove(path);
    },
    async statfs(path) {
      return { ...(diskAt(path)?.room ?? self.room) };
    },
    watchDir(path, onEvent, onEnd) {
      if (self.watchRefused !== undefined) throw failure(self.watchRefused, `watch ${path}`);
      const e = follow(path);
      if (e.kind !== 'dir') throw failure('ENOTDIR', path);
      const watch: Watch = { path, onEvent, onEnd };
      watches.add(watch);
      return { [Symbol.dispose]: () => void watches.delete(watch) };
    },
    breakWatches(message) {
      for (const w of [...watches]) {
        watches.delete(w);
        w.onEnd(new Error(message));
      }
    },
  };
  return self;
}
