/** Checks the frames of a recording: the file may be of anybody. What does not fit is no frame. Pure. */
import type { RecordingFrame } from './frames.ts';

type Check = (value: unknown) => boolean;

const isText: Check = (v) => typeof v === 'string';
/** Sums of two are still times that a Date can hold. */
const NUMBER_MAX = 4e15;
const isNumber: Check = (v) => typeof v === 'number' && Math.abs(v) <= NUMBER_MAX;
const isTruth: Check = (v) => typeof v === 'boolean';
const listOf =
  (one: Check): Check =>
  (v) =>
    Array.isArray(v) && v.every(one);
const orNull =
  (check: Check): Check =>
  (v) =>
    v === null || check(v);
/** An object with at least these fields. */
const shape =
  (fields: Readonly<Record<string, Check>>): Check =>
  (v) =>
    typeof v === 'object' && v !== null && Object.entries(fields).every(([key, check]) => check(Reflect.get(v, key)));
const optional =
  (check: Check): Check =>
  (v) =>
    v === undefined || check(v);

const cause = shape({ atMs: isNumber, by: isText, what: isText });
const mail = shape({
  depth: isNumber,
  depthMax: isNumber,
  oldestAtMs: isNumber,
  coalesced: isNumber,
  dropped: isNumber,
  suspended: isTruth,
});
const actorRow = shape({
  path: isText,
  parent: isText,
  name: isText,
  type: (v) => v === 'actor' || v === 'supervisor' || v === 'dynamic',
  lifecycle: isText,
  state: isText,
  reason: isText,
  message: isText,
  sinceMs: isNumber,
  restarts: isNumber,
  incarnation: isNumber,
  ok: isTruth,
  mail: orNull(mail),
  error: isText,
  pod: isText,
  lost: optional(isTruth),
});
const podRow = shape({
  uid: isText,
  namespace: isText,
  name: isText,
  source: isText,
  phase: isText,
  ready: isNumber,
  containers: isNumber,
  restarts: isNumber,
  worker: isText,
  workerState: isText,
  reason: isText,
  message: isText,
  podIP: isText,
  removed: isTruth,
  rejected: isTruth,
  seenAtMs: isNumber,
});
const judged = listOf(shape({ uid: isText, name: isText, reason: isText, message: isText }));
const decisions = shape({
  pressures: listOf(shape({ name: isText, present: isTruth })),
  thresholds: listOf(shape({ key: isText, met: isTruth, sinceMs: isNumber })),
  refused: judged,
  evicted: judged,
  cpus: orNull(shape({ shared: isText, alone: listOf(shape({ pod: isText, container: isText, cpus: isText })) })),
  claims: optional(listOf(shape({ claim: isText, pods: listOf(isText), words: isText }))),
  numa: optional(listOf(shape({ pod: isText, container: isText, chosen: isText, outcome: isText, hints: listOf(isText) }))),
  devices: listOf(shape({ resource: isText, capacity: isText, allocatable: isText })),
  images: listOf(shape({ id: isText, sizeBytes: isNumber, unusedMs: isNumber, foundMs: isNumber, pinned: isTruth })),
});
const container = shape({
  name: isText,
  init: isTruth,
  state: isText,
  reason: isText,
  message: isText,
  restartCount: isNumber,
  nextStartAtMs: optional(isNumber),
  image: isText,
  ready: isTruth,
  startedAtMs: isNumber,
  lastExit: isText,
});
const event = shape({
  type: isText,
  reason: isText,
  message: isText,
  count: isNumber,
  atMs: isNumber,
  pod: optional(shape({ uid: isText, namespace: isText, name: isText })),
});
const detail = shape({
  namespace: isText,
  name: isText,
  source: isText,
  seenAtMs: isNumber,
  way: optional(listOf(shape({ atMs: isNumber, is: isText, by: isText }))),
  phase: isText,
  reason: isText,
  message: isText,
  worker: orNull(shape({ phase: isText, state: isText, reason: isText, message: isText, sinceMs: isNumber })),
  conditions: listOf(shape({ type: isText, status: isText, sinceMs: isNumber, reason: isText, message: isText })),
  containers: listOf(container),
  probes: listOf(shape({ container: isText, type: isText, result: isText })),
  volumes: listOf((v) => typeof v === 'object' && v !== null && Object.values(v).every((f) => typeof f !== 'object')),
  causes: listOf(cause),
  why: listOf(isText),
  events: listOf(event),
});
const packedCause: Check = (v) => Array.isArray(v) && v.length === 3 && v.every(isNumber);
const packedEntry: Check = (v) =>
  Array.isArray(v) && (v.length === 6 || (v.length === 7 && listOf(packedCause)(v[6]))) && v.slice(0, 6).every(isNumber);
const packedCall: Check = (v) =>
  Array.isArray(v) && v.length === 6 && [0, 1, 2, 5].every((i) => isText(v[i])) && isNumber(v[3]) && orNull(isNumber)(v[4]);

const FRAMES: Readonly<Record<RecordingFrame['t'], Check>> = {
  run: shape({ v: isNumber, atMs: isNumber, node: isText, version: isText, startedAtMs: isNumber }),
  end: shape({ atMs: isNumber }),
  key: shape({ atMs: isNumber, actors: listOf(actorRow), pods: listOf(podRow), decisions }),
  chart: shape({ kind: isText, chart: isChart }),
  e: shape({ atMs: isNumber, base: isNumber, strings: listOf(isText), entries: listOf(packedEntry), lost: isNumber }),
  pod: shape({ atMs: isNumber, uid: isText, row: orNull(podRow), detail: orNull(detail) }),
  calls: shape({ calls: listOf(packedCall) }),
};

/** Levels of states in one chart. */
const CHART_DEPTH_MAX = 20;

function isChart(value: unknown): boolean {
  return shape({ id: isText, root: (v) => isState(v, CHART_DEPTH_MAX) })(value);
}
function isState(value: unknown, depth: number): boolean {
  const texts = listOf(isText);
  const transition = shape({ id: isText, event: isText, label: isText, guard: isText, targets: texts, actions: texts, reenter: isTruth });
  return (
    depth > 0 &&
    shape({
      id: isText,
      key: isText,
      type: isText,
      initial: isText,
      reason: isText,
      message: isText,
      entry: texts,
      exit: texts,
      invokes: listOf(shape({ id: isText, src: isText })),
      transitions: listOf(transition),
      states: listOf((v) => isState(v, depth - 1)),
    })(value)
  );
}

/** Null for what is no frame of a recording. */
export function decodeFrame(text: string): RecordingFrame | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const t: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, 't') : undefined;
  const check = typeof t === 'string' && Object.hasOwn(FRAMES, t) ? FRAMES[t as RecordingFrame['t']] : undefined;
  return check?.(value) === true ? (value as RecordingFrame) : null;
}
