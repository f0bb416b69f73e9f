/** What a container's statechart is given and what it asks and tells: one start of one container. */
import type { Container } from '../../../kube/podTable.ts';
import type { Pod } from '../../../kube/types.ts';
import type { CrashBackoffEntry, RuntimeContainer, StartFailure } from '../../../pod/runtime/seen.ts';
import type { ImageResult } from '../../../runtime/imagePuller/messages.ts';
import type { StopIo } from './containerStopMachine.ts';

export type ContainerKind = 'init' | 'regular' | 'ephemeral';

/** All that one start needs; a snapshot taken when the worker decided. */
export interface StartJob {
  pod: Pod;
  container: Container;
  kind: ContainerKind;
  sandboxId: string;
  sandboxAttempt: number;
  /** Handler of the runtime that the sandbox runs under; absent: the runtime does not say, or it is the default one. */
  handler?: string;
  podIPs: readonly string[];
  /** The instance of this name that counts, in any state, and newest exited one that this node did not stop in order to replace it. */
  newest: RuntimeContainer | null;
  newestExited: RuntimeContainer | null;
  /** Instances of this name that were created and never started. */
  unstarted: readonly string[];
  /** Null: neither the runtime nor an earlier status tells. */
  restartCount: number | null;
  /**
   * What the next instance was to count when one that had not been seen to start was removed for it: the log that it may
   * have left tells of no run. Absent: none was.
   */
  clearedCount?: number;
  /** Host paths of the termination files of all instances of this name that the runtime still holds; others are litter. */
  terminationFiles?: readonly string[];
  /** Hash of the name and image: a change starts a fresh back-off. */
  specKey: string;
  /** See {@link WorkerContext}: what was not there before may be there now. */
  objectChanges?: number;
  /** How often a restart of it was asked for. Absent: never. */
  timesAsked?: number;
  causes: readonly { atMs: number; by: string; what: string }[];
}

/** What an act came to. `unknown`: it may have had its effect; only an inspection can tell. */
export type ActOutcome<T> = { kind: 'done'; value: T } | { kind: 'failed'; failure: StartFailure } | { kind: 'unknown'; details: string };

/**
 * What stood in the way of a new instance was removed, and nothing was created. It may have started before it went: what
 * the new one counts is decided anew, by an inspection that began after that.
 */
export interface Cleared {
  kind: 'cleared';
}

/** Milliseconds. */
export interface ContainerTimes {
  backoffBaseMs: number;
  backoffMaxMs: number;
  /** Wait after a failed start before the worker may decide again, lengthened by up to half (pod lifecycle 3.1: 10 s). */
  retryMs: number;
}

/** To the worker. */
export type ContainerReport =
  | {
      type: 'container.report';
      name: string;
      failure: StartFailure | null;
      nextStartAtMs: number | null;
      /** It is on its way, and does not count as running before its postStart hook has ended. */
      hookAhead: boolean;
    }
  /**
   * Something was done to the runtime, or a wait is over: inspect and decide again. `known`: an act of this worker had its
   * effect, so a partial inspection is enough.
   */
  | { type: 'container.acted'; name: string; why: string; known: boolean }
  /** The inspection after an act began too early to show it. A worker that looks again anyway needs no word of it. */
  | { type: 'container.unseen'; name: string };

export interface CreateRequest {
  job: StartJob;
  imageRef: string;
  imageUser: ImageUser | null;
}
export type Created = ActOutcome<{ id: string; restartCount: number }> | Cleared;
export interface StartRequest {
  job: StartJob;
  id: string;
  restartCount: number;
}
/** What a container's statechart asks of the outside; given by `actors/pods/workers`, or by a test. */
export interface ContainerIo extends StopIo {
  ensureImage(job: StartJob, signal: AbortSignal): Promise<ImageResult>;
  createContainer(input: CreateRequest, signal: AbortSignal): Promise<Created>;
  startContainer(input: StartRequest, signal: AbortSignal): Promise<ActOutcome<null>>;
  backingOff(job: StartJob, failure: StartFailure): void;
}
export interface ImageUser {
  uid: number | null;
  username: string;
}

/** Of a container whose worker sleeps, what its child cannot see again: how long it backs off, and what was cleared away for it. */
export interface KeptContainer {
  readonly backoff: CrashBackoffEntry | undefined;
  readonly backoffBefore: CrashBackoffEntry | undefined;
  readonly backoffKey: string;
  readonly clearedCount: number | null;
  /** Of one that slept while it backed off: it goes on waiting, and says nothing anew. Absent: it did not. */
  readonly waits?: KeptWait;
}
export interface KeptWait {
  readonly job: StartJob;
  readonly failure: StartFailure;
  readonly nextStartAtMs: number | null;
  readonly untilMonoMs: number;
}
