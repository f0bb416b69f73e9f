/** Whether a line over time rises: the slope of its points, and how far chance alone may have bent it. Pure. */

export interface Point {
  hours: number;
  value: number;
}
export interface Trend {
  perHour: number;
  /** Standard error of the slope, wider where neighbouring points go together. */
  error: number;
}

/** Standard errors that a slope must be away from its limit. */
const SURE = 3;
const POINTS_MIN = 6;

/** By least squares. Null: too few points for a word. */
export function trendOf(points: readonly Point[]): Trend | null {
  const n = points.length;
  if (n < POINTS_MIN) return null;
  const mean = (of: (p: Point) => number) => points.reduce((sum, p) => sum + of(p), 0) / n;
  const [x, y] = [mean((p) => p.hours), mean((p) => p.value)];
  const spread = points.reduce((sum, p) => sum + (p.hours - x) ** 2, 0);
  if (spread === 0) return null;
  const perHour = points.reduce((sum, p) => sum + (p.hours - x) * (p.value - y), 0) / spread;
  const rest = points.map((p) => p.value - y - perHour * (p.hours - x));
  const squares = rest.reduce((sum, r) => sum + r * r, 0);
  if (squares === 0) return { perHour, error: 0 };
  const pairs = rest.slice(1).reduce((sum, r, i) => sum + r * (rest[i] ?? 0), 0);
  const together = Math.min(0.9, Math.max(0, pairs / squares));
  const independent = Math.max(POINTS_MIN, (n * (1 - together)) / (1 + together));
  return { perHour, error: Math.sqrt(squares / (n - 2) / spread) * Math.sqrt(n / independent) };
}

/** Beyond what chance explains. */
export function rises(trend: Trend | null, perHourMax: number): boolean {
  return trend !== null && trend.perHour - SURE * trend.error > perHourMax;
}

/** The least of each group of neighbours: what memory comes down to between two collections. */
export function floors(points: readonly Point[], group: number): Point[] {
  const groups = Map.groupBy(points, (_, i) => Math.floor(i / group));
  return [...groups.values()].flatMap((of) => of.reduce((least, p) => (p.value < least.value ? p : least)));
}
