/**
 * Feature gates (boot-and-node 4.1): named switches with a default, a stage and maybe a lock. Pure: a set of gates is a
 * value made from a map, never a global that is added to.
 */
import type { FeatureGates, GateStage, GateState } from './config.ts';
import { GATE_DEPENDENCIES } from './gateDependencies.ts';
import { GATES, type GateSpec, isGraduated } from './gateTable.ts';

export interface GateResult {
  /** When `locked` is not empty these are the defaults: a map with one bad entry changes nothing. */
  gates: FeatureGates;
  locked: string[];
  /** Names that are no gates of this release: of a newer one, mistyped, or of an older one and set against what they became. */
  unknown: string[];
  /** Gates that are on without gates that they depend on. Not looked at while any is against its lock. */
  unmet: { name: string; off: string[] }[];
  /** One line per gate that is set although it is GA or deprecated. */
  warnings: string[];
}
const GROUPS: Readonly<Record<string, GateStage>> = { AllAlpha: 'ALPHA', AllBeta: 'BETA' };

/**
 * Effective gates from explicit settings. `AllAlpha` and `AllBeta`, when given, set every gate of their stage that has
 * no setting of its own (an explicit `AllBeta: false` turns beta gates off); not given, they have no effect.
 */
export function createFeatureGates(
  settings: Readonly<Record<string, boolean>>,
  table: Readonly<Record<string, GateSpec>> = GATES,
): GateResult {
  const specs = new Map(Object.entries(table));
  const given = new Map(Object.entries(settings));
  const locked: string[] = [];
  const unknown: string[] = [];
  const warnings: string[] = [];
  for (const [name, value] of given) {
    if (GROUPS[name] !== undefined) continue;
    const spec = specs.get(name);
    if (spec === undefined || (isGraduated(name) && value !== spec.default)) unknown.push(name);
    else if (spec.locked && value !== spec.default) locked.push(name);
    else if (spec.stage === 'GA' || spec.stage === 'DEPRECATED') warnings.push(setWarning(name, spec, value));
  }
  if (locked.length > 0) return { gates: view(specs, new Map()), locked, unknown, unmet: [], warnings };
  for (const name of unknown) given.delete(name);
  const gates = view(specs, given);
  return { gates, locked, unknown, unmet: unmetOf(gates), warnings };
}

function unmetOf(gates: FeatureGates): GateResult['unmet'] {
  const on = new Map(gates.list().map(({ name, enabled }) => [name, enabled]));
  return Object.entries(GATE_DEPENDENCIES).flatMap(([name, needs]) => {
    const off = on.get(name) === true ? needs.filter((need) => on.get(need) === false) : [];
    return off.length === 0 ? [] : [{ name, off }];
  });
}

/** Why the node does not start with these gates, in the words of the kubelet. */
export function gateRefusals({ gates, locked, unmet }: GateResult): { name: string; what: string }[] {
  return [
    ...locked.map((name) => {
      const value = gates.enabled(name);
      return { name, what: `cannot set feature gate ${name} to ${!value}, feature is locked to ${value}` };
    }),
    ...unmet.map(({ name, off }) => ({
      name,
      what: `${name} is enabled, but depends on features that are disabled: [${off.join(' ')}]`,
    })),
  ];
}

function setWarning(name: string, spec: GateSpec, value: boolean): string {
  const what = spec.stage === 'GA' ? 'generally available' : 'deprecated';
  return `feature gate ${name}=${value}: the gate is ${what} and will go away; remove the setting`;
}

function view(specs: ReadonlyMap<string, GateSpec>, given: ReadonlyMap<string, boolean>): FeatureGates {
  const effective = new Map<string, boolean>();
  for (const [name, spec] of specs) {
    const all = spec.stage === 'ALPHA' ? given.get('AllAlpha') : spec.stage === 'BETA' ? given.get('AllBeta') : undefined;
    effective.set(name, given.get(name) ?? (spec.locked ? spec.default : (all ?? spec.default)));
  }
  const states: GateState[] = [...specs].map(([name, s]) => ({
    name,
    stage: s.stage,
    enabled: effective.get(name) ?? s.default,
    default: s.default,
    locked: s.locked,
  }));
  states.sort((a, b) => (a.name < b.name ? -1 : 1));
  return {
    enabled(name) {
      const value = effective.get(name);
      if (value === undefined) throw new Error(`feature gate ${name} is not registered; add it to gateTable.ts`);
      return value;
    },
    list: () => states,
  };
}

/** Names accepted in a map, the two groups among them; for suggestions. */
export function gateNames(): string[] {
  return [...Object.keys(GROUPS), ...Object.keys(GATES)];
}

/** The help lines: alpha and beta gates only, sorted. */
export function gateHelp(): string[] {
  const groups = Object.entries(GROUPS).map(([name, stage]) => `${name}=true|false (${stage} - default=false)`);
  const gates = Object.entries(GATES)
    .filter(([, s]) => s.stage === 'ALPHA' || s.stage === 'BETA')
    .map(([name, s]) => `${name}=true|false (${s.stage} - default=${s.default})`);
  return [...groups, ...gates].sort();
}
