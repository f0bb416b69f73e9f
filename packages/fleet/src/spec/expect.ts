/** What a run of a fleet file must come to. */
import type { MapReader } from '@actorlet/faults/src/read/reader.ts';
import { parseLabelSelector } from '@actorlet/kubelet/machines/kube/read/labelSelector.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { didYouMean } from '@actorlet/kubelet/machines/text/nearest.ts';
import { RESOURCES, VERBS } from '../calls.ts';
import type { ApiSelection } from '../proxy/selection.ts';
import { where } from '../run/where.ts';
import { API_SELECT } from './apiFaults.ts';
import { fieldsIn } from './fields.ts';
import { EVENTS, EXPECT, MEASURES, OBJECTS, REQUESTS } from './table.ts';

export interface ObjectsSpec {
  apiVersion: string;
  kind: string;
  namespace?: string;
  name?: string;
  selector?: string;
}
export type Measure =
  /** Of this process. */
  | { what: 'nodesReady' | 'podsReady' }
  | { what: 'seconds'; of: 'nodeReady' | 'podReady' | 'podStart'; percentile: number }
  /** `VERB RESOURCE`, each perhaps `*`. */
  | { what: 'calls'; pattern: string }
  /** How many there are; or whose condition has that status; or the sum of a field. */
  | { what: 'objects'; of: ObjectsSpec; condition?: { type: string; status: string }; field?: string; where?: string }
  | { what: 'events'; of: EventsSpec }
  /** Of clients that came by the proxy. */
  | { what: 'requests'; of: ApiSelection; per: 'run' | 'minute' }
  | { what: 'leftBehind' };

export interface EventsSpec {
  reason?: string;
  type?: string;
  kind?: string;
  name?: string;
  namespace?: string;
}

export interface ExpectSpec {
  name: string;
  measure: Measure;
  atLeast?: number;
  atMost?: number;
  afterMs: number;
  /** Null: the end of the run. */
  withinMs: number | null;
  /** Instead of both: so long from the end of the last fault on, once that is known. */
  afterFaultsMs?: number;
  holds: 'once' | 'throughout';
}

const KINDS = [...Object.keys(MEASURES), 'objects', 'events', 'requests'];
/** Decided at the end of the run, where `within` is not said. */
const AT_END: readonly string[] = ['seconds', 'calls', 'requests'];
const PERCENTILE = 99;

export function decodeExpect(expected: MapReader): ExpectSpec[] {
  const measures = fieldsIn(expected, MEASURES);
  const {
    name,
    atLeast,
    percentile,
    condition,
    field,
    where: text,
    afterMs,
    withinMs,
    afterFaultsMs,
    holds,
    ...upper
  } = fieldsIn(expected, EXPECT);
  const objects = objectsIn(expected);
  const events = eventsIn(expected);
  const requests = requestsIn(expected);
  expected.finish();
  const given = KINDS.filter((kind) => expected.has(kind));
  const [kind, second] = given;
  if (kind === undefined) expected.wrong('', `needs one of ${KINDS.join(', ')}`);
  if (second !== undefined) expected.wrong(second, `stands beside ${kind}: one expectation is about one thing`);
  const { nodesReady, podsReady, seconds, calls, leftBehind } = measures;
  const atMost = leftBehind ?? upper.atMost;
  if (leftBehind !== undefined && expected.has('atMost')) expected.wrong('atMost', 'stands beside leftBehind, which says at most how many');
  const count = nodesReady ?? podsReady;
  for (const [own, of] of Object.entries({ percentile: 'seconds', condition: 'objects', field: 'objects', where: 'objects' })) {
    if (expected.has(own) && kind !== of) expected.wrong(own, `belongs to ${of}`);
  }
  if (condition !== undefined && field !== undefined) expected.wrong('field', 'stands beside condition: one of them is counted');
  if (text !== undefined) checkWhere(expected, text);
  checkTimes(expected, kind ?? '');
  if (withinMs !== undefined && withinMs < afterMs) expected.wrong('within', 'must not be less than after');
  if (calls !== undefined) checkCalls(expected, calls);
  const bounds = {
    ...(count === undefined ? {} : { atLeast: count }),
    ...(atLeast === undefined ? {} : { atLeast }),
    ...(atMost === undefined ? {} : { atMost }),
  };
  // The count is a lower bound itself.
  if (count !== undefined && atLeast !== undefined) expected.wrong('atLeast', `stands beside ${kind}, which says at least how many`);
  else if ((bounds.atLeast ?? 0) > (atMost ?? Number.POSITIVE_INFINITY)) expected.wrong('atMost', 'must not be less than the lower bound');
  if (
    kind !== undefined &&
    count === undefined &&
    !expected.has('atLeast') &&
    atMost === undefined &&
    !expected.has('atMost') &&
    !expected.has('leftBehind') &&
    !expected.has(kind === 'nodesReady' ? kind : 'podsReady')
  )
    expected.wrong('', 'needs atLeast or atMost');
  const measure = measureOf({
    seconds,
    calls,
    objects,
    events,
    requests,
    leftBehind,
    nodesReady,
    podsReady,
    percentile,
    condition,
    field,
    where: text,
  });
  if (measure === undefined) return [];
  const times = { afterMs, withinMs: withinMs ?? null, ...(afterFaultsMs === undefined ? {} : { afterFaultsMs }) };
  return [{ name: name ?? wordsOf(measure, bounds), measure, ...bounds, ...times, holds }];
}

function checkTimes(expected: MapReader, kind: string): void {
  if (expected.has('afterFaults')) {
    for (const field of ['after', 'within']) {
      if (expected.has(field)) expected.wrong(field, 'stands beside afterFaults, which says both');
    }
  } else if (!AT_END.includes(kind) && !expected.has('within')) expected.wrong('within', 'is missing');
}

function checkWhere(expected: MapReader, text: string): void {
  try {
    where(text);
  } catch (error) {
    expected.wrong('where', `is no condition in CEL: ${messageOf(error)}`);
  }
}

function eventsIn(expected: MapReader): EventsSpec | undefined {
  const map = expected.map('events');
  if (map === undefined) return undefined;
  const read = fieldsIn(map, EVENTS);
  map.finish();
  return read;
}

function requestsIn(expected: MapReader): { of: ApiSelection; per: 'run' | 'minute' } | undefined {
  const map = expected.map('requests');
  if (map === undefined) return undefined;
  const { per, ...of } = fieldsIn(map, { ...API_SELECT, ...REQUESTS });
  map.finish();
  return { of, per };
}

/** A mistake here would count nothing, and nothing is at most what is allowed. */
function checkCalls(expected: MapReader, calls: string): void {
  const [verb = '', resource, ...more] = calls.split(' ');
  if (resource === undefined || more.length > 0) {
    expected.wrong('calls', `must be VERB RESOURCE, such as PATCH pods/status or * leases; is ${JSON.stringify(calls)}`);
    return;
  }
  if (verb !== '*' && !VERBS.some((v) => v === verb)) {
    expected.wrong('calls', `the verb must be one of ${VERBS.join(', ')}, *; is ${verb}${didYouMean(verb, VERBS)}`);
  }
  if (resource !== '*' && !RESOURCES.includes(resource)) {
    expected.wrong('calls', `no node asks for ${resource}${didYouMean(resource, RESOURCES)}; known: ${RESOURCES.join(', ')}`);
  }
}

interface Read {
  nodesReady: number | undefined;
  podsReady: number | undefined;
  seconds: 'nodeReady' | 'podReady' | 'podStart' | undefined;
  calls: string | undefined;
  objects: ObjectsSpec | undefined;
  events: EventsSpec | undefined;
  requests: { of: ApiSelection; per: 'run' | 'minute' } | undefined;
  leftBehind: number | undefined;
  where: string | undefined;
  percentile: number | undefined;
  condition: string | undefined;
  field: string | undefined;
}

function measureOf(o: Read): Measure | undefined {
  if (o.nodesReady !== undefined) return { what: 'nodesReady' };
  if (o.podsReady !== undefined) return { what: 'podsReady' };
  if (o.seconds !== undefined) return { what: 'seconds', of: o.seconds, percentile: o.percentile ?? PERCENTILE };
  if (o.calls !== undefined) return { what: 'calls', pattern: o.calls };
  if (o.leftBehind !== undefined) return { what: 'leftBehind' };
  if (o.events !== undefined) return { what: 'events', of: o.events };
  if (o.requests !== undefined) return { what: 'requests', ...o.requests };
  if (o.objects === undefined) return undefined;
  const [type = '', status = 'True'] = o.condition?.split('=') ?? [];
  return {
    what: 'objects',
    of: o.objects,
    ...(o.condition === undefined ? {} : { condition: { type, status } }),
    ...(o.field === undefined ? {} : { field: o.field }),
    ...(o.where === undefined ? {} : { where: o.where }),
  };
}

function objectsIn(expected: MapReader): ObjectsSpec | undefined {
  const map = expected.map('objects');
  if (map === undefined) return undefined;
  const read = fieldsIn(map, OBJECTS, { kind: '' });
  map.finish();
  if (read.selector !== undefined) {
    const selector = parseLabelSelector(read.selector);
    if (typeof selector === 'string')
      map.wrong('selector', `${JSON.stringify(selector)} is no requirement on a label; write app=web, app!=web, app, !app or app in (a,b)`);
    if (read.name !== undefined) map.wrong('selector', 'stands beside name: one of them says which');
  }
  return read;
}

function wordsOf(measure: Measure, { atLeast, atMost }: { atLeast?: number; atMost?: number }): string {
  const bounds = [atLeast === undefined ? '' : `at least ${atLeast}`, atMost === undefined ? '' : `at most ${atMost}`]
    .filter((b) => b !== '')
    .join(', ');
  return `${bounds} ${nameOf(measure, (atMost ?? atLeast) === 1)}`;
}

function nameOf(measure: Measure, one: boolean): string {
  switch (measure.what) {
    case 'nodesReady':
      return one ? 'node Ready' : 'nodes Ready';
    case 'podsReady':
      return one ? 'pod Ready' : 'pods Ready';
    case 'seconds':
      return `s to ${measure.of}, p${measure.percentile}`;
    case 'calls':
      return `calls ${measure.pattern}`;
    case 'events':
      return ['events', ...Object.values(measure.of)].join(' ');
    case 'requests': {
      const of = Object.values(measure.of).map((list) => list.join(','));
      return [...(measure.per === 'minute' ? ['requests a minute'] : ['requests']), ...of].join(' ');
    }
    case 'leftBehind':
      return one ? 'object left behind' : 'objects left behind';
    case 'objects': {
      const { kind, namespace, name, selector } = measure.of;
      const which = [namespace, name].filter((part) => part !== undefined).join('/');
      const counted = measure.condition === undefined ? (measure.field ?? '') : `${measure.condition.type}=${measure.condition.status}`;
      return [kind, which, selector ?? '', counted, measure.where ?? ''].filter((part) => part !== '').join(' ');
    }
  }
}
