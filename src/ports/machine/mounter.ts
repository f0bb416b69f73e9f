/**
 * The Mounter port: mounts, and paths that belong to somebody else. What is done to a foreign path may never return (a dead network file
 * system), so it is done by a helper process that is killed at its deadline; the caller's own threads never touch it.
 */
import type { MountEntry } from '../../machines/host/mountinfo.ts';
import type { UnmountWay } from '../../machines/host/unmounting.ts';
import type { ToolAnswer } from '../../machines/services/volumes/devices/format.ts';

export type PathKind = 'absent' | 'dir' | 'file' | 'socket' | 'char' | 'block' | 'other';

export interface MountCall {
  /** At the deadline the helper is killed and the call fails with code `ETIMEDOUT`: the effect is then unknown. */
  timeoutMs: number;
  signal: AbortSignal;
  /** Told how many files are done. The deadline begins anew each time. */
  progress?(files: number): void;
}
interface MountRequest {
  /** File system type; '' with the option `bind`. */
  type: string;
  /** `tmpfs`, a device, or the directory to bind. */
  source: string;
  path: string;
  options: readonly string[];
}
export interface SubPathRequest {
  /** Where the volume stands; links in this path itself are followed. */
  volume: string;
  /** Below the volume; relative, without `..`. What is not there yet is made, with the mode of the volume's own directory. */
  subPath: string;
  /** Where it is bound to. Its directory is there. */
  target: string;
  /** The volume belongs to somebody else: only a helper touches it. */
  foreign: boolean;
}
/** `step`: it cannot be made, or not be bound. `why` tells of what is on the host: not for users of the pod. */
export type SubPathResult = { kind: 'bound' } | { kind: 'refused'; step: 'create' | 'prepare'; why: string };

/** Failed calls carry `code`: `ETIMEDOUT`, `ECANCELED`, `EBUSY`, `ENOENT`, `ELOOP`, `EPERM`, else `EIO`, and the helper's words. */
export interface Mounter {
  /**
   * Mounts of this process's namespace at `dir` and below, in the order in which they were made. Their paths begin with
   * `dir` as it was given, also where a link leads there: the mount table knows only where it leads to.
   * `at`: a path below `dir`. Mounts that are neither there nor below may be left out.
   */
  list(dir: string, at?: string): Promise<readonly MountEntry[]>;
  mount(request: MountRequest, call: MountCall): Promise<void>;
  /**
   * Binds a part of a volume. Containers may change the volume meanwhile: what is bound lies inside it all the same, or
   * nothing is bound. Links that stay inside are followed. What is bound there already stays where it is the same thing,
   * and is taken away where it is another.
   */
  bindSubPath(request: SubPathRequest, call: MountCall): Promise<SubPathResult>;
  /** Takes the topmost mount of that very path away. `type`: of its file system, from {@link list}. */
  unmount(path: string, type: string, call: MountCall): Promise<void>;
  /** The same where that did not do it: something uses the mount, or its server does not answer. It need not have ended when the mount is gone. */
  detach(path: string, way: Exclude<UnmountWay, 'plain'>, call: MountCall): Promise<void>;
  /**
   * Ends a network file system where its server does not answer: all that waits for it fails at once, and so does each later
   * call, in every mount of it and in containers too. `path`: a mount of it. Rejects where the kernel cannot do it.
   */
  sever(path: string, device: string, call: MountCall): Promise<'answers' | 'severed'>;
  /** Follows links. */
  kindOf(path: string, call: MountCall): Promise<PathKind>;
  /** With parents; all of them get `mode` as it stands. */
  makeDir(path: string, mode: number, call: MountCall): Promise<void>;
  /** An empty file, where there is nothing yet; parents are not made. */
  makeFile(path: string, mode: number, call: MountCall): Promise<void>;
  /**
   * Gives a tree to a group: all of it may be read and written by it, and directories pass it on. The root comes last, so
   * that a root which is as it should be stands for the whole: with `onRootMismatch` such a tree is left as it is. What
   * could not be changed is told, and is no failure.
   */
  giveToGroup(path: string, of: { gid: number; onRootMismatch: boolean }, call: MountCall): Promise<{ left: string }>;
  /** Follows links. */
  groupOf(path: string, call: MountCall): Promise<number>;
  /**
   * Makes a file system use all of its device while it is mounted: ext2 to ext4, xfs and btrfs. A device that has none is left
   * as it is. `path`: where it is mounted.
   */
  growFileSystem(device: string, path: string, call: MountCall): Promise<void>;
  /**
   * Runs a program of this host that knows its disks. Any exit code is an answer; rejects with `ENOENT` where the host does
   * not have the program. What begins is not cut short by the signal: nobody could say what became of it.
   */
  tool(name: string, args: readonly string[], call: MountCall): Promise<ToolAnswer>;
  /** Writes to a file of the kernel, which may ask a device before it takes it. */
  tellKernel(path: string, text: string, call: MountCall): Promise<void>;
  /** Changes the owner of a path of our own; a link is changed itself. Absent ids stay as they are. */
  chown(path: string, owner: { uid?: number; gid?: number }): Promise<void>;
}
