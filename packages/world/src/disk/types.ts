/** A simulated disk, as the rest of the world sees it. */

import type { FsCall } from '@actorlet/faults/src/subjects.ts';
import type { Clock, HostFs, Sys } from '@actorlet/kubelet/ports/ports.ts';
import type { SimRng } from '../rng.ts';
import type { Power } from '../time.ts';
import type { OpenFile } from './diskEntry.ts';

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
  /** A process listens there from now on; the one that listened there before is another. */
  putSocket(path: string): void;
  drop(path: string): void;
  makeDir(path: string): void;
  /** Removes a directory with everything in it; watches of it end. False: it is not there. */
  takeDir(path: string): boolean;
  /** Puts another directory with the same files in its place; watches of the old one hear of nothing any more. False: it is not there. */
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
  /** Number of the file system that this path is on. */
  deviceOf: (path: string) => number;
  /** Something is mounted on that very path: no process can remove it. */
  isMountPoint: (path: string) => boolean;
}

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
