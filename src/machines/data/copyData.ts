/** Copies of plain data. `structuredClone` takes five times as long, and an API server copies each object that it is given. Pure. */
import { put } from './own.ts';

/** A deep copy of plain data: what JSON can say, and fields that are undefined. */
export function copyData<T>(value: T): T {
  return copyOf(value) as T;
}

function copyOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(copyOf);
  const from = value as Readonly<Record<string, unknown>>;
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(from)) {
    // An assignment to it would be lost.
    if (key === '__proto__') put(copy, key, copyOf(from[key]));
    else copy[key] = copyOf(from[key]);
  }
  return copy;
}
