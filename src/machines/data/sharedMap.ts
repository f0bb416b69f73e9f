/**
 * An immutable map that shares its entries with the maps it was made from. A change copies what has changed lately (a few times
 * the square root of the size) and not every entry, so n changes of n entries cost far less than n * n. Order as in a Map.
 */
const GONE = Symbol('gone');

/** Entries changed since the last full copy: fewer than this are never worth one. */
const CHANGES_MIN = 32;
/** Full copies come after this many times the square root of the size, where both kinds of copying cost about the same. */
const CHANGES_FACTOR = 2;

interface Parts<K, V> {
  /** Never changed once it is shared. */
  base: ReadonlyMap<K, V>;
  /** What stands in the place of entries of the base. */
  changed: Map<K, V | typeof GONE>;
  /** Entries that come after those of the base. */
  added: Map<K, V>;
  gone: number;
}

export class SharedMap<K, V> implements ReadonlyMap<K, V> {
  protected parts: Parts<K, V>;

  protected constructor(parts: Parts<K, V>) {
    this.parts = parts;
  }

  static of<K, V>(entries: Iterable<readonly [K, V]> = []): SharedMap<K, V> {
    return new SharedMap({ base: new Map(entries), changed: new Map(), added: new Map(), gone: 0 });
  }

  /** A draft that begins with the entries of `map` and can be changed without changing `map`. */
  static draft<K, V>(map: ReadonlyMap<K, V>): Draft<K, V> {
    const shared = map instanceof SharedMap ? (map as SharedMap<K, V>) : SharedMap.of(map);
    return new Draft(shared.parts, shared);
  }

  get size(): number {
    return this.parts.base.size - this.parts.gone + this.parts.added.size;
  }

  get(key: K): V | undefined {
    const { base, changed, added } = this.parts;
    if (added.size > 0) {
      const value = added.get(key);
      if (value !== undefined || added.has(key)) return value;
    }
    if (changed.size > 0 && changed.has(key)) {
      const value = changed.get(key);
      return value === GONE ? undefined : (value as V | undefined);
    }
    return base.get(key);
  }

  has(key: K): boolean {
    const { base, changed, added } = this.parts;
    return added.has(key) || (base.has(key) && changed.get(key) !== GONE);
  }

  *entries(): MapIterator<[K, V]> {
    const { base, changed, added } = this.parts;
    if (changed.size === 0) yield* base;
    else {
      for (const [key, value] of base) {
        if (!changed.has(key)) yield [key, value];
        else {
          const now = changed.get(key);
          if (now !== GONE) yield [key, now as V];
        }
      }
    }
    yield* added;
  }

  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.entries();
  }

  *keys(): MapIterator<K> {
    for (const [key] of this.entries()) yield key;
  }

  *values(): MapIterator<V> {
    for (const [, value] of this.entries()) yield value;
  }

  forEach(fn: (value: V, key: K, map: ReadonlyMap<K, V>) => void, self?: unknown): void {
    for (const [key, value] of this.entries()) fn.call(self, value, key, this);
  }
}

/** For one owner, until it is finished. */
export class Draft<K, V> extends SharedMap<K, V> {
  readonly #before: SharedMap<K, V>;
  #touched = false;

  constructor(parts: Parts<K, V>, before: SharedMap<K, V>) {
    super(parts);
    this.#before = before;
  }

  /** Its own copy of what may change, from the first change on: most drafts are finished without one. */
  #own(): Parts<K, V> {
    if (this.#touched) return this.parts;
    this.#touched = true;
    const { base, changed, added, gone } = this.parts;
    this.parts = { base, changed: new Map(changed), added: new Map(added), gone };
    return this.parts;
  }

  set(key: K, value: V): this {
    const { base, changed, added } = this.#own();
    if (!added.has(key) && base.has(key) && changed.get(key) !== GONE) changed.set(key, value);
    else added.set(key, value);
    return this;
  }

  delete(key: K): boolean {
    if (!this.has(key)) return false;
    const { base, changed, added } = this.#own();
    // A key that was removed from the base before stays removed.
    if (!added.delete(key) && base.has(key)) {
      changed.set(key, GONE);
      this.parts.gone += 1;
    }
    return true;
  }

  /** The map as it is now; the draft must not be changed any more. The same map as before when nothing was changed. */
  finish(): SharedMap<K, V> {
    if (!this.#touched) return this.#before;
    const { base, changed, added } = this.parts;
    const room = Math.max(CHANGES_MIN, CHANGES_FACTOR * Math.sqrt(base.size));
    return changed.size + added.size > room ? SharedMap.of(this.entries()) : new SharedMap(this.parts);
  }
}
