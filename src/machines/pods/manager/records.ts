/** What the pod manager's ledger holds of each pod, and what is asked of one record. Pure; step.ts changes it. */

import type { Pod } from '../../k8s.ts';
import type { Eviction, ListedPod, PodRecord, PodRef, WorkerEvent } from '../../protocol.ts';
import { SharedMap } from '../../sharedMap.ts';
import { type Cause, joinCauses } from '../../supervision/address.ts';
import { sameDesired } from '../podConfig/merge.ts';
import { isTerminal } from '../status/generate.ts';
import type { SourceName } from '../types.ts';
import type { LifeStep } from './life.ts';
import { livesBefore } from './lives.ts';

export interface Refused {
  reason: string;
  message: string;
}
/** Why this node ends a pod, or does not start it. The pod fails, whatever its source says. */
export type Verdict =
  /** Admission refused it before it ran. `eviction`: because of the node's pressure. */
  | { kind: 'rejected'; eviction: Eviction | null }
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
  /** Its worker kept crashing: its containers are left as they are. */
  | { is: 'quarantined'; verdict: Verdict | null; error: string };

/** What readers of the view see of a state. Only `inState` writes these. */
type Shown = 'removed' | 'rejected' | 'refusal' | 'eviction';

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
/** A record that has a worker. */
export type LiveRec = Rec & { state: Extract<LifeState, Working> };
export interface PodLedger {
  records: ReadonlyMap<string, Rec>;
  /** Which incarnation of the pod manager keeps it. */
  epoch: number;
  /** The life last given out. */
  lives: number;
  seen: ReadonlySet<SourceName>;
  /** Named by a source, and not judged yet by admission: no record says that they are wanted. */
  undecided: ReadonlySet<string>;
  /** The incarnation of admission that was last heard. */
  judge: number;
  /** Once every source has delivered and all of that is judged: for good. */
  ready: boolean;
  sources: readonly SourceName[];
}
export type Out =
  | { to: 'worker'; event: WorkerEvent }
  /** What was said of this life of the UID, and of those before it. */
  | { to: 'forget'; uid: string; life: number }
  | { to: 'rejected'; pod: Pod; life: number; reason: string; message: string }
  | { to: 'gc'; why: string }
  | { to: 'housekeep'; why: string };
export interface Step {
  ledger: PodLedger;
  out: Out[];
  /** False when nothing a reader of the view could see has changed. */
  changed: boolean;
}
export interface Now {
  atMs: number;
  by: string;
}

/** Two hints about one pod are one: every announced end is kept. */
interface Hint {
  causes?: readonly Cause[];
  ended?: readonly string[];
  listed?: boolean;
  objects?: 'only' | 'too';
}
export function joinDirty<E extends Hint>(prev: E, next: E): E {
  const ended = [...new Set([...(prev.ended ?? []), ...(next.ended ?? [])])];
  const listed = prev.listed === true && next.listed === true;
  const both = prev.objects === 'only' && next.objects === 'only' ? ('only' as const) : ('too' as const);
  const objects = prev.objects === undefined && next.objects === undefined ? {} : { objects: both };
  return { ...next, causes: joinCauses(prev.causes, next.causes), listed, ...objects, ...(ended.length === 0 ? {} : { ended }) };
}

/** Of an incarnation of the pod manager that knows nothing yet. */
export function emptyLedger(sources: readonly SourceName[], epoch = 1): PodLedger {
  return {
    records: SharedMap.of<string, Rec>(),
    epoch,
    lives: livesBefore(epoch),
    seen: new Set(),
    undecided: new Set(),
    judge: 0,
    ready: sources.length === 0,
    sources,
  };
}
/** What is not in the ledger is an orphan from now on. */
export function sourcesReady({ ready, sources, seen, undecided }: Omit<PodLedger, 'records' | 'epoch' | 'lives'>): boolean {
  return ready || (undecided.size === 0 && sources.every((s) => seen.has(s)));
}
/** Without putting the names together: for loops over every pod. */
export function sameName(a: Pod, b: Pod): boolean {
  return a.metadata.name === b.metadata.name && a.metadata.namespace === b.metadata.namespace;
}
export function fullName(pod: { metadata: { name: string; namespace: string } }): string {
  return `${pod.metadata.name}_${pod.metadata.namespace}`;
}
export function podRef(pod: Pod): PodRef {
  return { uid: pod.metadata.uid, name: pod.metadata.name, namespace: pod.metadata.namespace };
}

/** What an evicted pod comes to. */
export function evictedStatus({ reason, message }: Eviction): { phase: 'Failed'; reason: string; message: string; disruption: string } {
  return { phase: 'Failed', reason, message, disruption: message };
}

/** Its source has deleted it: it is wound down, whatever it was before. */
export function isLeaving(pod: Pod): boolean {
  const at = pod.metadata.deletionTimestamp;
  return at !== undefined && at !== null;
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
  return {
    ...rec,
    state,
    removed: state.is === 'leaving',
    rejected: verdict?.kind === 'rejected',
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
  return 'next' in rec.state ? { ...rec, state: { ...rec.state, next } } : rec;
}

/** A record of a life that begins: it has no worker yet. */
export function newRecord(o: Omit<Rec, 'state' | 'way' | 'worker' | Shown>, state: LifeState = { is: 'waiting' }): Rec {
  return inState({ ...o, way: [], worker: null }, state);
}

/** The pod of the same full name that this one has to wait for: one before it, or one that still runs. */
export function predecessor(records: ReadonlyMap<string, Rec>, rec: Rec): string | undefined {
  const { uid } = rec.pod.metadata;
  let before = true;
  let alive: string | undefined;
  for (const [otherUid, other] of records) {
    if (otherUid === uid) {
      before = false;
      continue;
    }
    if (!sameName(other.pod, rec.pod)) continue;
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
