/** Type checks of manifests against the table of the Pod API (`podTable.ts`). */

import { own, put } from '../data/own.ts';
import type { ErrorList } from '../text/errorList.ts';
import type { Shape } from './shape.ts';

export function isRecord(v: unknown): v is Record<string, unknown> {
  return typeof v === 'object' && v !== null && !Array.isArray(v);
}

/** What a value is, in the words of messages. */
export function kindOf(v: unknown): string {
  if (v === null) return 'null';
  if (Array.isArray(v)) return 'a list';
  if (typeof v === 'object') return 'a mapping';
  return `a ${typeof v}`;
}

const wanted: Partial<Record<Shape['t'], string>> = {
  string: 'a string',
  integer: 'an integer',
  boolean: 'true or false',
  quantity: 'a quantity (a string such as 500m or 1Gi, or a number)',
  intOrString: 'an integer or a string',
  any: 'anything',
  list: 'a list',
  map: 'a mapping',
  object: 'a mapping',
};

/** The zero value of a type, as Go's decoder leaves it for an empty element of a list or map. */
export function zeroOf(schema: Shape): unknown {
  switch (schema.t) {
    case 'string':
      return '';
    case 'boolean':
      return false;
    case 'integer':
    case 'intOrString':
    case 'quantity':
      return 0;
    case 'list':
      return [];
    case 'map':
    case 'object':
      return {};
    default:
      return null;
  }
}

interface Place {
  schema: Shape;
  path: string;
  /** Hears of what is taken for something else than it says. */
  note?: (what: string) => void;
}

/** Integers of 64 bits beyond those that a number holds exactly are cut to the nearest one that it does. */
const INT64 = 2 ** 63;

function integerOf(value: unknown): number | null {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < -INT64 || value > INT64) return null;
  return Math.min(Math.max(value, Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);
}

/**
 * Checks `value` against the schema and gives a copy without nulls: a field that is null is absent. Fields that the
 * schema does not name are kept as they are. Every mismatch is appended to `errors` as `path: what is wrong`.
 */
export function conform(value: unknown, at: Place, errors: ErrorList): unknown {
  const { schema, path } = at;
  const wrong = () => {
    const quote = schema.t === 'string' && (typeof value === 'number' || typeof value === 'boolean') ? ' (put it in quotes)' : '';
    errors.add(`${path}: must be ${wanted[schema.t]}, not ${kindOf(value)}${quote}`);
    return undefined;
  };
  const part = (v: unknown, schema: Shape, path: string): unknown => {
    if (v !== null) return conform(v, { ...at, schema, path }, errors);
    at.note?.(`${path}: has no value; it is taken for ${JSON.stringify(zeroOf(schema))}`);
    return zeroOf(schema);
  };
  switch (schema.t) {
    case 'any':
      return structuredClone(value);
    case 'string':
      return typeof value === 'string' ? value : wrong();
    case 'boolean':
      return typeof value === 'boolean' ? value : wrong();
    case 'integer':
      return integerOf(value) ?? wrong();
    case 'intOrString':
      return typeof value === 'string' ? value : (integerOf(value) ?? wrong());
    case 'quantity':
      return typeof value === 'string' ? value.trim() : typeof value === 'number' && Number.isFinite(value) ? value : wrong();
    case 'list': {
      if (!Array.isArray(value)) return wrong();
      return value.map((v: unknown, i) => part(v, schema.of, `${path}[${i}]`));
    }
    case 'map':
    case 'object': {
      if (!isRecord(value)) return wrong();
      const out: Record<string, unknown> = {};
      for (const [key, v] of Object.entries(value)) {
        const below = path === '' ? key : `${path}.${key}`;
        if (schema.t === 'map') put(out, key, part(v ?? null, schema.of, below));
        else if (v !== null && v !== undefined) {
          const field = own(schema.fields, key);
          put(out, key, field === undefined ? structuredClone(v) : conform(v, { ...at, schema: field, path: below }, errors));
        }
      }
      return out;
    }
    default:
      throw new Error(`a pod has no field of type ${schema.t}: ${path}`);
  }
}
