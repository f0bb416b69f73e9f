/**
 * One configuration file, decoded (boot-and-node 2.4): YAML or JSON against the schema, with the place of every value.
 * What only strict decoding objects to (unknown and duplicate fields) is a warning; a wrong type, kind or version is an error.
 */
import { dirname, resolve } from 'node:path';
import { KUBELET_CONFIGURATION } from '../../machines/config/schema.ts';
import { put } from '../../machines/data/own.ts';
import { readDocument } from '../../machines/document/read.ts';
import type { Fields, Shape } from '../../machines/shape/shape.ts';
import { parseGoDuration } from '../../machines/text/go/goDuration.ts';
import { didYouMean } from '../../machines/text/nearest.ts';
import { shownEndpoint } from '../../machines/text/shownUrl.ts';
import type { Problem } from '../errors.ts';
import { getPath, isTree, type Tree, withPath } from './paths.ts';

const API_VERSION = 'kubelet.config.k8s.io/v1beta1';
const KIND = 'KubeletConfiguration';

/** Fields whose relative path stands against a directory: that of the file, or the working directory for drop-ins. */
const PATHS = [
  'staticPodPath',
  'authentication.x509.clientCAFile',
  'tlsCertFile',
  'tlsPrivateKeyFile',
  'resolvConf',
  'volumePluginDir',
  'podLogsDir',
] as const;

export interface Decoded {
  /** Only what is mentioned; durations in milliseconds. */
  values: Tree;
  errors: Problem[];
}
export interface DecodedFile extends Decoded {
  file: string;
  /** The document as it was read, without kind and version. */
  plain: Tree;
  /** `file:line` of each mentioned path. */
  origins: ReadonlyMap<string, string>;
  warnings: Problem[];
}

interface Decoder extends DecodedFile {
  origins: Map<string, string>;
  /** Names in any case, as the reference takes them from drop-ins alone. */
  anyCase: boolean;
  place(holder: object, key: string | number): string;
}

/** Never throws. `file` is absolute. */
export function decodeConfigFile(file: string, text: string): DecodedFile {
  const { out, wrong } = decoded(file, text, { anyCase: false });
  return { ...out, values: withAbsolutePaths(out.values, dirname(file)), errors: [...out.errors, ...wrong] };
}

/** Never throws. A wrong type is no error yet: a later drop-in may take its place. */
export function decodeDropIn(file: string, text: string): DecodedFile {
  return decoded(file, text, { anyCase: true }).out;
}

/** What is left of all files. `origins` say where a wrong value came from. */
export function decodeMerged(plain: Tree, origins: ReadonlyMap<string, string>): Decoded {
  const out = emptyDecoder('--config-dir', true);
  out.values = decodeFields(out, { holder: plain, fields: KUBELET_CONFIGURATION, path: '' });
  const errors = out.errors.map(({ where, what }) => ({ where: origins.get(where) ?? '--config-dir', what: `${where} ${what}` }));
  return { values: out.values, errors };
}

/** An absolute path is kept as written, so that validation sees its exact form. */
export function withAbsolutePaths(values: Tree, dir: string): Tree {
  let out = values;
  for (const path of PATHS) {
    const value = getPath(out, path);
    if (typeof value === 'string' && value !== '' && !value.startsWith('/')) out = withPath(out, path, resolve(dir, value));
  }
  return out;
}

function emptyDecoder(file: string, anyCase: boolean): Decoder {
  return { ...{ file, values: {}, plain: {}, origins: new Map(), errors: [], warnings: [] }, anyCase, place: () => file };
}

function decoded(file: string, text: string, { anyCase }: { anyCase: boolean }): { out: Decoder; wrong: Problem[] } {
  const out = emptyDecoder(file, anyCase);
  const refused = (where: string, what: string): { out: Decoder; wrong: Problem[] } => ({
    out: { ...out, errors: [{ where, what }] },
    wrong: [],
  });
  // A single carriage return ends a line in YAML; the reader of documents knows the other two ends.
  const read = readDocument(text.replaceAll(/\r(?!\n)/g, '\n'));
  if (!read.ok) return refused(`${file}:${read.line}`, read.message);
  const { value } = read;
  if (value === null) return refused(file, `is empty; it must carry at least apiVersion: ${API_VERSION} and kind: ${KIND}`);
  if (!isTree(value)) return refused(file, `must be an object of kind ${KIND}`);
  out.place = (holder, key) => {
    const line = read.lineOf(holder, key);
    return line === undefined ? file : `${file}:${line}`;
  };
  out.warnings.push(...read.notes.map(({ line, what }) => ({ where: `${file}:${line}`, what })));
  checkHeader(out, value);
  if (out.errors.length > 0) return { out, wrong: [] };
  delete value.kind;
  delete value.apiVersion;
  out.plain = value;
  const decoder: Decoder = { ...out, errors: [] };
  out.values = decodeFields(decoder, { holder: value, fields: KUBELET_CONFIGURATION, path: '' });
  return { out, wrong: decoder.errors.map(({ where, what }) => ({ where: out.origins.get(where) ?? file, what: `${where} ${what}` })) };
}

/** The reference finds the two names in any case, except in drop-ins. */
function checkHeader(out: Decoder, root: Tree): void {
  for (const [key, wanted] of [
    ['apiVersion', API_VERSION],
    ['kind', KIND],
  ] as const) {
    const similar = out.anyCase ? undefined : Object.keys(root).find((name) => name.toLowerCase() === key.toLowerCase());
    const found = root[key] ?? (similar === undefined ? undefined : root[similar]);
    if (found === wanted) continue;
    const not = found === undefined || found === null ? 'it is missing' : `not ${JSON.stringify(found)}`;
    out.errors.push({ where: out.file, what: `${key} must be ${wanted}, ${not}` });
  }
}

function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}

const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** Errors name the path in `where`: its place is known once all are found. */
function decodeFields(out: Decoder, { holder, fields, path: under }: { holder: Tree; path: string; fields: Fields }): Tree {
  const values: Tree = {};
  const known = new Map(out.anyCase ? Object.keys(fields).map((name) => [name.toLowerCase(), name]) : []);
  // The last one in this order counts there, among names that differ in case alone.
  const keys = out.anyCase ? Object.keys(holder).sort(byBytes) : Object.keys(holder);
  for (const key of keys) {
    const name = out.anyCase ? (known.get(key.toLowerCase()) ?? key) : key;
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    const path = join(under, name);
    if (field === undefined) {
      const what = `unknown field ${path}${didYouMean(key, Object.keys(fields))}; it is ignored`;
      out.warnings.push({ where: out.place(holder, key), what });
      continue;
    }
    out.origins.set(path, out.place(holder, key));
    const value = holder[key];
    if (value === null || value === undefined) continue;
    const one = decodeValue(out, { value, type: field, path });
    if (one !== undefined) put(values, name, joined(values[name], one, field));
  }
  return values;
}

/** Objects and maps of names that differ in case alone are one object. */
function joined(before: unknown, value: unknown, { t }: Shape): unknown {
  return (t === 'object' || t === 'map') && isTree(before) && isTree(value) ? { ...before, ...value } : value;
}

/** Undefined after an error was recorded. */
function decodeValue(out: Decoder, { value, type, path }: { value: unknown; type: Shape; path: string }): unknown {
  const wrong = (wanted: string): undefined => {
    out.errors.push({ where: path, what: `must be ${wanted}, not ${describe(value, path)}` });
    return undefined;
  };
  if (type.t === 'list') {
    if (!Array.isArray(value)) return wrong('a list');
    return value
      .map((item: unknown, i) => {
        out.origins.set(`${path}[${i}]`, out.place(value, i));
        return decodeItem(out, { value: item, type: type.of, path: `${path}[${i}]`, place: out.place(value, i) });
      })
      .filter((x) => x !== undefined);
  }
  if (type.t !== 'map' && type.t !== 'object') return decodeScalar(value, type, wrong);
  if (!isTree(value)) return wrong('an object');
  if (type.t === 'object') {
    const values = decodeFields(out, { holder: value, fields: type.fields, path });
    return path.endsWith(']') ? { ...zeroes(type.fields), ...values } : values;
  }
  const entries = Object.entries(value).map(([key, item]) => {
    out.origins.set(join(path, key), out.place(value, key));
    return [key, decodeItem(out, { value: item, type: type.of, path: join(path, key), place: out.place(value, key) })] as const;
  });
  return Object.fromEntries(entries.filter(([, item]) => item !== undefined));
}

/** Decodes an item of a list or a map: null stands for zero or nothing there. */
function decodeItem(out: Decoder, item: { value: unknown; type: Shape; path: string; place: string }): unknown {
  if (item.value !== null) return decodeValue(out, item);
  const zero = zeroOf(item.type);
  out.warnings.push({ where: item.place, what: `${item.path} is null; it is taken for ${JSON.stringify(zero)}` });
  return zero;
}

const INT64 = 2 ** 63;

function decodeScalar(value: unknown, type: Shape, wrong: (wanted: string) => undefined): unknown {
  switch (type.t) {
    case 'boolean':
      return typeof value === 'boolean' ? value : wrong('true or false');
    case 'string':
      return typeof value === 'string' ? value : wrong('a string');
    case 'quantity':
      return (typeof value === 'string' && value !== '') || typeof value === 'number' ? String(value) : wrong('a quantity');
    case 'number':
      return typeof value === 'number' && Number.isFinite(value) ? value : wrong('a number');
    case 'integer':
      if (typeof value !== 'number' || !Number.isInteger(value)) return wrong('a whole number');
      // Go's numbers of 64 bits reach farther; no field tells such numbers apart.
      if (type.max === Number.MAX_SAFE_INTEGER && Math.abs(value) <= INT64) return Math.max(type.min, Math.min(type.max, value));
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
  return Object.fromEntries(Object.entries(fields).map(([name, f]) => [name, zeroOf(f)]));
}

/** What null stands for in a list or a map. */
function zeroOf(type: Shape): unknown {
  if (type.t === 'boolean') return false;
  if (type.t === 'string') return '';
  if (type.t === 'list') return [];
  if (type.t === 'map') return {};
  return type.t === 'object' ? zeroes(type.fields) : 0;
}

function describe(value: unknown, path: string): string {
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'an object';
  // People give a header that is a key as a text.
  return path.startsWith('staticPodURLHeader') ? 'a text' : JSON.stringify(shownEndpoint(String(value)));
}
