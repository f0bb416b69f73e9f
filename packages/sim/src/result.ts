/** The options of a run, and its result. */
import type { Scenario } from '@actorlet/faults/src/types.ts';
import type { NodeTuning } from '@actorlet/world/src/node/nodeTuning.ts';
import type { Coverage } from './coverage.ts';
import type { Fault } from './nemesis/faults.ts';

export interface SimOptions {
  seed: number;
  /** Virtual minutes with faults. Default: the scenario's, else 2. */
  minutes?: number;
  /** Pods per node, where they are drawn. Default: the scenario's, else 8. */
  pods?: number;
  /** Default: the scenario's; else one, in some seeds two. */
  nodes?: number;
  /** About how many faults are drawn per node. Default: as the seed has it. */
  faults?: number;
  /** In place of drawn faults, and of drawn pods where it has its own. */
  scenario?: Scenario;
  /** In place of the schedule the seed would give: a part of it, when one looks for what matters. */
  schedule?: readonly Fault[];
  /** Counts the edges of every statechart, at the price of a slower run. Default false. */
  coverage?: boolean;
  /** Virtual minutes in which a healed node must come to rest. Default 20. */
  restMinutesMax?: number;
  /**
   * Of this project's own tests: `NodeWatcher.between`, without the types of a whole node. Stands between each daemon and its
   * ports; must let all through, and take no time.
   */
  between?: (node: never, config: never, ports: never) => unknown;
  /** The run rejects with its reason before the next step of virtual time. */
  signal?: AbortSignal;
  /** Hears of each phase as it begins; must not throw, and cannot change the run. */
  onPhase?: (phase: Phase) => void;
}

export interface Violation {
  /** The invariant, by name. */
  invariant: string;
  what: string;
  /** Virtual seconds since the world began. */
  atSeconds: number;
  phase: Phase;
}
export type Phase = 'booting' | 'faults' | 'healing' | 'restarts' | 'emptying' | 'stopping';

export interface SimResult {
  options: Required<Omit<SimOptions, 'schedule' | 'scenario' | 'coverage' | 'faults' | 'onPhase' | 'between' | 'signal'>>;
  violation: Violation | null;
  hash: string;
  steps: number;
  virtualMs: number;
  schedule: readonly Fault[];
  tuning: readonly NodeTuning[];
  /** Faults that took effect, by kind. */
  faults: ReadonlyMap<string, number>;
  /** What each fault of the scenario hit, by its name; 0 for one that found nothing. */
  byName: ReadonlyMap<string, number>;
  /** Times each statechart edge was taken: `worker: syncing.acting -> syncing.looking`. */
  edges: ReadonlyMap<string, number>;
  /** Null unless it was asked for. */
  coverage: Coverage | null;
  /** The end of the trace, of the logs and of the flight recorder. */
  tail: { trace: string[]; log: string[]; recorder: string[] };
}
