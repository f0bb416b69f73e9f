/**
 * Plain data that is made anew again and again, most of it the same each time: the parts that did not change become one object,
 * so memory holds them once and a comparison of them ends at their identity.
 */

/** Levels looked into; what lies deeper is taken as it comes. */
const LEVELS_MAX = 64;

/** Gives `next`, with as much of `before` in it as says the same: a copy where that are parts of it. Changes neither. */
export function shareData<T>(before: unknown, next: T, levels = LEVELS_MAX): T {
  if (before === next || typeof before !== 'object' || before === null || typeof next !== 'object' || next === null) return next;
  if (levels === 0 || Array.isArray(before) !== Array.isArray(next)) return next;
  const old = before as Record<string, unknown>;
  const now = next as Record<string, unknown>;
  const keys = Object.keys(now);
  let same = keys.length === Object.keys(old).length;
  let made: Record<string, unknown> | null = null;
  for (const key of keys) {
    if (!Object.hasOwn(old, key)) {
      same = false;
      continue;
    }
    const kept = shareData(old[key], now[key], levels - 1);
    if (kept !== old[key]) same = false;
    if (kept === now[key]) continue;
    made ??= (Array.isArray(next) ? [...next] : { ...next }) as Record<string, unknown>;
    made[key] = kept;
  }
  return same ? (before as T) : ((made ?? next) as T);
}

/** Characters of a document below which the search is not worth its time. */
export const SHARED_CHARS_MIN = 16 * 1024;
/** Longer texts are seldom repeated. */
const TEXT_CHARS_MAX = 128;
/** An object with more fields is no leaf such as a reference to a field or a key. */
const LEAF_FIELDS_MAX = 4;
/** What is nested deeper stays as it is. */
const DEPTH_MAX = 32;

/**
 * Plain data equal to `value`, in which equal short texts and equal small objects without objects of their own are one and the
 * same: 5,000 references to one field are one. Changes `value` itself; nobody may change it afterwards.
 * Takes twice the time of the parsing before it: 25 ms for 2.4 MB of small objects.
 */
export function shareWithin<T>(value: T): T {
  const texts = new Map<string, string>();
  const leaves = new Map<string, object>();
  const text = (t: string): string => {
    if (t.length > TEXT_CHARS_MAX) return t;
    const known = texts.get(t);
    if (known !== undefined) return known;
    texts.set(t, t);
    return t;
  };
  const leaf = (v: object): object => {
    const key = JSON.stringify(v);
    const known = leaves.get(key);
    if (known !== undefined) return known;
    leaves.set(key, v);
    return v;
  };
  const visit = (v: unknown, depth: number): unknown => {
    if (typeof v === 'string') return text(v);
    if (typeof v !== 'object' || v === null || depth === 0) return v;
    if (Array.isArray(v)) {
      for (const [i, item] of v.entries()) v[i] = visit(item, depth - 1);
      return v;
    }
    const fields = v as Record<string, unknown>;
    const names = Object.keys(fields);
    let chars = 0;
    for (const name of names) {
      const field = visit(fields[name], depth - 1);
      // A field named __proto__ is one like any other once it is there.
      fields[name] = field;
      if (typeof field === 'object' && field !== null) chars = Number.POSITIVE_INFINITY;
      else chars += name.length + (typeof field === 'string' ? field.length : 0);
    }
    return names.length > LEAF_FIELDS_MAX || chars > TEXT_CHARS_MAX ? v : leaf(v);
  };
  return visit(value, DEPTH_MAX) as T;
}
