/** One entry of `spec.faults`. */
import type { CriMethod } from '../cri.ts';
import { CRI_METHODS } from '../runtime/cri/methods.ts';
import { didYouMean } from '../text/nearest.ts';
import { CALL_ACTIONS, FAULT_KIND_NAMES, FAULT_KINDS, GRPC_CODES } from './kinds.ts';
import { actorPattern } from './match.ts';
import type { MapReader } from './reader.ts';
import type { DiskCode, FaultKind, FaultSpec, ScenarioFault, Select } from './types.ts';

const METHODS = Object.keys(CRI_METHODS) as readonly CriMethod[];
const HINTS = ['created', 'started', 'stopped', 'deleted', 'oom', 'other'] as const;
const OPS = ['read', 'write', 'rename', 'sync', 'mkdir', 'symlink', 'chmod', 'remove'] as const;
const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'] as const;
const DISK_CODES: readonly DiskCode[] = ['EIO', 'ENOSPC', 'EROFS', 'EACCES', 'EXDEV', 'EMFILE'];
/** A fault without `delay` that needs one. */
const DELAY_DEFAULT_MS = 1_000;
const STEPS_MAX = 100_000;
const COUNT_MAX = 10_000;

/** A fault of any kind before its kind's own fields are known. */
type Common = Omit<ScenarioFault, keyof KindPart> & { probability: number; times?: number; select: Select };
type KindPart = { kind: FaultKind };
type Spec = FaultSpec extends infer F ? (F extends FaultSpec ? Omit<F, 'probability' | 'times' | 'select'> : never) : never;

export function decodeFault(r: MapReader, o: { index: number; line: number; target: 'live' | 'simulation' }): ScenarioFault | undefined {
  if (!r.has('kind')) {
    r.get('kind');
    r.wrong('kind', `is missing; it must be one of ${FAULT_KIND_NAMES.join(', ')}`);
    return undefined;
  }
  const kind = r.word('kind', FAULT_KIND_NAMES);
  if (kind === undefined) return undefined;
  const facts = FAULT_KINDS[kind];
  if (o.target === 'live' && facts.where === 'simulation') {
    r.wrong('kind', `${kind} is only possible in the simulation: ${facts.whyNot ?? ''}`);
    return undefined;
  }
  const action = facts.actions === undefined ? undefined : actionOf(r, facts.actions);
  const spec = kindFields(r, kind, action ?? '');
  const common = commonFields(r, { ...o, lasts: facts.lasts });
  const select = selectOf(r, kind);
  r.finish((name) => elsewhere(name, kind, action));
  if (facts.actions !== undefined && action === undefined) return undefined;
  return { ...common, select, ...spec } as ScenarioFault;
}

function actionOf(r: MapReader, actions: readonly string[]): string | undefined {
  if (!r.has('action')) {
    r.get('action');
    r.wrong('action', `is missing; it must be one of ${actions.join(', ')}`);
    return undefined;
  }
  return r.word('action', actions);
}

/** Why a field that exists is wrong for this fault. */
function elsewhere(name: string, kind: FaultKind, action: string | undefined): string | undefined | null {
  const facts = FAULT_KINDS[kind];
  if (facts.fields.includes(name)) return action === undefined ? null : `has no effect with action ${action}`;
  if (name === 'for') return `has no effect: ${kind} happens in one instant`;
  if (name === 'action') return `has no effect: ${kind} has no actions`;
  if (name === 'steps') return 'is only possible in the simulation';
  if (FAULT_KIND_NAMES.some((k) => FAULT_KINDS[k].fields.includes(name))) return `is no field of ${kind}`;
  if (FAULT_KIND_NAMES.some((k) => (FAULT_KINDS[k].select as readonly string[]).includes(name)))
    return `belongs below select: select.${name}`;
  return undefined;
}

function commonFields(r: MapReader, o: { index: number; line: number; lasts: boolean; target: 'live' | 'simulation' }): Common {
  const name = r.text('name');
  const probability = r.number('probability', { min: 0, max: 1 });
  const times = o.lasts ? r.number('times', { min: 1, max: COUNT_MAX, whole: true }) : undefined;
  const nodes = r.texts('nodes');
  const atMs = r.duration('at');
  const after = r.text('after');
  const forMs = o.lasts ? r.duration('for', { minMs: 1 }) : undefined;
  const everyMs = r.duration('every', { minMs: 1 });
  const count = r.number('count', { min: 1, max: COUNT_MAX, whole: true });
  const steps = o.target === 'simulation' ? r.number('steps', { min: 0, max: STEPS_MAX, whole: true }) : undefined;
  if (count !== undefined && everyMs === undefined && !r.has('every')) r.wrong('count', 'has no effect without every');
  if (everyMs !== undefined && o.lasts) {
    if (forMs === undefined && !r.has('for')) r.wrong('every', 'needs for: how long each of its windows lasts');
    else if (forMs !== undefined && forMs > everyMs) r.wrong('every', 'must not be shorter than for: windows of one fault do not overlap');
  }
  return {
    name: name ?? `fault-${o.index + 1}`,
    line: o.line,
    nodes: nodes ?? [],
    probability: probability ?? 1,
    atMs: atMs ?? 0,
    steps: steps ?? 0,
    select: {},
    ...(times === undefined ? {} : { times }),
    ...(after === undefined ? {} : { after }),
    ...(forMs === undefined ? {} : { forMs }),
    ...(everyMs === undefined ? {} : { everyMs }),
    ...(count === undefined ? {} : { count }),
  };
}

function delayOf(r: MapReader, wanted: boolean): number {
  return wanted ? (r.duration('delay', { minMs: 1 }) ?? DELAY_DEFAULT_MS) : 0;
}

function kindFields(r: MapReader, kind: FaultKind, action: string): Spec {
  const call = CALL_ACTIONS.find((a) => a === action) ?? 'error';
  const waits = action === 'delay' || action === 'late-effect';
  switch (kind) {
    case 'cri':
      return { kind, action: call, delayMs: delayOf(r, waits), code: action === 'error' ? grpcCode(r) : GRPC_CODES.Unknown };
    case 'api.call':
      return {
        kind,
        action: call,
        delayMs: delayOf(r, waits),
        status: (action === 'error' ? r.number('status', { min: 400, max: 599, whole: true }) : undefined) ?? 500,
      };
    case 'hints':
      return {
        kind,
        action: (['drop', 'duplicate', 'reorder', 'delay'] as const).find((a) => a === action) ?? 'drop',
        delayMs: delayOf(r, action === 'delay'),
      };
    case 'mailbox':
      return {
        kind,
        action: (['drop', 'delay', 'reorder'] as const).find((a) => a === action) ?? 'drop',
        delayMs: delayOf(r, action === 'delay'),
      };
    case 'api.watch':
      return { kind, action: (['silence', 'truncate', 'close'] as const).find((a) => a === action) ?? 'silence' };
    case 'http.down':
      return { kind, action: (['unreachable', 'error', 'garbage'] as const).find((a) => a === action) ?? 'error' };
    case 'disk.slow':
      return { kind, delayMs: delayOf(r, true) };
    case 'disk.error':
      return { kind, code: r.word('code', DISK_CODES) ?? 'EIO' };
    case 'clock.jump': {
      const byMs = jump(r);
      return { kind, byMs };
    }
    case 'pressure.memory':
    case 'pressure.disk':
      return { kind, availableBytes: required(r, 'available', r.quantity('available')) };
    case 'actor.kill':
      return { kind, pick: r.word('pick', ['one', 'all'] as const) ?? 'one' };
    case 'node.kill':
      return { kind, action: action === 'power' ? 'power' : 'process', downMs: r.duration('down') ?? 0 };
    case 'node.stop':
      return { kind, downMs: r.duration('down') ?? 0 };
    case 'container.exit':
      return { kind, exitCode: r.number('exitCode', { min: 0, max: 255, whole: true }) ?? 1, reason: r.text('reason') ?? '' };
    case 'hints.cut':
    case 'runtime.down':
    case 'network.down':
    case 'api.partition':
    case 'disk.full':
    case 'disk.deaf':
    case 'watch.break':
    case 'container.remove':
    case 'sandbox.stop':
      return { kind };
  }
}

function required(r: MapReader, name: string, value: number | undefined): number {
  if (value === undefined && !r.has(name)) r.wrong(name, 'is missing');
  return value ?? 0;
}

/** Forwards or backwards, at most a year. */
function jump(r: MapReader): number {
  const limitMs = 8_760 * 3_600_000;
  return required(r, 'by', r.duration('by', { minMs: -limitMs, maxMs: limitMs }));
}

/** By name, or by number. */
function grpcCode(r: MapReader): number {
  const node = r.get('code');
  if (node === undefined) return GRPC_CODES.Unavailable;
  if ('value' in node && typeof node.value === 'number') return r.number('code', { min: 1, max: 16, whole: true }) ?? GRPC_CODES.Unknown;
  const name = r.word('code', Object.keys(GRPC_CODES) as (keyof typeof GRPC_CODES)[]);
  return name === undefined ? GRPC_CODES.Unknown : GRPC_CODES[name];
}

function selectOf(r: MapReader, kind: FaultKind): Select {
  const facts = FAULT_KINDS[kind];
  const s = r.map('select');
  if (s === undefined) return {};
  const select: Select = {};
  const may = (name: keyof Select): boolean => facts.select.includes(name);
  const put = <K extends keyof Select>(name: K, value: Select[K] | undefined): void => {
    if (value !== undefined) select[name] = value;
  };
  if (may('methods')) put('methods', s.words('methods', METHODS));
  if (may('hints')) put('hints', s.words('hints', HINTS));
  if (may('namespaces')) put('namespaces', s.texts('namespaces'));
  if (may('pods')) put('pods', s.texts('pods'));
  if (may('containers')) put('containers', s.texts('containers'));
  if (may('actors')) put('actors', s.texts('actors')?.map(actorPattern));
  if (may('lanes')) put('lanes', s.words('lanes', ['control', 'data'] as const));
  if (may('events')) put('events', s.texts('events'));
  if (may('paths')) put('paths', s.texts('paths'));
  if (may('ops')) put('ops', s.words('ops', OPS));
  if (may('verbs')) put('verbs', s.words('verbs', VERBS));
  if (may('resources')) put('resources', s.texts('resources'));
  if (kind === 'mailbox' && select.actors === undefined && select.events === undefined && !s.has('actors') && !s.has('events')) {
    s.wrong('', 'a mailbox fault must name actors or events; every message of a node is no target');
  }
  s.finish((name) => {
    if (facts.select.length === 0) return `unknown field: ${kind} selects nothing`;
    const elsewhereKnown = FAULT_KIND_NAMES.filter((k) => (FAULT_KINDS[k].select as readonly string[]).includes(name));
    if (elsewhereKnown.length > 0) return `is nothing that ${kind} selects by; it has ${facts.select.join(', ')}`;
    if (name === 'nodes') return 'belongs one level up, beside select';
    return `unknown field${didYouMean(name, facts.select)}; ${kind} has ${facts.select.join(', ')}`;
  });
  return select;
}
