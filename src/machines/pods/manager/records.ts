/** What the pod manager's ledger holds of each pod, and what is asked of one record. Pure; step.ts changes it. */

import { SharedMap } from '../../data/sharedMap.ts';
import type { Pod, ResizePending } from '../../kube/types.ts';
import type { NodePressure } from '../../nodeFacts.ts';
import { livesBefore } from '../../pod/lives.ts';
import { isTerminal } from '../../pod/phase.ts';
import type { ListedPod, RuntimePodsView, SourceName } from '../../pod/runtime/seen.ts';
import { sameDesired } from '../../pod/sameDesired.ts';
import type { Cause } from '../../supervision/address.ts';
import type { Moment } from '../../xstate/facts.ts';
import type { NodeAbility, Placement } from '../admission/admission.ts';
import { type Allocation, NO_RESIZES, type Resizes } from '../resize/allocation.ts';
import type { StatusView } from '../status/messages.ts';
import type { WorkerEvent } from '../workers/messages.ts';
import type { Candidate, Eviction, LifeStep, PodRecord } from './messages.ts';

export interface Refused {
  reason: string;
  message: string;
}
/** Why this node ends a pod, or does not start it. The pod fails, whatever its source says. */
export type Verdict =
  /** Admission refused it before it ran, for `reason`. `eviction`: because of the node's pressure. */
  | { kind: 'rejected'; reason: string; eviction: Eviction | null }
  /** Admission refused an update of it while it ran. */
  | { kind: 'refused'; refusal: Refused }
  | { kind: 'evicted'; eviction: Eviction };

/** The next life of a UID, which begins when the present one has ended. `refusal`: it does not start, and is listed as failed. */
export interface Successor {
  pod: Pod;
  refusal: Refused | null;
}

/** The pod has a worker. `listed`: what the runtime held when the pod was found there; null: a source named the pod. */
interface Working {
  listed: ListedPod | null;
}
/** The state of a pod's life. Each state holds only what can be said in it. life.ts has the transitions. */
export type LifeState =
  /** A source names it, and another pod of its name stands before it: no worker. */
  | { is: 'waiting' }
  /** Admission refused it: no worker. */
  | { is: 'refused'; verdict: Extract<Verdict, { kind: 'rejected' }> }
  | (Working & { is: 'running' })
  /** This node ends it, or stops what the runtime still held of it. Its source still names it. */
  | (Working & { is: 'failing'; verdict: Verdict; next: Successor | null })
  /** No source names it. */
  | (Working & { is: 'leaving'; verdict: Verdict | null; next: Successor | null })
  /** Its worker has finished, and its source still names it. */
  | { is: 'ended'; verdict: Verdict | null }
  /** Its worker kept crashing, or its definition cannot be read or handled: its containers are left as they are. */
  | { is: 'quarantined'; verdict: Verdict | null; error: string };

/** What readers of the view see of a state. Only `inState` writes these. */
type Shown = 'removed' | 'rejected' | 'rejectedFor' | 'refusal' | 'eviction';

export interface Rec extends PodRecord {
  refusal: Refused | null;
  eviction: Eviction | null;
  /** Of this UID's present life: a pinned UID that is removed and added again gets a new one. Never given twice (lives.ts). */
  life: number;
  /** Not the first life of this UID that this ledger has seen: it was wound down, or refused, and is wanted again. */
  renewed: boolean;
  state: LifeState;
  /** Written by `put` of draft.ts alone. */
  way: readonly LifeStep[];
  causes: readonly Cause[];
}

/** Kept from step to step, since thousands of refused pods may stand in the ledger. */
export interface Holders {
  /** The runtime's listing that it goes by. */
  readonly listing: RuntimePodsView | undefined;
  /** Records that hold room, by UID. */
  readonly pods: ReadonlyMap<string, Pod>;
  /** Those of them that release it soon. */
  readonly leaving: ReadonlySet<string>;
}

/** A record that has a worker. */
export type LiveRec = Rec & { state: Extract<LifeState, Working> };
export interface PodLedger {
  records: ReadonlyMap<string, Rec>;
  /** Which incarnation of the pod manager keeps it. */
  epoch: number;
  /** The life last given out. */
  lives: number;
  seen: ReadonlySet<SourceName>;
  /** Sources of whose first operation a part has been taken, and the end has not. */
  begun: ReadonlySet<SourceName>;
  /** By UID. */
  candidates: ReadonlyMap<string, Candidate>;
  resizes: Resizes;
  /** Null until a pod is judged. */
  holders: Holders | null;
  /** When it had read what was granted before. An older listing may lack what the workers before it had just started. */
  beganMonoMs: number;
  /** Once every source has delivered and all of that is judged: for good. What is not in the ledger is an orphan from then on. */
  ready: boolean;
  sources: readonly SourceName[];
}
export type Out =
  | { to: 'worker'; event: WorkerEvent }
  /** What was said of this life of the UID, and of those before it. */
  | { to: 'forget'; uid: string; life: number }
  | { to: 'rejected'; pod: Pod; life: number; reason: string; message: string }
  | { to: 'gc'; why: string }
  | { to: 'housekeep'; why: string }
  /** Admission refused it. */
  | { to: 'refused'; pod: Pod; reason: string; message: string }
  /** It runs without these fields. */
  | { to: 'fieldsLeft'; pod: Pod; fields: readonly string[] }
  /** This node failed over it, and leaves it alone. */
  | { to: 'leftAlone'; pod: Pod; error: string }
  /** It waits, with what a refusal would say. */
  | { to: 'held'; pod: Pod; reason: string; message: string }
  | { to: 'preempted'; pod: Pod; for: Pod; resource: string }
  | { to: 'resizePending'; pod: Pod; pending: ResizePending }
  /** What was granted is to be written down. */
  | { to: 'allocations'; allocations: ReadonlyMap<string, Allocation> }
  /** Allocate to this pod what its containers have alone; answered with `pods.allocated`. */
  | { to: 'allocate'; pod: Pod; id: number; by: readonly AllocatorName[] }
  /** It is not admitted, or not wanted any more. */
  | { to: 'release'; uid: string }
  | { to: 'relist'; why: string }
  | { to: 'readNode'; why: string }
  | { to: 'log'; level: 'info' | 'warn'; pod: Pod; message: string; more?: object };
export interface Step {
  ledger: PodLedger;
  out: Out[];
  /** False when nothing a reader of the view could see has changed. */
  changed: boolean;
}
export type AllocatorName = 'devices' | 'cpus';
/** What this node offers. */
export interface Offer {
  podsMax: number;
  allocatable: Readonly<Record<string, string>>;
  ability: Omit<NodeAbility, 'strictGroups'>;
  /** There is an API server, where labels and taints may have changed. */
  cluster: boolean;
  /** Which managers allocate something to a pod before it is admitted. */
  allocators: Readonly<Record<AllocatorName, boolean>>;
}
/** What comes with each event. */
export interface Facts extends Moment {
  /** The pod manager's path, for causes. */
  readonly by: string;
  readonly offer: Offer;
  /** Undefined: the runtime has not been listed yet. */
  readonly listing: RuntimePodsView | undefined;
  readonly statuses: StatusView | undefined;
  readonly placement: Placement;
  /** When labels and taints of the node were last read. */
  readonly placementAtMonoMs: number;
  /** {@link NodeAbility.strictGroups}; null: the runtime has not been asked yet. */
  readonly strictGroups: boolean | null;
  readonly pressures: readonly NodePressure[];
  readonly shutsDown: boolean;
  /** Runs `fn` in the name of the pod: the process dying meanwhile counts against it. */
  inName<T>(uid: string, fn: () => T): T;
}

/** Of an incarnation of the pod manager that knows nothing yet. */
export function emptyLedger(sources: readonly SourceName[], epoch = 1): PodLedger {
  return {
    records: SharedMap.of<string, Rec>(),
    epoch,
    lives: livesBefore(epoch),
    seen: new Set(),
    begun: new Set(),
    candidates: SharedMap.of<string, Candidate>(),
    resizes: NO_RESIZES,
    holders: null,
    beganMonoMs: Number.NEGATIVE_INFINITY,
    ready: sources.length === 0,
    sources,
  };
}
export function keepsRoom({ wait }: Candidate): boolean {
  return wait !== 'later' && wait !== 'held';
}
/** Nothing of a pod that room is made for, or that is allocated something, is here. */
export function isUndecided({ wait }: Candidate): boolean {
  return wait === 'later' || wait === 'readmitting';
}

/** A worker may still have containers of this record. */
export function live(rec: Rec): rec is LiveRec {
  return 'listed' in rec.state;
}
export function verdictOf({ state }: Rec): Verdict | null {
  return 'verdict' in state ? state.verdict : null;
}
export function nextOf({ state }: Rec): Successor | null {
  return 'next' in state ? state.next : null;
}
/** A worker was asked to exist in this life. */
export function began({ state }: Rec): boolean {
  return state.is !== 'waiting' && state.is !== 'refused';
}
/** Refused, and not for the node's pressure: another definition of it begins a new life. */
export function mayBePutRight({ rejected, refusal, eviction }: Rec): boolean {
  return eviction === null && (rejected || refusal !== null);
}

/** The record in another state, with what readers of the view see of it. */
export function inState(rec: Omit<Rec, 'state' | Shown>, state: LifeState): Rec {
  const verdict = 'verdict' in state ? state.verdict : null;
  const next = 'next' in state ? state.next : null;
  const rejected = verdict?.kind === 'rejected' ? verdict : null;
  return {
    ...rec,
    state,
    removed: state.is === 'leaving',
    rejected: rejected !== null,
    rejectedFor: next?.refusal?.reason ?? (state.is === 'leaving' ? null : (rejected?.reason ?? null)),
    refusal: verdict?.kind === 'refused' ? verdict.refusal : null,
    eviction: verdict === null || verdict.kind === 'refused' ? null : verdict.eviction,
  };
}

/** This node ends it. */
export function failing(rec: LiveRec, verdict: Verdict): Rec {
  return inState(rec, { is: 'failing', verdict, listed: rec.state.listed, next: null });
}
/** The record with another successor; null: none. Only a failing or leaving pod has one. */
export function withNext(rec: Rec, next: Successor | null): Rec {
  return 'next' in rec.state ? inState(rec, { ...rec.state, next }) : rec;
}

/** A record of a life that begins: it has no worker yet. */
export function newRecord(o: Omit<Rec, 'state' | 'way' | 'worker' | Shown>, state: LifeState = { is: 'waiting' }): Rec {
  return inState({ ...o, way: [], worker: null }, state);
}

/** The pod of the same full name that this one has to wait for: one before it, or one that still runs. `named`: all of that name. */
export function predecessor(named: Iterable<readonly [string, Rec]>, rec: Rec): string | undefined {
  const { uid } = rec.pod.metadata;
  let before = true;
  let alive: string | undefined;
  for (const [otherUid, other] of named) {
    if (otherUid === uid) {
      before = false;
      continue;
    }
    if (live(other)) {
      if (before) return otherUid;
      alive ??= otherUid;
    } else if (before && other.state.is === 'waiting') return otherUid;
  }
  return alive;
}

/**
 * Whether a pod was refused as it is defined now. It stays so while it is defined like that, whatever room or devices there
 * are by then: a phase that is final is not left. The node's pressure is a verdict of its own, and a pod that the API server
 * shows to have failed needs none.
 */
export function stands(rec: PodRecord, pod: Pod): boolean {
  return rec.rejected && !rec.removed && (rec.eviction ?? null) === null && !isTerminal(pod.status.phase) && sameDesired(rec.pod, pod);
}
