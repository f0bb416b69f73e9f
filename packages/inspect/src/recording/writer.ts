/**
 * Writes what the flight recorder holds into frames, as it happens. It looks at the recorder a quarter of a second after
 * something happened and never waits for the disk: while the sink is full, entries are left out and counted.
 */

import type { History } from '@actorlet/kubelet/actors/recorder/history.ts';
import { RECORDER_CAPACITY } from '@actorlet/kubelet/actors/recorder/recorder.ts';
import type { Inspected } from '@actorlet/kubelet/actors/recorder/source.ts';
import type { SupervisionEvent } from '@actorlet/kubelet/actors/supervision/types.ts';
import { shownImage } from '@actorlet/kubelet/machines/kube/imageRef.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import type { RuntimeCall } from '@actorlet/kubelet/machines/recorder/podHistory.ts';
import { secretsOfPod } from '@actorlet/shown/src/deaths/gathered.ts';
import { withoutSecrets } from './facts/hidden.ts';
import { type Fact, Look } from './facts/look.ts';
import type { RowFact } from './facts/row.ts';
import { frameOf } from './format.ts';
import { type CallsFrame, type FactsFrame, type PackedFact, RECORDING_VERSION, type RecordingFrame, type RowsFrame } from './frames.ts';
import { Packer } from './pack.ts';

/** What happened is on its way to the disk so much later. */
export const WRITE_AFTER_MS = 250;
/** All facts are written anew this often: what a damaged part of the file held is then known again. */
const WHOLE_EVERY_MS = 3_600_000;
/** Entries that may wait in the recorder's ring before they are taken at once. */
const ENTRIES_WAITING_MAX = RECORDER_CAPACITY / 4;
/** Bytes that may wait for the disk. */
const BYTES_WAITING_MAX = 8 * 1024 * 1024;
/** Characters of facts in one frame. */
const FACTS_CHARS_MAX = 256 * 1024;
const ROWS_MAX = 4096;
const CALLS_WAITING_MAX = 4096;

/** Where the bytes go. Nothing here waits. */
export interface Sink {
  /** Bytes that were taken and are not written yet. */
  readonly waitingBytes: number;
  /** Bytes of the present segment, waiting ones included. */
  readonly segmentBytes: number;
  /** Grows when the file was opened anew: frames before it may be missing. */
  readonly generation: number;
  /** From so many bytes on the next segment is due. */
  readonly segmentSoftMax: number;
  /** False: they would make the segment longer than it may be, and were not taken. */
  write(bytes: Uint8Array): boolean;
  /** What is written from here on goes into a new segment. */
  rotate(): void;
}
export interface WriterFigures {
  /** Entries that were not written, since the disk or the reader of the ring was too slow. */
  lost: number;
  frames: number;
  bytes: number;
}

export class RecordingWriter implements Disposable {
  readonly #node: Inspected;
  readonly #sink: Sink;
  readonly #packer = new Packer();
  readonly #look: Look;
  readonly #taps: Disposable[];
  readonly figures: WriterFigures = { lost: 0, frames: 0, bytes: 0 };
  #timer: unknown = null;
  #next: number;
  #lost = 0;
  #generation = -1;
  #wholeMonoMs = Number.NEGATIVE_INFINITY;
  /** Charts of the look that are in this segment. */
  #charts = 0;
  #calls: { uid: string; call: RuntimeCall }[] = [];
  #ended = false;
  readonly #learned = new WeakSet<Pod>();

  constructor(node: Inspected, sink: Sink) {
    this.#node = node;
    this.#sink = sink;
    this.#next = Math.max(0, node.recorder.recorded - RECORDER_CAPACITY);
    this.#look = new Look(node, () => this.#arm());
    this.#taps = [
      this.#look,
      node.tree.observe((e) => this.#see(e)),
      node.history.watchCalls((uid, call) => {
        if (this.#calls.length < CALLS_WAITING_MAX) this.#calls.push({ uid, call: { ...call } });
        this.#arm();
      }),
    ];
    this.#tryFlush();
  }

  #see(_: SupervisionEvent): void {
    if (this.#node.recorder.recorded - this.#next >= ENTRIES_WAITING_MAX && this.#begun()) this.#write(this.#entries());
    this.#arm();
  }

  #arm(): void {
    if (this.#timer !== null || this.#ended) return;
    this.#timer = this.#node.clock.setTimeout(() => {
      this.#timer = null;
      this.#tryFlush();
    }, WRITE_AFTER_MS);
  }

  /** A fault of the recording's own must not reach the daemon. */
  #tryFlush(): void {
    try {
      this.flush();
    } catch (error) {
      this.#node.log.warn({ err: String(error) }, 'recording: one part was left out');
    }
  }

  /** Programs repeat what an earlier daemon gave them: that is known from the definitions alone. */
  #learn(): void {
    for (const { pod } of this.#node.tree.registry.read(podsView)?.value.records.values() ?? []) {
      if (!this.#learned.has(pod)) this.#node.history.learn(secretsOfPod(pod));
      this.#learned.add(pod);
    }
  }

  /** Everything that has happened so far goes to the sink. */
  flush(): void {
    if (!this.#begun()) {
      this.#look.forget();
      return;
    }
    const isDue = this.#node.clock.monoMs() - this.#wholeMonoMs >= WHOLE_EVERY_MS;
    this.#write([...this.#entries(), ...this.#callFrames(), ...this.#facts(isDue)]);
    if (this.#sink.segmentBytes < this.#sink.segmentSoftMax) return;
    this.#sink.rotate();
    if (this.#begin()) this.#write(this.#facts(true));
  }

  /** The daemon stops in order: the last frame says so. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.flush();
    this[Symbol.dispose]();
    this.#write([{ t: 'end', atMs: this.#node.clock.wallMs() }]);
  }

  [Symbol.dispose](): void {
    this.#ended = true;
    for (const tap of this.#taps) tap[Symbol.dispose]();
    this.#node.clock.clearTimeout(this.#timer);
    this.#timer = null;
  }

  // ---- frames --------------------------------------------------------------------------------------------------------

  /** Whether the segment has its first frame; else it is written now. */
  #begun(): boolean {
    return this.#sink.generation === this.#generation || this.#begin();
  }

  /** The first frame of a segment; all facts follow at the end of this look. */
  #begin(): boolean {
    const { nodeName, version, startedAtMs, clock } = this.#node;
    this.#packer.reset();
    this.#charts = 0;
    this.#wholeMonoMs = Number.NEGATIVE_INFINITY;
    const { generation } = this.#sink;
    if (!this.#write([{ t: 'run', v: RECORDING_VERSION, atMs: clock.wallMs(), node: nodeName, version, startedAtMs }])) return false;
    this.#generation = generation;
    return true;
  }

  #facts(whole: boolean): RecordingFrame[] {
    if (whole) this.#wholeMonoMs = this.#node.clock.monoMs();
    const { facts, rows } = this.#look.take({ whole });
    const { charts } = this.#look;
    const fresh = charts.slice(this.#charts).map((chart, i): RecordingFrame => ({ t: 'chart', number: this.#charts + i, chart }));
    this.#charts = charts.length;
    const frames = [...this.#rowFrames(withoutSecrets(rows, this.#node.history)), ...factFrames(facts, this.#node.history)];
    for (const t of ['r', 'f'] as const) {
      const first = whole ? frames.findIndex((f) => f.t === t) : -1;
      const frame = frames[first];
      if (frame !== undefined) frames[first] = { ...frame, whole: true };
    }
    return [...fresh, ...frames];
  }

  #rowFrames(rows: readonly RowFact[]): (FactsFrame | RowsFrame)[] {
    const frames: RowsFrame[] = [];
    for (let at = 0; at < rows.length; at += ROWS_MAX) frames.push(this.#packer.packRows(rows.slice(at, at + ROWS_MAX)));
    return frames;
  }

  #entries(): RecordingFrame[] {
    this.#learn();
    const { recorder } = this.#node;
    const { recorded } = recorder;
    const entries = recorder.since(this.#next, RECORDER_CAPACITY);
    const overwritten = recorded - this.#next - entries.length;
    this.#lost += overwritten;
    this.figures.lost += overwritten;
    this.#next = recorded;
    return entries.length === 0 && this.#lost === 0 ? [] : [this.#packer.pack(withoutSecrets(entries, this.#node.history), this.#lost)];
  }

  #callFrames(): CallsFrame[] {
    if (this.#calls.length === 0) return [];
    const { history } = this.#node;
    const calls = this.#calls.map(
      ({ uid, call: c }) => [uid, c.method, shownImage(c.about), c.startMs, c.endMs, history.hidden(c.error)] as const,
    );
    this.#calls = [];
    return [{ t: 'calls', calls }];
  }

  /** False: the sink did not take them. */
  #write(frames: readonly RecordingFrame[]): boolean {
    if (frames.length === 0) return true;
    const bytes = this.#sink.waitingBytes > BYTES_WAITING_MAX ? null : joined(frames.map(frameOf));
    if (bytes === null || !this.#sink.write(bytes)) {
      // The next frame says how many are missing, and can be read without the strings of this one.
      const dropped = frames.reduce((n, f) => n + (f.t === 'e' ? f.entries.length : 0), 0);
      this.#lost += dropped;
      this.figures.lost += dropped;
      this.#generation = -1;
      return false;
    }
    if (frames.some((f) => f.t === 'e')) this.#lost = 0;
    this.figures.frames += frames.length;
    this.figures.bytes += bytes.length;
    return true;
  }
}

function factFrames(facts: readonly Fact[], history: Pick<History, 'hidden'>): FactsFrame[] {
  const frames: FactsFrame[] = [];
  let packed: PackedFact[] = [];
  let [chars, fromMs] = [0, 0];
  const close = (): void => {
    if (packed.length > 0) frames.push({ t: 'f', atMs: fromMs, facts: packed });
    packed = [];
    chars = 0;
  };
  for (const { atMs, view, key, text } of facts) {
    if (chars > FACTS_CHARS_MAX) close();
    if (packed.length === 0) fromMs = atMs;
    const dt = atMs - fromMs;
    packed.push(text === null ? [dt, view, key] : [dt, view, key, withoutSecrets(JSON.parse(text) as unknown, history)]);
    chars += key.length + (text?.length ?? 0);
  }
  close();
  return frames;
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}
