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
  Object.defineProperty(map, key, { value, enumerable: true, writable: true, configurable: true });
}
