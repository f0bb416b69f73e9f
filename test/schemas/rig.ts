/** What the tests of the JSON Schema files share: a validator, the examples, and documents that differ in one place. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { Ajv, type ValidateFunction } from 'ajv';
import { parse } from 'yaml';

export const root = join(import.meta.dirname, '../..');

/** Keywords of editors, which say nothing about what is valid. */
const EDITOR_KEYWORDS = ['patternErrorMessage', 'errorMessage', 'doNotSuggest'];

export function validator(name: string): ValidateFunction {
  const ajv = new Ajv({ allErrors: true, strict: true, strictTypes: false, strictRequired: false, allowUnionTypes: true });
  for (const keyword of EDITOR_KEYWORDS) ajv.addKeyword({ keyword });
  return ajv.compile(JSON.parse(readFileSync(join(root, 'schemas', name), 'utf8')) as object);
}

/** What a validator says, one line each; empty when it accepts. */
export function complaintsOf(validate: ValidateFunction, doc: unknown): string[] {
  return validate(doc) ? [] : (validate.errors ?? []).map((e) => `${e.instancePath} ${e.message ?? ''}`);
}

export interface Example {
  /** Relative to the project. */
  file: string;
  text: string;
  doc: unknown;
  /** Name of the schema that its first line names; undefined where it names none. */
  schema: string | undefined;
}

/** All YAML files below `examples`. */
export function examples(): Example[] {
  return yamlBelow(join(root, 'examples')).map((path) => {
    const text = readFileSync(path, 'utf8');
    const named = /^# yaml-language-server: \$schema=(\S+)$/m.exec(text.split('\n')[0] ?? '')?.[1];
    // Some examples are for copying into a project that has this package.
    const file = named === undefined ? undefined : resolve(dirname(path), named).replace(/^.*\/node_modules\/actorlet/, root);
    const schema = file === undefined ? undefined : relative(join(root, 'schemas'), file);
    return { file: relative(root, path), text, doc: parse(text) as unknown, schema };
  });
}

/** Packages, workflow files, whose formats are those of CI services, and what fleets give to other programs. */
const NOT_OURS = ['node_modules', 'ci', 'manifests'];

function yamlBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return NOT_OURS.includes(entry.name) ? [] : yamlBelow(path);
    return /\.ya?ml$/.test(entry.name) ? [path] : [];
  });
}

const VALUES: readonly unknown[] = [
  null,
  true,
  0,
  1,
  -1,
  1.5,
  100_000,
  '',
  'x',
  'Always',
  '10s',
  '-1h',
  '100Mi',
  '0',
  [],
  ['x'],
  {},
  { x: 'y' },
];

/** Copies of a document that differ from it in one place: a field is away, has another name, or another value. */
export function* variants(doc: unknown): Generator<unknown> {
  if (typeof doc !== 'object' || doc === null) return;
  if (Array.isArray(doc)) {
    for (const [i, item] of doc.entries()) for (const v of [...VALUES, ...variants(item)]) yield doc.with(i, v);
    return;
  }
  for (const [key, value] of Object.entries(doc)) {
    const { [key]: _, ...others } = doc as Record<string, unknown>;
    yield others;
    yield { ...others, [`${key}x`]: value };
    for (const v of [...VALUES, ...variants(value)]) yield { ...doc, [key]: v };
  }
}
