/** One named check per field of a specification. All problems of a tree are reported together, each with its path. */
import { complete } from './policy.ts';
import type { ActorSpec, AnySpec, DynamicSpec, MailboxSpec, SupervisorSpec } from './types.ts';

type Check = (value: unknown) => string | null;
const record = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
const isNumber = (value: unknown, min: number): boolean => typeof value === 'number' && Number.isFinite(value) && value >= min;
const oneOf =
  (...allowed: string[]): Check =>
  (value) =>
    typeof value === 'string' && allowed.includes(value) ? null : `must be one of ${allowed.join(', ')}`;
const isFunction: Check = (value) => (typeof value === 'function' ? null : 'must be a function');

const validId: Check = (value) =>
  typeof value === 'string' && value !== '' && !value.includes('/') ? null : 'must be a non-empty string without "/"';
const validType = oneOf('actor', 'supervisor', 'dynamic');
const validRestart = oneOf('permanent', 'transient', 'temporary');
const validStrategy = oneOf('one_for_one', 'rest_for_one');
const validShutdown: Check = (value) => (value === 'brutal' || isNumber(value, 0) ? null : 'must be "brutal" or milliseconds >= 0');
const validIntensity: Check = (value) => {
  const { max, periodMs } = record(value);
  // An unlimited child says so with Infinity.
  const whole = max === Number.POSITIVE_INFINITY || (isNumber(max, 0) && Number.isInteger(max));
  if (!whole) return 'max must be an integer >= 0 or Infinity';
  return isNumber(periodMs, 1) ? null : 'periodMs must be >= 1';
};
const validBackoff: Check = (value) => {
  const { minMs, maxMs, factor, jitter } = record(value);
  if (!isNumber(minMs, 0)) return 'minMs must be >= 0';
  if (!isNumber(maxMs, 0) || Number(maxMs) < Number(minMs)) return 'maxMs must be >= minMs';
  if (!isNumber(factor, 1)) return 'factor must be >= 1';
  return isNumber(jitter, 0) ? null : 'jitter must be >= 0';
};
const validEscalate: Check = (value) =>
  value === 'parent' || isNumber(record(value).parkMs, 1) ? null : 'must be "parent" or {parkMs >= 1}';
const validReady: Check = (value) => {
  if (value === undefined) return null;
  const { when, timeoutMs } = record(value);
  if (typeof when !== 'function') return 'when must be a function';
  return isNumber(timeoutMs, 1) ? null : 'timeoutMs must be >= 1';
};
const validCount: Check = (value) =>
  value === undefined || (isNumber(value, 1) && Number.isInteger(value)) ? null : 'must be an integer >= 1';
const validMailbox: Check = (value) => {
  if (value === undefined) return null;
  const spec = record(value) as Partial<MailboxSpec<never>>;
  const { capacity, sliceMax, sliceMs, overflow } = spec;
  if (capacity !== undefined && !(isNumber(capacity, 1) && Number.isInteger(capacity))) return 'capacity must be an integer >= 1';
  if (sliceMax !== undefined && !(isNumber(sliceMax, 1) && Number.isInteger(sliceMax))) return 'sliceMax must be an integer >= 1';
  if (sliceMs !== undefined && !isNumber(sliceMs, 0)) return 'sliceMs must be >= 0';
  if (overflow !== undefined && !['mark-resync', 'reject', 'drop-oldest'].includes(overflow)) {
    return 'overflow must be one of mark-resync, reject, drop-oldest';
  }
  if (overflow === 'mark-resync' && spec.resync === undefined) return 'overflow mark-resync needs resync()';
  return null;
};

/** Every problem, as `path: field: what`. Empty when the tree can be built. */
export function specProblems(root: SupervisorSpec): string[] {
  const out: string[] = [];
  if (root.type !== 'supervisor') out.push(`${String(record(root).id)}: type: the root must be a supervisor`);
  if (typeof root.escalate === 'object') out.push(`${root.id}: escalate: the root has nothing above it; it must be "parent"`);
  visit(root, '', out);
  return out;
}

function visit(spec: AnySpec, parentPath: string, out: string[]): void {
  const path = parentPath === '' ? String(spec.id) : `${parentPath}/${String(spec.id)}`;
  const check = (field: string, fn: Check, value: unknown): void => {
    const problem = fn(value);
    if (problem !== null) out.push(`${path}: ${field}: ${problem}`);
  };
  check('id', validId, spec.id);
  check('type', validType, spec.type);
  const { restart, shutdownMs, intensity, backoff } = complete(spec);
  check('restart', validRestart, restart);
  check('shutdownMs', validShutdown, shutdownMs);
  check('intensity', validIntensity, intensity);
  check('backoff', validBackoff, backoff);
  if (spec.type === 'supervisor') visitSupervisor(spec, path, { out, check });
  else if (spec.type === 'dynamic') visitDynamic(spec, check);
  else if (spec.type === 'actor') visitActor(spec, check);
}

type RunCheck = (field: string, fn: Check, value: unknown) => void;

// biome-ignore lint/suspicious/noExplicitAny: the event type does not matter for validation.
function visitActor(spec: ActorSpec<any>, check: RunCheck): void {
  check('start', isFunction, spec.start);
  check('mailbox', validMailbox, spec.mailbox);
  check('ready', validReady, spec.ready);
  check('poisonMax', validCount, spec.poisonMax);
  // Nothing else has a mailbox that makes an actor again.
  check('passivate', (v) => (v === undefined ? null : 'only children of a dynamic supervisor sleep'), spec.passivate);
}

// biome-ignore lint/suspicious/noExplicitAny: the event type does not matter for validation.
function visitDynamic(spec: DynamicSpec<any>, check: RunCheck): void {
  check('mailbox', (v) => (v === undefined ? 'is required' : validMailbox(v)), spec.mailbox);
  check('childrenMax', validCount, spec.childrenMax);
  for (const field of ['route', 'starts', 'child'] as const) check(field, isFunction, spec[field]);
}

function visitSupervisor(spec: SupervisorSpec, path: string, env: { out: string[]; check: RunCheck }): void {
  env.check('strategy', validStrategy, spec.strategy);
  env.check('escalate', validEscalate, spec.escalate);
  if (!Array.isArray(spec.children)) {
    env.out.push(`${path}: children: must be a list`);
    return;
  }
  const seen = new Set<string>();
  for (const child of spec.children) {
    if (seen.has(child.id)) env.out.push(`${path}: children: the id "${child.id}" is used twice`);
    seen.add(child.id);
    visit(child, path, env.out);
  }
}
