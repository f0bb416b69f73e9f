/**
 * Stages of KWOK as rules of a fleet. A Stage says what a controller writes into the status of a node or pod. Here a node agent decides
 * that by itself, so a Stage of a usual kind becomes what a container does and when. Any other is refused, with its reason. Pure.
 */
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { objectsOf } from '../spec/objects.ts';
import type { PodRule, Requirement, RuleDelay } from './rules.ts';

const API_GROUP = 'kwok.x-k8s.io/';

export interface Stages {
  rules: PodRule[];
  /** The shortest of all; null: none says it. */
  heartbeatMs: number | null;
  /** Stages that are accepted, and what of them has no effect. */
  notes: string[];
  /** Stages that are refused, and why. */
  refused: string[];
}

type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = (value: unknown): Fields => (isRecord(value) ? value : {});
const listOf = (value: unknown): Fields[] => (Array.isArray(value) ? value.filter(isRecord) : []);

class Refusal extends Error {}

/** Never throws. */
export function stagesOf(text: string): Stages {
  const found: Stages = { rules: [], heartbeatMs: null, notes: [], refused: [] };
  try {
    const objects = objectsOf(text);
    if (objects.length === 0) found.refused.push('holds no Stage');
    for (const object of objects) {
      const { name } = object.metadata;
      try {
        if (object.kind !== 'Stage' || !object.apiVersion?.startsWith(API_GROUP)) throw new Refusal(`is no Stage of ${API_GROUP}*`);
        stageOf(name, fieldsOf(object.spec), found);
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        found.refused.push(`${object.kind} ${name}: ${error.message}`);
      }
    }
  } catch (error) {
    found.refused.push(messageOf(error));
  }
  return found;
}

function stageOf(name: string, spec: Fields, found: Stages): void {
  const { kind } = fieldsOf(spec.resourceRef);
  if (kind !== 'Node' && kind !== 'Pod') throw new Refusal(`is about ${String(kind)}; a fleet has nodes and pods`);
  if (!isRecord(spec.selector)) throw new Refusal('has no selector, so it selects nothing');
  const { requirements, phase, ready } = selectionOf(spec.selector);
  const delay = delayOf(fieldsOf(spec.delay));
  if (kind === 'Node') {
    if (ready === undefined) throw new Refusal('makes a node change its conditions; a step (stop, inject) does that to a node agent');
    statusOf(spec, NODE_FIELDS);
    if (ready === 'notIn') return void noteDelay(found, name, delay);
    const ms = delay?.fromMs ?? 0;
    if (ms > 0) found.heartbeatMs = Math.min(ms, found.heartbeatMs ?? ms);
    return;
  }
  const effect = effectOf(spec, phase);
  if (effect === null) return void noteDelay(found, name, delay);
  const weightAnnotation = annotationIn(spec.weightFrom);
  const { about, which, exit, exitFrom } = effect;
  const timed = { start: 'start', end: 'run', stop: 'stop' } as const;
  found.rules.push({
    ...{ about, which, requirements },
    weight: typeof spec.weight === 'number' ? spec.weight : 0,
    ...(weightAnnotation === undefined ? {} : { weightAnnotation }),
    ...(exit === undefined ? {} : { exit }),
    ...(exitFrom === undefined ? {} : { exitFrom }),
    [timed[about]]: delay ?? { fromMs: 0, toMs: 0 },
  });
}

/** What a node agent does by itself takes it no time of the Stage. */
function noteDelay(found: Stages, name: string, delay: RuleDelay | undefined): void {
  if (delay !== undefined) found.notes.push(`Stage ${name}: its delay has no effect, a node agent does this by itself`);
}

interface Effect {
  about: 'start' | 'end' | 'stop';
  which: 'every' | 'init' | 'main';
  exit?: number;
  exitFrom?: NonNullable<PodRule['exitFrom']>;
}

/** Null: a node agent does it by itself. */
function effectOf(spec: Fields, from: string): Effect | null {
  const deletes = [fieldsOf(spec.next), ...listOf(spec.steps)].some((of) => of.delete === true);
  if (deletes) return { about: 'stop', which: 'every' };
  const template = statusOf(spec, POD_FIELDS);
  const ofInit = from === 'Pending' && template.includes('initContainerStatuses:');
  switch (/^[ \t]*phase:\s*"?(\w+)/m.exec(template)?.[1]) {
    case 'Running':
      return { about: 'start', which: 'main' };
    case 'Succeeded':
      return { about: 'end', which: 'main', exit: 0 };
    case 'Failed':
      return { about: 'end', which: ofInit ? 'init' : 'main', exit: exitIn(template), exitFrom: exitAnnotations(template) };
    case undefined:
    case 'Pending':
      break;
    default:
      throw new Refusal('sets a phase that is none of Pending, Running, Succeeded, Failed');
  }
  if (!ofInit) return null;
  return /^[ \t]*terminated:/m.test(template) ? { about: 'end', which: 'init', exit: 0 } : { about: 'start', which: 'init' };
}

/** Fields of a status. A node agent fills them by itself; a Stage that writes anything else would have no effect. */
const CONTAINERS = ['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses', 'resourceClaimStatuses'];
const POD_PLACE = ['hostIP', 'hostIPs', 'podIP', 'podIPs', 'nominatedNodeName', 'startTime', 'observedGeneration'];
const POD_FIELDS = ['phase', 'conditions', 'message', 'reason', 'qosClass', 'resize', ...CONTAINERS, ...POD_PLACE];
const NODE_HAS = ['addresses', 'allocatable', 'capacity', 'daemonEndpoints', 'features', 'images', 'nodeInfo', 'runtimeHandlers'];
const NODE_FIELDS = ['phase', 'conditions', 'config', 'volumesAttached', 'volumesInUse', ...NODE_HAS];

/** What the Stage writes into the status. */
function statusOf(spec: Fields, fields: readonly string[]): string {
  const { statusTemplate, patches } = fieldsOf(spec.next);
  const written = [...listOf(patches), ...listOf(spec.steps).map((step) => fieldsOf(step.patch))].map((patch) => patch.template);
  const templates = [statusTemplate, ...written].flatMap((text) => (typeof text === 'string' && text !== '' ? [text] : []));
  if (templates.length === 0)
    throw new Refusal('changes no status and deletes nothing; finalizers, events and other objects are not made here');
  for (const keys of templates.map(keysOf)) {
    const other = keys.filter((key) => !fields.includes(key));
    if (other.length > 0) throw new Refusal(`writes ${other.join(', ')}, which no node agent does`);
    if (keys.length === 0)
      throw new Refusal('has a template without fields that can be read here; write one field a line, as `phase: Running`');
  }
  return templates.join('\n');
}

/** The outermost keys of a template, below `status:` where that stands around them. */
function keysOf(template: string): string[] {
  const lines = template.replace(/^\s*status:[ \t]*\n/, '').matchAll(/^( *)"?([A-Za-z]\w*)"?:(?:\s|$)/gm);
  const keys = Array.from(lines, ([, indent = '', key = '']) => ({ depth: indent.length, key }));
  const outermost = keys.reduce((least, { depth }) => Math.min(least, depth), Number.POSITIVE_INFINITY);
  return keys.flatMap(({ depth, key }) => (depth === outermost ? [key] : []));
}

/** As a number, or as the default of the usual Stages that fail. */
function exitIn(template: string): number {
  const [, code] = /exitCode:\s*(\d+)/.exec(template) ?? /\$defaultExitCode\s*:=\s*(\d+)/.exec(template) ?? [];
  return code === undefined || Number(code) === 0 ? 1 : Number(code) & 255;
}

/** Annotations that the usual Stages that fail look into, by the ends of their keys. */
const EXIT_KEYS = { code: 'exit-code', reason: 'reason', container: 'container-name' } as const;

function exitAnnotations(template: string): NonNullable<PodRule['exitFrom']> {
  const keys = [...template.matchAll(/index\s+\$annotations\s+"([^"]{1,317})"/g)].map(([, key = '']) => key);
  return Object.fromEntries(
    Object.entries(EXIT_KEYS).flatMap(([of, end]) => keys.filter((key) => key.endsWith(`/${end}`)).map((key) => [of, key])),
  );
}

const OF_METADATA = /^\.metadata\.(label|annotation)s(?:\["([^"\]]+)"\]|\.([\w-]+))$/;
const READY = '.status.conditions.[] | select( .type == "Ready" ) | .status';
const OWNER_KIND = '.metadata.ownerReferences.[].kind';
/** States of an object. What a Stage does tells in which of them it does it. */
const OF_STATE = /^\.(?:status\.|metadata\.(?:deletionTimestamp|finalizers)$)/;
const OPERATORS: readonly string[] = ['In', 'NotIn', 'Exists', 'DoesNotExist'];

interface Selected {
  requirements: Requirement[];
  /** The one phase in which the pod must be; '': none is said. */
  phase: string;
  /** Whether the condition Ready must be True; undefined: nothing is said. */
  ready: 'in' | 'notIn' | undefined;
}

function selectionOf(selector: Fields): Selected {
  const requirements: Requirement[] = [];
  for (const [field, of] of [['matchLabels', 'label'] as const, ['matchAnnotations', 'annotation'] as const]) {
    for (const [key, value] of Object.entries(fieldsOf(selector[field]))) {
      requirements.push({ of, key, operator: 'In', values: [String(value)] });
    }
  }
  const selected: Selected = { requirements, phase: '', ready: undefined };
  for (const expression of listOf(selector.matchExpressions)) expressed(isRecord(expression.jq) ? expression.jq : expression, selected);
  return selected;
}

function expressed({ key, operator, values }: Fields, selected: Selected): void {
  if (typeof key !== 'string') throw new Refusal('selects by an expression that is not jq');
  if (typeof operator !== 'string' || !OPERATORS.includes(operator)) throw new Refusal(`selects by the operator ${String(operator)}`);
  const texts = Array.isArray(values) ? values.map(String) : [];
  const of = { operator: operator as Requirement['operator'], values: texts };
  const [, where, quoted, plain] = OF_METADATA.exec(key) ?? [];
  if (where !== undefined) selected.requirements.push({ of: where as 'label' | 'annotation', key: quoted ?? plain ?? '', ...of });
  else if (key === OWNER_KIND) selected.requirements.push({ of: 'ownerKind', key: '', ...of });
  else if (key === READY && texts.includes('True')) selected.ready = operator === 'In' ? 'in' : 'notIn';
  else if (!OF_STATE.test(key)) throw new Refusal(`selects by ${key}, which rules of a fleet do not look at`);
  if (key === '.status.phase' && operator === 'In' && texts.length === 1) selected.phase = texts[0] ?? '';
}

function delayOf(delay: Fields): (RuleDelay & { fromMs: number; toMs: number }) | undefined {
  const ms = (value: unknown): number | undefined => (typeof value === 'number' && value >= 0 ? value : undefined);
  const [from, jitter] = [ms(delay.durationMilliseconds), ms(delay.jitterDurationMilliseconds)];
  const fromAnnotation = annotationIn(delay.durationFrom);
  const toAnnotation = annotationIn(delay.jitterDurationFrom);
  if (from === undefined && jitter === undefined && fromAnnotation === undefined && toAnnotation === undefined) return undefined;
  const fromMs = from ?? 0;
  const toMs = jitter ?? fromMs;
  return {
    // The second length counts alone where it is the shorter one.
    ...(toMs < fromMs ? { fromMs: toMs, toMs } : { fromMs, toMs }),
    ...(fromAnnotation === undefined ? {} : { fromAnnotation }),
    ...(toAnnotation === undefined ? {} : { toAnnotation }),
  };
}

/** The key of an annotation that a value is taken from. */
function annotationIn(from: unknown): string | undefined {
  if (!isRecord(from)) return undefined;
  const expression = isRecord(from.jq) ? from.jq.expression : from.expressionFrom;
  // A container ends at the end of its grace period anyway.
  if (expression === '.metadata.deletionTimestamp') return undefined;
  const [, where, key] = typeof expression === 'string' ? (OF_METADATA.exec(expression) ?? []) : [];
  if (where === 'annotation' && key !== undefined) return key;
  throw new Refusal(`takes a value from ${String(expression ?? 'an expression that is not jq')}, and here only an annotation may say it`);
}
