/**
 * A node at one moment. Everything that a command, a view or the page says is worked out from it alone: of a running node
 * at the newest moment, of a recording at any. Pure.
 */
import type { Chart } from '../chart/definition.ts';
import type { ActorView } from '../supervision/actorState.ts';
import type { ViewKey } from '../supervision/address.ts';
import type { PodHistory } from './podHistory.ts';
import type { RecorderEntry } from './recorderEntry.ts';

export interface RecorderFilter {
  /** Only entries of this path and below it. */
  path?: string;
  /** Only the newest so many. */
  limit?: number;
  /** Only entries from this wall time on. */
  sinceMs?: number;
}
export interface PodTimeline extends PodHistory {
  /** False: only what the flight recorder holds of its worker's states. */
  kept: boolean;
}
export interface Moment {
  readonly nowMs: number;
  readonly monoMs: number;
  readonly name: string;
  readonly version: string;
  /** When the daemon began. Absent: nobody knows. */
  readonly startedAtMs?: number | undefined;
  /** Faults at work; null where they may not be injected. */
  readonly faultsAtWork: number | null;
  /** What an actor published last; undefined before that. */
  read<T>(key: ViewKey<T>): T | undefined;
  /** The whole tree: with thousands of pods it takes tens of milliseconds. */
  state(): ActorView;
  stateAt(path: string): ActorView | undefined;
  /** The chart of the actor at a path, and its state; null while no machine is there. */
  chart(path: string): { chart: Chart; state: string } | null;
  /** What is kept of a pod's life; undefined: nothing. */
  timeline(uid: string): PodTimeline | undefined;
  /** Entries of the flight recorder, oldest first, and how many before them it has overwritten. */
  recorder(filter: RecorderFilter): { entries: readonly RecorderEntry[]; overwritten: number };
}

/** Why the data of an actor may be old; '' while it runs. */
export function awayText(m: Pick<Moment, 'stateAt'>, owner: string): string {
  const actor = m.stateAt(owner);
  if (actor === undefined) return `${owner} is not started`;
  if (actor.lifecycle === 'running') return '';
  const why = actor.lastError ?? actor.reason;
  return `${owner} is ${actor.lifecycle}${why === '' ? '' : ` (${why})`}`;
}
