/** A bounded map whose entries end by time; over its size the one least recently used goes. Time is given, never read. */
export interface ExpiringCache<V> {
  get(key: string, nowMs: number): V | undefined;
  /** `ttlMs` 0 or less keeps nothing. */
  set(key: string, value: V, o: { nowMs: number; ttlMs: number }): void;
  readonly size: number;
}

export function expiringCache<V>(entriesMax: number): ExpiringCache<V> {
  /** In order of use, the oldest first: a Map keeps the order of insertion. */
  const entries = new Map<string, { value: V; endsMs: number }>();
  return {
    get(key, nowMs) {
      const found = entries.get(key);
      if (found === undefined) return undefined;
      entries.delete(key);
      if (found.endsMs <= nowMs) return undefined;
      entries.set(key, found);
      return found.value;
    },
    set(key, value, { nowMs, ttlMs }) {
      entries.delete(key);
      if (ttlMs <= 0) return;
      entries.set(key, { value, endsMs: nowMs + ttlMs });
      if (entries.size <= entriesMax) return;
      const oldest = entries.keys().next();
      if (oldest.done !== true) entries.delete(oldest.value);
    },
    get size() {
      return entries.size;
    },
  };
}
