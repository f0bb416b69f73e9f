/**
 * The fault language: one vocabulary for the simulation and for a running daemon. A fault is a selector, an action, a
 * probability and a window; a scenario is a named list of them. Plain data: it can be printed, sent, and cut in half.
 */

import type { ObjectOf, Of } from '@actorlet/kubelet/machines/shape/shape.ts';
import type { FaultKind, FaultKinds } from './kinds.ts';
import type { METADATA, SELECT, SIMULATION, WHEN, WORKLOAD, WORKLOAD_WHEN, WorkloadKind } from './table.ts';

export type { FaultKind } from './kinds.ts';

/** What a fault is about. A list that is absent or empty selects everything. */
export interface Select extends ObjectOf<typeof SELECT> {}
type Word<L> = L extends readonly (infer W)[] ? W : never;
export type FsOp = Word<Of<(typeof SELECT)['ops']>>;
export type ApiVerb = Word<Of<(typeof SELECT)['verbs']>>;

type Moment = ObjectOf<typeof WHEN>;
type Chance = Pick<Moment, 'probability' | 'times'> & { select: Select };
type Action<F> = F extends { readonly actions: readonly (infer A)[] } ? { action: A } : unknown;

/** The action of a fault, by kind. Durations in ms. */
export type FaultSpec = Chance & { [K in FaultKind]: { kind: K } & Action<FaultKinds[K]> & ObjectOf<FaultKinds[K]['fields']> }[FaultKind];
export type DiskCode = Extract<FaultSpec, { kind: 'disk.error' }>['code'];

/** One entry of a scenario. */
export type ScenarioFault = FaultSpec &
  Omit<Moment, keyof Chance> & {
    /** Line of the file it begins on. */
    line: number;
  };

/** What `actorctl sim` makes of a scenario besides its faults; a running daemon ignores it. */
export interface ScenarioSimulation extends ObjectOf<typeof SIMULATION> {
  /** Pods of the scenario's own, in place of drawn ones. */
  workload: readonly WorkloadStep[];
}
export type WorkloadStep = ObjectOf<typeof WORKLOAD_WHEN> & { line: number } & {
    [K in WorkloadKind]: { kind: K } & ObjectOf<(typeof WORKLOAD)[K]> &
      (K extends 'pod.put' ? { name: string; manifest: object } : unknown);
  }[WorkloadKind];

export interface Scenario extends ObjectOf<typeof METADATA> {
  /** Everything injected is healed then at the latest. Absent: the runner's default. */
  durationMs?: number;
  faults: readonly ScenarioFault[];
  simulation: ScenarioSimulation;
}

/** One stretch of time, or one instant, in which a fault is at work. */
export interface FaultWindow {
  fault: ScenarioFault;
  /** 0 for its first. */
  index: number;
  atMs: number;
  /** Equal to `atMs` for an instant. */
  endMs: number;
}

export interface ScenarioError {
  /** 1-based; 0 when it concerns the whole text. */
  line: number;
  /** e.g. `spec.faults[2].probability`; empty for the text itself. */
  field: string;
  message: string;
}
