/** Shared shapes of pod decisions: what the runtime was seen to hold, and what a worker decides to do about it. */

export type SourceName = 'file' | 'http' | 'api';

/** CRI state reduced to what decisions read. Lists are newest-created first; many rules depend on it. */
export interface RuntimeContainer {
  id: string;
  name: string;
  state: 'created' | 'running' | 'exited' | 'unknown';
  /** Nanoseconds, for ordering. */
  createdAtNs: bigint;
  /** Milliseconds since the epoch; null = never. */
  startedAtMs: number | null;
  finishedAtMs: number | null;
  exitCode: number;
  image: string;
  imageRef: string;
  reason: string;
  /** CRI message joined with the termination message, as spec 5.15. */
  message: string;
  /** Annotation as written, lower-case hex; '' when absent. */
  hash: string;
  restartCount: number;
  terminationMessagePath: string;
  terminationMessagePolicy: string;
  logPath: string;
  /** Host path mounted at terminationMessagePath, if any. */
  terminationMessageHostPath: string | null;
  /** Paths in the container where mounts below a mount are read-only, too; absent: none. */
  recursiveReadOnly?: readonly string[];
  annotations: Record<string, string>;
  /** Signal that asks it to end; absent: the runtime does not say. */
  stopSignal?: string;
  /** What is in force; absent: the runtime does not say. */
  resources?: ReportedResources;
  /** As whom its first process runs; absent: the runtime does not say. */
  user?: { uid: number; gid: number; supplementalGroups: number[] };
  /** The worker stopped it to start another in its place: that follows however this one ended. */
  replaced?: true;
  /** A person asked for that. */
  asked?: true;
}
/** Shares, microseconds and bytes; what is absent is not limited, or not said. */
interface ReportedResources {
  cpuShares?: number;
  cpuQuota?: number;
  cpuPeriod?: number;
  memoryLimitInBytes?: number;
}
export interface RuntimeSandbox {
  id: string;
  attempt: number;
  ready: boolean;
  createdAtNs: bigint;
  /** Primary first; empty for host network or not-ready sandboxes. */
  ips: string[];
  hostNetwork: boolean;
  /** Of the runtime, which it runs under; absent: the runtime does not say, or it is the default one. */
  handler?: string;
}
/** Everything the runtime holds of one pod UID. */
export interface PodRuntimeStatus {
  uid: string;
  name: string;
  namespace: string;
  /** Addresses of the newest sandbox if it is ready, else []. */
  ips: string[];
  sandboxes: RuntimeSandbox[];
  containers: RuntimeContainer[];
  /** Monotonic milliseconds at which the inspection began: everything that happened before is in it. */
  observedAtMonoMs: number;
  /** Present after a partial inspection: when what was read since the last whole inspection was read, by id. */
  partial?: { readAtMonoMs: ReadonlyMap<string, number>; wholeAtMonoMs: number };
}

/** Why a start did not succeed: becomes the waiting reason (spec 5.3) and message of the container's status. */
export interface StartFailure {
  reason: string;
  message: string;
  /**
   * Nothing failed: what it needs is not there yet. Who refused sends `pod.dirty` when it is (docs/architecture/pod-flow.md). Absent:
   * it failed.
   */
  later?: true;
}

export interface KillContainer {
  id: string;
  name: string;
  /** Event text, e.g. `Container web definition changed, will be restarted`. */
  message: string;
  reason: 'definitionChanged' | 'LivenessProbe' | 'StartupProbe' | 'Unknown' | 'FailedPostStartHook' | 'restartAsked';
}
/** Containers that are taken away together so that all of the pod start again. */
export interface ResetGroup {
  /** These may run. */
  stop: { id: string; name: string }[];
  /** Ids, of those that are stopped too. */
  remove: string[];
}
export interface PodActions {
  /** Stop everything of the pod, sandboxes too. */
  killPod: boolean;
  createSandbox: boolean;
  /** Sandbox to use or replace; '' when there is none (or host network was toggled). */
  sandboxId: string;
  attempt: number;
  initToStart: string[];
  containersToStart: string[];
  ephemeralToStart: string[];
  containersToKill: KillContainer[];
  /** Some init container is still ahead: regular containers were not examined. */
  initializing: boolean;
}

export interface CrashBackoffEntry {
  delayMs: number;
  /** Monotonic milliseconds of the last advance. */
  updatedAtMonoMs: number;
  /** Wall milliseconds of the last advance (comparable with the runtime's finishedAt). */
  updatedAtWallMs: number;
  /** An exit that the wall clock puts into the future, and the monotonic ms at which it was first seen: it was no later. */
  strangeExit?: { finishedAtMs: number; seenAtMonoMs: number };
}

/** What a container machine says to status generation when it is not simply what the runtime shows. */
export type StartFailures = ReadonlyMap<string, StartFailure>;

export type PodOpKind = 'ADD' | 'UPDATE' | 'DELETE' | 'REMOVE' | 'RECONCILE';

/** One pod as the last listing saw it: ids and states only. */
export interface ListedPod {
  uid: string;
  name: string;
  namespace: string;
  sandboxes: readonly {
    id: string;
    ready: boolean;
    createdAtNs: bigint;
    attempt: number;
    labels: Record<string, string>;
    annotations: Record<string, string>;
  }[];
  containers: readonly {
    id: string;
    name: string;
    sandboxId: string;
    state: 'created' | 'running' | 'exited' | 'unknown';
    createdAtNs: bigint;
    labels: Record<string, string>;
    annotations: Record<string, string>;
  }[];
}

export interface RuntimePodsView {
  /** Monotonic ms at which the listing began. */
  atMonoMs: number;
  pods: ReadonlyMap<string, ListedPod>;
  /** `cri` or `containerd` while the stream is trusted, else `poll`. */
  via: 'cri' | 'containerd' | 'poll';
}
