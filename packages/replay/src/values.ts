/**
 * Values as they cross between the tree and its ports: as JSON for the recording, and as what the other side gets. Data go over
 * as they are. Functions, promises, signals and objects with methods become what `Border` makes of them, numbered in the order
 * of the walk, so that a replay finds the same numbers.
 *
 * What JSON has no word for is an object with the key `$`: a key of the value itself that begins with `$` gets one more.
 */

import { fromBase64 } from '@actorlet/kubelet/machines/data/base64.ts';
import { CriError } from '@actorlet/kubelet/ports/ports.ts';
import { PlainAnswerError } from '@actorlet/kubelet/ports/prober.ts';
import { CsiError } from '@actorlet/kubelet/ports/sockets/csi.ts';
import type { Json } from './entries.ts';
import type { Door, Place } from './secrets/doors.ts';
import { READ_QUERIES } from './secrets/requests.ts';

type Fn = (...args: unknown[]) => unknown;

/** What a side makes of what is more than data. */
export interface Border {
  text(text: string, at: Place): string;
  bytes(bytes: Uint8Array, at: Place): Json;
  /** By which door what has this key of `owner` comes. */
  door(key: string, owner: object, at: Place): Door;
  fn(fn: Fn, name: string): { json: Json; other: Fn };
  promise(promise: PromiseLike<unknown>): { json: Json; other: unknown };
  signal(signal: AbortSignal): { json: Json; other: AbortSignal };
}
export interface Crossed {
  json: Json;
  other: unknown;
}

const PLAIN: readonly unknown[] = [Object.prototype, null];
const SYMBOLS = { '@@asyncIterator': Symbol.asyncIterator, '@@dispose': Symbol.dispose, '@@asyncDispose': Symbol.asyncDispose } as const;
const NAMED_SYMBOLS = Object.entries(SYMBOLS);
const MESSAGE: Place = { key: 'message', door: 'free' };
const OPEN: Place = { key: '', door: 'open' };

/** Errors whose class the tree asks for. */
const ERRORS: Readonly<Record<string, { prototype: object }>> = { CriError, CsiError, PlainAnswerError };

export function cross(value: unknown, border: Border, at: Place): Crossed {
  switch (typeof value) {
    case 'string':
      return { json: border.text(value, at), other: value };
    case 'boolean':
      return { json: value, other: value };
    case 'number':
      return {
        json: Number.isFinite(value) && !Object.is(value, -0) ? value : { $: 'd', v: Object.is(value, -0) ? '-0' : String(value) },
        other: value,
      };
    case 'undefined':
      return { json: { $: 'u' }, other: value };
    case 'bigint':
      return { json: { $: 'n', v: String(value) }, other: value };
    case 'function':
      return border.fn(value as Fn, at.key);
    case 'symbol':
      return { json: { $: 'u' }, other: value };
    default:
      return value === null ? { json: null, other: null } : crossObject(value as object, border, at);
  }
}

function crossObject(value: object, border: Border, at: Place): Crossed {
  if (Array.isArray(value)) return crossArray(value, border, at);
  if (value instanceof Uint8Array) return { json: border.bytes(value, at), other: value };
  if (PLAIN.includes(Object.getPrototypeOf(value))) return crossRecord(value as Record<string, unknown>, border, at);
  if (value instanceof Error) return { json: errorJson(value, border, at), other: value };
  if (value instanceof AbortSignal) return border.signal(value);
  if (isThenable(value)) return border.promise(value);
  if (value instanceof Map)
    return {
      json: {
        $: 'm',
        v: [...value].map(([k, v]) => [
          cross(k, border, OPEN).json,
          cross(v, border, typeof k === 'string' ? { key: k, door: border.door(k, value, at) } : at).json,
        ]),
      },
      other: value,
    };
  if (value instanceof Set) return { json: { $: 's', v: [...value].map((v) => cross(v, border, at).json) }, other: value };
  if (value instanceof Date) return { json: { $: 't', v: value.getTime() }, other: value };
  if (value instanceof URLSearchParams)
    return {
      json: { $: 'q', v: [...value].map((pair) => queryPair(pair, value, border, at)) },
      other: value,
    };
  return crossInstance(value, border, at);
}

/** What is no parameter that the tree reads is a secret, its name too: a token may stand alone. */
function queryPair([key, value]: readonly [string, string], all: URLSearchParams, border: Border, at: Place): Json {
  const door = border.door(key, all, at);
  return [READ_QUERIES.has(key) ? key : border.text(key, { key: '', door }), border.text(value, { key, door })];
}

/** Most of what crosses: neither side needs an object for it. Undefined: it is more. */
function plain(value: unknown): Json | undefined {
  if (value === null || typeof value === 'boolean') return value;
  return typeof value === 'number' && Number.isFinite(value) && !Object.is(value, -0) ? value : undefined;
}

function crossArray(value: readonly unknown[], border: Border, at: Place): Crossed {
  let json: Json[] | null = null;
  let other: unknown[] | null = null;
  for (let i = 0; i < value.length; i++) {
    const item = value[i];
    let now = typeof item === 'string' ? border.text(item, at) : plain(item);
    if (now === undefined) {
      const one = cross(item, border, at);
      now = one.json;
      if (one.other !== item) {
        other ??= [...value];
        other[i] = one.other;
      }
    }
    if (now !== item) json ??= value.slice(0, i) as Json[];
    json?.push(now);
  }
  return { json: json ?? (value as Json), other: other ?? value };
}

const TRACE = 'traceparent';

/** Most of what crosses is data that both sides and the recording share: it is copied from where it first differs. */
function crossRecord(value: Record<string, unknown>, border: Border, at: Place): Crossed {
  let json: Record<string, Json> | null = null;
  let other: Record<string | symbol, unknown> | null = null;
  for (const key of Object.keys(value)) {
    const item = value[key];
    // A tracer adds it, which is no part of the tree; a replay has none.
    if (key === TRACE) {
      json ??= before(value, key);
      continue;
    }
    let now = plain(item);
    if (now === undefined) {
      const door = border.door(key, value, at);
      if (typeof item === 'string') now = border.text(item, door === 'open' ? OPEN : { key, door });
      else {
        const one = cross(typeof item === 'function' ? item.bind(value) : item, border, { key, door });
        now = one.json;
        if (one.other !== item) {
          other ??= { ...value };
          other[key] = one.other;
        }
      }
    }
    if (now !== item || key.startsWith('$')) json ??= before(value, key);
    if (json !== null) put(json, key, now);
  }
  for (const [name, symbol] of NAMED_SYMBOLS) {
    const method = (value as Record<symbol, unknown>)[symbol];
    if (typeof method !== 'function') continue;
    const one = border.fn(method.bind(value) as Fn, name);
    json ??= before(value, null);
    json[`$${name}`] = one.json;
    other ??= { ...value };
    other[symbol] = one.other;
  }
  return { json: json ?? (value as Json), other: other ?? value };
}

/** A copy of what is the same on both sides: the keys before `end`. */
function before(value: Record<string, unknown>, end: string | null): Record<string, Json> {
  const json: Record<string, Json> = {};
  for (const key of Object.keys(value)) {
    if (key === end) break;
    put(json, key, value[key] as Json);
  }
  return json;
}

function put(json: Record<string, Json>, key: string, value: Json): void {
  if (key === '__proto__') Object.defineProperty(json, key, { value, enumerable: true });
  else json[key.startsWith('$') ? `$${key}` : key] = value;
}

/** An object of a class: its methods, its own data, and getters as methods that are called when they are read. */
function crossInstance(value: object, border: Border, at: Place): Crossed {
  const iterates = Symbol.asyncIterator in value;
  const json: Record<string, Json> = {};
  const other: Record<string | symbol, unknown> = {};
  const add = (name: string, key: string | symbol, item: unknown): void => {
    const one = cross(typeof item === 'function' ? item.bind(value) : item, border, { key: name, door: at.door });
    json[name.startsWith('@@') ? `$${name}` : name] = one.json;
    other[key] = one.other;
  };
  for (const [name, symbol] of NAMED_SYMBOLS) {
    const method: unknown = Reflect.get(value, symbol);
    if (typeof method === 'function') add(name, symbol, method);
  }
  // A stream of Node has sixty methods; who is given an iterable reads it.
  if (iterates && !('next' in value)) return { json, other };
  for (let proto: object = value; proto !== null && proto !== Object.prototype; proto = Object.getPrototypeOf(proto) as object) {
    for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(proto))) {
      if (name === 'constructor' || Object.hasOwn(json, name) || Object.hasOwn(json, `get ${name}`)) continue;
      if (property.get === undefined) {
        add(name, name, property.value);
        continue;
      }
      const read: unknown = Reflect.get(value, name);
      if (isThenable(read)) {
        add(name, name, read);
        continue;
      }
      const one = border.fn(() => Reflect.get(value, name), name);
      json[`get ${name}`] = one.json;
      Object.defineProperty(other, name, { get: one.other, enumerable: true });
    }
  }
  return { json, other };
}

function errorJson(error: Error, border: Border, at: Place): Json {
  const kind = Object.keys(ERRORS).find((name) => error.constructor.name === name) ?? '';
  const own: Record<string, Json> = {};
  for (const key of Object.keys(error))
    if (key !== 'stack' && key !== 'name')
      own[key] = cross(Reflect.get(error, key), border, { key, door: border.door(key, error, at) }).json;
  if (error.cause instanceof Error) own.cause = errorJson(error.cause, border, at);
  return { $: 'e', c: kind, n: error.name, m: border.text(error.message, at.door === 'open' ? MESSAGE : at), p: own };
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** What makes the values of a recording again. */
export interface Maker {
  fn(id: number, name: string): Fn;
  promise(call: number): unknown;
  signal(id: number): AbortSignal;
}

/** @throws on what {@link cross} never wrote. */
export function revive(json: Json, maker: Maker): unknown {
  if (json === null || typeof json !== 'object') return json;
  if (Array.isArray(json)) return json.map((item: Json) => revive(item, maker));
  const record = json as { readonly [key: string]: Json };
  return typeof record.$ === 'string' ? reviveMarked(record, maker) : reviveRecord(record, maker);
}

function reviveRecord(record: { readonly [key: string]: Json }, maker: Maker): unknown {
  const out: Record<string | symbol, unknown> = {};
  for (const [key, item] of Object.entries(record)) {
    const value = revive(item, maker);
    const symbol = SYMBOLS[key.slice(1) as keyof typeof SYMBOLS];
    if (key.startsWith('get ')) Object.defineProperty(out, key.slice(4), { get: value as () => unknown, enumerable: true });
    else if (symbol !== undefined && key.startsWith('$')) out[symbol] = value;
    // A key of the data may be any word: `__proto__` too.
    else
      Object.defineProperty(out, key.startsWith('$') ? key.slice(1) : key, { value, enumerable: true, writable: true, configurable: true });
  }
  return out;
}

function reviveMarked(record: { readonly [key: string]: Json }, maker: Maker): unknown {
  const v = record.v ?? null;
  switch (record.$) {
    case 'u':
      return undefined;
    case 'd':
      return Number(v);
    case 'n':
      return BigInt(String(v));
    case 'x':
      return new TextEncoder().encode(String(v));
    case 'b':
      return fromBase64(String(v)) ?? new Uint8Array();
    case 'm':
      return new Map((revive(v, maker) as [unknown, unknown][]).map(([k, item]) => [k, item]));
    case 's':
      return new Set(revive(v, maker) as unknown[]);
    case 't':
      return new Date(Number(v));
    case 'q':
      return new URLSearchParams(v as unknown as [string, string][]);
    case 'f':
      return maker.fn(Number(v), String(record.n ?? ''));
    case 'p':
      return maker.promise(Number(v));
    case 'a':
      return maker.signal(Number(v));
    case 'e':
      return reviveError(record, maker);
    default:
      throw new Error(`a value of the unknown kind ${JSON.stringify(record.$)}`);
  }
}

function reviveError(record: { readonly [key: string]: Json }, maker: Maker): Error {
  const error = new Error(String(record.m));
  const known = ERRORS[String(record.c)];
  if (known !== undefined) Object.setPrototypeOf(error, known.prototype);
  error.name = String(record.n);
  Object.assign(error, revive(record.p ?? {}, maker));
  return error;
}

/** Bytes as text where they are text, which compresses and can be searched; else as base64. */
export function bytesJson(bytes: Uint8Array): Json {
  const text = textOf(bytes);
  return text === null ? { $: 'b', v: btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join('')) } : { $: 'x', v: text };
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
/** Null: the bytes are no UTF-8 that comes back the same. */
export function textOf(bytes: Uint8Array): string | null {
  try {
    return decoder.decode(bytes);
  } catch {
    return null;
  }
}
