/**
 * Variants of real manifests, for a comparison with the kubelet: which of them become pods, and which pods. The variants come from
 * the manifests of `manifests/`, by seed. The kubelet's answers to the same variants are recorded in `manifests136.json`.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { parseManifest } from '../../../src/actors/pods/sources/manifest.ts';
import { quantityValue } from '../../../src/machines/kube/names.ts';
import { podShape } from '../../../src/machines/kube/podTable.ts';
import { decodeManifest } from '../../../src/machines/pods/sources/decode.ts';
import type { Shape } from '../../../src/machines/shape/shape.ts';
import { edits } from './textEdits.ts';

export interface Variant {
  id: string;
  text: string;
}
export const WHERE = { source: 'file', where: '/etc/kubernetes/manifests/a.yaml', nodeName: 'n1' } as const;
export const VARIANTS = 5_000;
const SEED = 136;
/**
 * What the variants are made of. `scalars`: values, as they stand in a manifest, to be put in place of others. `fields`: of real Pods, to be
 * put where they belong and where they do not. What is recorded is about exactly these.
 */
const PARTS = JSON.parse(readFileSync(join(import.meta.dirname, 'parts.json'), 'utf8')) as Record<'scalars' | 'fields', string[]>;

const folder = join(import.meta.dirname, '../manifests');
export const BASES: ReadonlyMap<string, string> = new Map(
  readdirSync(folder)
    .sort()
    .map((name) => [name, readFileSync(join(folder, name), 'utf8')]),
);

/** A small generator of numbers, the same everywhere. */
export function dice(seed: number): (sides: number) => number {
  let state = seed >>> 0;
  return (sides) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % sides;
  };
}
export type Roll = ReturnType<typeof dice>;
export function pick<T>(list: readonly T[], roll: Roll): T {
  return list[roll(list.length)] as T;
}

/** Text that stands in the manifest as it is. */
class Raw extends String {}
type Doc = Record<string, unknown>;

const isMap = (v: unknown): v is Doc => typeof v === 'object' && v !== null && !Array.isArray(v) && !(v instanceof Raw);
const isNode = (v: unknown): v is Doc | unknown[] => isMap(v) || Array.isArray(v);

/** Every place of a document: what holds it, and its key. */
function places(node: Doc | unknown[], found: [Doc | unknown[], string | number][] = []): [Doc | unknown[], string | number][] {
  for (const key of Array.isArray(node) ? node.keys() : Object.keys(node)) {
    found.push([node, key]);
    const value = (node as Record<string | number, unknown>)[key];
    if (isNode(value)) places(value, found);
  }
  return found;
}

function change(doc: Doc, roll: Roll): void {
  const all = places(doc);
  const [holder, key] = pick(all, roll);
  const at = holder as Record<string | number, unknown>;
  switch (roll(9)) {
    case 0:
      if (Array.isArray(holder)) holder.splice(Number(key), 1);
      else delete at[key];
      return;
    case 1: {
      // The same field, spelled otherwise.
      if (Array.isArray(holder)) return;
      const name = String(key);
      const other = pick(
        [name.toLowerCase(), name.toUpperCase(), `${name}s`, name.replace(/s$/, ''), name.replaceAll(/[A-Z]/g, '_$&')],
        roll,
      );
      const value = at[key];
      delete at[key];
      at[other] = value;
      return;
    }
    case 2: {
      // To somewhere else.
      const [target, name] = pick(all, roll);
      const copy = at[key] instanceof Raw ? at[key] : structuredClone(at[key]);
      if (!Array.isArray(target)) target[String(key)] = copy;
      else target[Number(name)] = copy;
      return;
    }
    case 3:
    case 4: {
      const map = pick([doc, ...all.map(([h, k]) => (h as Doc)[k]).filter(isMap)], roll);
      const field = pick(PARTS.fields, roll);
      const colon = field.startsWith('"') ? field.indexOf('":') + 1 : field.indexOf(':');
      map[field.slice(0, colon)] = new Raw(field.slice(colon + 1).trim());
      return;
    }
    case 5:
      at[key] = Array.isArray(at[key]) ? (at[key] as unknown[])[0] : [at[key]];
      return;
    default:
      at[key] = new Raw(pick(PARTS.scalars, roll));
  }
}

const PLAIN = /^[A-Za-z/][A-Za-z0-9/._-]*$/;
function scalar(value: unknown): string {
  if (value instanceof Raw) return String(value);
  if (typeof value === 'string' && PLAIN.test(value) && !/^(y|n|yes|no|on|off|true|false|null)$/i.test(value)) return value;
  return JSON.stringify(value) ?? 'null';
}
function write(value: unknown, indent: string): string {
  if (Array.isArray(value) && value.length > 0) {
    return value.map((v: unknown) => `\n${indent}- ${write(v, `${indent}  `).trimStart()}`).join('');
  }
  if (isMap(value) && Object.keys(value).length > 0) {
    const keys = Object.entries(value);
    return keys
      .map(([k, v]) => `\n${indent}${PLAIN.test(k) || /^("|<<|1)/.test(k) ? k : JSON.stringify(k)}:${spaced(write(v, `${indent}  `))}`)
      .join('');
  }
  return scalar(value);
}
const spaced = (text: string): string => (text.startsWith('\n') ? text : ` ${text}`);

function asJson(value: unknown): string {
  if (value instanceof Raw) return String(value);
  if (Array.isArray(value)) return `[${value.map(asJson).join(', ')}]`;
  if (isMap(value))
    return `{${Object.entries(value)
      .map(([k, v]) => `${k.startsWith('"') ? k : JSON.stringify(k)}: ${asJson(v)}`)
      .join(', ')}}`;
  return JSON.stringify(value) ?? 'null';
}

/** All variants, always the same ones. */
export function variants(seed = SEED): Variant[] {
  const roll = dice(seed);
  const names = [...BASES.keys()];
  const docs = new Map([...BASES].map(([name, text]) => [name, parse(text, { version: '1.1' }) as Doc]));
  const made: Variant[] = [...BASES].map(([name, text]) => ({ id: name, text }));
  while (made.length < VARIANTS) {
    const name = pick(names, roll);
    const id = `${name} ${made.length}`;
    if (roll(3) === 0) {
      made.push({ id, text: edits(BASES.get(name) ?? '', roll) });
      continue;
    }
    const doc = structuredClone(docs.get(name)) ?? {};
    for (let n = roll(4) === 0 ? 2 : 1; n > 0; n -= 1) change(doc, roll);
    made.push({ id, text: roll(5) === 0 ? asJson(doc) : `${write(doc, '').trimStart()}\n` });
  }
  return made;
}

/** Of the texts: answers are to these ones. */
export function digestOf(list: readonly Variant[]): string {
  const hash = createHash('sha256');
  for (const { text } of list) hash.update(`${text.length} ${text}`);
  return hash.digest('hex').slice(0, 16);
}

/** Numbers and booleans that are not the same as nothing when they are zero or false. */
const POINTERS = new Set([
  ...['runAsUser', 'runAsGroup', 'fsGroup', 'terminationGracePeriodSeconds', 'tolerationSeconds', 'defaultMode', 'mode', 'priority'],
  ...['activeDeadlineSeconds', 'allowPrivilegeEscalation', 'privileged', 'readOnlyRootFilesystem', 'runAsNonRoot', 'optional', 'hostUsers'],
  ...['automountServiceAccountToken', 'enableServiceLinks', 'shareProcessNamespace', 'setHostnameAsFQDN', 'emptyDir', 'downwardAPI'],
]);
/** The kubelet leaves the first two out. */
const NOT_COMPARED = new Set(['apiVersion', 'kind', 'status']);
const MADE_HERE = new Set(['kubernetes.io/config.hash', 'kubernetes.io/config.source', 'kubernetes.io/config.seen']);

/** Names of all fields that a table knows. */
export function fieldNames(shape: Shape, names = new Set<string>()): Set<string> {
  if (shape.t === 'list' || shape.t === 'map') return fieldNames(shape.of, names);
  for (const [name, field] of shape.t === 'object' ? Object.entries(shape.fields) : []) fieldNames(field, names.add(name));
  return names;
}

/** Answers are about these fields. */
export type Compared = ReadonlySet<string>;

function comparableMap(value: object, schema: Shape, { key, fields }: { key: string; fields: Compared }): unknown {
  const parts = Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([k, v]) => {
      const field = schema.t === 'map' ? schema.of : schema.t === 'object' && fields.has(k) ? schema.fields[k] : undefined;
      if (field === undefined || MADE_HERE.has(k) || (key === 'metadata' && k === 'uid') || (key === '' && NOT_COMPARED.has(k))) return [];
      const part = schema.t === 'map' && v === '' ? '' : comparable(v, field, { key: k, fields });
      return part === undefined ? [] : [[k, part] as const];
    });
  return parts.length === 0 && !POINTERS.has(key) ? undefined : Object.fromEntries(parts);
}

/** What of a pod is compared: the fields, quantities by value; nothing for what is empty. */
export function comparable(value: unknown, schema: Shape, at: { key: string; fields: Compared }): unknown {
  if (value === null || value === undefined || value === '') return undefined;
  // The inside of fields that this program does not read.
  if (schema.t === 'any') return typeof value === 'object' && Object.keys(value).length === 0 ? undefined : true;
  if (schema.t === 'quantity') return typeof value === 'object' ? undefined : (quantityValue(value as string | number) ?? String(value));
  if (Array.isArray(value)) {
    const of: Shape = schema.t === 'list' ? schema.of : { t: 'any' };
    return value.length === 0 ? undefined : value.map((v: unknown) => comparable(v, of, { ...at, key: '[]' }) ?? null);
  }
  if (typeof value === 'object') return comparableMap(value, schema, at);
  return (value === 0 || value === false) && !POINTERS.has(at.key) ? undefined : value;
}

/** Refused, or a digest of the pod. */
export const REFUSED = 'no';
export function answerOf(pod: unknown, fields: Compared): string {
  const compared = comparable(pod, podShape, { key: '', fields });
  return createHash('sha256').update(JSON.stringify(compared)).digest('hex').slice(0, 6);
}

/** What this program makes of it. */
export function decodeHere(
  text: string,
  gates: { preventApiReferences: boolean } = { preventApiReferences: true },
): { pod?: unknown; errors: string[]; notes: readonly string[] } {
  const parsed = parseManifest(Buffer.from(text));
  if (!parsed.ok) return { errors: [parsed.message], notes: [] };
  const decoded = decodeManifest(parsed.value, {
    ...WHERE,
    ...gates,
    notes: parsed.notes,
    md5Hex: (s) => createHash('md5').update(s).digest('hex'),
  });
  return decoded.ok ? { pod: decoded.pods[0], errors: [], notes: decoded.notes } : { errors: decoded.errors, notes: [] };
}
