/**
 * Reads flag values by type (boot-and-node 2.1). Each reader gets every occurrence of its flag in order and answers
 * one value; it throws an Error that says what would have been right.
 */
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import type { ConfigTaint, MemoryReservation, VModuleItem } from '../../machines/config/config.ts';
import { parseGoDuration } from '../../machines/text/go/goDuration.ts';
import { isLabelValue, isQualifiedName } from '../names.ts';
import type { FlagType } from './types.ts';

/** Undefined = the flag changes nothing. */
export type FlagValue =
  | undefined
  | string
  | number
  | boolean
  | readonly string[]
  | readonly number[]
  | Readonly<Record<string, string>>
  | Readonly<Record<string, boolean>>
  | Readonly<Record<string, readonly string[]>>
  | readonly ConfigTaint[]
  | readonly MemoryReservation[]
  | readonly VModuleItem[];

interface ReadContext {
  /** Working directory that relative paths of flags stand against. */
  cwd: string;
}

type Reader = (values: readonly string[], ctx: ReadContext) => FlagValue;

const last = (values: readonly string[]): string => values[values.length - 1] ?? '';

/** Scalars: the last occurrence wins, but every occurrence must be readable. */
function scalar(read: (text: string, ctx: ReadContext) => FlagValue): Reader {
  return (values, ctx) => values.map((v) => read(v, ctx)).pop();
}

export const READERS: Readonly<Record<FlagType, Reader>> = {
  bool: scalar(readBool),
  int: scalar((t) => readInt(t, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)),
  int32: scalar((t) => readInt(t, -(2 ** 31), 2 ** 31 - 1)),
  int64: scalar((t) => readInt(t, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)),
  uint64: scalar((t) => readInt(t, 0, Number.MAX_SAFE_INTEGER)),
  float: scalar(readFloat),
  string: (values) => last(values),
  path: scalar((t, ctx) => (t === '' ? '' : resolve(ctx.cwd, t))),
  folder: scalar((t, ctx) => (t === '' ? '' : `${resolve(ctx.cwd, t)}${/[^/]\/+$/.test(t) ? '/' : ''}`)),
  duration: scalar(readDuration),
  ip: (values) => {
    const given = values.filter((v) => v.trim() !== '');
    for (const v of given) if (isIP(v.trim()) === 0) throw new Error(`${JSON.stringify(v)} is not an IP address`);
    return given.length === 0 ? undefined : last(given).trim();
  },
  nodeIPs: (values) =>
    last(values)
      .split(',')
      .map((v) => v.trim())
      .filter((v) => v !== ''),
  strings: (values) => values.flatMap(splitCsv),
  int32s: (values) => values.flatMap(commaItems).map((t) => readInt(t, -(2 ** 31), 2 ** 31 - 1)),
  mapStringBool: (values) => readPairs(values.flatMap(commaItems), '=', readBool),
  mapStringString: (values) => readPairs(values.flatMap(commaItems), '=', (t) => t),
  langleMap: (values) => readPairs(values.flatMap(commaItems), '<', (t) => t),
  noSplitMap: (values) =>
    readPairs(
      values.filter((v) => v.trim() !== ''),
      '=',
      (t) => t,
    ),
  labels: (values) => Object.fromEntries(values.flatMap(commaItems).map(readLabel)),
  colonMultimap: readMultimap,
  taints: (values) => values.flatMap(commaItems).map(readTaint),
  reservedMemory: (values) =>
    values
      .flatMap((v) => v.split(';'))
      .filter((v) => v.trim() !== '')
      .map(readReservation),
  vmodule: (values) => commaItems(last(values)).map(readVModule),
  loopback: scalar(readLoopback),
  version: scalar((t) => {
    if (t === 'raw') return 'raw';
    return readBool(t) ? 'true' : 'false';
  }),
};

/** Between the kubelet's ports (10248 to 10255) and those of the control plane's parts (10256 to 10259). */
const INSPECT_PORT = 10260;
const PORT_MAX = 65_535;

function readLoopback(text: string): string {
  if (text === '' || BOOLS.get(text) === false) return '';
  if (BOOLS.get(text) === true) return `127.0.0.1:${INSPECT_PORT}`;
  const m = /^(?:(127(?:\.\d{1,3}){3}|localhost|\[::1\]):)?(\d{1,5})$/.exec(text);
  if (m === null || Number(m[2]) > PORT_MAX) {
    throw new Error(
      `${JSON.stringify(text)} is not a loopback address with a port, such as 127.0.0.1:${INSPECT_PORT}; no other address is possible`,
    );
  }
  return `${m[1] ?? '127.0.0.1'}:${Number(m[2])}`;
}

const BOOLS: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'true', 'TRUE', 'True'].map((t) => [t, true] as const),
  ...['0', 'f', 'F', 'false', 'FALSE', 'False'].map((t) => [t, false] as const),
]);

function readBool(text: string): boolean {
  const value = BOOLS.get(text);
  if (value === undefined) throw new Error(`${JSON.stringify(text)} is not a boolean (true or false)`);
  return value;
}

/** Go's base-0 integers: decimal, 0x, 0o, 0b, a leading 0 for octal, single underscores between digits. */
function readInt(text: string, min: number, max: number): number {
  const m = /^([+-]?)(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|0[0-7_]*|[1-9][0-9_]*)$/.exec(text);
  const body = m?.[2];
  if (body === undefined || /__|_$/.test(body)) throw new Error(`${JSON.stringify(text)} is not a whole number`);
  const digits = body.replaceAll('_', '');
  const octal = /^0[0-7]+$/.test(digits) ? `0o${digits.slice(1)}` : digits;
  const value = (m?.[1] === '-' ? -1 : 1) * Number(octal);
  if (value < min || value > max) throw new Error(`${text} is outside ${min}..${max}`);
  return value === 0 ? 0 : value;
}

function readFloat(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || Number.isNaN(value)) throw new Error(`${JSON.stringify(text)} is not a number`);
  return value;
}

function readDuration(text: string): number {
  const ms = parseGoDuration(text);
  if (ms === undefined) throw new Error(`${JSON.stringify(text)} is not a duration (such as 300ms, 20s, 1m30s)`);
  return ms;
}

/** Items between commas, trimmed; empty ones are skipped. */
function commaItems(text: string): string[] {
  return text
    .split(',')
    .map((t) => t.trim())
    .filter((t) => t !== '');
}

/** One CSV record: commas split, double quotes protect, doubled quotes inside quotes stand for one. '' = no items. */
function splitCsv(text: string): string[] {
  if (text === '') return [];
  const items: string[] = [];
  let rest = text;
  for (;;) {
    const quoted = /^"((?:[^"]|"")*)"(?=,|$)/.exec(rest);
    const raw = quoted === null ? (/^[^,]*/.exec(rest)?.[0] ?? '') : quoted[0];
    if (quoted === null && raw.includes('"')) throw new Error(`stray quote in ${JSON.stringify(text)}`);
    items.push(quoted === null ? raw : (quoted[1] ?? '').replaceAll('""', '"'));
    if (rest.length === raw.length) return items;
    rest = rest.slice(raw.length + 1);
  }
}

function splitPair(item: string, separator: string): [string, string] {
  const at = item.indexOf(separator);
  if (at < 0) throw new Error(`${JSON.stringify(item)} lacks its "${separator}" (name${separator}value)`);
  return [item.slice(0, at).trim(), item.slice(at + 1).trim()];
}

function readPairs<T>(items: readonly string[], separator: string, read: (text: string) => T): Record<string, T> {
  const out: Record<string, T> = {};
  for (const item of items) {
    const [key, value] = splitPair(item, separator);
    out[key] = read(value);
  }
  return out;
}

function readLabel(item: string): [string, string] {
  return item.includes('=') ? splitPair(item, '=') : [item, ''];
}

function readMultimap(values: readonly string[]): Record<string, string[]> {
  const out: Record<string, string[]> = {};
  for (const item of values.flatMap(commaItems)) {
    if (!item.includes(':')) throw new Error('an item lacks its ":" (Name:value)'); // The item may be a secret: not shown.
    const [key, value] = splitPair(item, ':');
    out[key] = [...(out[key] ?? []), value];
  }
  return out;
}

const EFFECTS: readonly ConfigTaint['effect'][] = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

function readTaint(item: string): ConfigTaint {
  const colon = item.indexOf(':');
  const [head, effectText] = colon < 0 ? [item, ''] : [item.slice(0, colon), item.slice(colon + 1)];
  const [key, value] = readLabel(head);
  const effect = EFFECTS.find((e) => e === effectText);
  if (effect === undefined) throw new Error(`taint ${JSON.stringify(item)} needs an effect: key=value:effect with ${EFFECTS.join(', ')}`);
  if (!isQualifiedName(key)) throw new Error(`taint key ${JSON.stringify(key)} is not a qualified name`);
  if (!isLabelValue(value)) throw new Error(`taint value ${JSON.stringify(value)} is not a label value`);
  return { key, value, effect };
}

function readReservation(item: string): MemoryReservation {
  const [node, limits] = splitPair(item, ':');
  return { numaNode: readInt(node, 0, 2 ** 31 - 1), limits: readPairs(commaItems(limits), '=', (t) => t) };
}

function readVModule(item: string): VModuleItem {
  const [filePattern, level] = splitPair(item, '=');
  if (filePattern === '') throw new Error(`${JSON.stringify(item)} lacks a file pattern`);
  return { filePattern, verbosity: readInt(level, 0, 2 ** 31 - 1) };
}
