/** What a recording's frames say. All times are wall milliseconds. */
import type { Chart } from '../../machines/chart/definition.ts';
import type { ActorRow, DecisionsFrame, PodFrame, PodRow } from '../feed/frames.ts';

export const RECORDING_VERSION = 1;

/** A daemon begins to record; also the first frame of every segment that it begins. */
export interface RunFrame {
  t: 'run';
  v: number;
  atMs: number;
  node: string;
  version: string;
  startedAtMs: number;
}
/** The daemon stopped in order. A run without one was killed, or it crashed. */
interface EndFrame {
  t: 'end';
  atMs: number;
}
/** The whole picture, from which entries lead on. */
export interface KeyFrame {
  t: 'key';
  atMs: number;
  actors: readonly ActorRow[];
  pods: readonly PodRow[];
  decisions: Omit<DecisionsFrame, 'notes'>;
}
/** The chart of one kind of actor: its path, or `PATH/*` for the children of a dynamic supervisor. */
interface ChartOfKind {
  t: 'chart';
  kind: string;
  chart: Chart;
}
/** `[delta of time, kind, path, what, detail, from, causes]`; texts are numbers of strings. */
export type PackedEntry = readonly [number, number, number, number, number, number, (readonly (readonly [number, number, number])[])?];
export interface EntriesFrame {
  t: 'e';
  /** Times of the entries count from here. */
  atMs: number;
  /** Number of the first of `strings`; 0 begins a new list. */
  base: number;
  strings: readonly string[];
  entries: readonly PackedEntry[];
  /** Entries between the frame before and this that were not written. */
  lost: number;
}
/** A pod changed; `row` null: this node forgot it. History and messages are found among the entries and calls. */
export interface PodChange {
  t: 'pod';
  atMs: number;
  uid: string;
  row: PodRow | null;
  detail: Omit<NonNullable<PodFrame['pod']>, 'history' | 'messages'> | null;
}
/** Calls of the runtime: `[uid, method, about, start, end or null, error]`. One call is told when it begins and when it ends. */
export interface CallsFrame {
  t: 'calls';
  calls: readonly (readonly [string, string, string, number, number | null, string])[];
}
export type RecordingFrame = RunFrame | EndFrame | KeyFrame | ChartOfKind | EntriesFrame | PodChange | CallsFrame;

export const ENTRY_KINDS = [
  'note',
  'child.started',
  'child.exited',
  'child.restarting',
  'supervisor.escalated',
  'quarantined',
  'transition',
  'message',
  'dead-letter',
] as const;

/** The kind of actor whose chart stands for the one at `path`. */
export function kindOf(path: string, dynamic: ReadonlySet<string>): string {
  const parent = path.slice(0, Math.max(0, path.lastIndexOf('/')));
  return dynamic.has(parent) ? `${parent}/*` : path;
}
