/**
 * The Cgroups port: cgroups of the machine, in either version of the kernel's interface. A path is of a group, from the root of the
 * hierarchies on (`/kubepods/burstable/podA`). With the driver systemd a path ends in a slice (`/kubepods.slice/kubepods-burstable.slice`):
 * it is made, changed and removed as a unit of systemd. Errors carry Node's `code`. What changes groups happens one after the other, in the
 * order of the calls, also when their caller ended meanwhile: a removal that was begun is over before the next creation.
 */
import type { GroupFile, GroupLayout, GroupWrite } from '../../machines/allocation/cgroups/files.ts';
import type { GroupDriver } from '../../machines/nodeFacts.ts';

export interface Cgroups {
  /**
   * Takes the driver for all that follows. Rejects where the machine lacks a controller that pods cannot be without, saying
   * which, and where systemd does not answer.
   */
  detect(driver: GroupDriver): Promise<GroupLayout>;
  /** False also where some hierarchy lacks it. */
  exists(path: string): Promise<boolean>;
  /** Makes it and all that it is below, in every hierarchy; what is there is left as it is. */
  create(path: string): Promise<void>;
  /** In order, up to the first that fails; the error names the file and the value. */
  apply(path: string, writes: readonly GroupWrite[]): Promise<void>;
  /** '' for a file that is not there. */
  read(path: string, files: readonly GroupFile[]): Promise<string[]>;
  /** Names of the groups right below it, in any hierarchy, sorted. None where it is not there. */
  list(path: string): Promise<string[]>;
  /** Moves this process into it. */
  enter(path: string): Promise<void>;
  /** Moves programs that are right in the root there: not the first process, no threads of the kernel. How many it moved. */
  moveFromRoot(path: string): Promise<number>;
  /** Processes in it and in all below, sorted. */
  pids(path: string): Promise<number[]>;
  /** SIGKILL to each of them; they are gone a moment later. */
  kill(path: string): Promise<void>;
  /** It and all below, in every hierarchy. `EBUSY` while a process is in one of them; not being there is no error. */
  remove(path: string): Promise<void>;
}
