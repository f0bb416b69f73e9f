/** Where a pod's worker stands, in the words of its statechart. Pure. */

import { type WorkerSummary, workersAddr } from '@actorlet/kubelet/machines/pods/workers/messages.ts';
import { type ActorView, isUp } from '@actorlet/kubelet/machines/supervision/actorState.ts';

export type WorkerWords = Pick<WorkerSummary, 'state' | 'reason' | 'message' | 'sinceMs'>;

/** Reads one actor of the tree. */
export type ActorAt = (path: string) => ActorView | undefined;

/** Words of the tree while it runs or sleeps: a worker does not report each state. Otherwise those of its last report. */
export function workerWords(uid: string, worker: WorkerSummary, o: { actorAt: ActorAt; nowMs: number }): WorkerWords {
  const actor = o.actorAt(`${workersAddr.path}/${uid}`);
  const runs = actor !== undefined && isUp(actor) && actor.state !== '';
  const { state, reason, message } = runs ? actor : worker;
  return { state, reason, message, sinceMs: runs ? Math.round(o.nowMs - actor.ageMs) : worker.sinceMs };
}
