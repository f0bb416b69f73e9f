/**
 * Reads what the API server sent against a table of shapes, as Go's decoder does: null is absent, a required field that is absent
 * has its zero value, a field that the table lacks stays as it is, and a value of another type makes the object unreadable. Pure.
 * What the table does not describe is left out where it is nested so deeply that comparing or writing it would overflow the stack.
 */
import { own, put, replacing } from '../../data/own.ts';
import { isRecord, kindOf, zeroOf } from '../../shape/conform.ts';
import { matching, type Shape } from '../../shape/shape.ts';
import { cut } from '../../text/errorList.ts';

export type Read = { ok: true; value: unknown } | { ok: false; problem: string };

/** Go's integers have 64 bits. */
const INTEGER_MAX = 2 ** 63;
const PROBLEM_CHARS_MAX = 300;
/** No kind of the API has as many. Go's decoder gives up at 10,000, and the stack here holds some thousand. */
const LEVELS_MAX = 200;
const WRONG = Symbol('wrong');
/** RFC 3339; the API server writes UTC, with fractions in times of leases. */
const TIME = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;
export const time = matching(TIME.source);

/** Reads `value`, the very one where nothing of it has to change. `problem`: the first field of a wrong type, as `path: what is wrong`. */
export function readShape(value: unknown, shape: Shape): Read {
  const reader = new Reader();
  const read = reader.read(value, shape);
  if (read !== WRONG) return { ok: true, value: read };
  const path = reader.path.reverse().join('').replace(/^\./, '');
  return { ok: false, problem: cut(`${path === '' ? 'it' : path}: must be ${reader.expected}, not ${reader.given}`, PROBLEM_CHARS_MAX) };
}

const EXPECTED: Partial<Record<Shape['t'], string>> = {
  string: 'a string',
  boolean: 'true or false',
  integer: 'an integer',
  intOrString: 'an integer or a string',
  quantity: 'a quantity',
  list: 'a list',
  map: 'a mapping',
  object: 'a mapping',
};

class Reader {
  /** From the innermost part outwards. */
  readonly path: string[] = [];
  expected = '';
  given = '';

  read(value: unknown, shape: Shape): unknown {
    switch (shape.t) {
      case 'any':
        return hasLevels(value, LEVELS_MAX) ? value : undefined;
      case 'string':
        if (typeof value !== 'string') return this.#wrong(value, shape);
        return shape.pattern === undefined || isTime(value) ? value : this.#wrong(value, shape, 'a time');
      case 'boolean':
        return typeof value === 'boolean' ? value : this.#wrong(value, shape);
      case 'integer':
        return isInteger(value) ? held(value) : this.#wrong(value, shape);
      case 'intOrString':
        if (typeof value === 'string') return value;
        return isInteger(value) ? held(value) : this.#wrong(value, shape);
      case 'quantity':
        if (typeof value === 'string') return value;
        return typeof value === 'number' ? String(value) : this.#wrong(value, shape);
      case 'list':
        return Array.isArray(value) ? this.#list(value, shape.of) : this.#wrong(value, shape);
      case 'map':
        return isRecord(value) ? this.#map(value, shape.of) : this.#wrong(value, shape);
      case 'object':
        return isRecord(value) ? this.#object(value, shape.fields) : this.#wrong(value, shape);
      default:
        throw new Error(`an object of the API has no field of type ${shape.t}`);
    }
  }

  #wrong(value: unknown, shape: Shape, expected = EXPECTED[shape.t] ?? ''): typeof WRONG {
    this.expected = expected;
    this.given = kindOf(value);
    return WRONG;
  }

  #list(value: unknown[], of: Shape): unknown {
    let out = value;
    for (const [i, element] of value.entries()) {
      const read = element === null ? zero(of) : this.read(element, of);
      if (read === WRONG) return this.#within(`[${i}]`);
      if (read === element) continue;
      if (out === value) out = [...value];
      out[i] = read;
    }
    return out;
  }

  #map(value: Record<string, unknown>, of: Shape): unknown {
    let out = value;
    for (const key of Object.keys(value)) {
      const element = value[key];
      const read = element === null ? zero(of) : this.read(element, of);
      if (read === WRONG) return this.#within(`.${key}`);
      if (read === element) continue;
      if (out === value) out = { ...value };
      put(out, key, read);
    }
    return out;
  }

  #object(value: Record<string, unknown>, fields: Readonly<Record<string, Shape>>): unknown {
    let changed: Map<string, unknown> | null = null;
    let described = 0;
    for (const key of Object.keys(fields)) {
      const shape = fields[key];
      const field = own(value, key);
      if (shape === undefined) continue;
      if (field !== undefined) described += 1;
      const read = field === undefined || field === null ? absent(field, shape) : this.read(field, shape);
      if (read === WRONG) return this.#within(`.${key}`);
      if (read === field) continue;
      changed ??= new Map();
      changed.set(key, read);
    }
    const keys = Object.keys(value);
    if (keys.length !== described) {
      for (const key of keys) {
        if (Object.hasOwn(fields, key) || hasLevels(value[key], LEVELS_MAX)) continue;
        changed ??= new Map();
        changed.set(key, undefined);
      }
    }
    return changed === null ? value : replacing(value, changed);
  }

  #within(part: string): typeof WRONG {
    this.path.push(part);
    return WRONG;
  }
}

function hasLevels(value: unknown, max: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return max > 0 && Object.values(value).every((field) => hasLevels(field, max - 1));
}

function isTime(value: string): boolean {
  return TIME.test(value) && !Number.isNaN(Date.parse(value));
}

function isInteger(value: unknown): value is number {
  return Number.isInteger(value) && Math.abs(value as number) <= INTEGER_MAX;
}

/** The nearest number that is exact here: no field tells numbers apart that are larger. */
function held(value: number): number {
  return Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, value)) + 0;
}

function absent(field: null | undefined, shape: Shape): unknown {
  if (field === null && shape.nullable === true) return null;
  return shape.required === true || shape.filled === true ? zero(shape) : undefined;
}

/** What Go's decoder leaves in a field that is not sent. */
function zero(shape: Shape): unknown {
  if (shape.t === 'quantity') return '0';
  return shape.t === 'object' ? new Reader().read({}, shape) : zeroOf(shape);
}
