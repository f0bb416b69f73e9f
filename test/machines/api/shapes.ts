/** Objects made of their table of shapes: one that sets every field, and each of its fields with each wrong type. */
import { KINDS } from '../../../src/machines/kube/read/kinds.ts';
import { time } from '../../../src/machines/kube/read/read.ts';
import type { Shape } from '../../../src/machines/shape/shape.ts';

/** Sets every field that the shape has. */
export function sample(shape: Shape): unknown {
  switch (shape.t) {
    case 'string':
      return shape.pattern === (time as Shape & { pattern?: string }).pattern ? '2024-05-01T10:00:00Z' : (shape.words?.[0] ?? 'text');
    case 'boolean':
      return true;
    case 'integer':
    case 'intOrString':
      return 1;
    case 'quantity':
      return '1';
    case 'list':
      return [sample(shape.of)];
    case 'map':
      return { key: sample(shape.of) };
    case 'object':
      return Object.fromEntries(Object.entries(shape.fields).map(([key, field]) => [key, sample(field)]));
    default:
      return {};
  }
}

const WRONG: readonly unknown[] = [null, true, 5, 0.5, 'text', [], [[]], {}, { a: { b: [] } }];

function fits(value: unknown, { t }: Shape): boolean {
  if (t === 'any') return true;
  if (t === 'string') return typeof value === 'string';
  if (t === 'boolean') return typeof value === 'boolean';
  if (t === 'integer') return Number.isInteger(value);
  if (t === 'intOrString') return typeof value === 'string' || Number.isInteger(value);
  if (t === 'quantity') return typeof value === 'string' || typeof value === 'number';
  return t === 'list' ? Array.isArray(value) : typeof value === 'object' && !Array.isArray(value);
}

export interface Wrong {
  path: string;
  /** In place of the field. */
  given: unknown;
  /** The whole object. */
  value: unknown;
}

/** `full` with each of its fields, at every depth, of each type that it does not have; and null. */
export function* everyWrong(full: unknown, shape: Shape, path = ''): Generator<Wrong> {
  const inside = function* (key: string | number, field: Shape, at: string): Generator<Wrong> {
    const value = (full as Record<string | number, unknown>)[key];
    const put = (given: unknown): unknown =>
      Array.isArray(full) ? full.map((v: unknown, i) => (i === key ? given : v)) : { ...(full as object), [key]: given };
    for (const given of WRONG) if (given === null || !fits(given, field)) yield { path: at, given, value: put(given) };
    for (const deeper of everyWrong(value, field, at)) yield { ...deeper, value: put(deeper.value) };
  };
  if (shape.t === 'list') yield* inside(0, shape.of, `${path}[0]`);
  else if (shape.t === 'map') yield* inside('key', shape.of, `${path}.key`);
  else if (shape.t === 'object')
    for (const [key, field] of Object.entries(shape.fields)) yield* inside(key, field, path === '' ? key : `${path}.${key}`);
}

export const shapeOf = (plural: string): Shape => (KINDS[plural] as { shape: Shape }).shape;
