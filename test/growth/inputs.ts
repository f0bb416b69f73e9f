/** Inputs of any size, made from the schema of pods: every text hostile, or one list long. */
import { createHash } from 'node:crypto';
import { podShape } from '../../src/machines/kube/podTable.ts';
import type { Pod } from '../../src/machines/kube/types.ts';
import type { Shape } from '../../src/machines/shape/shape.ts';

export const md5Hex = (text: string): string => createHash('md5').update(text).digest('hex');

/** Texts that lead patterns with two ways through the same characters, and searches that begin anew at each character, astray. */
export const TEXTS: Readonly<Record<string, (n: number) => string>> = {
  letters: (n) => `${'a'.repeat(n)}!`,
  digits: (n) => `${'1'.repeat(n)}x`,
  slashes: (n) => `${'/'.repeat(n)}x`,
  labels: (n) => `${'a.'.repeat(n / 2)}!`,
  dashes: (n) => `a${'-'.repeat(n)}!`,
  mixed: (n) => `${'a-_'.repeat(n / 3)}!`,
  blanks: (n) => `a${' '.repeat(n)}b`,
  tabs: (n) => `a${' \t'.repeat(n / 2)}b`,
  references: (n) => '$('.repeat(n / 2),
  brackets: (n) => '['.repeat(n),
  quotes: (n) => `metadata.labels['${"']".repeat(n / 2)}x`,
  lines: (n) => `x\n`.repeat(n / 2),
  zeros: (n) => `${'\0'.repeat(n)}x`,
  colons: (n) => `${':'.repeat(n)}x`,
  hashes: (n) => `${'#'.repeat(n)}\n`,
  parentheses: (n) => `${' ('.repeat(n / 2)}\n`,
};

/** Fields of a pod that decide which way it goes; they keep a value that lets it go on. */
const KEPT: Readonly<Record<string, unknown>> = {
  apiVersion: 'v1',
  kind: 'Pod',
  status: {},
  restartPolicy: 'Always',
  dnsPolicy: 'ClusterFirst',
  action: 'Restart',
};

type Step = string | 0;
export interface Field {
  steps: readonly Step[];
  t: Shape['t'];
}
/** Every field that holds text, names of maps included. */
export function texts(schema: Shape = podShape, steps: readonly Step[] = []): Field[] {
  if (KEPT[String(steps.at(-1))] !== undefined || isTwin(steps)) return [];
  switch (schema.t) {
    case 'string':
    case 'quantity':
    case 'intOrString':
    case 'map':
      return [{ steps, t: schema.t }];
    case 'list':
      return texts(schema.of, [...steps, 0]);
    case 'object':
      return Object.entries(schema.fields).flatMap(([key, of]) => texts(of, [...steps, key]));
    default:
      return [];
  }
}

/** An ordinary document with that text in these fields. */
export function documentOf(fields: readonly Field[], text: string): Record<string, unknown> {
  const doc = base();
  for (const { steps, t } of fields) put(doc, steps, t === 'map' ? { [text]: text } : text);
  return doc;
}
export interface Place {
  path: string;
  steps: readonly Step[];
  schema: Extract<Shape, { t: 'list' | 'map' }>;
}

/** Init and ephemeral containers have the fields of regular ones, and go the same ways. */
function isTwin(steps: readonly Step[]): boolean {
  return steps.length > 2 && (steps[1] === 'initContainers' || steps[1] === 'ephemeralContainers');
}

/** Every list and every map of the schema. */
export function places(schema: Shape = podShape, steps: readonly Step[] = []): Place[] {
  if (isTwin(steps)) return [];
  const path = steps
    .map((s) => (s === 0 ? '[0]' : `.${s}`))
    .join('')
    .slice(1);
  switch (schema.t) {
    case 'list':
      return [{ path, steps, schema }, ...places(schema.of, [...steps, 0])];
    case 'map':
      return [{ path, steps, schema }];
    case 'object':
      return Object.entries(schema.fields).flatMap(([key, of]) => places(of, [...steps, key]));
    default:
      return [];
  }
}

/** An ordinary value of that shape, different for each `i`: the checks compare what is alike. */
function ordinary(schema: Shape, name: string, i: number): unknown {
  if (KEPT[name] !== undefined) return KEPT[name];
  switch (schema.t) {
    case 'string':
      return `v${i}`;
    case 'quantity':
      return '1';
    case 'intOrString':
    case 'integer':
      return 1 + (i % 60_000);
    case 'boolean':
      return false;
    case 'any':
      return {};
    case 'list':
    case 'map':
      return schema.t === 'list' ? [] : {};
    case 'object':
      return Object.fromEntries(Object.entries(schema.fields).map(([key, of]) => [key, ordinary(of, key, i)]));
    default:
      throw new Error(`a pod has no field of type ${schema.t}`);
  }
}

function base(): Record<string, unknown> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'ns', uid: 'u1' },
    spec: { containers: [{ name: 'v0', image: 'i' }], volumes: [{ name: 'v0' }] },
  };
}

/** Puts a value at that place, and what must be around it. */
function put(doc: Record<string, unknown>, steps: readonly Step[], value: unknown): void {
  let at = doc as Record<Step, unknown>;
  for (const [i, step] of steps.entries()) {
    const next = steps[i + 1];
    if (next === undefined) at[step] = value;
    else if (at[step] === undefined) at[step] = next === 0 ? [] : step === 0 ? { name: 'v0' } : {};
    at = at[step] as Record<Step, unknown>;
  }
}

/** An ordinary document whose list or map at that place has `n` entries. */
export function documentWith(place: Place, n: number): Record<string, unknown> {
  const doc = base();
  put(doc, place.steps, many(place, n));
  return doc;
}

function many({ schema, path }: Place, n: number): unknown {
  const name = path.slice(path.lastIndexOf('.') + 1);
  const value = (i: number): unknown => ordinary(schema.of, name, i);
  if (schema.t === 'list') return Array.from({ length: n }, (_, i) => value(i));
  return Object.fromEntries(Array.from({ length: n }, (_, i) => [`example.com/k${i}`, value(i)]));
}

export const asPod = (doc: Record<string, unknown>): Pod => doc as unknown as Pod;
