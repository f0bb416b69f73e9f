/**
 * Plain data that is made anew again and again, most of it the same each time: the parts that did not change become one object,
 * so memory holds them once and a comparison of them ends at their identity.
 */

/** Levels looked into; what lies deeper is taken as it comes. */
const LEVELS_MAX = 64;

/** Gives `next`, or as much of `before` as says the same. `next` is plain data of the caller's own: its parts are replaced. */
export function shareData<T>(before: unknown, next: T, levels = LEVELS_MAX): T {
  if (before === next || typeof before !== 'object' || before === null || typeof next !== 'object' || next === null) return next;
  if (levels === 0 || Array.isArray(before) !== Array.isArray(next)) return next;
  const old = before as Record<string, unknown>;
  const now = next as Record<string, unknown>;
  const keys = Object.keys(now);
  let same = keys.length === Object.keys(old).length;
  for (const key of keys) {
    if (!Object.hasOwn(old, key)) {
      same = false;
      continue;
    }
    const kept = shareData(old[key], now[key], levels - 1);
    if (kept !== now[key]) now[key] = kept;
    if (kept !== old[key]) same = false;
  }
  return same ? (before as T) : next;
}
