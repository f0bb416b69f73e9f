/** Delta debugging (Zeller and Hildebrandt, 2002): as few of `items` as possible while `holds` says so. */
export async function fewest<T>(items: readonly T[], holds: (kept: readonly T[]) => Promise<boolean>): Promise<readonly T[]> {
  let kept = items;
  if (kept.length === 0 || (await holds([]))) return [];
  for (let parts = 2; kept.length > 1; ) {
    const size = Math.ceil(kept.length / parts);
    let less: readonly T[] | null = null;
    for (let from = 0; from < kept.length && less === null; from += size) {
      const rest = [...kept.slice(0, from), ...kept.slice(from + size)];
      if (await holds(rest)) less = rest;
    }
    if (less !== null) {
      kept = less;
      parts = Math.max(2, parts - 1);
    } else if (size === 1) return kept;
    else parts = Math.min(kept.length, parts * 2);
  }
  return kept;
}
