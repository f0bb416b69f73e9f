/**
 * Reads one YAML mapping field by field and keeps the place of each. What was never asked for is an unknown field, so a
 * field has to be written down in one place only: where it is read.
 */

import { parseQuantity, quantityToInteger } from '@actorlet/kubelet/machines/kube/quantity.ts';
import type { Of, Shape, Typed } from '@actorlet/kubelet/machines/shape/shape.ts';
import { parseGoDuration } from '@actorlet/kubelet/machines/text/go/goDuration.ts';
import { didYouMean } from '@actorlet/kubelet/machines/text/nearest.ts';
import { isAlias, isMap, isScalar, isSeq, type LineCounter, type Node, type YAMLMap } from 'yaml';
import { DURATION_MAX_MS } from '../table.ts';
import type { ScenarioError } from '../types.ts';

export interface Problems {
  readonly errors: ScenarioError[];
  at(node: Node | null | undefined, field: string, message: string): void;
  lineOf(node: Node | null | undefined): number;
}
export function problems(lines: LineCounter): Problems {
  const errors: ScenarioError[] = [];
  const lineOf = (node: Node | null | undefined): number => {
    const offset = node?.range?.[0];
    return offset === undefined ? 0 : lines.linePos(offset).line;
  };
  return { errors, lineOf, at: (node, field, message) => void errors.push({ line: lineOf(node), field, message }) };
}

/** What stands there, for "must be X, is Y". */
function shown(node: unknown): string {
  if (isMap(node)) return 'a mapping';
  if (isSeq(node)) return 'a list';
  if (isAlias(node)) return 'an alias';
  if (!isScalar(node) || node.value === null) return 'empty';
  const text = String(node.value);
  return typeof node.value === 'string' ? JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}...` : text) : text;
}

export interface NumberLimits {
  min: number;
  max: number;
  whole?: boolean;
}

export class MapReader {
  readonly node: YAMLMap;
  readonly path: string;
  readonly #problems: Problems;
  readonly #asked = new Set<string>();

  constructor(node: YAMLMap, path: string, found: Problems) {
    this.node = node;
    this.path = path;
    this.#problems = found;
  }

  field(name: string): string {
    return this.path === '' ? name : `${this.path}.${name}`;
  }
  /** The value of a field; undefined when it is not there. Asking makes the field known. */
  get(name: string): Node | undefined {
    this.#asked.add(name);
    const pair = this.node.items.find((p) => isScalar(p.key) && p.key.value === name);
    if (pair === undefined) return undefined;
    const value = pair.value as Node | null;
    if (value !== null && isAlias(value)) {
      this.wrong(name, 'must be written out; aliases are not supported', value);
      return undefined;
    }
    // `name:` with nothing behind it: its place is that of the key.
    return value ?? (pair.key as Node);
  }
  has(name: string): boolean {
    return this.node.items.some((p) => isScalar(p.key) && p.key.value === name);
  }
  wrong(name: string, message: string, node: Node | undefined = this.#place(name)): void {
    this.#problems.at(node ?? this.node, name === '' ? this.path : this.field(name), message);
  }
  #place(name: string): Node | undefined {
    const pair = this.node.items.find((p) => isScalar(p.key) && p.key.value === name);
    return pair === undefined ? undefined : (pair.key as Node);
  }

  unknownName(name: string, value: string, known: readonly string[]): void {
    this.wrong(name, `there is no fault named ${value}${didYouMean(value, known)}`);
  }

  /** A field by its shape in the table; undefined where it is not there, or wrong. */
  read<S extends Shape & Typed<unknown>>(name: string, shape: S): Of<S> | undefined {
    // The shape says of which type its values are.
    return this.#value(name, shape) as Of<S> | undefined;
  }
  /** As `read`, and whatever the table says where the file leaves it out. Complains of a required one. */
  readOr(name: string, shape: Shape): unknown {
    const value = this.#value(name, shape);
    if (value === undefined && shape.required && !this.has(name)) this.wrong(name, 'is missing');
    return value ?? shape.absent;
  }
  #value(name: string, shape: Shape): unknown {
    switch (shape.t) {
      case 'string':
        return shape.words === undefined ? this.text(name) : this.word(name, shape.words);
      case 'integer':
      case 'number':
        return this.number(name, { ...shape, whole: shape.t === 'integer' });
      case 'namedNumber':
        return this.#namedNumber(name, shape);
      case 'boolean':
        return this.boolean(name);
      case 'duration':
        return this.duration(name, shape);
      case 'bytes':
        return this.quantity(name);
      case 'quantity':
        return this.amount(name);
      case 'oneOrMore':
        if (shape.of.t === 'integer') return this.integers(name, shape.of);
        return shape.of.t === 'string' && shape.of.words !== undefined ? this.words(name, shape.of.words) : this.texts(name);
      default:
        throw new Error(`a scenario has no field of type ${shape.t}: ${this.field(name)}`);
    }
  }
  #namedNumber(name: string, shape: NumberLimits & { names: Readonly<Record<string, number>> }): number | undefined {
    const node = this.get(name);
    if (node === undefined) return undefined;
    if ('value' in node && typeof node.value === 'number') return this.number(name, { ...shape, whole: true });
    const found = this.word(name, Object.keys(shape.names));
    return found === undefined ? undefined : shape.names[found];
  }

  text(name: string): string | undefined {
    const node = this.get(name);
    if (node === undefined) return undefined;
    if (isScalar(node) && typeof node.value === 'string' && node.value !== '' && this.#hasValue(name)) return node.value;
    this.wrong(name, `must be a text, is ${this.#shown(name, node)}`, node);
    return undefined;
  }
  number(name: string, limits: NumberLimits): number | undefined {
    const node = this.get(name);
    if (node === undefined) return undefined;
    const { min, max, whole = false } = limits;
    const value = isScalar(node) ? node.value : undefined;
    if (typeof value === 'number' && value >= min && value <= max && (!whole || Number.isInteger(value))) return value;
    this.wrong(name, `must be a ${whole ? 'whole ' : ''}number from ${min} to ${max}, is ${this.#shown(name, node)}`, node);
    return undefined;
  }
  /** A duration such as `90s` or `1m30s`, in ms. */
  duration(name: string, limits: { minMs?: number; maxMs?: number } = {}): number | undefined {
    const node = this.get(name);
    if (node === undefined) return undefined;
    const { minMs = 0, maxMs = DURATION_MAX_MS } = limits;
    const value = isScalar(node) && this.#hasValue(name) ? node.value : undefined;
    const ms = typeof value === 'string' || value === 0 ? parseGoDuration(String(value)) : undefined;
    if (ms === undefined) {
      const hint = typeof value === 'number' ? `; a number needs its unit: ${value}s or ${value}ms` : '';
      this.wrong(name, `must be a duration such as 500ms, 10s or 1m30s, is ${this.#shown(name, node)}${hint}`, node);
    } else if (ms < minMs || ms > maxMs) {
      this.wrong(name, `must be from ${minMs}ms to ${maxMs / 3_600_000}h, is ${String(value)}`, node);
    } else return ms;
    return undefined;
  }
  boolean(name: string): boolean | undefined {
    const node = this.get(name);
    if (node === undefined) return undefined;
    if (isScalar(node) && typeof node.value === 'boolean') return node.value;
    this.wrong(name, `must be true or false, is ${this.#shown(name, node)}`, node);
    return undefined;
  }
  /** Bytes, as a Kubernetes quantity. */
  quantity(name: string): number | undefined {
    const amount = this.amount(name);
    return amount === undefined ? undefined : quantityToInteger(amount);
  }
  /** A Kubernetes quantity that is not negative, as it is written. */
  amount(name: string): string | number | undefined {
    const node = this.get(name);
    if (node === undefined) return undefined;
    const value = isScalar(node) && this.#hasValue(name) ? node.value : undefined;
    if (typeof value === 'string' || typeof value === 'number') {
      const parsed = parseQuantity(value);
      if (parsed !== undefined && parsed.mantissa >= 0n) return value;
    }
    this.wrong(name, `must be a quantity such as 100Mi, is ${this.#shown(name, node)}`, node);
    return undefined;
  }
  word<T extends string>(name: string, words: readonly T[]): T | undefined {
    const node = this.get(name);
    if (node === undefined) return undefined;
    const value = isScalar(node) ? node.value : undefined;
    const found = words.find((w) => w === value);
    if (found === undefined || !this.#hasValue(name)) this.wrong(name, notAWord(this.#shown(name, node), value, words), node);
    return found;
  }
  /** One text or a list of them. */
  texts(name: string): string[] | undefined {
    return this.#oneOrMore(
      name,
      (value) => (typeof value === 'string' && value !== '' ? value : undefined),
      (is) => `must be a text, is ${is}`,
    );
  }
  /** One whole number or a list of them. */
  integers(name: string, { min, max }: NumberLimits): number[] | undefined {
    const fits = (value: unknown): value is number => typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max;
    return this.#oneOrMore(
      name,
      (value) => (fits(value) ? value : undefined),
      (is) => `must be a whole number from ${min} to ${max}, is ${is}`,
    );
  }
  words<T extends string>(name: string, words: readonly T[]): T[] | undefined {
    return this.#oneOrMore(
      name,
      (value) => words.find((w) => w === value),
      (is, value) => notAWord(is, value, words),
    );
  }
  /** An empty list would select nothing, and a list that is left out selects everything: it is a mistake. */
  #oneOrMore<T>(name: string, read: (value: unknown) => T | undefined, wrong: (is: string, value: unknown) => string): T[] | undefined {
    const node = this.get(name);
    if (node === undefined) return undefined;
    const list = isSeq(node) ? node.items : [node];
    if (list.length === 0) this.wrong(name, 'must not be an empty list', node);
    return list.flatMap((item, i) => {
      const value = isScalar(item) && this.#hasValue(name) ? item.value : undefined;
      const found = read(value);
      if (found !== undefined) return [found];
      this.#problems.at(item as Node, this.#element(name, node, i), wrong(this.#shown(name, item), value));
      return [];
    });
  }
  map(name: string): MapReader | undefined {
    const node = this.get(name);
    if (node === undefined) return undefined;
    if (isMap(node)) return new MapReader(node, this.field(name), this.#problems);
    this.wrong(name, `must be a mapping, is ${this.#shown(name, node)}`, node);
    return undefined;
  }
  /** A list of mappings. */
  maps(name: string): MapReader[] {
    const node = this.get(name);
    if (node === undefined) return [];
    if (!isSeq(node)) {
      this.wrong(name, `must be a list, is ${this.#shown(name, node)}`, node);
      return [];
    }
    return node.items.flatMap((item, i) => {
      const path = `${this.field(name)}[${i}]`;
      if (isMap(item)) return [new MapReader(item, path, this.#problems)];
      this.#problems.at(item as Node, path, `must be a mapping, is ${shown(item)}`);
      return [];
    });
  }

  /**
   * Complains of every field nobody asked for. `elsewhere`: why a field that exists in another place is wrong here; null
   * when that cannot be told, since another complaint stands before it.
   */
  finish(elsewhere: (name: string) => string | undefined | null = () => undefined): void {
    for (const { key } of this.node.items) {
      const name = isScalar(key) ? String(key.value) : '';
      if (this.#asked.has(name)) continue;
      const why = elsewhere(name);
      if (why === null) continue;
      this.#problems.at(key as Node, this.field(name), why ?? `unknown field${didYouMean(name, this.#asked)}`);
    }
  }

  #hasValue(name: string): boolean {
    return this.node.items.some((p) => isScalar(p.key) && p.key.value === name && p.value !== null);
  }
  #shown(name: string, node: unknown): string {
    return this.#hasValue(name) ? shown(node) : 'empty';
  }
  #element(name: string, node: Node, i: number): string {
    return isSeq(node) ? `${this.field(name)}[${i}]` : this.field(name);
  }
}

function notAWord(is: string, value: unknown, words: readonly string[]): string {
  const hint = typeof value === 'string' ? didYouMean(value, words) : '';
  return words.length > WORDS_SHOWN_MAX && hint !== ''
    ? `unknown value ${is}${hint}`
    : `must be one of ${words.join(', ')}; is ${is}${hint}`;
}
/** Longer lists are shown only where no near name helps. */
const WORDS_SHOWN_MAX = 8;
