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
  state: { key?: string; states: readonly unknown[] };
}
export interface Labelled {
  id: string;
  label: string;
  /** The corners of the line. */
  points: readonly Point[];
}

/** As style.css draws `.step-label`: 11 px letters, with padding and border. */
const LABEL_PX = { char: 5.8, around: 12, height: 18 };
/** The name of a state with states in it stands at its top left. */
const NAME_PX = { char: 7.4, around: 40, height: 28 };
/** Tried on each straight part, the longest part first. */
const PLACES = [0.5, 0.3, 0.7, 0.4, 0.6, 0.2, 0.8, 0.1, 0.9] as const;

/**
 * The middle of each label. The first labels choose first. Where every place is taken, a label covers as little of the
 * states as can be; one that would cover another label is left out.
 */
export function placeLabels(labels: readonly Labelled[], states: readonly PlacedState[]): Map<string, Point> {
  const boxes = boxesOf(states);
  const placed: Box[] = [];
  const out = new Map<string, Point>();
  for (const { id, label, points } of labels) {
    const width = label.length * LABEL_PX.char + LABEL_PX.around;
    let best: { covered: number; at: Point; box: Box } | null = null;
    for (const at of placesOn(points, width)) {
      const box = { x: at.x - width / 2, y: at.y - LABEL_PX.height / 2, width, height: LABEL_PX.height };
      if (placed.some((other) => overlap(box, other) > 0)) continue;
      const covered = boxes.reduce((sum, other) => sum + overlap(box, other), 0);
      if (best === null || covered < best.covered) best = { covered, at, box };
      if (covered === 0) break;
    }
    if (best === null) continue;
    placed.push(best.box);
    out.set(id, best.at);
  }
  return out;
}

/** On the line, and on the parts that run upwards also beside it. */
function placesOn(points: readonly Point[], width: number): Point[] {
  const parts = points.flatMap((b, i) => {
    const a = points[i - 1];
    return a === undefined ? [] : [{ a, b, length: Math.hypot(b.x - a.x, b.y - a.y) }];
  });
  const onLine = parts
    .toSorted((p, q) => q.length - p.length)
    .flatMap(({ a, b }) => PLACES.map((share) => ({ x: a.x + (b.x - a.x) * share, y: a.y + (b.y - a.y) * share })));
  const beside = onLine.flatMap(({ x, y }) => [-1, 1].map((side) => ({ x: x + side * (width / 2 - LABEL_PX.around / 2), y })));
  return [...onLine, ...beside];
}

/** What is to be read of the states, where it stands in the whole chart: whole boxes, and the names of those with states in them. */
function boxesOf(states: readonly PlacedState[]): Box[] {
  const byId = new Map(states.map((s) => [s.id, s]));
  return states.map(({ x, y, width, height, parent, state }) => {
    const isLeaf = state.states.length === 0;
    const nameWidth = Math.min(width, (state.key ?? '').length * NAME_PX.char + NAME_PX.around);
    const box = isLeaf ? { x, y, width, height } : { x, y, width: nameWidth, height: NAME_PX.height };
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
