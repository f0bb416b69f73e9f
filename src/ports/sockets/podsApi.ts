/** The PodsApi port: the socket at which agents of this node list and watch its pods. */
import type { Pod, PodStatus } from '../../machines/kube/types.ts';
import type { Listening } from '../listening.ts';

/** A pod and what its status is now. Both are the same objects as long as nothing changed. */
export interface PodNow {
  pod: Pod;
  status: PodStatus;
}

/** Each is called once per request. What it throws, the caller is told. */
export interface PodsApiAnswers {
  /** False: too many ask. The caller is told to try again. */
  admit(): boolean;
  /** By UID, in its order. */
  list(): readonly PodNow[];
  /** Null: this node has no such pod. */
  get(uid: string): PodNow | null;
  /** Calls after each change, until it is disposed. */
  watch(changed: () => void): Disposable;
}

export interface PodsApiPort {
  /** Listens at this path, where nothing may be. Rejects with the error of binding. */
  serve(socketPath: string, answers: PodsApiAnswers): Promise<Listening>;
}
