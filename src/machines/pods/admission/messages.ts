/** Pods that wait to be admitted, and what the pod manager shows of them. */

import type { AllocationAnswer } from '../../allocation/messages.ts';
import type { Pod } from '../../kube/types.ts';
import type { PodOpKind, SourceName } from '../../pod/runtime/seen.ts';
import { type Cause, viewKey } from '../../supervision/address.ts';

/**
 * A pod that a source names and that is neither admitted nor refused yet. Its record, if there is one, is of an earlier definition or life.
 */
export interface Candidate {
  /** The newest definition. */
  pod: Pod;
  op: PodOpKind;
  source: SourceName;
  causes: readonly Cause[] | undefined;
  sinceMonoMs: number;
  wait: Wait;
  /** Why it is held, where it is. */
  refusal?: string;
  asked: Asked | null;
  /** Pods that it waits for to end, and since when each has been seen to. */
  leaving: ReadonlyMap<string, number>;
}

export type Wait =
  /** Something has to be looked at first. */
  | 'later'
  /** Other pods make room for it, which no other pod gets. */
  | 'room'
  /** It fits, or others will make room for it, and something is being allocated to it. No other pod gets its room. */
  | 'allocating'
  /** The same, of a pod that runs here already. */
  | 'readmitting'
  /** It runs here already and goes on, without what it is to have alone: that is asked for again, so that what ended of it can start. */
  | 'unallocated'
  /** It does not fit. It is refused as soon as it is known whether what it is to have alone could be allocated. */
  | 'unfit'
  /** It sets what this node must refuse. It runs here already, or its controller would replace it without end if it failed. */
  | 'held'
  /** It is refused in a moment: its controller, which replaces it at once, heard of another refusal just now. */
  | 'paced';

export function keepsRoom({ wait }: Candidate): boolean {
  return wait === 'room' || wait === 'allocating' || wait === 'readmitting';
}
/** Nothing of a pod that room is made for, or that is allocated something, is here. */
export function isUndecided({ wait }: Candidate): boolean {
  return wait === 'later' || wait === 'readmitting';
}

/** What the coordinator of allocation was asked about a candidate. */
export interface Asked {
  /** Never given twice. */
  id: number;
  pod: Pod;
  answer: AllocationAnswer | null;
  /** When it was asked, then when it was answered. */
  atMonoMs: number;
  /** Why it was last told to wait. */
  why: string;
}

/** A pod that is neither let in nor refused yet, and what it waits for. */
export type WaitingPod = Pick<Candidate, 'pod' | 'source' | 'sinceMonoMs' | 'wait' | 'refusal' | 'asked' | 'leaving'>;

/** By UID. */
export type WaitingPods = ReadonlyMap<string, WaitingPod>;

export const waitingPodsView = viewKey<WaitingPods>('waitingPods');
