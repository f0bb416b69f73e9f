/** What values of a recording must look like: the file may be of anybody. Pure. */

export type Check = (value: unknown) => boolean;

/** Sums of two are still times that a Date can hold. */
const NUMBER_MAX = 4e15;

export const isText: Check = (v) => typeof v === 'string';
export const isNumber: Check = (v) => typeof v === 'number' && Math.abs(v) <= NUMBER_MAX;
export const isTruth: Check = (v) => typeof v === 'boolean';
export const listOf =
  (one: Check): Check =>
  (v) =>
    Array.isArray(v) && v.every(one);
export const orNull =
  (check: Check): Check =>
  (v) =>
    v === null || check(v);
/** An object with at least these fields. */
export const shape =
  (fields: Readonly<Record<string, Check>>): Check =>
  (v) =>
    typeof v === 'object' && v !== null && Object.entries(fields).every(([key, check]) => check(Reflect.get(v, key)));
export const optional =
  (check: Check): Check =>
  (v) =>
    v === undefined || check(v);
export const oneOf =
  (...values: readonly unknown[]): Check =>
  (v) =>
    values.includes(v);
/** A list of exactly these. */
export const tuple =
  (...parts: readonly Check[]): Check =>
  (v) =>
    Array.isArray(v) && v.length === parts.length && parts.every((check, i) => check(v[i]));
