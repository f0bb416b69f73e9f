/** Checks the frames of a recording: the file may be of anybody. What does not fit is no frame. Pure. */
import { type Check, isNumber, isText, isTruth, listOf, optional, orNull, shape, tuple } from './checks.ts';
import { CLOCK, FAULTS } from './facts/names.ts';
import { KEPT_BY_NAME } from './facts/views.ts';
import type { RecordingFrame } from './frames.ts';

const packedCause: Check = (v) => Array.isArray(v) && v.length === 3 && v.every(isNumber);
const packedEntry: Check = (v) =>
  Array.isArray(v) && (v.length === 6 || (v.length === 7 && listOf(packedCause)(v[6]))) && v.slice(0, 6).every(isNumber);
const packedCall: Check = (v) =>
  Array.isArray(v) && v.length === 6 && [0, 1, 2, 5].every((i) => isText(v[i])) && isNumber(v[3]) && orNull(isNumber)(v[4]);

const OWN_FACTS: Readonly<Record<string, Check>> = { [CLOCK]: isNumber, [FAULTS]: orNull(isNumber) };
const checkOf = (view: string): Check | undefined => (Object.hasOwn(OWN_FACTS, view) ? OWN_FACTS[view] : KEPT_BY_NAME.get(view)?.check);
/** One of a view that a newer daemon has is nothing that this one reads. */
const packedFact: Check = (v) => {
  if (!Array.isArray(v) || v.length < 3 || v.length > 4 || !isNumber(v[0]) || !isText(v[1]) || !isText(v[2])) return false;
  return v.length === 3 || checkOf(v[1] as string)?.(v[3]) !== false;
};
const packedMail = orNull(tuple(isNumber, isNumber, isNumber, isNumber, isNumber, isTruth));
const packedRow: Check = (v) => Array.isArray(v) && (v.length === 2 || (isWhole(v) && packedMail(v[12]))) && v.slice(0, 12).every(isNumber);
/** One that sleeps has a number more. */
const isWhole = (v: readonly unknown[]): boolean => v.length === 13 || (v.length === 14 && isNumber(v[13]));
const flag = optional(isTruth);

const FRAMES: Readonly<Record<RecordingFrame['t'], Check>> = {
  run: shape({ v: isNumber, atMs: isNumber, node: isText, version: isText, startedAtMs: isNumber }),
  end: shape({ atMs: isNumber }),
  chart: shape({ number: isNumber, chart: isChart }),
  e: shape({ atMs: isNumber, base: isNumber, strings: listOf(isText), entries: listOf(packedEntry), lost: isNumber }),
  f: shape({ atMs: isNumber, whole: flag, facts: listOf(packedFact) }),
  r: shape({ atMs: isNumber, base: isNumber, strings: listOf(isText), whole: flag, rows: listOf(packedRow) }),
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
