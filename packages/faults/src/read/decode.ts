/**
 * A scenario file: YAML text to a {@link Scenario}, or everything that is wrong with it, each with its line and field.
 * Strict: an unknown field or value is an error, with the nearest name that there is.
 */
import { DURATION, METADATA, NAME_PATTERN, SCENARIO_KIND } from '../table.ts';
import type { Scenario, ScenarioError, ScenarioFault } from '../types.ts';
import { decodeFault } from './decodeFault.ts';
import { decodeSimulation } from './decodeSimulation.ts';
import { DOCUMENT_BYTES_MAX, readDocument } from './document.ts';
import type { MapReader, Problems } from './reader.ts';

export const SCENARIO_BYTES_MAX = DOCUMENT_BYTES_MAX;
export const FAULTS_MAX = 1_000;

/** `live`: faults that only a simulation can have are refused. */
export type ScenarioTarget = 'live' | 'simulation';
export type DecodedScenario = { ok: true; scenario: Scenario } | { ok: false; errors: readonly ScenarioError[] };

/** Never throws. Errors come in the order of the file. */
export function decodeScenario(text: string, target: ScenarioTarget): DecodedScenario {
  const read = readDocument(text, SCENARIO_KIND, (root, found) => decodeRoot(root, target, found));
  return read.ok ? { ok: true, scenario: read.value } : read;
}

/** `file:line: field: message`, as compilers say it. */
export function scenarioErrorText(file: string, e: ScenarioError): string {
  return [e.line === 0 ? file : `${file}:${e.line}`, ...(e.field === '' ? [] : [e.field]), e.message].join(': ');
}

function decodeRoot(root: MapReader, target: ScenarioTarget, found: Problems): Scenario {
  const metadata = root.map('metadata');
  const name = metadata?.read('name', METADATA.name);
  if (metadata === undefined) {
    if (!root.has('metadata')) root.wrong('metadata', 'is missing; a scenario needs metadata.name');
  } else if (!metadata.has('name')) metadata.wrong('name', 'is missing');
  else if (name !== undefined && !NAME.test(name)) metadata.wrong('name', NAME_RULE);
  const description = metadata?.read('description', METADATA.description) ?? '';
  metadata?.finish();
  const scenario: Scenario = { name: name ?? '', description, faults: [], simulation: { workload: [] } };
  const spec = root.map('spec');
  root.finish();
  if (spec === undefined) {
    if (!root.has('spec')) root.wrong('spec', 'is missing');
    return scenario;
  }
  const durationMs = spec.read('duration', DURATION);
  const entries = spec.maps('faults');
  if (entries.length > FAULTS_MAX) spec.wrong('faults', `has ${entries.length} entries, at most ${FAULTS_MAX} are allowed`);
  const faults = entries.slice(0, FAULTS_MAX).map((entry, i) => decodeFault(entry, { index: i, target, line: lineOf(entry, found) }));
  checkNames(entries, faults);
  const simulation = spec.map('simulation');
  if (!spec.has('faults') && simulation === undefined) spec.wrong('faults', 'is missing');
  const decoded = simulation === undefined ? { workload: [] } : decodeSimulation(simulation, (r) => lineOf(r, found));
  spec.finish();
  return {
    ...scenario,
    ...(durationMs === undefined ? {} : { durationMs }),
    faults: faults.filter((f) => f !== undefined),
    simulation: decoded,
  };
}

const NAME = new RegExp(NAME_PATTERN);
const NAME_RULE = 'must be lower-case letters, digits, "-" and ".", at most 63 characters';

function lineOf(r: MapReader, found: Problems): number {
  return found.lineOf(r.node);
}

/** Names are unique, `after` names another fault, and nothing waits for itself. */
function checkNames(entries: readonly MapReader[], faults: readonly (ScenarioFault | undefined)[]): void {
  const byName = new Map<string, ScenarioFault>();
  for (const [i, f] of faults.entries()) {
    if (f === undefined) continue;
    const prior = byName.get(f.name);
    if (prior !== undefined) entries[i]?.wrong('name', `${f.name} is already the name of the fault on line ${prior.line}`);
    else byName.set(f.name, f);
  }
  for (const [i, f] of faults.entries()) {
    if (f?.after === undefined) continue;
    if (!byName.has(f.after)) {
      // A fault that could not be read is complained of already; whether its name was this one is not known.
      if (!faults.includes(undefined)) entries[i]?.unknownName('after', f.after, [...byName.keys()]);
      continue;
    }
    const seen = new Set<string>([f.name]);
    for (let at: string | undefined = f.after; at !== undefined; at = byName.get(at)?.after) {
      if (seen.has(at)) {
        entries[i]?.wrong('after', `${f.name} would wait for itself`);
        break;
      }
      seen.add(at);
    }
  }
}
