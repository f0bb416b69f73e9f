/** JSON Schema (draft 7, which editors know best) of a shape. */
import type { Shape } from '../../src/machines/shape/shape.ts';

export type JsonSchema = { readonly [keyword: string]: unknown };

export interface Dialect {
  /** Null is the same as absent. */
  nulls: boolean;
  /** In maps too. */
  nullsInMaps: boolean;
  /** Text must not be empty. */
  nonEmpty: boolean;
  /** A number alone is a duration when it is 0. */
  zeroDuration: boolean;
  /** 0 and '' mean "unset", but in pointer fields. */
  zeroIsUnset: boolean;
}

const DURATION = '(([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h))+';
const QUANTITY = '([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][+-]?[0-9]+|[numkMGTPE]|[KMGTPE]i)?';

export const objectSchema = (properties: JsonSchema, required: readonly string[]): JsonSchema => ({
  type: 'object',
  properties,
  ...(required.length === 0 ? {} : { required }),
  additionalProperties: false,
});

/** A field: its shape, with its description, and null where that is the same as absent. */
export function fieldSchema(shape: Shape, dialect: Dialect): JsonSchema {
  return decorated(jsonSchemaOf(shape, dialect), shape, dialect);
}

/** What the facts of a field add to the schema of its values. */
export function decorated(plain: JsonSchema, shape: Shape, dialect: Dialect): JsonSchema {
  const { about, required, pointer, always } = shape;
  const schema = dialect.zeroIsUnset && pointer !== true && always !== true ? orZero(plain) : plain;
  return { ...(about === undefined ? {} : { description: about }), ...(dialect.nulls && required !== true ? orNull(schema) : schema) };
}

export function fieldSchemas(fields: Readonly<Record<string, Shape>>, dialect: Dialect): JsonSchema {
  return Object.fromEntries(Object.entries(fields).map(([name, shape]) => [name, fieldSchema(shape, dialect)]));
}

export function requiredOf(fields: Readonly<Record<string, Shape>>): string[] {
  return Object.keys(fields).filter((name) => fields[name]?.required === true);
}

function orZero(schema: JsonSchema): JsonSchema {
  if (Array.isArray(schema.enum) && !schema.enum.includes('')) return { ...schema, enum: ['', ...(schema.enum as unknown[])] };
  return typeof schema.minimum === 'number' && schema.minimum > 0 ? { ...schema, minimum: 0 } : schema;
}

function orNull(schema: JsonSchema): JsonSchema {
  if (schema.anyOf !== undefined) return { anyOf: [...(schema.anyOf as unknown[]), { type: 'null' }] };
  if (schema.type === undefined) return schema;
  const values = schema.enum === undefined ? {} : { enum: [...(schema.enum as unknown[]), null] };
  return { ...schema, type: [...[schema.type].flat(), 'null'], ...values };
}

export function jsonSchemaOf(shape: Shape, dialect: Dialect): JsonSchema {
  switch (shape.t) {
    case 'any':
      return {};
    case 'boolean':
      return { type: 'boolean' };
    case 'string':
      return textSchema(shape, dialect);
    case 'integer':
    case 'number':
      return { type: shape.t, ...limits(shape) };
    case 'namedNumber':
      return { anyOf: [{ enum: Object.keys(shape.names) }, { type: 'integer', ...limits(shape) }] };
    case 'intOrString':
      return { type: ['integer', 'string'] };
    case 'quantity':
    case 'bytes':
      return quantitySchema(shape.t === 'bytes');
    case 'duration':
      return durationSchema(shape, dialect);
    case 'durationOrNs':
      return { type: ['string', 'integer'], pattern: `^[+-]?(0|${DURATION})$` };
    case 'list':
      return { type: 'array', items: jsonSchemaOf(shape.of, dialect) };
    case 'oneOrMore': {
      const of = jsonSchemaOf(shape.of, dialect);
      return { anyOf: [of, { type: 'array', items: of, minItems: 1 }] };
    }
    case 'map':
      return mapSchema(shape, dialect);
    case 'object':
      return objectSchema(fieldSchemas(shape.fields, dialect), requiredOf(shape.fields));
  }
}

function textSchema(shape: Extract<Shape, { t: 'string' }>, dialect: Dialect): JsonSchema {
  if (shape.words !== undefined) return { type: 'string', enum: shape.words };
  if (shape.pattern !== undefined) return { type: 'string', pattern: shape.pattern };
  return { type: 'string', ...(dialect.nonEmpty ? { minLength: 1 } : {}) };
}

/** What a key of a map may have. */
export function entrySchema(shape: Extract<Shape, { t: 'map' }>, dialect: Dialect): JsonSchema {
  const of = jsonSchemaOf(shape.of, dialect);
  return dialect.nullsInMaps ? orNull(of) : of;
}

function mapSchema(shape: Extract<Shape, { t: 'map' }>, dialect: Dialect): JsonSchema {
  const of = entrySchema(shape, dialect);
  if (shape.keys === undefined) return { type: 'object', additionalProperties: of };
  return objectSchema(Object.fromEntries(shape.keys.map((key) => [key, of])), []);
}

function limits(shape: { min: number; max: number; within?: readonly [number, number] }): JsonSchema {
  const [min, max] = shape.within ?? [shape.min, shape.max];
  return {
    ...(min <= Number.MIN_SAFE_INTEGER ? {} : { minimum: min }),
    ...(max >= Number.MAX_SAFE_INTEGER ? {} : { maximum: max }),
  };
}

function quantitySchema(positive: boolean): JsonSchema {
  return {
    type: ['string', 'number'],
    ...(positive ? { minimum: 0 } : {}),
    pattern: `^${positive ? '\\+?' : '[+-]?'}${QUANTITY}$`,
    patternErrorMessage: 'must be a quantity such as 100Mi or 500m',
  };
}

const DURATION_WANTED = 'must be a duration such as 500ms, 10s or 1m30s';

function durationSchema(shape: Extract<Shape, { t: 'duration' }>, dialect: Dialect): JsonSchema {
  const sign = shape.minMs === undefined || shape.minMs < 0 ? '[+-]?' : '\\+?';
  const text = {
    type: 'string',
    pattern: `^${sign}(0|${DURATION})$`,
    patternErrorMessage: DURATION_WANTED,
    errorMessage: DURATION_WANTED,
  };
  const zero = dialect.zeroDuration && (shape.minMs === undefined || shape.minMs <= 0);
  return zero ? { anyOf: [text, { const: 0 }] } : text;
}

/** Parts that stand in several places, once, under `definitions`. */
export function shared(root: JsonSchema): JsonSchema {
  const count = new Map<string, number>();
  walk(root, (_, text) => count.set(text, (count.get(text) ?? 0) + 1));
  const names = new Map<string, string>();
  const given = root.definitions === undefined ? {} : (root.definitions as Record<string, unknown>);
  const definitions: Record<string, unknown> = {};
  const place = (value: unknown, name: string): unknown => {
    if (Array.isArray(value)) return value.map((v: unknown) => place(v, name));
    if (typeof value !== 'object' || value === null) return value;
    const text = JSON.stringify(value);
    const inside = (): unknown => Object.fromEntries(Object.entries(value).map(([k, v]) => [k, place(v, KEYWORDS.has(k) ? name : k)]));
    if (text.length < SHARED_CHARS_MIN || (count.get(text) ?? 0) < 2 || !isSchema(value)) return inside();
    let known = names.get(text);
    if (known === undefined) {
      known = freeName(name, { ...given, ...definitions });
      names.set(text, known);
      // Its place is taken before its inside is looked at, which may want the same name.
      definitions[known] = undefined;
      definitions[known] = inside();
    }
    return { $ref: `#/definitions/${known}` };
  };
  const { definitions: _, ...rest } = root;
  const out = place(rest, '') as JsonSchema;
  const own = Object.fromEntries(Object.entries(given).map(([k, v]) => [k, place(v, k)]));
  const all = { ...own, ...definitions };
  return Object.keys(all).length === 0 ? out : { ...out, definitions: all };
}

/** A reference costs more than a shorter part. */
const SHARED_CHARS_MIN = 80;
const KEYWORDS = new Set(['properties', 'items', 'additionalProperties', 'anyOf', 'allOf', 'if', 'then', 'definitions']);

function isSchema(value: object): boolean {
  const { type, anyOf, enum: values } = value as Record<string, unknown>;
  // Below `properties`, a field may have one of these names.
  return typeof type === 'string' || [type, anyOf, values].some(Array.isArray);
}

function freeName(name: string, taken: object): string {
  for (let i = 1; ; i++) {
    const candidate = i === 1 ? name : `${name}${i}`;
    if (!Object.hasOwn(taken, candidate)) return candidate;
  }
}

function walk(value: unknown, seen: (value: object, text: string) => void): void {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) seen(value, JSON.stringify(value));
  for (const v of Object.values(value)) walk(v, seen);
}
