/**
 * Writes what the flight recorder holds into frames, as it happens. It looks at the recorder a quarter of a second after
 * something happened and never waits for the disk: while the sink is full, entries are left out and counted.
 */

import { lostPeers } from '../../actors/edge/admin/lostPeers.ts';
import type { SupervisionEvent } from '../../actors/supervision/types.ts';
import { chartOf } from '../../machines/chart/definition.ts';
import { podsView } from '../../machines/pods/manager/messages.ts';
import { statusAddr } from '../../machines/pods/status/messages.ts';
import type { RecorderEntry } from '../../machines/shown/recorderEntry.ts';
import { logicOf } from '../../machines/xstate/inside.ts';
import type { RuntimeCall } from '../../recorder/history.ts';
import { RECORDER_CAPACITY } from '../../recorder/recorder.ts';
import { SecretWords } from '../../recorder/secretWords.ts';
import type { Inspected } from '../../recorder/source.ts';
import { actorRefAt } from '../feed/actorDetail.ts';
import { decisionsFrame } from '../feed/decisions.ts';
import type { PodRow } from '../feed/frames.ts';
import { podFrame } from '../feed/podDetail.ts';
import { podOf } from '../feed/podOf.ts';
import { actorRows, podRows } from '../feed/rows.ts';
import { frameOf } from './format.ts';
import { type CallsFrame, kindOf, RECORDING_VERSION, type RecordingFrame } from './frames.ts';
import { Packer } from './pack.ts';

/** What happened is on its way to the disk so much later. */
export const WRITE_AFTER_MS = 250;
/** The whole picture is written this often; entries lead from one to the next. */
const KEY_EVERY_MS = 300_000;
/** Entries that may wait in the recorder's ring before they are taken at once. */
const ENTRIES_WAITING_MAX = RECORDER_CAPACITY / 4;
/** Bytes that may wait for the disk. */
const BYTES_WAITING_MAX = 8 * 1024 * 1024;
/** Pods whose details are written at one look; the others wait for the next. */
const PODS_PER_LOOK_MAX = 8;
const CALLS_WAITING_MAX = 4096;
const IMAGE = 'image';
/** Keys of texts for people; programs may have said what they were given. */
const MESSAGES: ReadonlySet<string> = new Set([
  IMAGE,
  'message',
  'reason',
  'what',
  'detail',
  'why',
  'error',
  'words',
  'note',
  'lastExit',
  'state',
]);

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
  readonly #taps: Disposable[];
  readonly figures: WriterFigures = { lost: 0, frames: 0, bytes: 0 };
  #timer: unknown = null;
  #next: number;
  #lost = 0;
  #generation = -1;
  #keyAtMs = Number.NEGATIVE_INFINITY;
  #charts = new Set<string>();
  #dynamic = new Set<string>();
  #calls: { uid: string; call: RuntimeCall }[] = [];
  /** Actors of a kind whose chart is not in this segment. */
  readonly #started = new Set<string>();
  readonly #dirty = new Set<string>();
  readonly #pods = new Map<string, string>();
  #ended = false;

  constructor(node: Inspected, sink: Sink) {
    this.#node = node;
    this.#sink = sink;
    this.#next = Math.max(0, node.recorder.recorded - RECORDER_CAPACITY);
    this.#taps = [
      node.tree.observe((e) => this.#see(e)),
      node.history.watchCalls((uid, call) => {
        if (this.#calls.length < CALLS_WAITING_MAX) this.#calls.push({ uid, call: { ...call } });
        this.#arm();
      }),
    ];
    this.#arm();
  }

  #see(e: SupervisionEvent): void {
    if (e.kind === 'child.started' && !this.#charts.has(kindOf(e.path, this.#dynamic))) this.#started.add(e.path);
    if (this.#node.recorder.recorded - this.#next >= ENTRIES_WAITING_MAX && this.#begun()) this.#write(this.#entries());
    this.#arm();
  }

  #arm(): void {
    if (this.#timer !== null || this.#ended) return;
    this.#timer = this.#node.clock.setTimeout(() => {
      this.#timer = null;
      // A fault of the recording's own must not reach the daemon.
      try {
        this.flush();
      } catch (error) {
        this.#node.log.warn({ err: String(error) }, 'recording: one part was left out');
      }
    }, WRITE_AFTER_MS);
  }

  /** Everything that has happened so far goes to the sink. */
  flush(): void {
    if (!this.#begun()) return;
    const monoMs = this.#node.clock.monoMs();
    this.#write([...this.#entries(), ...this.#callFrames(), ...this.#startedCharts(), ...this.#podChanges()]);
    const full = this.#sink.segmentBytes >= this.#sink.segmentSoftMax;
    if (full) this.#sink.rotate();
    if ((!full || this.#begin()) && monoMs - this.#keyAtMs >= KEY_EVERY_MS) {
      this.#write(this.#key(monoMs));
    }
    if (this.#dirty.size > 0) this.#arm();
  }

  /** The daemon stops in order: the last frame says so. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this[Symbol.dispose]();
    this.flush();
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

  /** The first frame of a segment; the whole picture follows at the end of this look. */
  #begin(): boolean {
    const { nodeName, version, startedAtMs, clock } = this.#node;
    this.#packer.reset();
    this.#charts.clear();
    this.#pods.clear();
    this.#keyAtMs = Number.NEGATIVE_INFINITY;
    const { generation } = this.#sink;
    if (!this.#write([{ t: 'run', v: RECORDING_VERSION, atMs: clock.wallMs(), node: nodeName, version, startedAtMs }])) return false;
    this.#generation = generation;
    return true;
  }

  #key(monoMs: number): RecordingFrame[] {
    const { tree, clock } = this.#node;
    const atMs = clock.wallMs();
    this.#keyAtMs = monoMs;
    const records = tree.registry.read(podsView)?.value.records;
    const podName = (uid: string) => records?.get(uid)?.pod.metadata.name;
    const lost = lostPeers(tree.registry, tree, clock.monoMs());
    const actors = actorRows(tree.state(), { nowMs: atMs, lost, podName });
    const pods = podRows(tree, atMs);
    const { notes: _, ...decisions } = decisionsFrame(this.#node);
    for (const row of pods) if (!this.#pods.has(row.uid)) this.#dirty.add(row.uid);
    if (this.#dirty.size > 0) this.#arm();
    this.#dynamic = new Set(actors.flatMap((a) => (a.type === 'dynamic' ? [a.path] : [])));
    const charts = this.#chartsOf(actors.flatMap((a) => (a.type === 'actor' ? [a.path] : [])));
    return [...charts, this.#hidden({ t: 'key', atMs, actors, pods, decisions })];
  }

  #startedCharts(): RecordingFrame[] {
    if (this.#started.size === 0) return [];
    const paths = [...this.#started];
    this.#started.clear();
    return this.#chartsOf(paths);
  }

  #chartsOf(paths: readonly string[]): RecordingFrame[] {
    const out: RecordingFrame[] = [];
    for (const path of paths) {
      const kind = kindOf(path, this.#dynamic);
      const ref = this.#charts.has(kind) ? null : actorRefAt(this.#node.tree, path);
      if (ref === null) continue;
      this.#charts.add(kind);
      const chart = chartOf(logicOf(ref));
      if (chart !== null) out.push({ t: 'chart', kind, chart });
    }
    return out;
  }

  #entries(): RecordingFrame[] {
    const { recorder } = this.#node;
    const { recorded } = recorder;
    const entries = recorder.since(this.#next, RECORDER_CAPACITY);
    const overwritten = recorded - this.#next - entries.length;
    this.#lost += overwritten;
    this.figures.lost += overwritten;
    this.#next = recorded;
    if (entries.length === 0 && this.#lost === 0) return [];
    for (const e of entries) this.#markPod(e);
    return [this.#packer.pack(this.#hidden(entries), this.#lost)];
  }

  /** A pod whose worker moved or told its status has another row than before. */
  #markPod(e: RecorderEntry): void {
    if (e.kind === 'message' ? e.path !== statusAddr.path : e.kind !== 'transition' && e.kind !== 'child.exited') return;
    const uid = podOf(e.kind === 'message' ? e.from : e.path);
    if (uid !== '') this.#dirty.add(uid);
  }

  #callFrames(): CallsFrame[] {
    if (this.#calls.length === 0) return [];
    const calls = this.#calls.map(
      ({ uid, call: c }) => [uid, c.method, SecretWords.image(c.about), c.startMs, c.endMs, this.#node.history.hidden(c.error)] as const,
    );
    this.#calls = [];
    return [{ t: 'calls', calls }];
  }

  #podChanges(): RecordingFrame[] {
    const { tree, clock } = this.#node;
    const { registry } = tree;
    const pods = registry.read(podsView)?.value;
    const atMs = clock.wallMs();
    const out: RecordingFrame[] = [];
    for (const uid of this.#pods.keys()) {
      if (pods?.records.has(uid) !== false) continue;
      this.#pods.delete(uid);
      this.#dirty.delete(uid);
      out.push({ t: 'pod', atMs, uid, row: null, detail: null });
    }
    if (this.#dirty.size === 0 || pods === undefined) return out;
    const looked = [...this.#dirty].slice(0, PODS_PER_LOOK_MAX);
    const rows = new Map<string, PodRow>(podRows(tree, atMs, new Set(looked)).map((row) => [row.uid, row]));
    for (const uid of looked) {
      this.#dirty.delete(uid);
      const row = rows.get(uid);
      const { pod } = podFrame(this.#node, uid, { past: false });
      if (row === undefined || pod === null) continue;
      const { history: _, messages: __, ...detail } = pod;
      const text = JSON.stringify([row, detail]);
      if (this.#pods.get(uid) === text) continue;
      this.#pods.set(uid, text);
      out.push(this.#hidden({ t: 'pod', atMs, uid, row, detail }));
    }
    return out;
  }

  /** Without what is secret in its messages. */
  #hidden<T>(value: T): T {
    return withMessages(value, '', (text, key) => (key === IMAGE ? SecretWords.image(text) : this.#node.history.hidden(text))) as T;
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

/** `value` with its messages changed; what has none stays the same object. */
function withMessages(value: unknown, key: string, change: (text: string, key: string) => string): unknown {
  if (typeof value === 'string') return MESSAGES.has(key) ? change(value, key) : value;
  if (Array.isArray(value)) {
    const made = value.map((item) => withMessages(item, key, change));
    return made.every((item, i) => item === value[i]) ? value : made;
  }
  if (typeof value !== 'object' || value === null) return value;
  let made: Record<string, unknown> | null = null;
  for (const [name, item] of Object.entries(value)) {
    if (typeof item !== 'string' && typeof item !== 'object') continue;
    const one = withMessages(item, name, change);
    if (one !== item) made = { ...(made ?? value), [name]: one };
  }
  return made ?? value;
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
