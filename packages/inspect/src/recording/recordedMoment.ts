/** A node of a recording at one moment: the facts as they were then. Pure. */

import { timelineOf } from '@actorlet/kubelet/actors/recorder/timeline.ts';
import type { Chart } from '@actorlet/kubelet/machines/chart/definition.ts';
import type { Moment, PodTimeline, RecorderFilter } from '@actorlet/kubelet/machines/recorder/moment.ts';
import type { PodHistory } from '@actorlet/kubelet/machines/recorder/podHistory.ts';
import { isBelow, type RecorderEntry } from '@actorlet/kubelet/machines/recorder/recorderEntry.ts';
import type { ActorView } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import type { ViewKey } from '@actorlet/kubelet/machines/supervision/address.ts';
import { CLOCK, FAULTS } from './facts/names.ts';
import { KEPT_BY_NAME, WHOLE } from './facts/views.ts';
import type { RecordedRow } from './pack.ts';

/** One life of a daemon, as far as it is recorded. */
export interface Run {
  node: string;
  version: string;
  startedAtMs: number;
  fromMs: number;
  toMs: number;
  /** False: nothing says that it stopped in order; it was killed, it crashed, or it still runs. */
  stopped: boolean;
}
/** How far a moment reaches. */
export interface Reach {
  atMs: number;
  run: Run;
  runIndex: number;
  /** Numbers of the first entry of its run, and of the one behind the last that had happened. */
  entriesFrom: number;
  entriesEnd: number;
}

/** What a recording holds. */
export interface Facts {
  /** Parts of a view at that moment, in its order. Empty: nothing was known of it. */
  partsOf(view: string, atMs: number): ReadonlyMap<string, unknown>;
  /** One part of a view. Undefined: it was not there. */
  partAt(view: string, key: string, atMs: number): unknown;
  rowsAt(atMs: number): ReadonlyMap<string, RecordedRow>;
  rowAt(path: string, atMs: number): RecordedRow | undefined;
  chartOf(row: RecordedRow): Chart | null;
  /** What a node keeps of a pod's life up to that moment of its run; undefined: nothing. */
  historyAt(uid: string, reach: Reach): PodHistory | undefined;
  /** The newest `max` entries up to that moment for which `wanted` answers true, oldest first. */
  lastEntries(reach: Reach, max: number, wanted: (e: RecorderEntry) => boolean): RecorderEntry[];
}

/** Entries of one answer. */
const ENTRIES_MAX = 100_000;
/** Levels of the tree; ours has six. */
const DEPTH_MAX = 32;
const NO_TREE: ActorView = {
  ...{ path: 'node', type: 'supervisor', lifecycle: 'starting', state: '', reason: '', message: '' },
  ...{ ageMs: 0, incarnation: 1, restarts: 0, children: [] },
};

export class RecordedMoment implements Moment {
  readonly #recording: Facts;
  readonly reach: Reach;
  readonly monoMs: number;
  readonly faultsAtWork: number | null;
  readonly #views = new Map<string, unknown>();
  #tree: ActorView | null = null;

  constructor(recording: Facts, reach: Reach) {
    this.#recording = recording;
    this.reach = reach;
    const fact = (view: string): unknown => recording.partAt(view, WHOLE, reach.atMs);
    this.monoMs = reach.atMs - ((fact(CLOCK) as number | undefined) ?? 0);
    this.faultsAtWork = (fact(FAULTS) as number | null | undefined) ?? null;
  }

  get nowMs(): number {
    return this.reach.atMs;
  }
  get run(): Run {
    return this.reach.run;
  }
  get name(): string {
    return this.run.node;
  }
  get version(): string {
    return this.run.version;
  }
  get startedAtMs(): number {
    return this.run.startedAtMs;
  }

  /** @throws for a view that no recording holds: an answer that needs one would say something else than it did live. */
  read<T>(key: ViewKey<T>): T | undefined {
    const kept = KEPT_BY_NAME.get(key.view);
    if (kept === undefined) throw new Error(`no recording holds the view ${key.view}`);
    if (this.#views.has(key.view)) return this.#views.get(key.view) as T | undefined;
    const parts = this.#recording.partsOf(key.view, this.nowMs);
    const value = parts.has(WHOLE) || parts.size > 0 ? kept.join(parts) : undefined;
    this.#views.set(key.view, value);
    return value as T | undefined;
  }

  state(): ActorView {
    this.#tree ??= this.#treeOf(this.#recording.rowsAt(this.nowMs));
    return this.#tree;
  }

  stateAt(path: string): ActorView | undefined {
    const row = this.#recording.rowAt(path, this.nowMs);
    if (row === undefined) return undefined;
    return row.type === 'actor' ? this.#viewOf(path, row, []) : findBelow(this.state(), path);
  }

  #treeOf(rows: ReadonlyMap<string, RecordedRow>): ActorView {
    const below = new Map<string, string[]>();
    for (const path of rows.keys()) {
      let parent = path;
      do parent = parent.slice(0, Math.max(0, parent.lastIndexOf('/')));
      while (parent !== '' && !rows.has(parent));
      const siblings = below.get(parent) ?? [];
      siblings.push(path);
      below.set(parent, siblings);
    }
    const build = (path: string, depth: number): ActorView[] => {
      const row = rows.get(path);
      if (row === undefined) return [];
      const children = depth >= DEPTH_MAX ? [] : (below.get(path) ?? []);
      // As the supervisor of many children lists them.
      if (row.type === 'dynamic') children.sort((a, b) => (a < b ? -1 : 1));
      return [
        this.#viewOf(
          path,
          row,
          children.flatMap((child) => build(child, depth + 1)),
        ),
      ];
    };
    const roots = below.get('') ?? [];
    const [root, ...others] = roots.flatMap((path) => build(path, 0));
    if (root === undefined) return NO_TREE;
    return others.length === 0 ? root : { ...NO_TREE, children: [root, ...others] };
  }

  #viewOf(path: string, row: RecordedRow, children: readonly ActorView[]): ActorView {
    const { type, lifecycle, state, reason, message, incarnation, restarts, sinceMonoMs, sleptMonoMs, mail, lastError } = row;
    const ageMs = Math.max(0, this.monoMs - sinceMonoMs);
    const [depth = 0, depthMax = 0, oldestMonoMs = 0, coalesced = 0, dropped = 0, suspended = false] = mail ?? [];
    const oldestAgeMs = depth === 0 ? 0 : Math.max(0, this.monoMs - oldestMonoMs);
    return {
      ...{ path, type, lifecycle, state, reason, message, ageMs, incarnation, restarts, children },
      ...(sleptMonoMs === null ? {} : { asleepMs: Math.max(0, this.monoMs - sleptMonoMs) }),
      ...(lastError === null ? {} : { lastError }),
      ...(mail === null ? {} : { mailbox: { depth, depthMax, oldestAgeMs, coalesced, dropped, suspended } }),
    };
  }

  chart(path: string): { chart: Chart; state: string } | null {
    const row = this.#recording.rowAt(path, this.nowMs);
    const chart = row === undefined ? null : this.#recording.chartOf(row);
    return row === undefined || chart === null ? null : { chart, state: row.state };
  }

  timeline(uid: string): PodTimeline | undefined {
    const history = { of: () => this.#recording.historyAt(uid, this.reach) };
    const { entriesFrom } = this.reach;
    const last = (max: number, wanted: (e: RecorderEntry) => boolean) => this.last(max, (e) => e.n >= entriesFrom && wanted(e));
    return timelineOf(uid, { history, recorder: { last } });
  }

  recorder({ path, limit = ENTRIES_MAX, sinceMs = Number.NEGATIVE_INFINITY }: RecorderFilter): ReturnType<Moment['recorder']> {
    const wanted = (e: RecorderEntry): boolean => e.atMs >= sinceMs && (path === undefined || isBelow(e.path, path));
    return { entries: this.last(Math.min(limit, ENTRIES_MAX), wanted), overwritten: 0 };
  }

  /** The newest `max` entries for which `wanted` answers true, oldest first. */
  last(max: number, wanted: (e: RecorderEntry) => boolean): RecorderEntry[] {
    return this.#recording.lastEntries(this.reach, max, wanted);
  }
}

function findBelow(root: ActorView, path: string): ActorView | undefined {
  if (root.path === path) return root;
  for (const child of root.children) {
    const found = path === child.path || path.startsWith(`${child.path}/`) ? findBelow(child, path) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}
