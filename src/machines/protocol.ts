/**
 * The events that cross from one actor to another, the addresses and the views. Those of the layers `api`, `allocation`,
 * `imagePuller`, `objects`, `plugins` and `volumes` stand in their `messages.ts`, views of a single area beside its decisions.
 * Events are `noun.verb`. Senders name addresses from {@link addr}; readers name views from {@link view}.
 */

import type { GroupDriver } from './allocation/cgroups/names.ts';
import type { AllocationAnswer } from './allocation/messages.ts';
import type { CriMethod } from './cri.ts';
import type { InjectorEvent } from './faults/live.ts';
import type { Pod, PodStatus } from './k8s.ts';
import type { LifeStep, PodLifeState } from './pods/manager/life.ts';
import type { Candidate } from './pods/manager/records.ts';
import type { PodOpKind, SourceName } from './pods/types.ts';
import type { EvictionLedger } from './reclaim/eviction/pass.ts';
import type { NodePressure } from './reclaim/eviction/thresholds.ts';
import type { ImageEvent, ImageRemovedEvent } from './runtime/imagePuller/messages.ts';
import type { ProbeLedger } from './services/probes/types.ts';
import type { VolumesEvent, VolumesView } from './services/volumes/messages.ts';
import { type Address, address, type Cause, type Message, type ReplyTo, viewKey } from './supervision/address.ts';

// ---- runtime -----------------------------------------------------------------------------------------------------

/** Plain form of a CRI failure, safe to pass between actors. `outcome: 'unknown'` = it may have had its effect. */
export interface CriFailure {
  method: CriMethod;
  /** gRPC status code. */
  code: number;
  outcome: 'failed' | 'unknown';
  details: string;
}
export type CriResult = { ok: true; value: unknown } | { ok: false; error: CriFailure };

/** To the CRI link. Use the typed client in `actors/runtime/client.ts` rather than building these by hand. */
export type CriEvent = Message &
  (
    | {
        type: 'cri.call';
        /** Fence key: mutating acts of one pod UID run one at a time. Absent for reads. */
        uid?: string;
        /** The incarnation of the asking worker; an act of an older one queued behind a newer one is refused. */
        incarnation?: number;
        /** One act: its calls run in parallel; the act is settled when all are. */
        calls: readonly { method: CriMethod; request: unknown; timeoutMs: number | null }[];
        replyTo: ReplyTo<readonly CriResult[]>;
      }
    /** Waits until no act of that UID is in flight (settled or cancelled), then answers with the present mono time. */
    | { type: 'cri.fence'; uid: string; incarnation: number; replyTo: ReplyTo<{ monoMs: number }> }
    /** Asks for a Status poll now. */
    | { type: 'cri.check' }
  );

/** A handler of the runtime, and what it says that it can do for a pod. '' is the name of the default one. */
export interface RuntimeHandlerView {
  name: string;
  recursiveReadOnlyMounts: boolean;
  userNamespaces: boolean;
}

export interface CriView {
  state: 'connecting' | 'ready' | 'lost';
  reason: string;
  runtimeName: string;
  runtimeVersion: string;
  /** The cgroup driver that it has. Null: it does not say (containerd before 2.0). Absent: it was not asked yet. */
  cgroupDriver?: GroupDriver | null;
  runtimeReady: boolean;
  networkReady: boolean;
  networkReason: string;
  /** Its handlers, where it names any. */
  handlers?: readonly RuntimeHandlerView[];
  /** It gives a container exactly the groups that the pod lists, where it is asked to. Absent: it does not say. */
  strictGroups?: boolean;
  /** Monotonic ms of the last good Status; null before the first. */
  lastGoodMonoMs: number | null;
}

export type PlegEvent = Message &
  (
    | { type: 'pleg.relist'; why: string }
    | { type: 'cri.ready' }
    | { type: 'cri.lost' }
    /** Something about this container or sandbox id changed (already attributed when podUid is set). */
    | { type: 'pleg.hint'; id: string; podUid?: string; kind: string }
    | { type: 'pleg.resync' }
  );

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

// ---- telemetry ---------------------------------------------------------------------------------------------------

export interface PodRef {
  uid: string;
  name: string;
  namespace: string;
}
/** A Kubernetes event about a pod (or, without `pod`, about the node). */
export interface RecordedEvent {
  atMs: number;
  type: 'Normal' | 'Warning';
  reason: string;
  message: string;
  pod?: PodRef;
  /** `spec.containers{name}` and its siblings. */
  fieldPath?: string;
  count: number;
  /** Wall ms of the first of `count` occurrences; absent means `atMs`. */
  firstAtMs?: number;
}
export type EventsEvent = Message & { type: 'event.record'; event: Omit<RecordedEvent, 'count' | 'atMs' | 'firstAtMs'> };

/** What a stored document comes to: `absent` also when a corrupt or newer one was set aside (the log says so). */
export type CheckpointFound = { found: true; value: unknown } | { found: false };
/** To the checkpoint actor: small JSON documents that outlive the process. A name is `[a-z][a-zA-Z0-9-]{0,62}`. */
export type CheckpointEvent = Message &
  /** Saves `value` (plain JSON). Per name the newest wins; it is on disk soon, and before an orderly stop ends. */
  (
    | { type: 'checkpoint.put'; name: string; value: unknown }
    /** Answers with what was put last, else with what is on disk. Refused when the disk cannot be read. */
    | { type: 'checkpoint.get'; name: string; replyTo: ReplyTo<CheckpointFound> }
    /** Orderly stop: write what is pending, then end. */
    | { type: 'checkpoint.flush' }
  );

// ---- pods --------------------------------------------------------------------------------------------------------

/** Which pod a manifest file holds, by path. A pod that was taken over has another UID than its manifest gives it. */
export type ManifestsView = ReadonlyMap<string, { readonly namespace: string; readonly name: string }>;

/** What is wrong with a document of a source. */
export interface SourceError {
  /** File path or URL. */
  where: string;
  message: string;
  /** Its pods are used all the same: something in it was read leniently, or is left out. */
  note?: true;
  /** Full name of the pod that it seems to define, though no pod came of it; `*`: nobody can say which. Absent: none. */
  holds?: string;
  /** The pod that this document held when it was last good, if known. */
  fullName?: string;
}
export type ConfigEvent = Message &
  (
    | {
        type: 'source.set';
        source: SourceName;
        /** Decoded, defaulted and validated pods: the complete set of this source. */
        pods: readonly Pod[];
        errors: readonly SourceError[];
      }
    /** Replaces what is known to be wrong with that source; its pods stay, and it does not count as a SET. */
    | { type: 'source.errors'; source: SourceName; errors: readonly SourceError[] }
    /** The node itself ended these pods, and they may run again: each is removed and added once more. Unknown UIDs are ignored. */
    | { type: 'pods.again'; source: SourceName; uids: readonly string[] }
  );

/** From config to the pod manager: one operation of podConfig. Its pods are shared: nobody changes them. */
export type PodOpEvent = Message & {
  type: 'pods.op';
  op: PodOpKind;
  source: SourceName;
  pods: readonly Pod[];
  /** UIDs of the complete set of this source after the merge: what is not in it is gone, even if a REMOVE was missed. */
  complete?: readonly string[];
  /** Of the first ADD of this source since podConfig (re)started: every pod it names may have been named before. */
  first?: boolean;
  /** Of an operation with very many pods, which the pod manager takes in slices. A source has delivered with the end of its first. */
  part?: 'begin' | 'middle' | 'end';
  /** With `first`: static pods that the runtime holds of a name in `pods`, with another definition. They are wound down before. */
  predecessors?: readonly ListedPod[];
};

export type PodManagerEvent =
  | PodOpEvent
  | (Message &
      /** To itself: what the device manager and the CPU manager answer about a pod that waits to be admitted. `id`: of the question. */
      (
        | { type: 'pods.allocated'; uid: string; id: number; answer: AllocationAnswer }
        /** From a worker: its life moved on. */
        | { type: 'worker.state'; uid: string; life: number; state: WorkerSummary }
        /**
         * From housekeeping: a pod the runtime holds and nobody wants. `epoch`, here and below: of the view from which that
         * follows; the word is void once another pod manager keeps the ledger.
         */
        | { type: 'pods.orphan'; listed: ListedPod; epoch: number }
        | { type: 'pods.quarantined'; uid: string; error: string; epoch: number }
        /** From the eviction manager: end this pod, which fails with this. Ignored for one that is on its way out already. */
        | {
            type: 'pods.evict';
            uid: string;
            eviction: Eviction /** One on its way out gets its `graceSeconds` at most. */;
            hurry?: boolean;
          }
        /** From lifecycle events or anyone: look at this pod again. Unknown UIDs are ignored. Fields as in `pod.dirty`. */
        | { type: 'pods.dirty'; uid: string; why: string; ended?: readonly string[]; listed?: boolean }
      ));

/** One container as its worker sees it, for `why`, `/statez` and `actorctl pods`. */
export interface ContainerSummary {
  name: string;
  init: boolean;
  /** `waiting`, `running`, `terminated`. */
  state: string;
  reason: string;
  message: string;
  restartCount: number;
  /** Wall ms at which the next start is allowed, while backing off. */
  nextStartAtMs?: number;
}
export type WorkerPhase = 'waiting' | 'syncing' | 'terminating' | 'terminated' | 'finished';
export interface WorkerSummary {
  phase: WorkerPhase;
  /** State value of the worker's machine, e.g. `syncing.acting`. */
  state: string;
  reason: string;
  message: string;
  sinceMs: number;
  containers: readonly ContainerSummary[];
  causes: readonly Cause[];
}

/** Why a pod of the API was ended, or not let in, for want of something on this node. It stays failed. */
export interface Eviction {
  reason: string;
  message: string;
  /** What its containers get at most. */
  graceSeconds: number;
}

/** A pod the node knows: wanted by a source, or still being wound down, or found in the runtime only. */
export interface PodRecord {
  pod: Pod;
  source: SourceName | 'runtime';
  /** What the next four follow from. */
  state?: { readonly is: PodLifeState };
  /** The states of its present life, oldest first. Gone with the pod manager that saw them. */
  way?: readonly LifeStep[];
  /** No longer in any source; kept until its worker finished. */
  removed: boolean;
  /** Refused by admission: no worker. */
  rejected: boolean;
  /** The reason that admission gave to what its source names now. That may be the next life of a pod which is wound down. */
  rejectedFor?: string | null;
  /** An update of it was refused while it ran: it is being stopped, or was, and fails with this. */
  refusal?: { reason: string; message: string } | null;
  /** It was evicted, or refused for the node's pressure: whatever is said of it later, it does not run again. */
  eviction?: Eviction | null;
  /** Wall ms first seen. */
  seenAtMs: number;
  worker: WorkerSummary | null;
  /** Of its present life, as in `pod.update`. */
  life?: number;
  /** Not the first life of its UID since the pod manager began. Absent: it is. */
  renewed?: boolean;
}
/** A pod that is neither let in nor refused yet, and what it waits for. */
export type WaitingPod = Pick<Candidate, 'pod' | 'source' | 'sinceMonoMs' | 'wait' | 'refusal' | 'asked' | 'leaving'>;
/** By UID. */
export type WaitingPods = ReadonlyMap<string, WaitingPod>;
export interface PodsView {
  records: ReadonlyMap<string, PodRecord>;
  /** Which incarnation of the pod manager says so. Absent: 1. */
  epoch?: number;
  /** Every configured source has delivered a SET, and each pod in it was let in or refused: never false again. */
  sourcesReady: boolean;
}

export type WorkerEvent = Message &
  (
    | { type: 'pod.update'; uid: string; life: number; kind: 'create' | 'update' | 'sync'; pod: Pod; fromRuntime?: ListedPod }
    /** Stop it. `graceOverrideSeconds` shrinks, never extends. `life` 0: whichever life there is, any other: that one only. */
    | {
        type: 'pod.kill';
        uid: string;
        life: number;
        graceOverrideSeconds?: number;
        /** Sets phase, reason and message of the final status (eviction, preemption). */
        status?: { phase: 'Failed'; reason: string; message: string; disruption?: string };
      }
    /** A hint: inspect the runtime again. */
    | {
        type: 'pod.dirty';
        uid: string;
        why: string;
        /** Container ids whose end was announced: the runtime's ledgers may show it a moment later. */
        ended?: readonly string[];
        /** All that is behind it is in the published listing: whoever saw the same there need not look again. Default false. */
        listed?: boolean;
        /** A secret or config map that the pod names has changed; `only`: nothing else is behind it. */
        objects?: 'only' | 'too';
      }
  );

export type StatusEvent = Message &
  (
    | {
        type: 'status.set';
        pod: PodRef;
        /** Which life of the pod it is about. */
        life: number;
        status: PodStatus;
        restartPolicy: string;
        deleting: boolean;
        finished?: boolean /** Restartable init containers: they may start again under any policy. */;
        sidecars?: readonly string[];
      }
    /** What was said of that life and of those before it. */
    | { type: 'status.forget'; uid: string; life: number }
  );
export interface StatusEntry {
  status: PodStatus;
  /** Which life of the pod it is about. */
  life: number;
  /** Grows with each accepted change, and is never given twice on one node. */
  version: number;
  finished: boolean;
}
export type StatusView = ReadonlyMap<string, StatusEntry>;

// ---- services ----------------------------------------------------------------------------------------------------

/** To the probe manager: this pod's definition or status may have changed, or with null anybody's; the views tell. */
export type ProbesEvent = Message & { type: 'probes.look'; uid: string | null };

// ---- reclaim -----------------------------------------------------------------------------------------------------

/** `urgent`: now, not once a burst of pods has ended. */
export type ContainerGcEvent = Message & { type: 'gc.run'; why: string; urgent?: true };
/** Frees the room of every image that nobody uses; answered when that was tried. */
export type ImageGcEvent = Message & { type: 'images.free'; replyTo: ReplyTo<{ freedBytes: number }> };
export type HousekeepingEvent = Message & { type: 'housekeeping.run'; why: string };

/** What the node is short of, and since when: what its status and admission go by. */
export interface PressureView {
  pressures: readonly NodePressure[];
  /** For the next incarnation of the eviction manager. */
  ledger: EvictionLedger;
}

// ---- names -------------------------------------------------------------------------------------------------------

export const addr = {
  events: address<EventsEvent>('node/foundation/telemetry'),
  checkpoint: address<CheckpointEvent>('node/foundation/checkpoint'),
  /** Only in a node that was started with `--actorlet-fault-injection`. */
  injector: address<InjectorEvent>('node/foundation/injector'),
  cri: address<CriEvent>('node/runtime/cri'),
  pleg: address<PlegEvent>('node/runtime/pleg'),
  imagePuller: address<ImageEvent | ImageRemovedEvent>('node/runtime/imagePuller'),
  volumes: address<VolumesEvent>('node/services/volumes'),
  probes: address<ProbesEvent>('node/services/probes'),
  status: address<StatusEvent>('node/pods/status'),
  podManager: address<PodManagerEvent>('node/pods/podManager'),
  workers: address<WorkerEvent>('node/pods/workers'),
  config: address<ConfigEvent>('node/pods/config'),
  containerGc: address<ContainerGcEvent>('node/reclaim/containerGc'),
  imageGc: address<ImageGcEvent>('node/reclaim/imageGc'),
  housekeeping: address<HousekeepingEvent>('node/reclaim/housekeeping'),
} as const satisfies Record<string, Address<never>>;

export const view = {
  cri: viewKey<CriView>('cri'),
  runtimePods: viewKey<RuntimePodsView>('runtimePods'),
  pods: viewKey<PodsView>('pods'),
  /** Pods that wait to be admitted: what `why` says of them. */
  waitingPods: viewKey<WaitingPods>('waitingPods'),
  statuses: viewKey<StatusView>('statuses'),
  /** Last probe results by container id; an instance that is not in it has had none yet. */
  probes: viewKey<ProbeLedger>('probes'),
  volumes: viewKey<VolumesView>('volumes'),
  /** Names of attachable volumes that this node needs, sorted; not there before the disk was looked at. */
  volumesInUse: viewKey<readonly string[]>('volumesInUse'),
  events: viewKey<readonly RecordedEvent[]>('events'),
  /** Absent where no eviction threshold is set, and before the first look. */
  pressure: viewKey<PressureView>('pressure'),
  /** Source errors by source: what `why` shows for a manifest that does not parse. */
  sourceErrors: viewKey<ReadonlyMap<SourceName, readonly SourceError[]>>('sourceErrors'),
  /** Manifest files that hold a usable pod, by path. */
  manifests: viewKey<ManifestsView>('manifests'),
} as const;
