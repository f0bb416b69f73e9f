/** What is kept of an actor. */
import type { ActorView } from '@actorlet/kubelet/machines/supervision/actorState.ts';

/** An actor as it is shown, without its children; null: it is gone. */
export interface RowFact {
  atMs: number;
  path: string;
  row: { state: ActorView; sinceMonoMs: number; sleptMonoMs: number | null; oldestMonoMs: number; chart: number } | null;
}
