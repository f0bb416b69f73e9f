/**
 * Objects whose keys somebody else chose. A plain `map[key]` finds `constructor` in every object, and a plain assignment
 * to `__proto__` is lost. Pure.
 */

/** What the object itself holds under that key, never what every object has. */
export function own<V>(map: Readonly<Partial<Record<string, V>>> | null | undefined, key: string): V | undefined {
  return map !== null && map !== undefined && Object.hasOwn(map, key) ? map[key] : undefined;
}

/** Whatever the key is called. */
export function put<V>(map: Record<string, V>, key: string, value: V): void {
  if (key === '__proto__') Object.defineProperty(map, key, { value, enumerable: true, writable: true, configurable: true });
  else map[key] = value;
}

/**
 * A copy with these fields in place of its own; a field that becomes undefined is left out. `delete` would make V8 keep the object as a
 * table: five times the memory, and slow to read, for as long as the object lives.
 */
export function replacing(map: Readonly<Record<string, unknown>>, fields: ReadonlyMap<string, unknown>): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const key of Object.keys(map)) {
    const value = fields.has(key) ? fields.get(key) : map[key];
    if (value !== undefined || !fields.has(key)) put(out, key, value);
  }
  for (const [key, value] of fields) if (value !== undefined && !Object.hasOwn(map, key)) put(out, key, value);
  return out;
}
