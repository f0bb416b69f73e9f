/** One entry of `spec.faults`. */
import type { Shape } from '@actorlet/kubelet/machines/shape/shape.ts';
import { didYouMean } from '@actorlet/kubelet/machines/text/nearest.ts';
import { actorPattern } from '@actorlet/shown/src/match.ts';
import { FAULT_KIND_NAMES, FAULT_KINDS, type FaultKind } from '../kinds.ts';
import { LASTING, SELECT, type Selector, SIMULATED, WHEN } from '../table.ts';
import type { ScenarioFault, Select } from '../types.ts';
import type { MapReader } from './reader.ts';

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
  const when = whenOf(r, { ...o, lasts: facts.lasts });
  const select = selectOf(r, kind);
  r.finish((name) => elsewhere(name, kind, action));
  if (facts.actions !== undefined && action === undefined) return undefined;
  // Each field was read by its line in the table, which the type comes from.
  return { ...when, line: o.line, kind, ...(action === undefined ? {} : { action }), select, ...spec } as ScenarioFault;
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
  if (Object.hasOwn(facts.fields, name)) return action === undefined ? null : `has no effect with action ${action}`;
  if (name === 'for') return `has no effect: ${kind} happens in one instant`;
  if (name === 'action') return `has no effect: ${kind} has no actions`;
  if (name === 'steps') return 'is only possible in the simulation';
  if (FAULT_KIND_NAMES.some((k) => Object.hasOwn(FAULT_KINDS[k].fields, name))) return `is no field of ${kind}`;
  if (FAULT_KIND_NAMES.some((k) => (FAULT_KINDS[k].select as readonly string[]).includes(name)))
    return `belongs below select: select.${name}`;
  return undefined;
}

/** Fields that every fault has, under their decoded names. */
function whenOf(r: MapReader, o: { index: number; lasts: boolean; target: 'live' | 'simulation' }): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const [name, shape] of Object.entries<Shape>(WHEN)) {
    const possible = (o.lasts || !LASTING.includes(name)) && (o.target === 'simulation' || !SIMULATED.includes(name));
    const value = possible ? r.readOr(name, shape) : shape.absent;
    if (value !== undefined) out[shape.as ?? name] = value;
  }
  out.name ??= `fault-${o.index + 1}`;
  const { everyMs, forMs } = out;
  if (out.count !== undefined && everyMs === undefined && !r.has('every')) r.wrong('count', 'has no effect without every');
  if (typeof everyMs === 'number' && o.lasts) {
    if (forMs === undefined && !r.has('for')) r.wrong('every', 'needs for: how long each of its windows lasts');
    else if (typeof forMs === 'number' && forMs > everyMs)
      r.wrong('every', 'must not be shorter than for: windows of one fault do not overlap');
  }
  return out;
}

function kindFields(r: MapReader, kind: FaultKind, action: string): Record<string, unknown> {
  const fields = Object.entries(FAULT_KINDS[kind].fields).map(([name, shape]) => {
    const possible = shape.actions === undefined || shape.actions.includes(action);
    return [shape.as ?? name, possible ? r.readOr(name, shape) : shape.idle] as const;
  });
  return Object.fromEntries(fields);
}

function selectOf(r: MapReader, kind: FaultKind): Select {
  const facts = FAULT_KINDS[kind];
  const s = r.map('select');
  if (s === undefined) return {};
  const found = (Object.keys(SELECT) as Selector[]).flatMap((name) => {
    const value = facts.select.includes(name) ? s.read(name, SELECT[name]) : undefined;
    return value === undefined ? [] : [[name, name === 'actors' ? value.map(actorPattern) : value] as const];
  });
  const select: Select = Object.fromEntries(found);
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
