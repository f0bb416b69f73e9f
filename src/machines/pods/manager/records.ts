/** What the pod manager's ledger holds of each pod, and what is asked of one record. Pure; step.ts changes it. */

import { SharedMap } from '../../data/sharedMap.ts';
import type { Pod, ResizePending } from '../../kube/types.ts';
import type { NodePressure } from '../../nodeFacts.ts';
import { livesBefore } from '../../pod/lives.ts';
import type { ListedPod, RuntimePodsView, SourceName } from '../../pod/runtime/seen.ts';
import type { Cause } from '../../supervision/address.ts';
import type { Moment } from '../../xstate/facts.ts';
import type { Offer, Placement } from '../admission/admission.ts';
import type { Candidate } from '../admission/messages.ts';
import type { Holders } from '../admission/room.ts';
import { type Allocation, type Held, NO_RESIZES, type Resizes } from '../resize/allocation.ts';
import type { AskedChange } from '../resize/counted.ts';
import type { StatusView } from '../status/messages.ts';
import type { WorkerEvent } from '../workers/messages.ts';
import { evictionOf, type LifeState, type LifeStep, type PodRecord, type Successor, verdictOf } from './messages.ts';
import type { Refusals } from './refusalPace.ts';

/** What the ledger keeps of one life of a UID. `state` null: it has only begun. */
export interface Life extends Omit<PodRecord, 'state'> {
  state: LifeState | null;
  /** This UID's present life: a pinned UID that is removed and added again gets a new one. Never given twice (lives.ts). */
  life: number;
  /** Not the first life of this UID that this ledger has seen: it was wound down, or refused, and is wanted again. */
  renewed: boolean;
  way: readonly LifeStep[];
  causes: readonly Cause[];
}
export type Rec = Life & { state: LifeState };

/** As a source names it. */
export interface Named {
  pod: Pod;
  source: Life['source'];
  causes: readonly Cause[] | undefined;
}
/** A UID goes on with its next life. */
export interface Renewal {
  next: Successor;
  causes: readonly Cause[] | undefined;
}

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
  refusals: Refusals;
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
  /** Other resources are asked for; a change that waited is granted, for which reason it was looked at again. */
  | { to: 'resizeAsked'; changes: readonly AskedChange[] }
  /** An update needs features that this node does not declare. */
  | { to: 'featuresMissing'; pod: Pod; features: readonly string[] }
  | { to: 'resizeAccepted'; trigger: 'periodic_retry' | 'pod_updated' }
  /** What was granted is to be written down. */
  | { to: 'allocations'; allocations: ReadonlyMap<string, Allocation>; held: ReadonlyMap<string, Held> }
  /** Allocate to this pod what its containers have alone; answered with `pods.allocated`. */
  | { to: 'allocate'; pod: Pod; id: number }
  /** It is not admitted, or not wanted any more. */
  | { to: 'release'; uid: string }
  /** Nothing is to be allocated to a pod that would be asked about otherwise: it counts as an admission of the topology manager. */
  | { to: 'unallocated' }
  | { to: 'relist'; why: string }
  | { to: 'readNode'; why: string }
  | { to: 'log'; level: 'info' | 'warn'; pod: Pod; message: string; more?: object };
export interface Step {
  ledger: PodLedger;
  out: Out[];
  /** False when nothing a reader of the view could see has changed. */
  changed: boolean;
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
  /** Whether the runtime gives a container exactly the groups that the pod lists; null: the runtime has not been asked yet. */
  readonly strictGroups: boolean | null;
  readonly pressures: readonly NodePressure[];
  readonly shutsDown: boolean;
  /** Runs `fn` in the name of the pod: the process dying meanwhile counts against it. */
  inName<T>(uid: string, fn: () => T): T;
}

/** The ledger of a pod manager that knows nothing yet. */
export function emptyLedger(sources: readonly SourceName[], epoch = 1): PodLedger {
  return {
    records: SharedMap.of<string, Rec>(),
    epoch,
    lives: livesBefore(epoch),
    seen: new Set(),
    begun: new Set(),
    candidates: SharedMap.of<string, Candidate>(),
    resizes: NO_RESIZES,
    refusals: new Map(),
    holders: null,
    beganMonoMs: Number.NEGATIVE_INFINITY,
    ready: sources.length === 0,
    sources,
  };
}
/** A worker may still have containers of it. */
export function isLive({ state }: Life): boolean {
  return state !== null && 'listed' in state;
}
export function listedOf({ state }: Life): ListedPod | null {
  return state !== null && 'listed' in state ? state.listed : null;
}
export function nextOf({ state }: Life): Successor | null {
  return state !== null && 'next' in state ? state.next : null;
}
/** Its state with another successor; null: none. Only a failing or leaving pod has one. */
export function withNext({ state }: Life, next: Successor | null): LifeState | null {
  return state !== null && 'next' in state ? { ...state, next } : state;
}
/** Whether its worker knows that the pod ends. `heard`: every source has delivered, and what it named was judged. */
export function isTold(life: Life, heard: boolean): boolean {
  return heard || listedOf(life) !== null || verdictOf(life) !== null;
}
/** Refused, and not for the node's pressure: another definition of it begins a new life. */
export function mayBePutRight(life: Life): boolean {
  return verdictOf(life) !== null && evictionOf(life) === null;
}

/** States of a worker whose containers have all ended. */
const STOPPED: ReadonlySet<string> = new Set(['terminating.releasingClaims', 'terminating.claimsHeld', 'terminated', 'cleaningAgain']);
export const hasStopped = (worker: Life['worker']): boolean => worker !== null && STOPPED.has(worker.state);
/** The pod of the same full name that this one has to wait for: one before it, or one that still runs. `named`: all of that name. */
export function predecessor(named: Iterable<readonly [string, Rec]>, uid: string): string | null {
  let before = true;
  let alive: string | null = null;
  for (const [otherUid, other] of named) {
    // What is taken down of a pod of the API after its containers holds up no other, as with the kubelet.
    const holds = isLive(other) && !(other.source === 'api' && hasStopped(other.worker));
    if (otherUid === uid) before = false;
    else if (before && (holds || other.state.is === 'waiting')) return otherUid;
    else if (holds) alive ??= otherUid;
  }
  return alive;
}
