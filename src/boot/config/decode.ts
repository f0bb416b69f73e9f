/**
 * One configuration file, decoded (boot-and-node 2.4): YAML or JSON against the schema, with the place of every value.
 * What only strict decoding objects to (unknown and duplicate fields) is a warning; a wrong type, kind or version is an error.
 */
import { dirname, resolve } from 'node:path';
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, type Pair, parseDocument } from 'yaml';
import { parseGoDuration } from '../../machines/config/duration.ts';
import { KUBELET_CONFIGURATION } from '../../machines/config/schema.ts';
import type { Fields, Shape } from '../../machines/shape/shape.ts';
import { didYouMean } from '../../machines/text/nearest.ts';
import type { Problem } from '../errors.ts';
import { getPath, type Tree, withPath } from './paths.ts';

const API_VERSION = 'kubelet.config.k8s.io/v1beta1';
const KIND = 'KubeletConfiguration';

/** Fields whose relative path stands against the directory of the file. */
const FILE_RELATIVE = [
  'staticPodPath',
  'authentication.x509.clientCAFile',
  'tlsCertFile',
  'tlsPrivateKeyFile',
  'resolvConf',
  'volumePluginDir',
  'podLogsDir',
] as const;

export interface DecodedFile {
  file: string;
  /** Only what the file mentions; durations in milliseconds. */
  values: Tree;
  /** `file:line` of each mentioned path. */
  origins: ReadonlyMap<string, string>;
  errors: Problem[];
  warnings: Problem[];
}

/** Never throws. `file` is absolute. */
export function decodeConfigFile(file: string, text: string): DecodedFile {
  const lines = new LineCounter();
  const out: Decoder = { file, lines, values: {}, origins: new Map(), errors: [], warnings: [] };
  if (text.trim() === '') {
    out.errors.push({ where: file, what: `is empty; it must carry at least apiVersion: ${API_VERSION} and kind: ${KIND}` });
    return out;
  }
  // YAML 1.1 booleans (yes, on) as the reference reads them, but no times and dates made of plain text.
  const doc = parseDocument(text, {
    version: '1.1',
    lineCounter: lines,
    uniqueKeys: false,
    customTags: (tags) =>
      tags.filter((t) => typeof t === 'string' || (!('format' in t && t.format === 'TIME') && !t.tag.endsWith(':timestamp'))),
  });
  out.errors.push(...doc.errors.map((e) => ({ where: at(out, e.pos[0]), what: e.message.split('\n')[0] ?? e.message })));
  if (out.errors.length > 0) return out;
  decodeRoot(out, doc);
  for (const path of FILE_RELATIVE) {
    const value = getPath(out.values, path);
    if (typeof value === 'string' && value !== '') out.values = withPath(out.values, path, resolveKeepingShape(dirname(file), value));
  }
  return out;
}

/** An absolute path is kept as written, so that validation sees its exact form. */
function resolveKeepingShape(dir: string, path: string): string {
  return path.startsWith('/') ? path : resolve(dir, path);
}

interface Decoder extends DecodedFile {
  lines: LineCounter;
  origins: Map<string, string>;
}

function at(out: Decoder, offset: number | undefined): string {
  return offset === undefined ? out.file : `${out.file}:${out.lines.linePos(offset).line}`;
}

function decodeRoot(out: Decoder, doc: Document.Parsed): void {
  if (!isMap(doc.contents)) {
    out.errors.push({ where: out.file, what: `must be an object of kind ${KIND}` });
    return;
  }
  const header = new Map<string, string>();
  const entries = entriesOf(out, doc, doc.contents, '').filter(({ key, value, offset }) => {
    if (key !== 'apiVersion' && key !== 'kind') return true;
    if (isScalar(value) && typeof value.value === 'string') header.set(key, value.value);
    else out.errors.push({ where: at(out, offset), what: `${key} must be a string` });
    return false;
  });
  for (const [key, wanted] of [
    ['apiVersion', API_VERSION],
    ['kind', KIND],
  ] as const) {
    const found = header.get(key);
    if (found !== wanted)
      out.errors.push({
        where: out.file,
        what: `${key} must be ${wanted}, ${found === undefined ? 'it is missing' : `not ${JSON.stringify(found)}`}`,
      });
  }
  if (out.errors.length > 0) return;
  out.values = decodeFields(out, doc, { entries, fields: KUBELET_CONFIGURATION, path: '' });
}

interface Entry {
  key: string;
  value: unknown;
  offset: number | undefined;
}

/** Pairs of a mapping, the last of duplicates (with a warning), merge keys (`<<`) expanded first. */
function entriesOf(out: Decoder, doc: Document, map: { items: readonly Pair[] }, path: string): Entry[] {
  const found = new Map<string, Entry>();
  const own = new Set<string>();
  for (const pair of map.items) {
    const key = isScalar(pair.key) ? String(pair.key.value) : String(pair.key);
    const offset = isScalar(pair.key) ? pair.key.range?.[0] : undefined;
    const value = follow(doc, pair.value);
    if (key === '<<' || (isScalar(pair.key) && typeof pair.key.value === 'symbol')) {
      const merged = isSeq(value) ? value.items.map((i) => follow(doc, i)) : [value];
      for (const m of merged) if (isMap(m)) for (const e of entriesOf(out, doc, m, path)) if (!found.has(e.key)) found.set(e.key, e);
      continue;
    }
    if (own.has(key)) out.warnings.push({ where: at(out, offset), what: `duplicate field ${join(path, key)}; the last one counts` });
    own.add(key);
    found.set(key, { key, value, offset });
  }
  return [...found.values()];
}

function follow(doc: Document, node: unknown): unknown {
  return isAlias(node) ? node.resolve(doc) : node;
}

function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}

function decodeFields(out: Decoder, doc: Document, what: { entries: Entry[]; fields: Fields; path: string }): Tree {
  const values: Tree = {};
  for (const { key, value, offset } of what.entries) {
    const field = Object.hasOwn(what.fields, key) ? what.fields[key] : undefined;
    const path = join(what.path, key);
    if (field === undefined) {
      out.warnings.push({
        where: at(out, offset),
        what: `unknown field ${path}${didYouMean(key, Object.keys(what.fields))}; it is ignored`,
      });
      continue;
    }
    if (value === null || (isScalar(value) && value.value === null)) continue;
    out.origins.set(path, at(out, offset));
    const decoded = decodeValue(out, doc, { node: value, type: field, path });
    if (decoded !== undefined) values[key] = decoded;
  }
  return values;
}

/** Undefined after an error was recorded. */
function decodeValue(out: Decoder, doc: Document, v: { node: unknown; type: Shape; path: string }): unknown {
  const { type, path } = v;
  const node = follow(doc, v.node);
  const wrong = (wanted: string): undefined => {
    out.errors.push({ where: at(out, offsetOf(node)), what: `${path} must be ${wanted}, not ${describeNode(node)}` });
    return undefined;
  };
  if (type.t === 'list') {
    if (!isSeq(node)) return wrong('a list');
    return node.items
      .map((item, i) => decodeValue(out, doc, { node: item, type: type.of, path: `${path}[${i}]` }))
      .filter((x) => x !== undefined);
  }
  if (type.t === 'map') {
    if (!isMap(node)) return wrong('an object');
    const entries = entriesOf(out, doc, node, path).map((e) => {
      out.origins.set(join(path, e.key), at(out, e.offset));
      return [e.key, decodeValue(out, doc, { node: e.value, type: type.of, path: join(path, e.key) })] as const;
    });
    return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
  }
  if (type.t === 'object') {
    if (!isMap(node)) return wrong('an object');
    const values = decodeFields(out, doc, { entries: entriesOf(out, doc, node, path), fields: type.fields, path });
    return path.endsWith(']') ? { ...zeroes(type.fields), ...values } : values;
  }
  return decodeScalar(isScalar(node) ? node.value : undefined, type, wrong);
}

function decodeScalar(value: unknown, type: Shape, wrong: (wanted: string) => undefined): unknown {
  switch (type.t) {
    case 'boolean':
      return typeof value === 'boolean' ? value : wrong('true or false');
    case 'string':
      return typeof value === 'string' ? value : wrong('a string');
    case 'number':
      return typeof value === 'number' && Number.isFinite(value) ? value : wrong('a number');
    case 'integer':
      if (typeof value !== 'number' || !Number.isInteger(value)) return wrong('a whole number');
      return value < type.min || value > type.max ? wrong(`a whole number in ${type.min}..${type.max}`) : value;
    case 'durationOrNs':
      if (typeof value === 'number' && Number.isInteger(value)) return value / 1e6;
      return (typeof value === 'string' ? parseGoDuration(value) : undefined) ?? wrong('a duration such as "5s", or nanoseconds');
    case 'duration':
      return (
        (typeof value === 'string' ? parseGoDuration(value) : undefined) ?? wrong('a duration in quotes or plain, such as 20s or 1m30s')
      );
    default:
      return wrong('something else');
  }
}

/** Zero values of a list element's fields, as Go fills them. */
function zeroes(fields: Fields): Tree {
  const zero = (type: Shape): unknown => {
    if (type.t === 'boolean') return false;
    if (type.t === 'string') return '';
    if (type.t === 'list') return [];
    return type.t === 'map' || type.t === 'object' ? {} : 0;
  };
  return Object.fromEntries(Object.entries(fields).map(([name, f]) => [name, zero(f)]));
}

function offsetOf(node: unknown): number | undefined {
  return isScalar(node) || isMap(node) || isSeq(node) ? (node as Node).range?.[0] : undefined;
}

function describeNode(node: unknown): string {
  if (isMap(node)) return 'an object';
  if (isSeq(node)) return 'a list';
  return isScalar(node) ? JSON.stringify(node.value instanceof Uint8Array ? '(binary)' : String(node.value)) : 'nothing';
}
