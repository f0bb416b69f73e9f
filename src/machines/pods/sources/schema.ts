/** Type checks of manifests against the table of the Pod API (`podTable.ts`). */

import type { Shape } from '../../shape/shape.ts';
import type { ErrorList } from '../../text/errorList.ts';

export function isRecord(v: unknown): v is Record<string, unknown> {
  return typeof v === 'object' && v !== null && !Array.isArray(v);
}

function describe(v: unknown): string {
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

/**
 * Checks `value` against the schema and gives a copy without nulls (null is the same as absent). Fields that the
 * schema does not name are kept as they are. Every mismatch is appended to `errors` as `path: what is wrong`.
 */
export function conform(value: unknown, at: { schema: Shape; path: string }, errors: ErrorList): unknown {
  const { schema, path } = at;
  const wrong = () => {
    const quote = schema.t === 'string' && (typeof value === 'number' || typeof value === 'boolean') ? ' (put it in quotes)' : '';
    errors.add(`${path}: must be ${wanted[schema.t]}, not ${describe(value)}${quote}`);
    return undefined;
  };
  switch (schema.t) {
    case 'any':
      return structuredClone(value);
    case 'string':
      return typeof value === 'string' ? value : wrong();
    case 'boolean':
      return typeof value === 'boolean' ? value : wrong();
    case 'integer':
      return Number.isSafeInteger(value) ? value : wrong();
    case 'intOrString':
      return typeof value === 'string' || Number.isSafeInteger(value) ? value : wrong();
    case 'quantity':
      return typeof value === 'string' || (typeof value === 'number' && Number.isFinite(value)) ? value : wrong();
    case 'list': {
      if (!Array.isArray(value)) return wrong();
      return value.map((v: unknown, i) => conform(v, { schema: schema.of, path: `${path}[${i}]` }, errors));
    }
    case 'map':
    case 'object': {
      if (!isRecord(value)) return wrong();
      const out: Record<string, unknown> = {};
      for (const [key, v] of Object.entries(value)) {
        if (v === null || v === undefined) continue;
        const field = schema.t === 'map' ? schema.of : Object.hasOwn(schema.fields, key) ? schema.fields[key] : undefined;
        const copy =
          field === undefined ? structuredClone(v) : conform(v, { schema: field, path: path === '' ? key : `${path}.${key}` }, errors);
        // A plain assignment would treat a key named __proto__ as the prototype.
        Object.defineProperty(out, key, { value: copy, enumerable: true, writable: true, configurable: true });
      }
      return out;
    }
    default:
      throw new Error(`a pod has no field of type ${schema.t}: ${path}`);
  }
}
