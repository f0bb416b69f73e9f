/**
 * A recording as a whole: what a node was at any moment of it. Reads the segments once; the picture of a moment is the
 * last whole picture before it and the entries since. Pure.
 */

import type { Chart } from '../../machines/chart/definition.ts';
import { workersAddr } from '../../machines/pods/workers/messages.ts';
import type { RecorderEntry } from '../../machines/shown/recorderEntry.ts';
import type { CriMethod } from '../../machines/wire/cri.ts';
import { type ContainerSpan, noteContainers } from '../../recorder/containerSpans.ts';
import { isReady, type PodHistory, type RuntimeCall } from '../../recorder/history.ts';
import type { ActorRow, PodRow } from '../feed/frames.ts';
import { decodeFrame } from './decode.ts';
import { type Scanned, scan } from './format.ts';
import { type KeyFrame, kindOf, type PodChange, RECORDING_VERSION, type RecordingFrame, type RunFrame } from './frames.ts';
import { Unpacker } from './pack.ts';
import { replay, transitionOf } from './replay.ts';

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
/** What a node was at one moment. */
export interface Picture {
  atMs: number;
  run: Run;
  actors: ReadonlyMap<string, ActorRow>;
  pods: ReadonlyMap<string, PodRow>;
  decisions: KeyFrame['decisions'] | null;
  /** Number of the entry behind the last that had happened. */
  entriesEnd: number;
}
/** A frame that is read again when it is needed, and where it stands among the entries. */
interface Mark<F extends RecordingFrame> {
  atMs: number;
  entriesBefore: number;
  read(): F;
}
export interface ReadFigures {
  bytes: number;
  frames: number;
  damagedBytes: number;
  gaveUp: boolean;
  /** Entries that the daemon could not write. */
  lost: number;
}

const NO_RUN: Run = { node: '', version: '', startedAtMs: 0, fromMs: 0, toMs: 0, stopped: false };

export class Recording {
  readonly runs: Run[] = [];
  readonly entries: RecorderEntry[] = [];
  readonly figures: ReadFigures = { bytes: 0, frames: 0, damagedBytes: 0, gaveUp: false, lost: 0 };
  /** By number of the entry: the latest time up to it. */
  readonly #times: number[] = [];
  readonly #keys: Mark<KeyFrame>[] = [];
  readonly #runStarts: number[] = [];
  readonly #pods = new Map<string, Mark<PodChange>[]>();
  readonly #charts = new Map<string, Chart>();
  readonly #calls = new Map<string, RuntimeCall[]>();
  readonly #dynamic = new Set<string>();
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
    if (run === undefined) return;
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
      case 'key':
        this.#at(run, frame.atMs);
        for (const a of frame.actors) if (a.type === 'dynamic') this.#dynamic.add(a.path);
        this.#keys.push(this.#mark(again as () => KeyFrame));
        return;
      case 'pod': {
        this.#at(run, frame.atMs);
        const marks = this.#pods.get(frame.uid) ?? [];
        marks.push(this.#mark(again as () => PodChange));
        this.#pods.set(frame.uid, marks);
        return;
      }
      case 'chart':
        this.#charts.set(frame.kind, frame.chart);
        return;
      case 'calls':
        for (const [uid, method, about, startMs, endMs, error] of frame.calls) {
          this.#takeCall(uid, { method: method as CriMethod, about, startMs, endMs, error });
        }
        return;
    }
  }

  #begin(frame: RunFrame): void {
    const before = this.runs.at(-1);
    if (frame.v > RECORDING_VERSION) return;
    // The next segment of the same life.
    if (before !== undefined && before.startedAtMs === frame.startedAtMs && before.node === frame.node && !before.stopped) return;
    const { node, version, startedAtMs, atMs } = frame;
    this.#nowMs = Math.max(this.#nowMs, atMs);
    if (before !== undefined && !before.stopped) {
      this.#note('recording: the daemon before this one did not stop in order: it was killed, or it crashed', this.#nowMs);
    }
    this.#runStarts.push(this.entries.length);
    this.runs.push({ node, version, startedAtMs, fromMs: this.#nowMs, toMs: this.#nowMs, stopped: false });
    this.#note(`recording: actorlet ${version} began on ${node}`, this.#nowMs);
  }

  #at(run: Run, atMs: number): void {
    this.#nowMs = Math.max(this.#nowMs, atMs);
    run.toMs = this.#nowMs;
  }
  #note(what: string, atMs: number): void {
    this.#push({ n: 0, atMs, kind: 'note', path: 'node', what, detail: '', from: '', causes: [] });
  }
  #push(e: RecorderEntry): void {
    this.entries.push({ ...e, n: this.entries.length });
    this.#times.push(this.#nowMs);
  }
  #mark<F extends RecordingFrame>(read: () => F): Mark<F> {
    return { atMs: this.#nowMs, entriesBefore: this.entries.length, read };
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

  /** A call is told twice: its end replaces its beginning. */
  #takeCall(uid: string, call: RuntimeCall): void {
    const calls = this.#calls.get(uid) ?? [];
    this.#calls.set(uid, calls);
    const last = calls.length - 1;
    for (let i = last; i >= Math.max(0, last - CALLS_LOOKED_AT); i--) {
      const begun = calls[i];
      if (begun?.endMs === null && begun.method === call.method && begun.startMs === call.startMs && begun.about === call.about) {
        calls[i] = call;
        return;
      }
    }
    calls.push(call);
  }

  // ---- moments -------------------------------------------------------------------------------------------------------

  /** What the node was at `atMs`; before the beginning: at the beginning. */
  at(atMs: number): Picture {
    const entriesEnd = lastOf(this.#times, (t) => t <= atMs) + 1;
    const runIndex = Math.max(
      0,
      lastOf(this.#runStarts, (start) => start < entriesEnd),
    );
    const run = this.runs[runIndex] ?? NO_RUN;
    const from = this.#runStarts[runIndex] ?? 0;
    const key = this.#keys[lastOf(this.#keys, (k) => k.atMs <= atMs)];
    const inRun = key !== undefined && key.entriesBefore >= from;
    const picture = inRun ? key.read() : null;
    const actors = new Map(picture?.actors.map((a) => [a.path, a]));
    for (let i = inRun ? key.entriesBefore : from; i < entriesEnd; i++) {
      const entry = this.entries[i];
      if (entry !== undefined) replay(actors, entry);
    }
    const pods = new Map(picture?.pods.map((p) => [p.uid, p]));
    for (const [uid, marks] of this.#pods) {
      const mark = marks[lastOf(marks, (m) => m.atMs <= atMs)];
      if (mark === undefined || mark.entriesBefore < (inRun ? key.entriesBefore : from)) continue;
      const { row } = mark.read();
      if (row === null) pods.delete(uid);
      else pods.set(uid, row);
    }
    return { atMs, run, actors: named(actors, pods), pods, decisions: picture?.decisions ?? null, entriesEnd };
  }

  /** What is known of a pod at that moment; null: nothing, or it was forgotten. */
  podAt(uid: string, atMs: number): PodChange['detail'] {
    const marks = this.#pods.get(uid) ?? [];
    return marks[lastOf(marks, (m) => m.atMs <= atMs)]?.read().detail ?? null;
  }

  /** States of its worker and calls of the runtime up to that moment; of the newest so many each. */
  historyAt(uid: string, picture: Picture, max: number): PodHistory {
    const path = `${workersAddr.path}/${uid}`;
    const steps: PodHistory['steps'] = [];
    for (let i = 0; i < picture.entriesEnd; i++) {
      const e = this.entries[i];
      if (e?.kind === 'transition' && e.path === path) steps.push({ atMs: e.atMs, ...transitionOf(e) });
    }
    const calls = (this.#calls.get(uid) ?? [])
      .filter((c) => c.startMs <= picture.atMs)
      .map((c) => (c.endMs !== null && c.endMs > picture.atMs ? { ...c, endMs: null, error: '' } : c));
    const left = Math.max(0, steps.length - max) + Math.max(0, calls.length - max);
    const containers: ContainerSpan[] = [];
    let readyAtMs: number | undefined;
    for (const mark of this.#pods.get(uid) ?? []) {
      const detail = mark.atMs <= picture.atMs ? mark.read().detail : null;
      if (detail === null) continue;
      noteContainers(containers, detail.containers, mark.atMs);
      if (isReady(detail)) readyAtMs ??= mark.atMs;
    }
    const kept = { steps: steps.slice(-max), calls: calls.slice(-max), containers: containers.slice(-max), left };
    return { ...kept, ...(readyAtMs === undefined ? {} : { readyAtMs }) };
  }

  /** The newest `max` entries up to that moment for which `wanted` answers true, oldest first. */
  lastEntries(picture: Picture, max: number, wanted: (e: RecorderEntry) => boolean): RecorderEntry[] {
    const out: RecorderEntry[] = [];
    for (let i = picture.entriesEnd - 1; i >= 0 && out.length < max; i--) {
      const entry = this.entries[i];
      if (entry !== undefined && wanted(entry)) out.push(entry);
    }
    return out.reverse();
  }

  chartOf(path: string): Chart | null {
    return this.#charts.get(path) ?? this.#charts.get(kindOf(path, this.#dynamic)) ?? null;
  }
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

/** Actors that belong to a pod under its name, as in the live tree. */
function named(actors: ReadonlyMap<string, ActorRow>, pods: ReadonlyMap<string, PodRow>): ReadonlyMap<string, ActorRow> {
  return new Map(
    [...actors].map(([path, row]) => {
      const name = row.pod === '' ? undefined : pods.get(row.pod)?.name;
      return [path, name === undefined ? row : { ...row, name: row.name.replace(row.pod, name) }];
    }),
  );
}
