/**
 * A recording as a whole: what a node was at any moment of it. Reads the segments once. A moment is what each fact was then:
 * nothing is worked out from what came before. Pure.
 */

import { keepCall, keepStatus, keepStep, newHistory } from '@actorlet/kubelet/actors/recorder/history.ts';
import type { Chart } from '@actorlet/kubelet/machines/chart/definition.ts';
import type { PodStatus } from '@actorlet/kubelet/machines/kube/types.ts';
import { statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import { workersAddr } from '@actorlet/kubelet/machines/pods/workers/messages.ts';
import type { PodHistory, RuntimeCall } from '@actorlet/kubelet/machines/recorder/podHistory.ts';
import { type RecorderEntry, transitionOf } from '@actorlet/kubelet/machines/recorder/recorderEntry.ts';
import type { CriMethod } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import { decodeFrame } from './decode.ts';
import { Marks } from './facts/marks.ts';
import { KEPT_BY_NAME } from './facts/views.ts';
import { type Scanned, scan } from './format.ts';
import { type FactsFrame, RECORDING_VERSION, type RecordingFrame, type RunFrame } from './frames.ts';
import { type RecordedRow, Unpacker } from './pack.ts';
import { type Facts, type Reach, RecordedMoment, type Run } from './recordedMoment.ts';

export interface ReadFigures {
  bytes: number;
  frames: number;
  damagedBytes: number;
  gaveUp: boolean;
  /** Entries that the daemon could not write. */
  lost: number;
  /** Another format, which only the actorctl of that release reads; null: all of it is of this one. */
  otherVersion: number | null;
}

const NO_RUN: Run = { node: '', version: '', startedAtMs: 0, fromMs: 0, toMs: 0, stopped: false };

/** A call, and from when on it was known: a command of a probe is, once it has failed. */
interface KnownCall {
  call: RuntimeCall;
  knownMs: number;
  run: number;
}

export class Recording implements Facts {
  readonly runs: Run[] = [];
  readonly entries: RecorderEntry[] = [];
  readonly figures: ReadFigures = { bytes: 0, frames: 0, damagedBytes: 0, gaveUp: false, lost: 0, otherVersion: null };
  /** By number of the entry: the latest time up to it. */
  readonly #times: number[] = [];
  readonly #runStarts: number[] = [];
  readonly #facts = new Map<string, Marks<unknown>>();
  readonly #rows = new Marks<RecordedRow>();
  /** Of the present segment. */
  #charts = new Map<number, Chart>();
  readonly #chartOfRow = new WeakMap<RecordedRow, Chart>();
  readonly #calls = new Map<string, KnownCall[]>();
  readonly #unpacker = new Unpacker();
  /** The latest time so far: a clock that was set back does not undo what was. */
  #nowMs = Number.NEGATIVE_INFINITY;

  /** Segments, oldest first. */
  constructor(segments: readonly Uint8Array[]) {
    for (const bytes of segments) this.#readSegment(bytes, scan(bytes));
  }

  get fromMs(): number {
    return this.runs[0]?.fromMs ?? 0;
  }
  get toMs(): number {
    return this.runs.at(-1)?.toMs ?? 0;
  }

  // ---- reading -------------------------------------------------------------------------------------------------------

  #readSegment(bytes: Uint8Array, { frames, damagedBytes, gaveUp }: Scanned): void {
    const { figures } = this;
    figures.bytes += bytes.length;
    figures.damagedBytes += damagedBytes;
    figures.gaveUp ||= gaveUp;
    const decoder = new TextDecoder();
    for (const { from, to } of frames) {
      const decode = () => decodeFrame(decoder.decode(bytes.subarray(from, to)));
      const frame = decode();
      if (frame === null) {
        figures.damagedBytes += to - from;
        continue;
      }
      figures.frames += 1;
      // It was decoded once: it will be again.
      this.#take(frame, () => decode() ?? frame);
    }
  }

  #take(frame: RecordingFrame, again: () => RecordingFrame): void {
    if (frame.t === 'run') this.#begin(frame);
    const run = this.runs.at(-1);
    // Without its beginning nothing can be said of it.
    if (run === undefined || this.figures.otherVersion !== null) return;
    switch (frame.t) {
      case 'run':
        return;
      case 'end':
        this.#at(run, frame.atMs);
        run.stopped = true;
        this.#note('recording: the daemon stopped in order', this.#nowMs);
        return;
      case 'e':
        this.#takeEntries(run, this.#unpacker.unpack(frame, 0), frame.lost);
        return;
      case 'chart':
        this.#charts.set(frame.number, frame.chart);
        return;
      case 'f':
        this.#takeFacts(run, frame, again as () => FactsFrame);
        return;
      case 'r': {
        if (frame.whole === true) this.#rows.end(frame.atMs);
        for (const { atMs, path, row } of this.#unpacker.unpackRows(frame)) {
          const chart = row === null ? undefined : this.#charts.get(row.chart);
          if (row !== null && chart !== undefined) this.#chartOfRow.set(row, chart);
          this.#rows.put(path, atMs, row === null ? null : () => row);
          run.toMs = Math.max(run.toMs, atMs);
        }
        return;
      }
      case 'calls':
        for (const [uid, method, about, startMs, endMs, error] of frame.calls) {
          this.#takeCall(uid, { method: method as CriMethod, about, startMs, endMs, error });
        }
        return;
    }
  }

  #begin(frame: RunFrame): void {
    const before = this.runs.at(-1);
    if (frame.v !== RECORDING_VERSION) {
      this.figures.otherVersion = frame.v;
      return;
    }
    this.figures.otherVersion = null;
    this.#charts = new Map();
    // The next segment of the same life.
    if (before !== undefined && before.startedAtMs === frame.startedAtMs && before.node === frame.node && !before.stopped) return;
    const { node, version, startedAtMs, atMs } = frame;
    this.#nowMs = Math.max(this.#nowMs, before?.toMs ?? atMs, atMs);
    if (before !== undefined && !before.stopped) {
      this.#note('recording: the daemon before this one did not stop in order: it was killed, or it crashed', this.#nowMs);
    }
    // What the daemon before knew is no fact any more.
    for (const marks of [this.#rows, ...this.#facts.values()]) marks.end(this.#nowMs);
    this.#runStarts.push(this.entries.length);
    this.runs.push({ node, version, startedAtMs, fromMs: this.#nowMs, toMs: this.#nowMs, stopped: false });
    this.#note(`recording: actorlet ${version} began on ${node}`, this.#nowMs);
  }

  #at(run: Run, atMs: number): void {
    this.#nowMs = Math.max(this.#nowMs, atMs);
    run.toMs = Math.max(run.toMs, this.#nowMs);
  }
  #note(what: string, atMs: number): void {
    this.#push({ n: 0, atMs, kind: 'note', path: 'node', what, detail: '', from: '', causes: [] });
  }
  #push(e: RecorderEntry): void {
    this.entries.push({ ...e, n: this.entries.length });
    this.#times.push(this.#nowMs);
  }

  #takeEntries(run: Run, entries: readonly RecorderEntry[], lost: number): void {
    if (lost > 0) {
      this.figures.lost += lost;
      this.#note(`recording: ${lost} entries were not written, the disk was too slow`, entries[0]?.atMs ?? this.#nowMs);
    }
    for (const e of entries) {
      this.#at(run, e.atMs);
      this.#push(e);
    }
  }

  #takeFacts(run: Run, frame: FactsFrame, again: () => FactsFrame): void {
    if (frame.whole === true) for (const marks of this.#facts.values()) marks.end(frame.atMs);
    frame.facts.forEach((fact, i) => {
      const [dt, view, key] = fact;
      const marks = this.#facts.get(view) ?? new Marks(KEPT_BY_NAME.get(view)?.byChange === true);
      this.#facts.set(view, marks);
      const atMs = frame.atMs + dt;
      marks.put(key, atMs, fact.length === 3 ? null : () => again().facts[i]?.[3]);
      run.toMs = Math.max(run.toMs, atMs);
    });
  }

  /** A call is told twice: its end replaces its beginning. */
  #takeCall(uid: string, call: RuntimeCall): void {
    const calls = this.#calls.get(uid) ?? [];
    this.#calls.set(uid, calls);
    const run = this.runs.length - 1;
    const last = calls.length - 1;
    for (let i = last; i >= Math.max(0, last - CALLS_LOOKED_AT); i--) {
      const begun = calls[i]?.call;
      if (begun?.endMs === null && begun.method === call.method && begun.startMs === call.startMs && begun.about === call.about) {
        calls[i] = { call, knownMs: call.startMs, run };
        return;
      }
    }
    calls.push({ call, knownMs: call.endMs ?? call.startMs, run });
  }

  // ---- moments -------------------------------------------------------------------------------------------------------

  /** What the node was at `atMs`; before the beginning: at the beginning. */
  at(atMs: number): RecordedMoment {
    const entriesEnd = lastOf(this.#times, (t) => t <= atMs) + 1;
    const runIndex = Math.max(
      0,
      lastOf(this.runs, (run) => run.fromMs <= atMs),
    );
    const run = this.runs[runIndex] ?? NO_RUN;
    return new RecordedMoment(this, { atMs, run, runIndex, entriesFrom: this.#runStarts[runIndex] ?? 0, entriesEnd });
  }

  partsOf(view: string, atMs: number): ReadonlyMap<string, unknown> {
    return this.#facts.get(view)?.at(atMs) ?? new Map();
  }
  partAt(view: string, key: string, atMs: number): unknown {
    return this.#facts.get(view)?.partAt(key, atMs);
  }
  rowsAt(atMs: number): ReadonlyMap<string, RecordedRow> {
    return this.#rows.at(atMs);
  }
  rowAt(path: string, atMs: number): RecordedRow | undefined {
    return this.#rows.partAt(path, atMs);
  }
  chartOf(row: RecordedRow): Chart | null {
    return this.#chartOfRow.get(row) ?? null;
  }

  historyAt(uid: string, { atMs, runIndex, entriesFrom, entriesEnd }: Reach): PodHistory | undefined {
    const path = `${workersAddr.path}/${uid}`;
    const history = newHistory();
    for (let i = entriesFrom; i < entriesEnd; i++) {
      const e = this.entries[i];
      if (e?.kind === 'transition' && e.path === path) keepStep(history, { atMs: e.atMs, ...transitionOf(e) });
    }
    for (const { call, knownMs, run } of this.#calls.get(uid) ?? []) {
      if (run !== runIndex || knownMs > atMs) continue;
      keepCall(history, call.endMs !== null && call.endMs > atMs ? { ...call, endMs: null, error: '' } : call);
    }
    if (history.steps.length + history.calls.length === 0) return undefined;
    for (const mark of this.#facts.get(statusesView.view)?.of(uid) ?? []) {
      if (mark.atMs > atMs) break;
      const entry = mark.atMs < (this.runs[runIndex]?.fromMs ?? 0) ? undefined : (mark.read?.() as StatusPart | undefined);
      if (entry !== undefined) keepStatus(history, { status: entry.status, atMs: mark.atMs });
    }
    return history;
  }

  lastEntries({ entriesEnd }: Reach, max: number, wanted: (e: RecorderEntry) => boolean): RecorderEntry[] {
    const out: RecorderEntry[] = [];
    for (let i = entriesEnd - 1; i >= 0 && out.length < max; i--) {
      const entry = this.entries[i];
      if (entry !== undefined && wanted(entry)) out.push(entry);
    }
    return out.reverse();
  }
}

interface StatusPart {
  status: PodStatus;
}

/** Calls in flight of one pod at once. */
const CALLS_LOOKED_AT = 32;

/** Index of the last item for which `fits`; items that fit come before all others. -1: none. */
function lastOf<T>(items: readonly T[], fits: (item: T) => boolean): number {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const item = items[middle];
    if (item !== undefined && fits(item)) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
