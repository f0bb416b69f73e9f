/** Copies and fingerprints of the data in a machine's context. Live objects are left as they are. */

function isPlain(value: object): boolean {
  const proto: unknown = Object.getPrototypeOf(value);
  return proto === null || proto === Object.prototype;
}

function refuse(): never {
  throw new TypeError('a pure step changed a collection of its context or event');
}

/** A copy in which nothing can be changed. `seen` keeps equal objects equal: pass one map for a context and its event. */
export function frozen<T>(value: T, seen: Map<object, unknown>): T {
  return copy(value, seen) as T;
}

function copy(value: unknown, seen: Map<object, unknown>): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const known = seen.get(value);
  if (known !== undefined) return known;
  if (value instanceof Map) {
    const out = new Map<unknown, unknown>();
    seen.set(value, out);
    for (const [k, v] of value) out.set(copy(k, seen), copy(v, seen));
    return sealed(out, ['set', 'delete', 'clear']);
  }
  if (value instanceof Set) {
    const out = new Set<unknown>();
    seen.set(value, out);
    for (const v of value) out.add(copy(v, seen));
    return sealed(out, ['add', 'delete', 'clear']);
  }
  if (Array.isArray(value)) {
    const out: unknown[] = [];
    seen.set(value, out);
    for (const v of value) out.push(copy(v, seen));
    return Object.freeze(out);
  }
  if (!isPlain(value) || 'getSnapshot' in value) return value;
  const out: Record<string | symbol, unknown> = Object.create(Object.getPrototypeOf(value) as object | null);
  seen.set(value, out);
  for (const key of Reflect.ownKeys(value)) {
    const own = Object.getOwnPropertyDescriptor(value, key);
    if (own === undefined) continue;
    // A getter is kept as it is: what it reads is read by the step that looks.
    if ('value' in own) Object.defineProperty(out, key, { ...own, value: copy(own.value, seen) });
    else Object.defineProperty(out, key, own);
  }
  return Object.freeze(out);
}

function sealed<T extends object>(collection: T, keys: readonly string[]): T {
  for (const key of keys) Object.defineProperty(collection, key, { value: refuse });
  return Object.freeze(collection);
}

/** Text that differs where the data differs. Actors by their id: each run makes others. */
export function fingerprint(value: unknown): string {
  const seen = new Set<object>();
  return JSON.stringify(value, (_key, v: unknown) => {
    if (typeof v === 'function') return '(function)';
    if (typeof v === 'bigint') return String(v);
    if (typeof v !== 'object' || v === null) return v;
    if ('getSnapshot' in v) return `(actor ${String(Reflect.get(v, 'id'))})`;
    if (seen.has(v)) return '(again)';
    seen.add(v);
    if (v instanceof Map) return [...v];
    if (v instanceof Set) return [...v];
    if (v instanceof Error) return `${v.name}: ${v.message}`;
    return v;
  });
}
