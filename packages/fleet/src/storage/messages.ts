/** Messages to what a CSI driver of a fleet has to do. */
import { type Address, address } from '@actorlet/kubelet/machines/supervision/address.ts';

/** One claim that wants a volume, volume that is left, or volume that wants to be attached. */
export interface Task {
  /** Kind and uid. */
  key: string;
  kind: 'provision' | 'delete' | 'attach';
  /** Namespace and name, or name. */
  object: string;
  /** Until it is done. */
  afterMs: number;
}

/** `hangs`: a fault holds it. `failed`: the driver says no, and tries again later. */
export type TaskOutcome = { what: 'done' } | { what: 'hangs'; fault: string } | { what: 'failed'; why: string };

export type TaskEvent =
  | { type: 'task.seen'; key: string; task: Task }
  /** Nobody wants it any more. */
  | { type: 'task.gone'; key: string };

export const tasksAddr: Address<TaskEvent> = address('fleet/storage/tasks');
