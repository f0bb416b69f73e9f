/** What a recording's frames say. All times are wall milliseconds. */
import type { Chart } from '@actorlet/kubelet/machines/chart/definition.ts';

/** 2: facts, in the place of what was worked out from them. */
export const RECORDING_VERSION = 2;

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
/** The chart of a machine; rows of actors name it by its number. */
interface NumberedChart {
  t: 'chart';
  number: number;
  chart: Chart;
}
/** Parts of views that changed: `[delta of time, view, key, value]`; without a value: the part is gone. */
export type PackedFact = readonly [number, string, string, unknown?];
export interface FactsFrame {
  t: 'f';
  /** Times of the facts count from here. */
  atMs: number;
  /** The first of all facts that there are now: those before it are void. */
  whole?: true;
  facts: readonly PackedFact[];
}
/**
 * `[delta of time, path]`: that actor is gone. Else also: type, lifecycle, state, reason, message, since when in monotonic ms,
 * incarnation, restarts, last error or -1, number of its chart or -1, mailbox or null, and of one that sleeps since when. Texts are
 * numbers of strings.
 */
export type PackedRow =
  | readonly [number, number]
  | readonly [number, number, number, number, number, number, number, number, number, number, number, number, PackedMail | null, number?];
/** `[depth, most ever, since when the oldest waits in monotonic ms, coalesced, dropped, suspended]`. */
export type PackedMail = readonly [number, number, number, number, number, boolean];
export interface RowsFrame {
  t: 'r';
  atMs: number;
  /** As in entries, whose strings these are. */
  base: number;
  strings: readonly string[];
  whole?: true;
  rows: readonly PackedRow[];
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
/** Calls of the runtime: `[uid, method, about, start, end or null, error]`. One call is told when it begins and when it ends. */
export interface CallsFrame {
  t: 'calls';
  calls: readonly (readonly [string, string, string, number, number | null, string])[];
}
export type RecordingFrame = RunFrame | EndFrame | NumberedChart | FactsFrame | RowsFrame | EntriesFrame | CallsFrame;

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
  'child.asleep',
  'child.woken',
] as const;

export const ACTOR_TYPES = ['actor', 'supervisor', 'dynamic'] as const;
