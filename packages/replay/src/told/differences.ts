/** Which fields of what was said then and is said now differ, in words. */
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { Json } from '../entries.ts';
import { isHidden } from '../seen/said.ts';

/** Both sides as text; `nothing` where the field is not there. */
export interface Difference {
  readonly field: string;
  readonly was: string;
  readonly now: string;
}

const SHOWN_MAX = 12;
const CHARS_MAX = 160;
const LEVELS_MAX = 60;
/** Of a long text, before the place where it differs. */
const BEFORE_CHARS = 40;
const NOTHING = 'nothing';
/** What items of lists are told apart by, in lists of Kubernetes and CRI. */
const NAMES = ['name', 'type', 'containerPath', 'uid', 'id', 'key'] as const;

/** The first of them. No field differs: the two are of the same text. */
export function differences(was: Json, now: Json): Difference[] {
  const found: Difference[] = [];
  compare(was, now, { path: '', level: 0, found });
  return found;
}

interface At {
  readonly path: string;
  readonly level: number;
  readonly found: Difference[];
}

function compare(was: Json | undefined, now: Json | undefined, at: At): void {
  if (at.found.length >= SHOWN_MAX || same(was, now)) return;
  const [a, b] = [unwrapped(was), unwrapped(now)];
  if (at.level < LEVELS_MAX && Array.isArray(a) && Array.isArray(b)) compareLists(a as Json[], b as Json[], at);
  else if (at.level < LEVELS_MAX && isPlain(a) && isPlain(b)) {
    for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) compare(a[key], b[key], below(at, key));
  } else if (typeof a === 'string' && typeof b === 'string') compareTexts(a, b, at);
  else at.found.push({ field: at.path, was: text(a), now: text(b) });
}

function same(a: Json | undefined, b: Json | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && JSON.stringify(a) === JSON.stringify(b));
}

/** Bytes are compared as the text that they are, and texts of JSON as their document. */
function unwrapped(json: Json | undefined): Json | undefined {
  if (!isRecord(json)) return json;
  return json.$ === 'x' || json.$ === 'j' ? unwrapped((json as { readonly v: Json }).v) : json;
}

function isPlain(json: Json | undefined): json is { readonly [key: string]: Json } {
  return isRecord(json) && (json.$ === undefined || typeof json.$ !== 'string');
}

function below(at: At, key: string): At {
  return { ...at, path: at.path === '' ? key : `${at.path}.${key}`, level: at.level + 1 };
}

/** By name where each item has one of its own; else by place. */
function compareLists(a: readonly Json[], b: readonly Json[], at: At): void {
  const name = at.level === 0 ? undefined : NAMES.find((key) => isNamedBy(a, key) && isNamedBy(b, key));
  if (name === undefined) {
    // The arguments of a call: what is in an object needs no number before it.
    const path = (i: number): At =>
      at.level === 0 ? argument(at, i, isPlain(a[i]) || isPlain(b[i])) : { ...below(at, ''), path: `${at.path}[${i}]` };
    for (let i = 0; i < Math.max(a.length, b.length); i++) compare(a[i], b[i], path(i));
    return;
  }
  const named = (list: readonly Json[]) => new Map(list.map((item) => [String((item as Record<string, Json>)[name]), item]));
  const [then, now] = [named(a), named(b)];
  const before = at.found.length;
  for (const key of new Set([...then.keys(), ...now.keys()]))
    compare(then.get(key), now.get(key), { ...below(at, ''), path: `${at.path}[${key}]` });
  if (at.found.length === before)
    at.found.push({ field: `${at.path} (order)`, was: [...then.keys()].join(', '), now: [...now.keys()].join(', ') });
}

function argument(at: At, i: number, isObject: boolean): At {
  return { ...at, path: isObject ? '' : `argument ${i + 1}`, level: at.level + 1 };
}

function isNamedBy(list: readonly Json[], key: string): boolean {
  const names = list.map((item) => (isPlain(item) && typeof item[key] === 'string' ? item[key] : undefined));
  return names.every((one) => one !== undefined) && new Set(names).size === names.length;
}

/** Documents by their fields, other texts of several lines by the first line. */
function compareTexts(a: string, b: string, at: At): void {
  const [then, now] = [documentOf(a), documentOf(b)];
  if (then !== undefined && now !== undefined && !same(then, now)) {
    compare(then, now, { ...at, level: at.level + 1 });
    return;
  }
  const [lines, others] = [a.split('\n'), b.split('\n')];
  const i = lines.length + others.length > 2 ? lines.findIndex((line, n) => line !== others[n]) : -1;
  if (i < 0 && lines.length === others.length) at.found.push({ field: at.path, ...aroundDifference(a, b) });
  else {
    const line = i < 0 ? lines.length : i;
    const [one, other] = [lines[line], others[line]];
    const both = one === undefined || other === undefined ? { was: text(one), now: text(other) } : aroundDifference(one, other);
    at.found.push({ field: `${at.path} line ${line + 1}`.trim(), ...both });
  }
}

/** Long texts from shortly before the place on. */
function aroundDifference(a: string, b: string): { was: string; now: string } {
  let first = 0;
  while (first < a.length && a[first] === b[first]) first += 1;
  const from = Math.max(a.length, b.length) <= CHARS_MAX || first < BEFORE_CHARS ? 0 : first - BEFORE_CHARS;
  const cut = (whole: string): string => text(from === 0 ? whole : `…${whole.slice(from)}`);
  return { was: cut(a), now: cut(b) };
}

function documentOf(text: string): Json | undefined {
  if (!/^\s*[{[]/.test(text)) return undefined;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/** A value in one line. */
function text(json: Json | undefined): string {
  if (json === undefined || (isRecord(json) && json.$ === 'u')) return NOTHING;
  if (isHidden(json)) return `a text of ${json.n} characters (${json.v})`;
  const whole = JSON.stringify(json);
  return whole.length > CHARS_MAX ? `${whole.slice(0, CHARS_MAX)}…` : whole;
}

/** What was said in one line, without what is empty. */
export function saidWords(args: Json): string {
  const words: string[] = [];
  const see = (value: Json, path: string, level: number): void => {
    if (words.length >= SHOWN_MAX || level > 3) return;
    const plain = unwrapped(value);
    // Functions and signals say nothing.
    if (isRecord(plain) && typeof plain.$ === 'string' && !isHidden(plain as Json)) return;
    if (Array.isArray(plain)) {
      if (level === 0) for (const item of plain as Json[]) see(item, '', 1);
      else if (plain.length > 0) words.push(`${path}=${text(plain as Json)}`);
    } else if (isPlain(plain)) for (const [key, item] of Object.entries(plain)) see(item, path === '' ? key : `${path}.${key}`, level + 1);
    else if (plain !== null && plain !== undefined && plain !== '') words.push(path === '' ? String(plain) : `${path}=${text(plain)}`);
  };
  see(args, '', 0);
  const all = words.join(' ');
  return all.length > 2 * CHARS_MAX ? `${all.slice(0, 2 * CHARS_MAX)}…` : all;
}
