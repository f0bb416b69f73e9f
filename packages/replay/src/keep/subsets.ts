/**
 * Delta debugging (Zeller and Hildebrandt, 2002): as few of `items` as possible while `holds` says so. Each part is tried once at
 * each size, the last first: what comes late is needed by less.
 */
export async function fewest<T>(items: readonly T[], holds: (kept: readonly T[]) => Promise<boolean>): Promise<readonly T[]> {
  let kept = items;
  if (kept.length === 0 || (await holds([]))) return [];
  for (let size = Math.ceil(kept.length / 2); ; size = Math.ceil(size / 2)) {
    for (let to = kept.length; to > 0 && kept.length > 1; to -= size) {
      const rest = [...kept.slice(0, Math.max(0, to - size)), ...kept.slice(to)];
      if (await holds(rest)) kept = rest;
    }
    if (size === 1) return kept;
  }
}
