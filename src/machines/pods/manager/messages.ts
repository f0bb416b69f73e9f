/** Messages of the pod manager, and what it shows of each pod. */

import type { AllocationAnswer } from '../../allocation/messages.ts';
import type { Pod } from '../../kube/types.ts';
import { restartRefusal } from '../../pod/restart/asked.ts';
import type { ListedPod, PodOpKind, SourceName } from '../../pod/runtime/seen.ts';
import { address, type Message, viewKey } from '../../supervision/address.ts';
import { printable } from '../../text/table.ts';
import type { WorkerSummary } from '../workers/messages.ts';

/** What an evicted pod comes to. */
export function evictedStatus({ graceSeconds: _, ...said }: Eviction): { phase: 'Failed' } & Omit<Eviction, 'graceSeconds'> {
  return { phase: 'Failed', ...said };
}

/** From config to the pod manager: one operation of podConfig. Its pods are shared: nobody changes them. */
export type PodOpEvent = Message & {
  type: 'pods.op';
  op: PodOpKind;
  source: SourceName;
  pods: readonly Pod[];
  /** UIDs of the complete set of this source after the merge: what is not in it is gone, even if a REMOVE was missed. */
  complete?: readonly string[];
  /** The first ADD of this source since podConfig (re)started: every pod it names may have been named before. */
  first?: boolean;
  /** Slice of an operation with very many pods. A source has delivered with the end of its first operation. */
  part?: 'begin' | 'middle' | 'end';
  /** With `first`: static pods that the runtime holds of a name in `pods`, with another definition. They are wound down before. */
  predecessors?: readonly ListedPod[];
};

export type PodManagerEvent =
  | PodOpEvent
  | (Message &
      /** To itself: what the coordinator of allocation answers about a pod that waits to be admitted. `id`: of the question. */
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
            eviction: Eviction;
            /** A pod on its way out gets its `graceSeconds` at most. */
            hurry?: boolean;
          }
        /** From its worker: this node cannot start it after all. It fails as one that admission refused, so that it starts elsewhere. */
        | { type: 'pods.refuse'; uid: string; refused: Refused }
        /** From lifecycle events or anyone: look at this pod again. Unknown UIDs are ignored. Fields as in `pod.dirty`. */
        | { type: 'pods.dirty'; uid: string; why: string; ended?: readonly string[]; listed?: boolean }
      ));

/** Why a pod of the API was ended, or not let in, for want of something on this node. It stays failed. */
export interface Eviction {
  reason: string;
  message: string;
  /** What its containers get at most. */
  graceSeconds: number;
  /** What condition DisruptionTarget says. Absent: the pod itself is to blame, and its controller must count the failure. */
  disruption?: string;
}

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

/** What each state of a pod's life holds. podLifeMachine.ts has the transitions. */
interface LifeHolds {
  /** A source names it, and another pod of its name stands before it: no worker. */
  waiting: object;
  /** Admission refused it: no worker. */
  refused: { verdict: Extract<Verdict, { kind: 'rejected' }> };
  /** `listed`, here and below: what the runtime held when the pod was found there; null: a source named the pod. */
  running: { listed: ListedPod | null };
  /** This node ends it, or stops what the runtime still held of it. Its source still names it. */
  failing: { listed: ListedPod | null; verdict: Verdict; next: Successor | null };
  /** No source names it. */
  leaving: { listed: ListedPod | null; verdict: Verdict | null; next: Successor | null };
  /** Its worker has finished, and its source still names it. */
  ended: { verdict: Verdict | null };
  /** Its worker kept crashing, or its definition cannot be read or handled: its containers are left as they are. */
  quarantined: { verdict: Verdict | null; error: string };
}
export type PodLifeState = keyof LifeHolds;
export type LifeState = { [K in PodLifeState]: { readonly is: K } & Readonly<LifeHolds[K]> }[PodLifeState];

/** A pod the node knows: wanted by a source, or still being wound down, or found in the runtime only. */
export interface PodRecord {
  pod: Pod;
  source: SourceName | 'runtime';
  state: LifeState;
  /** The states of its present life, oldest first. Gone with the pod manager that saw them. */
  way?: readonly LifeStep[];
  /** Wall ms first seen. */
  seenAtMs: number;
  worker: WorkerSummary | null;
  /** Number of its present life, as in `pod.update`. */
  life?: number;
  /** Of a recording, which does not hold the fields themselves: those without an effect on this node. */
  leftAlone?: readonly string[];
  /** Not the first life of its UID since the pod manager began. Absent: it is. */
  renewed?: boolean;
}

/** `state` null: its life has only begun. */
interface Lived {
  state: LifeState | null;
}
/** A source names it. Otherwise it is kept until its worker has finished. */
export function isWanted({ state }: Lived): boolean {
  return state?.is !== 'leaving';
}
/** Its source names it again: another life of it begins when this one is over. */
export function comesBack({ state }: Lived): boolean {
  return state !== null && 'next' in state && state.next !== null && state.next.refusal === null;
}
export function verdictOf({ state }: Lived): Verdict | null {
  return state !== null && 'verdict' in state ? state.verdict : null;
}
/** Admission refused it before it ran. */
export function isRefused(record: Lived): boolean {
  return verdictOf(record)?.kind === 'rejected';
}
/** The reason that admission gave to what its source names now. That may be the next life of a pod which is wound down. */
export function refusedFor({ state }: Lived): string | null {
  if (state !== null && 'next' in state && state.next?.refusal) return state.next.refusal.reason;
  const verdict = state?.is === 'leaving' ? null : verdictOf({ state });
  return verdict?.kind === 'rejected' ? verdict.reason : null;
}
/** Why an update of it was refused while it ran: it is being stopped, or was, and fails with this. */
export function refusalOf(record: Lived): Refused | null {
  const verdict = verdictOf(record);
  return verdict?.kind === 'refused' ? verdict.refusal : null;
}
/** It was evicted, or refused for the node's pressure: whatever is said of it later, it does not run again. */
export function evictionOf(record: Lived): Eviction | null {
  const verdict = verdictOf(record);
  return verdict === null || verdict.kind === 'refused' ? null : verdict.eviction;
}

export interface PodsView {
  records: ReadonlyMap<string, PodRecord>;
  /** Which incarnation of the pod manager says so. Absent: 1. */
  epoch?: number;
  /** Every configured source has delivered a SET, and each pod in it was let in or refused: never false again. */
  sourcesReady: boolean;
}

/** A state that the pod's present life came to. */
export interface LifeStep {
  readonly is: PodLifeState;
  readonly atMs: number;
  /** Id of the transition in the chart. */
  readonly by: string;
}

/** States of one life that are remembered, the newest ones. Most lives have two. */
export const LIFE_STEPS_MAX = 12;

/** What `why` says of each state. */
export const LIFE_STATES = {
  waiting: 'waiting: another pod of its name is still there',
  refused: 'refused: this node did not let it in',
  running: 'running: a worker keeps it as it is defined',
  failing: 'failing: this node ends it, and its source still has it',
  leaving: 'leaving: no source has it any more, and its worker stops it',
  ended: 'ended: its worker has finished, and its source still has it',
  quarantined: 'quarantined: this node cannot handle it, and leaves its containers as they are',
} as const satisfies Record<PodLifeState, string>;

/** Why a person cannot have it restarted; null: its worker is asked. `container` '': all of the pod. */
export function restartRefused({ pod, source, state }: Pick<PodRecord, 'pod' | 'source' | 'state'>, container: string): string | null {
  switch (state.is) {
    case 'running':
      return source === 'runtime' ? 'no source wants it, and the node is stopping it' : restartRefusal(pod, container);
    case 'waiting':
      return 'nothing of it runs: another pod of its name is still there';
    case 'refused':
      return 'nothing of it runs: this node did not let it in';
    case 'failing':
      return 'this node ends it: its containers end, and do not start again';
    case 'leaving':
      return 'no source has it any more, and it is being stopped';
    case 'ended':
      return 'it has ended, and its containers start no more';
    case 'quarantined':
      return `this node leaves it as it is, until its definition changes: ${state.error}`;
  }
}

/** Why no call of the API deletes it, with what does; null: one does. `manifest`: the file of a static pod, or the URL that names it. */
export function deleteRefused(of: { source: PodRecord['source']; removed: boolean; who: string; manifest: string }): string | null {
  const [who, manifest] = [printable(of.who), printable(of.manifest)];
  if (of.source === 'api') return null;
  if (of.source === 'runtime') return `no source wants pod ${who}, and the node is stopping it`;
  if (of.removed) return `the manifest of static pod ${who} is gone, and the node is stopping it`;
  const how = of.source === 'file' ? `Move its manifest ${manifest} out of that folder` : `Take it out of the manifest at ${manifest}`;
  return `pod ${who} is a static pod, which no API call deletes. ${how}, and the node stops it.`;
}

export const podManagerAddr = address<PodManagerEvent>('node/pods/podManager');
export const podsView = viewKey<PodsView>('pods');
