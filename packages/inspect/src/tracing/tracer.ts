/**
 * Follows each pod from its worker's start to Ready, and from the wish to stop it to its worker's end, by what the
 * supervision tells anyway. It sends no message, and no actor knows of it. Everything it keeps is bounded.
 */

import { type CallSpan, isReady } from '@actorlet/kubelet/actors/recorder/history.ts';
import type { Inspected } from '@actorlet/kubelet/actors/recorder/source.ts';
import type { SupervisionEvent } from '@actorlet/kubelet/actors/supervision/types.ts';
import { apiAddr } from '@actorlet/kubelet/machines/api/messages.ts';
import { eventsView } from '@actorlet/kubelet/machines/foundation/messages.ts';
import { podManagerAddr, podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { type StatusView, statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import { workersAddr } from '@actorlet/kubelet/machines/pods/workers/messages.ts';
import type { RuntimeCall } from '@actorlet/kubelet/machines/recorder/podHistory.ts';
import type { Cause } from '@actorlet/kubelet/machines/supervision/address.ts';
import { CriError } from '@actorlet/kubelet/ports/ports.ts';
import type { PodTrace, Span, StatusWrite, TracedCall, TraceKind, WorkerStep } from './model.ts';
import { spansOf } from './spans.ts';

/** Traces under way at once, and pods whose causes are remembered. */
const OPEN_MAX = 1024;
/** Steps and calls kept of one trace: a pod that crashes over and over stays below. */
const PARTS_MAX = 256;
/** A pod that is not ready by then is reported as it is. */
export const START_LIMIT_MS = 600_000;
/** Longer than any ordinary grace period. */
const STOP_LIMIT_MS = 3_600_000;
/** In a cluster the status that says so is written after a pod is ready, or has ended: waited for so long. */
const WRITE_LIMIT_MS = 10_000;
const UNKNOWN_CODE = 2;

export interface TracerOptions {
  /** Spans per million. */
  samplingRatePerMillion: number;
  sha256Hex(text: string): string;
  sink(spans: readonly Span[]): void;
  /** The node has an API server: statuses are written to it. */
  cluster: boolean;
}

/** A trace under way. */
interface Open {
  readonly kind: TraceKind;
  readonly uid: string;
  readonly life: number;
  readonly traceId: string;
  readonly beganAtMs: number;
  /** Wall ms at which the pod's worker began; 0: unknown. */
  readonly workerSinceMs: number;
  pod: PodTrace['pod'];
  causes: readonly Cause[];
  steps: WorkerStep[];
  calls: TracedCall[];
  writes: StatusWrite[];
  left: number;
  ids: number;
  /** When the pod was ready or its worker finished; null: not yet. */
  reachedAtMs: number | null;
  error: string;
  timer: unknown;
}
/** What is remembered of a worker: its life, why it last heard of its pod, which traces this life had. */
interface Known {
  life: number;
  causes: readonly Cause[];
  /** Wall ms at which the worker began; 0: not yet. */
  sinceMs: number;
  traced: Set<TraceKind>;
}

const WORKERS = `${workersAddr.path}/`;
const WRITERS = `${apiAddr.podWriters.path}/`;

export class PodTracer implements Disposable {
  readonly #node: Inspected;
  readonly #o: TracerOptions;
  readonly #taps: Disposable[];
  readonly #open = new Map<string, Open>();
  readonly #known = new Map<string, Known>();
  /** Traces that were not begun, since too many were under way. */
  leftOut = 0;

  constructor(node: Inspected, o: TracerOptions) {
    this.#node = node;
    this.#o = o;
    this.#taps = [
      node.tree.observe((e) => this.#see(e)),
      node.tree.registry.watch(statusesView, (statuses) => this.#lookForReady(statuses)),
      node.history.traceCalls((uid, call) => this.#call(uid, call)),
    ];
  }

  /** Traces under way. */
  get open(): number {
    return this.#open.size;
  }

  /** The daemon stops: what is under way is reported as far as it went. */
  [Symbol.dispose](): void {
    for (const tap of this.#taps) tap[Symbol.dispose]();
    for (const trace of [...this.#open.values()]) this.#close(trace, trace.reachedAtMs === null ? 'the daemon stopped' : '');
  }

  // ---- what happens -------------------------------------------------------------------------------------------------

  #see(e: SupervisionEvent): void {
    if (e.kind === 'message') {
      if (e.to === workersAddr.path && e.type === 'pod.update' && e.key !== undefined) this.#heard(e.key, e.causes);
    } else if (e.kind === 'transition') {
      if (e.path.startsWith(WORKERS)) this.#step(e.path.slice(WORKERS.length), e);
      else if (e.path.startsWith(WRITERS)) this.#writer(e.path.slice(WRITERS.length), e);
    } else if (e.kind === 'child.exited' && e.path.startsWith(WRITERS)) {
      const trace = this.#open.get(e.path.slice(WRITERS.length));
      if (trace !== undefined && trace.reachedAtMs !== null) this.#close(trace, '');
    }
  }

  /** `pod.update` of a pod: its key is `UID LIFE`. */
  #heard(key: string, causes: readonly Cause[]): void {
    const space = key.lastIndexOf(' ');
    const uid = key.slice(0, space);
    const life = Number(key.slice(space + 1));
    const known = this.#known.get(uid);
    if (known?.life === life) {
      known.causes = causes;
      return;
    }
    this.#remember(uid, { life, causes, sinceMs: 0, traced: new Set() });
  }
  #remember(uid: string, known: Known): Known {
    this.#known.set(uid, known);
    if (this.#known.size > OPEN_MAX) this.#known.delete(this.#known.keys().next().value ?? '');
    return known;
  }

  #step(uid: string, e: Extract<SupervisionEvent, { kind: 'transition' }>): void {
    const stops = e.to.startsWith('terminating');
    if (stops) {
      const starting = this.#open.get(uid);
      if (starting?.kind === 'start') this.#close(starting, starting.reachedAtMs === null ? 'stopped before it was ready' : '', e.atMs);
    }
    const trace = this.#open.get(uid) ?? (stops || e.from === '' ? this.#begin(stops ? 'stop' : 'start', uid, e.atMs) : undefined);
    if (e.to === 'finished') this.#known.delete(uid);
    if (trace === undefined) return;
    if (trace.kind === 'stop') this.#findStopCauses(trace);
    if (trace.steps.length < PARTS_MAX) trace.steps.push({ atMs: e.atMs, state: e.to, reason: e.reason });
    else trace.left += 1;
    if (e.to === 'finished') this.#reached(trace, e.atMs);
  }

  #writer(uid: string, e: Extract<SupervisionEvent, { kind: 'transition' }>): void {
    const trace = this.#open.get(uid);
    if (trace === undefined) return;
    const last = trace.writes.at(-1);
    if (e.from === 'acting' && last?.endMs === null) {
      last.endMs = e.atMs;
      last.failed = e.to === 'backingOff';
    }
    if (e.to === 'acting') {
      if (trace.writes.length < PARTS_MAX) trace.writes.push({ startMs: e.atMs, endMs: null, failed: false });
      else trace.left += 1;
    }
    if (trace.reachedAtMs !== null && (e.to === 'resting' || e.to === 'ended')) this.#close(trace, '');
  }

  #lookForReady(statuses: StatusView): void {
    for (const trace of this.#open.values()) {
      if (trace.kind !== 'start' || trace.reachedAtMs !== null) continue;
      const entry = statuses.get(trace.uid);
      // An earlier life of the same UID says nothing about this one.
      if (entry === undefined || entry.life < trace.life) continue;
      const { phase } = entry.status;
      const ended = phase === 'Succeeded' || phase === 'Failed';
      if (!ended && !isReady(entry.status)) continue;
      if (phase === 'Failed') trace.error = 'the pod failed';
      this.#reached(trace, this.#node.clock.wallMs());
    }
  }

  #call(uid: string, call: RuntimeCall): CallSpan | undefined {
    const trace = this.#open.get(uid);
    if (trace === undefined) return undefined;
    if (trace.calls.length >= PARTS_MAX) {
      trace.left += 1;
      return undefined;
    }
    const spanId = this.#spanId(trace);
    const traced: TracedCall = { spanId, method: call.method, about: call.about, startMs: call.startMs, endMs: null, code: 0 };
    trace.calls.push(traced);
    return {
      traceparent: `00-${trace.traceId}-${spanId}-01`,
      ended: (error) => {
        traced.endMs = this.#node.clock.wallMs();
        if (error !== undefined) traced.code = error instanceof CriError ? error.code : UNKNOWN_CODE;
      },
    };
  }

  // ---- traces -------------------------------------------------------------------------------------------------------

  #begin(kind: TraceKind, uid: string, atMs: number): Open | undefined {
    const known = this.#known.get(uid) ?? this.#remember(uid, { life: 0, causes: [], sinceMs: 0, traced: new Set() });
    // A worker that crashed begins anew; its pod's life does not.
    if (kind === 'start' && known.sinceMs === 0) known.sinceMs = atMs;
    if (known.traced.has(kind)) return undefined;
    known.traced.add(kind);
    const { life } = known;
    // The same for every incarnation of a worker, new with each daemon.
    const traceId = this.#o.sha256Hex(`${uid}/${life}/${kind}/${this.#node.startedAtMs}`).slice(0, 32);
    if (!isSampled(traceId, this.#o.samplingRatePerMillion)) return undefined;
    if (this.#open.size >= OPEN_MAX) {
      this.leftOut += 1;
      return undefined;
    }
    const trace: Open = {
      ...{ kind, uid, life, traceId, beganAtMs: atMs, workerSinceMs: known.sinceMs, pod: { uid, name: '', namespace: '', source: '' } },
      ...{ causes: kind === 'start' ? known.causes : [], steps: [], calls: [], writes: [], left: 0, ids: 0 },
      ...{ reachedAtMs: null, error: '', timer: null },
    };
    const late = kind === 'start' ? 'not ready after 10 minutes' : 'not stopped after an hour';
    this.#within(trace, kind === 'start' ? START_LIMIT_MS : STOP_LIMIT_MS, late);
    this.#open.set(uid, trace);
    this.#name(trace);
    return trace;
  }

  #within(trace: Open, limitMs: number, late: string): void {
    this.#node.clock.clearTimeout(trace.timer);
    trace.timer = this.#node.clock.setTimeout(() => this.#close(trace, late), limitMs);
  }

  #reached(trace: Open, atMs: number): void {
    if (trace.reachedAtMs !== null) return;
    trace.reachedAtMs = atMs;
    // The last status is on its way to the API server now; without one there is nothing to wait for.
    if (this.#o.cluster) this.#within(trace, WRITE_LIMIT_MS, '');
    else this.#close(trace, '');
  }

  /** While the pod manager still knows the pod. */
  #name(trace: Open): void {
    const record = this.#node.tree.registry.read(podsView)?.value.records.get(trace.uid);
    if (record === undefined) return;
    const { name, namespace } = record.pod.metadata;
    trace.pod = { uid: trace.uid, name, namespace, source: record.source };
  }
  /** A worker's summary tells why it stops, once the pod manager has published it. */
  #findStopCauses(trace: Open): void {
    if (trace.pod.name === '') this.#name(trace);
    if (trace.causes.length > 0) return;
    const worker = this.#node.tree.registry.read(podsView)?.value.records.get(trace.uid)?.worker;
    if (worker?.phase !== 'terminating' && worker?.phase !== 'terminated') return;
    // A pod that ended by itself was not asked to: what is there is why it began.
    const asked = worker.causes.findLast((c) => c.by === podManagerAddr.path);
    if (asked !== undefined && asked.atMs > trace.workerSinceMs) trace.causes = worker.causes;
  }

  #close(trace: Open, error: string, nowMs = this.#node.clock.wallMs()): void {
    if (this.#open.get(trace.uid) !== trace) return;
    this.#open.delete(trace.uid);
    this.#node.clock.clearTimeout(trace.timer);
    try {
      if (trace.pod.name === '') this.#name(trace);
      const { kind, traceId, pod, beganAtMs, causes, steps, calls, writes, left } = trace;
      const endedAtMs = trace.reachedAtMs ?? nowMs;
      const events = (this.#node.tree.registry.read(eventsView)?.value ?? [])
        .filter((e) => e.pod?.uid === trace.uid)
        .map(({ atMs, reason, fieldPath }) => ({ atMs, reason, fieldPath: fieldPath ?? '' }));
      const facts = { kind, traceId, pod, beganAtMs, endedAtMs, causes, steps, calls, writes, left, events, error: trace.error || error };
      this.#o.sink(spansOf(facts, () => this.#spanId(trace)));
    } catch (thrown) {
      // Called from views, timers and the runtime's calls: none of them may hear of it.
      this.#node.log.warn({ err: String(thrown), uid: trace.uid }, 'tracing: one trace was left out');
    }
  }

  #spanId(trace: Open): string {
    return this.#o.sha256Hex(`${trace.traceId}/${trace.ids++}`).slice(0, 16);
  }
}

/** By the trace id alone, as OpenTelemetry's TraceIdRatioBased sampler: here its last 52 bits against the ratio. */
export function isSampled(traceId: string, ratePerMillion: number): boolean {
  if (ratePerMillion >= 1_000_000) return true;
  return Number.parseInt(traceId.slice(-13), 16) < (ratePerMillion / 1_000_000) * 2 ** 52;
}
