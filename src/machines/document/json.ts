/**
 * JSON as Kubernetes reads it: what `JSON.parse` takes, with the place of each field, and with fields that are there twice. Of
 * those the last one counts, and objects are joined field by field, as Go's decoder does. Pure.
 */
import { own, put } from '../data/own.ts';

/** Where a field is: by the object that has it, then by its name, as an offset into the text. */
export type Places = Map<object, Map<string | number, number>>;
export interface Twice {
  key: string;
  offset: number;
}
export type JsonDocument = { ok: true; value: unknown; places: Places; twice: Twice[] } | { ok: false; offset: number; what: string };

/** Deeper than any object; the stack holds more. */
const LEVELS_MAX = 1_000;
const SPACE = /[ \t\r\n]*/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y;
const WORD = /true|false|null/y;
const WORDS: Readonly<Record<string, unknown>> = { true: true, false: false, null: null };

class Wrong extends Error {
  readonly offset: number;
  constructor(offset: number, what: string) {
    super(what);
    this.offset = offset;
  }
}

class Reader {
  readonly places: Places = new Map();
  readonly twice: Twice[] = [];
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): unknown {
    const value = this.#value(0);
    this.#space();
    if (this.#at < this.#text.length) throw new Wrong(this.#at, 'text after the end of the JSON document');
    return value;
  }

  #space(): void {
    SPACE.lastIndex = this.#at;
    SPACE.test(this.#text);
    this.#at = SPACE.lastIndex;
  }

  #take(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? null;
    if (found !== null) this.#at += found.length;
    return found;
  }

  #next(char: string): boolean {
    this.#space();
    if (this.#text[this.#at] !== char) return false;
    this.#at += 1;
    return true;
  }

  #value(level: number): unknown {
    if (level > LEVELS_MAX) throw new Wrong(this.#at, 'nested too deeply');
    this.#space();
    const start = this.#text[this.#at];
    if (start === '{') return this.#object(level);
    if (start === '[') return this.#list(level);
    if (start === '"') return this.#string();
    const word = this.#take(WORD);
    if (word !== null) return WORDS[word];
    const number = this.#take(NUMBER);
    if (number === null || number === '') throw new Wrong(this.#at, 'JSON has no value here');
    return Number(number);
  }

  #string(): string {
    const start = this.#at;
    for (let end = this.#text.indexOf('"', start + 1); end >= 0; end = this.#text.indexOf('"', end + 1)) {
      let slashes = 0;
      while (this.#text[end - 1 - slashes] === '\\') slashes += 1;
      if (slashes % 2 === 1) continue;
      this.#at = end + 1;
      try {
        return String(JSON.parse(this.#text.slice(start, end + 1)));
      } catch {
        throw new Wrong(start, 'not a JSON string');
      }
    }
    throw new Wrong(start, 'a JSON string without an end');
  }

  #list(level: number): unknown[] {
    const list: unknown[] = [];
    this.#at += 1;
    if (this.#next(']')) return list;
    do list.push(this.#value(level + 1));
    while (this.#next(','));
    if (!this.#next(']')) throw new Wrong(this.#at, "JSON wants ',' or ']' here");
    return list;
  }

  #object(level: number): Record<string, unknown> {
    const object: Record<string, unknown> = {};
    const places = new Map<string, number>();
    this.places.set(object, places);
    this.#at += 1;
    if (this.#next('}')) return object;
    do {
      this.#space();
      const offset = this.#at;
      if (this.#text[offset] !== '"') throw new Wrong(offset, 'JSON wants the name of a field in double quotes here');
      const key = this.#string();
      if (!this.#next(':')) throw new Wrong(this.#at, "JSON wants ':' here");
      const value = this.#value(level + 1);
      if (places.has(key)) this.twice.push({ key, offset });
      put(object, key, this.#joined(own(object, key), value));
      places.set(key, offset);
    } while (this.#next(','));
    if (!this.#next('}')) throw new Wrong(this.#at, "JSON wants ',' or '}' here");
    return object;
  }

  #joined(before: unknown, value: unknown): unknown {
    const known = this.#placesOf(before);
    const added = this.#placesOf(value);
    if (known === undefined || added === undefined) return value;
    for (const [key, part] of Object.entries(value as object)) {
      const target = before as Record<string, unknown>;
      put(target, key, this.#joined(own(target, key), part));
      known.set(key, added.get(key) ?? 0);
    }
    return before;
  }

  #placesOf(value: unknown): Map<string | number, number> | undefined {
    return typeof value === 'object' && value !== null ? this.places.get(value) : undefined;
  }
}

export function readJson(text: string): JsonDocument {
  const reader = new Reader(text);
  try {
    const value = reader.document();
    return { ok: true, value, places: reader.places, twice: reader.twice };
  } catch (error) {
    if (error instanceof Wrong) return { ok: false, offset: error.offset, what: error.message };
    throw error;
  }
}
