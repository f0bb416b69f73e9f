/** Where the labels of a chart's transitions stand, so that none covers another one or a state. Pure. */
export interface Point {
  x: number;
  y: number;
}
interface Box extends Point {
  width: number;
  height: number;
}
/** A state of the chart; its place is that in its parent, '' where it has none. */
export interface PlacedState extends Box {
  id: string;
  parent: string;
  state: { states: readonly unknown[] };
}
export interface Labelled {
  id: string;
  label: string;
  /** The corners of the line. */
  points: readonly Point[];
}

/** As style.css draws `.step-label`: 11 px letters, with padding and border. */
const LABEL_PX = { char: 5.8, around: 12, height: 18 };
/** Tried on each straight part, the longest part first. */
const PLACES = [0.5, 0.3, 0.7, 0.15, 0.85] as const;

/** The middle of each label. The first labels choose first; where every place is taken, the one with the least covered. */
export function placeLabels(labels: readonly Labelled[], states: readonly PlacedState[]): Map<string, Point> {
  const taken = leavesOf(states);
  const out = new Map<string, Point>();
  for (const { id, label, points } of labels) {
    const width = label.length * LABEL_PX.char + LABEL_PX.around;
    let best: { covered: number; at: Point; box: Box } | null = null;
    for (const at of placesOn(points)) {
      const box = { x: at.x - width / 2, y: at.y - LABEL_PX.height / 2, width, height: LABEL_PX.height };
      const covered = taken.reduce((sum, other) => sum + overlap(box, other), 0);
      if (best === null || covered < best.covered) best = { covered, at, box };
      if (covered === 0) break;
    }
    if (best === null) continue;
    taken.push(best.box);
    out.set(id, best.at);
  }
  return out;
}

function placesOn(points: readonly Point[]): Point[] {
  const parts = points.flatMap((b, i) => {
    const a = points[i - 1];
    return a === undefined ? [] : [{ a, b, length: Math.hypot(b.x - a.x, b.y - a.y) }];
  });
  return parts
    .toSorted((p, q) => q.length - p.length)
    .flatMap(({ a, b }) => PLACES.map((share) => ({ x: a.x + (b.x - a.x) * share, y: a.y + (b.y - a.y) * share })));
}

/** States without states inside, where they stand in the whole chart. */
function leavesOf(states: readonly PlacedState[]): Box[] {
  const byId = new Map(states.map((s) => [s.id, s]));
  return states
    .filter((s) => s.state.states.length === 0)
    .map(({ x, y, width, height, parent }) => {
      const box = { x, y, width, height };
      for (let outer = byId.get(parent); outer !== undefined; outer = byId.get(outer.parent)) {
        box.x += outer.x;
        box.y += outer.y;
      }
      return box;
    });
}

function overlap(a: Box, b: Box): number {
  const wide = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x);
  const high = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y);
  return wide > 0 && high > 0 ? wide * high : 0;
}
