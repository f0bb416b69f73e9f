/** Finds the known name a person probably meant. Pure. */

/** Edits that a slip of the pen makes: one in a word of up to four letters, two up to eight, else a third of it. */
const editsMax = (length: number): number => (length <= 4 ? 1 : length <= 8 ? 2 : Math.floor(length / 3));

/** The nearest candidate within so many edits as a slip of the pen makes, or undefined. */
export function nearestName(name: string, candidates: Iterable<string>): string | undefined {
  const limit = editsMax(name.length);
  const wanted = name.toLowerCase();
  let best: { name: string; distance: number } | undefined;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - name.length) > limit) continue;
    const distance = editDistance(wanted, candidate.toLowerCase());
    if (distance <= limit && (best === undefined || distance < best.distance)) best = { name: candidate, distance };
  }
  return best?.name;
}

/** ` (did you mean X?)`, or nothing. */
export function didYouMean(name: string, candidates: Iterable<string>, prefix = ''): string {
  const nearest = nearestName(name, candidates);
  return nearest === undefined ? '' : ` (did you mean ${prefix}${nearest}?)`;
}

/** Edit distance in which two letters in each other's place are one edit; a row at a time. */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replace = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? (before[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY;
      next.push(Math.min(replace, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, swap));
    }
    before = row;
    row = next;
  }
  return row[b.length] ?? 0;
}
