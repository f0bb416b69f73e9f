/** From what is known of a pod's start or stop to the spans of one trace. Pure. */

import { podManagerAddr } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { podConfigAddr } from '@actorlet/kubelet/machines/pods/podConfig/messages.ts';
import type { Cause } from '@actorlet/kubelet/machines/supervision/address.ts';
import { CRI_METHODS } from '@actorlet/kubelet/machines/wire/criMethods.ts';
import type { Attributes, PodTrace, Span, TracedCall, TracedEvent, WorkerStep } from './model.ts';

/** Paths of the actors that read pods: `node/pods/sources/file` and its siblings. */
const SOURCES = `${podConfigAddr.path.slice(0, podConfigAddr.path.lastIndexOf('/'))}/sources/`;

/** What a worker does in a state, where its name does not say it. */
const STEP_NAMES: Readonly<Record<string, string>> = {
  'syncing.mountingVolumes': 'volumes',
  'syncing.creatingSandbox': 'pod sandbox',
  'syncing.inspecting': 'inspect pod',
  'terminating.inspecting': 'inspect pod',
  'terminating.stopping': 'stop containers',
  'terminating.verifying': 'verify stop',
  terminated: 'volumes teardown',
};
/** The worker does nothing of its own in these; its containers may. */
const AT_REST: ReadonlySet<string> = new Set(['syncing.settled', 'syncing.deciding', 'finished']);

const GRPC_CODES = [
  'OK',
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
  'UNAUTHENTICATED',
] as const;

type Part = Omit<Span, 'traceId' | 'spanId' | 'parentSpanId'> & { spanId?: string };

/** The root first. `newId` gives the ids of all spans but those of runtime calls, which have theirs already. */
export function spansOf(trace: PodTrace, newId: () => string): Span[] {
  const decided = decisionParts(trace.causes);
  const steps = stepParts(trace);
  const events = trace.events.filter((e) => e.atMs >= trace.beganAtMs && e.atMs <= trace.endedAtMs);
  const pulls = pullParts(events, trace.endedAtMs);
  const writes = trace.writes.map((w) =>
    part('status write', w.startMs, w.endMs ?? trace.endedAtMs, {
      kind: 'client',
      error: w.failed ? 'the API server did not take it' : '',
    }),
  );
  const calls = trace.calls.map((call) => callPart(call, trace.endedAtMs));
  const parts = [...decided, ...steps, ...pulls, ...writes];
  const startMs = Math.min(trace.beganAtMs, ...parts.map((p) => p.startMs));
  const endMs = Math.max(trace.endedAtMs, startMs, ...parts.map((p) => p.endMs), ...calls.map((c) => c.endMs));
  const { traceId } = trace;
  const rootId = newId();
  const root: Span = {
    ...part(rootName(trace), startMs, endMs, { attributes: podAttributes(trace), error: trace.error }),
    ...{ traceId, spanId: rootId, parentSpanId: '' },
    events: events.map(eventOf),
  };
  const named = (p: Part, parentSpanId: string): Span => ({ ...p, traceId, parentSpanId, spanId: p.spanId ?? newId() });
  const withinRoot = parts.map((p) => named(p, rootId));
  // The innermost span that was going on when the call began: a pull before the step around it.
  const outer = withinRoot.slice(decided.length, decided.length + steps.length + pulls.length).reverse();
  const holder = (c: Part): string => outer.find((o) => o.startMs <= c.startMs && c.endMs <= o.endMs)?.spanId ?? rootId;
  return [root, ...withinRoot, ...calls.map((c) => named(c, holder(c)))];
}

function part(name: string, startMs: number, endMs: number, o: Partial<Pick<Part, 'kind' | 'attributes' | 'error'>> = {}): Part {
  // A wall clock may be set back in between.
  return { name, startMs, endMs: Math.max(startMs, endMs), kind: 'internal', attributes: {}, events: [], error: '', ...o };
}

/** A worker that finds its pod running has started nothing: the daemon was restarted. */
function rootName({ kind, calls }: PodTrace): string {
  if (kind === 'stop') return 'pod stop';
  return calls.some((c) => CRI_METHODS[c.method].mutating) ? 'pod start' : 'pod adoption';
}

function podAttributes({ pod, left }: PodTrace): Attributes {
  return {
    'k8s.pod.uid': pod.uid,
    ...(pod.name === '' ? {} : { 'k8s.pod.name': pod.name, 'k8s.namespace.name': pod.namespace }),
    ...(pod.source === '' ? {} : { 'actorlet.pod.source': pod.source }),
    ...(left === 0 ? {} : { 'actorlet.left_out': left }),
  };
}

/** Source and admission, as the causes tell them: a source read the pod, config passed it on, the pod manager took it up. */
function decisionParts(causes: readonly Cause[]): Part[] {
  const taken = causes.findLastIndex((c) => c.by === podManagerAddr.path);
  const passed = causes.slice(0, Math.max(0, taken)).findLastIndex((c) => c.by === podConfigAddr.path);
  const read = causes.slice(0, Math.max(0, passed)).findLastIndex((c) => c.by.startsWith(SOURCES));
  const at = (i: number): Cause | undefined => (i < 0 ? undefined : causes[i]);
  const [source, config, manager] = [at(read), at(passed), at(taken)];
  if (config === undefined || manager === undefined) return [];
  const admission = part('admission', config.atMs, manager.atMs);
  if (source === undefined) return [admission];
  const name = source.by.slice(SOURCES.length);
  return [part('source', source.atMs, config.atMs, { attributes: { 'actorlet.pod.source': name } }), admission];
}

function stepParts({ steps, endedAtMs }: PodTrace): Part[] {
  return steps.flatMap((step, i) => {
    if (AT_REST.has(step.state)) return [];
    return [part(stepName(step), step.atMs, steps[i + 1]?.atMs ?? endedAtMs, { attributes: stepAttributes(step) })];
  });
}
function stepName({ state }: WorkerStep): string {
  return STEP_NAMES[state] ?? state;
}
function stepAttributes({ state, reason }: WorkerStep): Attributes {
  return { 'actorlet.worker.state': state, ...(reason === '' ? {} : { 'actorlet.worker.reason': reason }) };
}

/** From `Pulling` to the next word about the same container. */
function pullParts(events: readonly TracedEvent[], endedAtMs: number): Part[] {
  return events.flatMap((begun, i) => {
    if (begun.reason !== 'Pulling') return [];
    const end = events.slice(i + 1).find((e) => e.fieldPath === begun.fieldPath && PULL_ENDS.has(e.reason));
    const error = end === undefined || end.reason === 'Pulled' ? '' : end.reason;
    return [part('image pull', begun.atMs, end?.atMs ?? endedAtMs, { attributes: containerOf(begun), error })];
  });
}
const PULL_ENDS: ReadonlySet<string> = new Set(['Pulled', 'Failed', 'BackOff', 'Pulling']);

function callPart({ spanId, method, about, startMs, endMs, code }: TracedCall, traceEndMs: number): Part {
  const service = `runtime.v1.${CRI_METHODS[method].service === 'image' ? 'ImageService' : 'RuntimeService'}`;
  const attributes: Attributes = {
    ...{ 'rpc.system': 'grpc', 'rpc.service': service, 'rpc.method': method },
    ...(about === '' ? {} : { [aboutKey(method)]: about }),
    ...(endMs === null ? { 'actorlet.unfinished': true } : { 'rpc.grpc.status_code': code }),
  };
  const error = code === 0 ? '' : (GRPC_CODES[code] ?? String(code));
  return { ...part(`${service}/${method}`, startMs, endMs ?? traceEndMs, { kind: 'client', attributes, error }), spanId };
}
function aboutKey(method: TracedCall['method']): string {
  if (CRI_METHODS[method].service === 'image') return 'container.image.name';
  if (method === 'CreateContainer') return 'k8s.container.name';
  return method.includes('Sandbox') ? 'actorlet.sandbox.id' : 'container.id';
}

function eventOf(e: TracedEvent): Span['events'][number] {
  return { atMs: e.atMs, name: e.reason, attributes: containerOf(e) };
}
/** `spec.containers{web}`. */
function containerOf({ fieldPath }: TracedEvent): Attributes {
  const name = /\{([^}]*)\}$/.exec(fieldPath)?.[1] ?? '';
  return name === '' ? {} : { 'k8s.container.name': name };
}
