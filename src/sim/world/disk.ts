/**
 * A disk with the truth of disks: what was written but not synced may be gone, or half there, after the power fails;
 * names last when their directory was synced. One disk outlives many processes, each reaching it through its own mount.
 */

import type { FsCall } from '../../machines/faults/subjects.ts';
import type { Clock, FileInfo, FsEvent, HostFs, Sys } from '../../ports/ports.ts';
import { type Entry, failure, type Kind, NOTHING, nameOf, type OpenFile, openFile, parentOf, sizeBelow, sizeSaid } from './diskEntry.ts';
import type { SimRng } from './rng.ts';
import type { Power, SimTime } from './time.ts';

/** What the nemesis does to this disk; read at every operation. */
export interface DiskTrouble {
  /** Writes fail with ENOSPC; a file being written is left empty. */
  full(path: string): boolean;
  /** Virtual milliseconds an operation takes; asked for `write` also while the bytes of a file are on their way. */
  delayMs(op: FsCall | 'write', path: string): number;
  /** Code an operation fails with. */
  failing(op: FsCall, path: string): string | undefined;
  /** File events below this directory are lost. */
  deaf(path: string): boolean;
  /** Bytes that seem to be left, where they are fewer than there are. */
  availableBytes(path: string): number | undefined;
}

export interface SimDisk {
  trouble: DiskTrouble;
  /** What one process sees; when its power goes, it hears of nothing more and changes nothing more. */
  mount(power: Power, clock: Clock): { fs: HostFs; watchDir: Sys['watchDir'] };
  /** The machine's power fails: each thing not synced is kept, lost or torn. */
  powerLoss(rng: SimRng): void;
  /** Lasting, at once, by rename: what an operator's tool does. */
  put(path: string, text: string): void;
  /** The same for a symbolic link. */
  putLink(path: string, target: string): void;
  /** Somebody listens there from now on; who listened there before is another. */
  putSocket(path: string): void;
  drop(path: string): void;
  makeDir(path: string): void;
  /** Somebody removes a directory with everything in it; watches of it end. False: it is not there. */
  takeDir(path: string): boolean;
  /** Somebody puts another directory with the same files in its place; watches of the old one hear of nothing any more. False: it is not there. */
  swapDir(path: string): boolean;
  has(path: string): boolean;
  /** Text of the file that is there, without following links; undefined where there is none. */
  textOf(path: string): string | undefined;
  /** Where the link there leads; undefined where there is none. */
  linkAt(path: string): string | undefined;
  /** Names in the directory; none where there is no such directory. */
  namesIn(path: string): string[];
  /** What a process that is none of this node's writes on into, whatever becomes of its name; made where it is not there. Undefined: it cannot be. */
  opened(path: string): OpenFile | undefined;
  /** What lies below, and itself, as far as it is no other file system. */
  sizeBelow(path: string): { bytes: number; inodes: number };
  /** What was mounted there is gone, with everything on it. */
  emptyDir(path: string): void;
  /** Ends open watches with an error, of all directories or of those that `which` takes; says how many. */
  breakWatches(message: string, which?: (path: string) => boolean): number;
  /** Called before a process removes something. */
  onRemove: (path: string) => void;
  /** Something is mounted on that very path: no process can remove it. */
  isMountPoint: (path: string) => boolean;
}

interface Watch {
  path: string;
  power: Power;
  onEvent(e: FsEvent): void;
  onEnd(error: Error): void;
}

const LINKS_MAX = 16;
/** Where a watch is whose directory was replaced. */
const NOWHERE = '(replaced)';
const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function simDisk(o: { time: SimTime; clock: Clock }): SimDisk {
  const live = new Map<string, Entry>();
  const durable = new Map<string, Entry>();
  /** Names in each directory of `live`. */
  const names = new Map<string, Set<string>>();
  const watches = new Set<Watch>();
  let lastIno = 1;

  const entry = (kind: Kind, over: Partial<Entry> = {}): Entry => ({
    kind,
    data: NOTHING,
    synced: true,
    target: '',
    mode: 0o644,
    mtimeMs: o.clock.wallMs(),
    ino: ++lastIno,
    ...over,
  });
  const set = (path: string, e: Entry): void => {
    live.set(path, e);
    if (path !== '/') names.get(parentOf(path))?.add(nameOf(path));
    if (e.kind === 'dir' && !names.has(path)) names.set(path, new Set());
  };
  const unset = (path: string): void => {
    live.delete(path);
    names.get(parentOf(path))?.delete(nameOf(path));
    names.delete(path);
  };
  const tell = (path: string, kind: FsEvent['kind']): void => {
    const dir = parentOf(path);
    for (const w of watches) {
      if (w.path !== dir || self.trouble.deaf(path)) continue;
      o.time.yieldFor(w.power).defer(() => (watches.has(w) ? w.onEvent({ kind, name: nameOf(path) }) : undefined));
    }
  };
  const found = (path: string): Entry => {
    const e = live.get(path);
    if (e === undefined) throw failure('ENOENT', path);
    return e;
  };
  /** Where the links at this very place lead. */
  const realPath = (path: string, depth = 0): string => {
    const e = found(path);
    if (e.kind !== 'symlink') return path;
    if (depth >= LINKS_MAX) throw failure('ELOOP', path);
    return realPath(e.target.startsWith('/') ? e.target : `${parentOf(path)}/${e.target}`, depth + 1);
  };
  const follow = (path: string): Entry => found(realPath(path));
  const info = (path: string, e: Entry): FileInfo => {
    const { kind, data, mode, mtimeMs, ino } = e;
    return { kind, size: sizeSaid(path, data.length), mode, mtimeMs, ctimeMs: mtimeMs, dev: 1, ino };
  };
  const makeDir = (path: string, lasting: boolean): void => {
    if (live.has(path)) {
      if (follow(path).kind !== 'dir') throw failure('ENOTDIR', path);
    } else {
      if (path !== '/') makeDir(parentOf(path), lasting);
      set(path, entry('dir', { mode: 0o755 }));
      if (path !== '/') tell(path, 'create');
    }
    const made = live.get(path);
    if (lasting && made !== undefined) durable.set(path, made);
  };
  const store = (path: string, e: Entry): void => {
    if (live.get(parentOf(path))?.kind !== 'dir') throw failure('ENOENT', path);
    const was = live.has(path);
    set(path, e);
    tell(path, was ? 'modify' : 'create');
  };
  const remove = (path: string): void => {
    found(path);
    unset(path);
    tell(path, 'delete');
  };
  const forgetBelow = (path: string): void => {
    durable.delete(path);
    for (const p of [...durable.keys()]) if (p.startsWith(`${path}/`)) durable.delete(p);
  };
  const syncNames = (dir: string): void => {
    const now = names.get(dir);
    if (now === undefined) throw failure('ENOENT', dir);
    for (const p of [...durable.keys()]) if (p !== '/' && parentOf(p) === dir && !now.has(nameOf(p))) forgetBelow(p);
    const prefix = dir === '/' ? '' : dir;
    for (const name of now) {
      const e = live.get(`${prefix}/${name}`);
      if (e !== undefined) durable.set(`${prefix}/${name}`, e);
    }
  };

  const mount = (power: Power, clock: Clock): { fs: HostFs; watchDir: Sys['watchDir'] } => {
    const never = <T>() => new Promise<T>(() => {});
    const wait = (ms: number) => (ms <= 0 ? undefined : new Promise<void>((wake) => void clock.setTimeout(wake, ms)));
    /** One operation: takes its time, then happens in one instant, unless the process died meanwhile. */
    const op = async <T>(name: FsCall, path: string, act: () => T | Promise<T>): Promise<T> => {
      await wait(self.trouble.delayMs(name, path));
      if (!power.on) return never<T>();
      const code = self.trouble.failing(name, path);
      if (code !== undefined) throw failure(code, `${name} ${path}`);
      const value = await act();
      return power.on ? value : never<T>();
    };
    const needsSpace = (path: string): void => {
      if (self.trouble.full(path)) throw failure('ENOSPC', `no space left on device, ${path}`);
    };
    const fs: HostFs = {
      readFile: (path, { bytesMax }) =>
        op('readFile', path, () => {
          const e = follow(path);
          if (e.kind === 'dir') throw failure('EISDIR', path);
          if (e.data.length > bytesMax) throw failure('EFBIG', path);
          return e.data;
        }),
      readTail: (path, bytesMax) => op('readTail', path, () => follow(path).data.slice(-bytesMax)),
      openRead: (path, { within } = {}) =>
        op('openRead', path, () => {
          const e = follow(path);
          if (within?.some((dir) => realPath(path).startsWith(`${dir}/`)) === false) throw failure('EACCES', path);
          if (e.kind !== 'file') throw failure('EINVAL', path);
          const read = (offset: number, bytesMax: number) => op('read', path, () => e.data.slice(offset, offset + bytesMax));
          return { read, stat: () => op('stat', path, () => info(path, e)), close: async () => {} };
        }),
      writeFile: (path, data, opts) =>
        op('writeFile', path, async () => {
          if (opts?.exclusive === true && live.has(path)) throw failure('EEXIST', path);
          if (live.get(path)?.kind === 'dir') throw failure('EISDIR', path);
          const bytes = typeof data === 'string' ? encoder.encode(data) : data;
          const mode = live.get(path)?.mode ?? opts?.mode ?? 0o644;
          // Opening truncates; what follows can take long, fail, or never come.
          const file = entry('file', { mode, synced: false });
          const gone = live.get(path)?.data.length ?? 0;
          store(path, file);
          if (bytes.length > gone) needsSpace(path);
          const slow = wait(self.trouble.delayMs('write', path));
          if (slow !== undefined) {
            await slow;
            if (!power.on || live.get(path) !== file) return;
            file.data = bytes.slice(0, bytes.length >> 1);
            await wait(self.trouble.delayMs('write', path));
            if (!power.on || live.get(path) !== file) return;
          }
          file.data = bytes;
          file.synced = opts?.fsync === true;
          file.mtimeMs = o.clock.wallMs();
          tell(path, 'modify');
        }),
      rename: (from, to) =>
        op('rename', to, () => {
          const e = found(from);
          if (live.get(parentOf(to))?.kind !== 'dir') throw failure('ENOENT', to);
          for (const path of [from, to]) if (self.isMountPoint(path)) throw failure('EBUSY', path);
          unset(from);
          tell(from, 'delete');
          store(to, e);
        }),
      fsyncDir: (path) => op('fsyncDir', path, () => syncNames(path)),
      mkdirp: (path) =>
        op('mkdirp', path, () => {
          if (!live.has(path)) needsSpace(path);
          makeDir(path, false);
        }),
      readdir: (path) =>
        op('readdir', path, () => {
          if (follow(path).kind !== 'dir') throw failure('ENOTDIR', path);
          return [...(names.get(path) ?? [])].sort();
        }),
      stat: (path) => op('stat', path, () => info(path, follow(path))),
      lstat: (path) => op('lstat', path, () => info(path, found(path))),
      readlink: (path) =>
        op('readlink', path, () => {
          const e = found(path);
          if (e.kind !== 'symlink') throw failure('EINVAL', path);
          return e.target;
        }),
      symlink: (target, path) =>
        op('symlink', path, () => {
          if (live.has(path)) throw failure('EEXIST', path);
          needsSpace(path);
          store(path, entry('symlink', { target }));
        }),
      chmod: (path, mode) =>
        op('chmod', path, () => {
          follow(path).mode = mode;
        }),
      unlink: (path) =>
        op('unlink', path, () => {
          if (found(path).kind === 'dir') throw failure('EISDIR', path);
          if (self.isMountPoint(path)) throw failure('EBUSY', path);
          self.onRemove(path);
          remove(path);
        }),
      rmdir: (path) =>
        op('rmdir', path, () => {
          if (found(path).kind !== 'dir') throw failure('ENOTDIR', path);
          if (self.isMountPoint(path)) throw failure('EBUSY', path);
          if ((names.get(path)?.size ?? 0) > 0) throw failure('ENOTEMPTY', path);
          self.onRemove(path);
          remove(path);
        }),
      statfs: (path) =>
        op('statfs', path, () => ({
          bytesTotal: 1e12,
          bytesAvailable: self.trouble.full(path) ? 0 : (self.trouble.availableBytes(path) ?? 5e11),
          inodesTotal: 1e6,
          inodesFree: 5e5,
        })),
    };
    return {
      fs,
      watchDir(path, onEvent, onEnd) {
        if (follow(path).kind !== 'dir') throw failure('ENOTDIR', path);
        const watch: Watch = { path, power, onEvent, onEnd };
        watches.add(watch);
        return { [Symbol.dispose]: () => void watches.delete(watch) };
      },
    };
  };

  const self: SimDisk = {
    trouble: { full: () => false, delayMs: () => 0, failing: () => undefined, deaf: () => false, availableBytes: () => undefined },
    mount,
    powerLoss(rng) {
      const after = new Map<string, Entry>();
      const paths = [...new Set([...live.keys(), ...durable.keys()])].sort();
      for (const path of paths) {
        const now = live.get(path);
        const safe = durable.get(path);
        const kept = now === safe || rng.chance(0.5) ? now : safe;
        if (kept === undefined || (path !== '/' && after.get(parentOf(path))?.kind !== 'dir')) continue;
        if (kept.kind === 'file' && !kept.synced) {
          after.set(path, { ...kept, synced: true, data: kept.data.slice(0, rng.int(kept.data.length + 1)) });
        } else after.set(path, kept);
      }
      live.clear();
      durable.clear();
      names.clear();
      watches.clear();
      for (const [path, e] of after) {
        set(path, e);
        durable.set(path, e);
      }
    },
    put(path, text) {
      makeDir(parentOf(path), true);
      const e = entry('file', { data: encoder.encode(text) });
      store(path, e);
      durable.set(path, e);
    },
    putLink(path, target) {
      const e = entry('symlink', { target });
      store(path, e);
      durable.set(path, e);
    },
    putSocket(path) {
      makeDir(parentOf(path), true);
      if (live.has(path)) remove(path);
      const e = entry('other');
      store(path, e);
      durable.set(path, e);
    },
    drop(path) {
      remove(path);
      durable.delete(path);
    },
    makeDir: (path) => makeDir(path, true),
    takeDir(path) {
      if (live.get(path)?.kind !== 'dir') return false;
      const below = [...live.keys()].filter((p) => p.startsWith(`${path}/`));
      for (const p of below.sort().reverse()) remove(p);
      remove(path);
      forgetBelow(path);
      self.breakWatches('the directory was removed', (p) => p === path || p.startsWith(`${path}/`));
      return true;
    },
    swapDir(path) {
      const dir = live.get(path);
      if (dir?.kind !== 'dir') return false;
      const other = { ...dir, ino: ++lastIno, mtimeMs: o.clock.wallMs() };
      live.set(path, other);
      durable.set(path, other);
      for (const w of watches) if (w.path === path) w.path = NOWHERE;
      return true;
    },
    has: (path) => live.has(path),
    textOf(path) {
      const e = live.get(path);
      return e?.kind === 'file' ? decoder.decode(e.data) : undefined;
    },
    linkAt(path) {
      const e = live.get(path);
      return e?.kind === 'symlink' ? e.target : undefined;
    },
    namesIn: (path) => [...(names.get(path) ?? [])].sort(),
    opened(path) {
      if (live.get(parentOf(path))?.kind !== 'dir') return undefined;
      const file = live.get(path) ?? entry('file', { synced: false });
      if (file.kind !== 'file') return undefined;
      set(path, file);
      return openFile(file, { isAt: (other) => live.get(other) === file, wallMs: () => o.clock.wallMs() });
    },
    sizeBelow: (path) => sizeBelow(live, path, self.isMountPoint),
    emptyDir(path) {
      for (const p of [...live.keys()]) if (p.startsWith(`${path}/`)) unset(p);
      forgetBelow(path);
    },
    breakWatches(message, which = () => true) {
      const broken = [...watches].filter((w) => which(w.path));
      for (const w of broken) {
        watches.delete(w);
        o.time.yieldFor(w.power).defer(() => w.onEnd(new Error(message)));
      }
      return broken.length;
    },
    onRemove: () => {},
    isMountPoint: () => false,
  };
  makeDir('/', true);
  return self;
}
