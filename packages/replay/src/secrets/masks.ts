/**
 * What the tree says, as it is compared. A recording keeps nothing of a secret, so texts with one in them are told by where they
 * stand, and by their length where that stays. The list of them is in the recording: a replay hides the same texts.
 */
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { Json } from '../entries.ts';
import type { Door, Place } from './doors.ts';
import { documentOf } from './encodings.ts';

/** What of a text is compared: all, its length in bytes, or nothing. */
export type Shown = 'all' | 'length' | 'nothing';
/** A text of the tree; `base64`: of bytes that are no text. */
export interface Said {
  readonly text: string;
  readonly base64: boolean;
  readonly at: Place;
}

export const HIDDEN = '§';

export interface Masked {
  readonly json: Json;
  /** Twice the number of each text that is not compared as it is, from 0; one more where its length is not compared either. */
  readonly masks: readonly number[];
}
type DoorOf = (key: string, owner: object, at: Place) => Door;

/** As a recording begins with it. */
export function masked(json: Json, o: { shown(said: Said): Shown; doorOf: DoorOf; itemAt?(item: number): Place }): Masked {
  const walk = new Walk(o.shown, o.doorOf);
  const { itemAt } = o;
  const hidden =
    itemAt === undefined || !Array.isArray(json)
      ? walk.in(json, NOWHERE)
      : (json as readonly Json[]).map((item, i) => walk.in(item, itemAt(i)));
  return { json: hidden, masks: walk.masks };
}

const NOWHERE: Place = { key: '', door: 'open' };
/** With the masks of a recording. */
export function maskedAs(json: Json, masks: readonly number[] = []): Json {
  const hidden = new Map(masks.map((mask): [number, Shown] => [mask >> 1, mask % 2 === 1 ? 'nothing' : 'length']));
  let number = 0;
  return new Walk(
    () => hidden.get(number++) ?? 'all',
    () => 'open',
  ).in(json, NOWHERE);
}

class Walk {
  readonly masks: number[] = [];
  readonly #shown: (said: Said) => Shown;
  readonly #doorOf: DoorOf;
  #texts = 0;

  constructor(shown: (said: Said) => Shown, doorOf: DoorOf) {
    this.#shown = shown;
    this.#doorOf = doorOf;
  }

  in(json: Json, at: Place): Json {
    if (typeof json === 'string') return this.#text({ text: json, base64: false, at });
    if (typeof json !== 'object' || json === null) return json;
    if (Array.isArray(json)) return (json as readonly Json[]).map((item) => this.in(item, at));
    const record = json as { readonly [key: string]: Json };
    return typeof record.$ === 'string' ? this.#marked(record, at) : this.#record(record, at);
  }

  #record(record: { readonly [key: string]: Json }, at: Place): Json {
    return Object.fromEntries(
      Object.entries(record).map(([key, item]) => [
        key,
        typeof item === 'object' || typeof item === 'string' ? this.in(item, this.#place(key, record, at)) : item,
      ]),
    );
  }

  #place(key: string, owner: object, at: Place): Place {
    return { key, door: this.#doorOf(key, owner, at) };
  }

  #marked(record: { readonly [key: string]: Json }, at: Place): Json {
    const { $: kind, v } = record;
    switch (kind) {
      case 'x':
      case 'b':
        return typeof v === 'string' ? { $: kind, v: this.#text({ text: v, base64: kind === 'b', at }) } : record;
      case 'q':
      case 'm':
        return { $: kind, v: Array.isArray(v) ? (v as readonly Json[]).map((pair) => this.#pair(pair, record, at)) : (v ?? null) };
      case 's':
        return { $: kind, v: this.in(v ?? null, at) };
      case 'e':
        return { ...record, m: this.in(record.m ?? '', { key: 'message', door: 'free' }), p: this.in(record.p ?? {}, at) };
      default:
        return record;
    }
  }

  #pair(pair: Json, owner: object, at: Place): Json {
    const [key, value] = Array.isArray(pair) ? (pair as readonly Json[]) : [];
    if (typeof key !== 'string') return pair;
    return [key, this.in(value ?? null, this.#place(key, owner, at))];
  }

  #text(said: Said): Json {
    const number = this.#texts++;
    const shown = this.#shown(said);
    if (shown === 'all') {
      const parsed = said.base64 ? undefined : documentOf(said.text);
      return parsed === undefined ? said.text : { $: 'j', v: this.in(parsed, NOWHERE) };
    }
    this.masks.push(number * 2 + (shown === 'nothing' ? 1 : 0));
    return shown === 'nothing' ? HIDDEN : `${HIDDEN}${said.base64 ? atob(said.text).length : new TextEncoder().encode(said.text).length}`;
  }
}

/** `value` with each of its texts changed; the value itself where none is. */
export function withTexts(value: unknown, at: Place, o: { doorOf: DoorOf; text(text: string, at: Place): string }): unknown {
  if (typeof value === 'string') return o.text(value, at);
  if (Array.isArray(value))
    return kept(
      value,
      value.map((item) => withTexts(item, at, o)),
    );
  if (!isRecord(value)) return value;
  let changed = false;
  const entries = Object.entries(value).map(([key, item]): [string, unknown] => {
    if (typeof item !== 'object' && typeof item !== 'string') return [key, item];
    const made = withTexts(item, { key, door: o.doorOf(key, value, at) }, o);
    changed ||= made !== item;
    return [key, made];
  });
  return changed ? Object.fromEntries(entries) : value;
}

function kept(value: readonly unknown[], made: readonly unknown[]): readonly unknown[] {
  return made.every((item, i) => item === value[i]) ? value : made;
}
