/**
 * A scenario file: YAML text to a {@link Scenario}, or everything that is wrong with it, each with its line and field.
 * Strict: an unknown field or value is an error, with the nearest name that there is.
 */
import { type Document, isMap, isScalar, LineCounter, parseAllDocuments, visit } from 'yaml';
import { DURATION, METADATA, NAME_PATTERN, SCENARIO_API_VERSION, SCENARIO_KIND } from '../table.ts';
import type { Scenario, ScenarioError, ScenarioFault } from '../types.ts';
import { decodeFault } from './decodeFault.ts';
import { decodeSimulation } from './decodeSimulation.ts';
import { type MapReader, type Problems, problems, MapReader as Reader } from './reader.ts';

/** Larger files hold no scenario that a person wrote. */
export const SCENARIO_BYTES_MAX = 1024 * 1024;
export const FAULTS_MAX = 1_000;

/** `live`: faults that only a simulation can have are refused. */
export type ScenarioTarget = 'live' | 'simulation';
export type DecodedScenario = { ok: true; scenario: Scenario } | { ok: false; errors: readonly ScenarioError[] };

/** Never throws. Errors come in the order of the file. */
export function decodeScenario(text: string, target: ScenarioTarget): DecodedScenario {
  if (text.length > SCENARIO_BYTES_MAX) return refused([{ line: 0, field: '', message: `is longer than ${SCENARIO_BYTES_MAX} bytes` }]);
  const lines = new LineCounter();
  const found = problems(lines);
  // The parser's own check for equal keys compares each key with all before it.
  const documents = parseAllDocuments(text, { version: '1.2', lineCounter: lines, uniqueKeys: false, prettyErrors: false });
  const list = Array.isArray(documents) ? documents : [];
  for (const doc of list) {
    for (const e of doc.errors) {
      found.errors.push({ line: lines.linePos(e.pos[0]).line, field: '', message: `is not valid YAML: ${e.message.split('\n')[0] ?? ''}` });
    }
    repeatedKeys(doc, found);
  }
  if (found.errors.length > 0) return refused(found.errors);
  const [first, second] = list;
  if (first === undefined || first.contents === null) {
    return refused([
      { line: 0, field: '', message: `is empty; it must begin with apiVersion: ${SCENARIO_API_VERSION} and kind: ${SCENARIO_KIND}` },
    ]);
  }
  if (second !== undefined) found.at(second.contents, '', 'holds more than one document; one file is one scenario');
  const root = first.contents;
  if (!isMap(root)) return refused([{ line: 1, field: '', message: `must be a mapping of kind ${SCENARIO_KIND}` }]);
  const scenario = decodeRoot(new Reader(root, '', found), target, found);
  return found.errors.length > 0 ? refused(found.errors) : { ok: true, scenario };
}

function repeatedKeys(doc: Document, found: Problems): void {
  visit(doc, {
    Map: (_, map) => {
      const keys = new Set<unknown>();
      for (const { key } of map.items) {
        if (!isScalar(key)) continue;
        if (keys.has(key.value)) found.at(key, '', 'is not valid YAML: Map keys must be unique');
        keys.add(key.value);
      }
    },
  });
}

/** Errors that are told: a file has as many as it has lines. */
const ERRORS_MAX = 100;

function refused(errors: ScenarioError[]): DecodedScenario {
  const sorted = [...errors].sort((a, b) => a.line - b.line);
  const more = sorted.length - ERRORS_MAX;
  if (more <= 0) return { ok: false, errors: sorted };
  return { ok: false, errors: [...sorted.slice(0, ERRORS_MAX), { line: 0, field: '', message: `and ${more} more` }] };
}

/** `file:line: field: message`, as compilers say it. */
export function scenarioErrorText(file: string, e: ScenarioError): string {
  return [e.line === 0 ? file : `${file}:${e.line}`, ...(e.field === '' ? [] : [e.field]), e.message].join(': ');
}

function decodeRoot(root: MapReader, target: ScenarioTarget, found: Problems): Scenario {
  expectText(root, 'apiVersion', SCENARIO_API_VERSION);
  expectText(root, 'kind', SCENARIO_KIND);
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

function expectText(root: MapReader, field: string, wanted: string): void {
  if (!root.has(field)) {
    root.get(field);
    root.wrong(field, `is missing; it must be ${wanted}`);
    return;
  }
  const is = root.text(field);
  if (is !== undefined && is !== wanted) root.wrong(field, `must be ${wanted}, is ${is}`);
}

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
