/** The file system calls of one process on a simulated disk: each takes its time, and may fail. */

import type { FsCall } from '@actorlet/faults/src/subjects.ts';
import type { Clock, FileInfo, HostFs } from '@actorlet/kubelet/ports/ports.ts';
import type { Power } from '../time.ts';
import { type Entry, failure, NOTHING, parentOf, sizeSaid } from './diskEntry.ts';
import type { DiskTree } from './diskTree.ts';
import type { SimDisk } from './types.ts';

export interface DiskMountOptions {
  tree: DiskTree;
  /** Read at each call. */
  disk: Pick<SimDisk, 'trouble' | 'onRemove' | 'isMountPoint' | 'deviceOf'>;
  power: Power;
  /** The process's clock. */
  clock: Clock;
  /** The machine's time. */
  wallMs(): number;
}

type Call = <T>(name: FsCall, path: string, act: () => T | Promise<T>) => Promise<T>;

const encoder = new TextEncoder();

export function diskMount(o: DiskMountOptions): HostFs {
  const call = callsOf(o);
  return { ...readCalls(o, call), ...statCalls(o, call), writeFile: writeCall(o, call), ...makeCalls(o, call), ...removeCalls(o, call) };
}

const never = <T>() => new Promise<T>(() => {});

function wait(clock: Clock, ms: number): Promise<void> | undefined {
  return ms <= 0 ? undefined : new Promise<void>((wake) => void clock.setTimeout(wake, ms));
}

/** One operation: takes its time, then happens in one instant, unless the process died meanwhile. */
function callsOf({ disk, power, clock }: DiskMountOptions): Call {
  return async (name, path, act) => {
    await wait(clock, disk.trouble.delayMs(name, path));
    if (!power.on) return never();
    const code = disk.trouble.failing(name, path);
    if (code !== undefined) throw failure(code, `${name} ${path}`);
    const value = await act();
    return power.on ? value : never();
  };
}

function needsSpace({ disk }: DiskMountOptions, path: string): void {
  if (disk.trouble.full(path)) throw failure('ENOSPC', `no space left on device, ${path}`);
}

function info(disk: DiskMountOptions['disk'], path: string, e: Entry): FileInfo {
  const { kind, data, mode, mtimeMs, ino } = e;
  const size = sizeSaid(path, data.length);
  return { kind, size, diskBytes: data.length, links: 1, mode, mtimeMs, ctimeMs: mtimeMs, dev: disk.deviceOf(path), ino };
}

function readCalls({ tree, disk }: DiskMountOptions, call: Call): Pick<HostFs, 'readFile' | 'readTail' | 'openRead'> {
  return {
    readFile: (path, { bytesMax }) =>
      call('readFile', path, () => {
        const e = tree.follow(path);
        if (e.kind === 'dir') throw failure('EISDIR', path);
        if (e.data.length > bytesMax) throw failure('EFBIG', path);
        return e.data;
      }),
    readTail: (path, { bytesMax }) => call('readTail', path, () => tree.follow(path).data.slice(-bytesMax)),
    openRead: (path, { within } = {}) =>
      call('openRead', path, () => {
        const e = tree.follow(path);
        if (within?.some((dir) => tree.realPath(path).startsWith(`${dir}/`)) === false) throw failure('EACCES', path);
        if (e.kind !== 'file') throw failure('EINVAL', path);
        const read = (offset: number, bytesMax: number) => call('read', path, () => e.data.slice(offset, offset + bytesMax));
        return { read, stat: () => call('stat', path, () => info(disk, path, e)), close: async () => {} };
      }),
  };
}

function statCalls({ tree, disk }: DiskMountOptions, call: Call): Pick<HostFs, 'readdir' | 'stat' | 'lstat' | 'readlink' | 'statfs'> {
  return {
    readdir: (path) =>
      call('readdir', path, () => {
        if (tree.follow(path).kind !== 'dir') throw failure('ENOTDIR', path);
        return tree.namesIn(path);
      }),
    stat: (path) => call('stat', path, () => info(disk, path, tree.follow(path))),
    lstat: (path) => call('lstat', path, () => info(disk, path, tree.found(path))),
    readlink: (path) =>
      call('readlink', path, () => {
        const e = tree.found(path);
        if (e.kind !== 'symlink') throw failure('EINVAL', path);
        return e.target;
      }),
    statfs: (path) =>
      call('statfs', path, () => ({
        bytesTotal: 1e12,
        bytesAvailable: disk.trouble.full(path) ? 0 : (disk.trouble.availableBytes(path) ?? 5e11),
        inodesTotal: 1e6,
        inodesFree: 5e5,
      })),
  };
}

function writeCall(o: DiskMountOptions, call: Call): HostFs['writeFile'] {
  const { tree, disk, power, clock } = o;
  return (path, data, opts) =>
    call('writeFile', path, async () => {
      if (opts?.exclusive === true && tree.live.has(path)) throw failure('EEXIST', path);
      if (tree.live.get(path)?.kind === 'dir') throw failure('EISDIR', path);
      const bytes = typeof data === 'string' ? encoder.encode(data) : data;
      const mode = opts?.mode ?? tree.live.get(path)?.mode ?? 0o644;
      // Opening truncates; what follows can take long, fail, or never come.
      const file = tree.entry('file', { mode, synced: false });
      const gone = tree.live.get(path)?.data.length ?? 0;
      tree.store(path, file);
      if (bytes.length > gone) needsSpace(o, path);
      const slow = wait(clock, disk.trouble.delayMs('write', path));
      if (slow !== undefined) {
        await slow;
        if (!power.on || tree.live.get(path) !== file) return;
        file.data = bytes.slice(0, bytes.length >> 1);
        await wait(clock, disk.trouble.delayMs('write', path));
        if (!power.on || tree.live.get(path) !== file) return;
      }
      file.data = bytes.length === 0 ? NOTHING : bytes;
      file.synced = opts?.fsync === true;
      file.mtimeMs = o.wallMs();
      tree.modified(path);
    });
}

function makeCalls(o: DiskMountOptions, call: Call): Pick<HostFs, 'rename' | 'fsyncDir' | 'mkdirp' | 'symlink' | 'chmod'> {
  const { tree, disk } = o;
  return {
    rename: (from, to) =>
      call('rename', to, () => {
        tree.found(from);
        if (tree.live.get(parentOf(to))?.kind !== 'dir') throw failure('ENOENT', to);
        for (const path of [from, to]) if (disk.isMountPoint(path)) throw failure('EBUSY', path);
        tree.rename(from, to);
      }),
    fsyncDir: (path) => call('fsyncDir', path, () => tree.syncNames(path)),
    mkdirp: (path) =>
      call('mkdirp', path, () => {
        const isNew = !tree.live.has(path);
        if (isNew) needsSpace(o, path);
        tree.makeDir(path, false);
        return isNew;
      }),
    symlink: (target, path) =>
      call('symlink', path, () => {
        if (tree.live.has(path)) throw failure('EEXIST', path);
        needsSpace(o, path);
        tree.store(path, tree.entry('symlink', { target }));
      }),
    chmod: (path, mode) =>
      call('chmod', path, () => {
        tree.follow(path).mode = mode;
      }),
  };
}

function removeCalls({ tree, disk }: DiskMountOptions, call: Call): Pick<HostFs, 'unlink' | 'rmdir'> {
  return {
    unlink: (path) =>
      call('unlink', path, () => {
        if (tree.found(path).kind === 'dir') throw failure('EISDIR', path);
        if (disk.isMountPoint(path)) throw failure('EBUSY', path);
        disk.onRemove(path);
        tree.remove(path);
      }),
    rmdir: (path) =>
      call('rmdir', path, () => {
        if (tree.found(path).kind !== 'dir') throw failure('ENOTDIR', path);
        if (disk.isMountPoint(path)) throw failure('EBUSY', path);
        if (tree.namesIn(path).length > 0) throw failure('ENOTEMPTY', path);
        disk.onRemove(path);
        tree.remove(path);
      }),
  };
}
