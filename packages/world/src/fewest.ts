/** Finds a small part of a list that still does what the whole of it does, by leaving out ever smaller pieces. */

export interface FewestOptions {
  /** Tries that it may cost. */
  triesMax: number;
  on?(left: number, tries: number): void;
  /** True ends the search with what was found so far. */
  cancelled?(): boolean;
}

/** `all` does it; `still` tries a part. Gives the smallest part that was found to do it. */
export async function fewest<T>(
  all: readonly T[],
  still: (part: readonly T[]) => Promise<boolean>,
  o: FewestOptions,
): Promise<readonly T[]> {
  let best = all;
  let tries = 0;
  let pieces = 2;
  const over = () => tries >= o.triesMax || o.cancelled?.() === true;
  while (!over() && best.length > 1) {
    const size = Math.ceil(best.length / pieces);
    let shorter = false;
    for (let at = 0; at < best.length && !over(); ) {
      const without = best.filter((_, i) => i < at || i >= at + size);
      tries += 1;
      if (await still(without)) {
        best = without;
        shorter = true;
      } else at += size;
      o.on?.(best.length, tries);
    }
    if (size === 1 && !shorter) break;
    pieces = Math.min(best.length, pieces * 2);
  }
  return best;
}
