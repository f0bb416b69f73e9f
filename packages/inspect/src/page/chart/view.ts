/** Which part of a chart is seen. Pure. */
import type { Layout } from './drawing.ts';

export interface Size {
  width: number;
  height: number;
}
export interface View {
  x: number;
  y: number;
  zoom: number;
}

/** At a smaller scale names cannot be read: the chart is followed instead. */
const READABLE_ZOOM = 0.62;
const ZOOM_MAX = 1.1;
/** Around the chart. */
const MARGIN_PX = 10;
/** Above the chart: its buttons stand there. */
const BAR_PX = 44;

function wholeZoom(layout: Size, box: Size): number {
  return Math.min((box.width - 2 * MARGIN_PX) / layout.width, (box.height - BAR_PX - MARGIN_PX) / layout.height);
}

/** Whether the whole chart can be read in this box. */
export function isReadable(layout: Size, box: Size): boolean {
  return wholeZoom(layout, box) >= READABLE_ZOOM;
}

/** The height at which the chart fills the box's width, as far as `heightMax` allows. */
export function heightFor(layout: Size, width: number, heightMax: number): number {
  const zoom = Math.min(1, (width - 2 * MARGIN_PX) / layout.width);
  return Math.min(heightMax, Math.max(180, layout.height * Math.max(zoom, READABLE_ZOOM) + BAR_PX + MARGIN_PX));
}

/** The whole chart; with a state to follow, as much around it as can be read, and no empty room beside the chart. */
export function viewOf(layout: Size, box: Size, followed: { x: number; y: number } | null): View {
  const whole = Math.min(ZOOM_MAX, wholeZoom(layout, box));
  const wide = (box.width - 2 * MARGIN_PX) / layout.width;
  const zoom = followed === null ? whole : Math.min(1, Math.max(READABLE_ZOOM, wide));
  const place = (size: number, room: number, at: number | undefined): number => {
    const spare = room - size * zoom;
    return spare >= 0 || at === undefined ? spare / 2 : Math.min(0, Math.max(spare, room / 2 - at * zoom));
  };
  return {
    x: MARGIN_PX + place(layout.width, box.width - 2 * MARGIN_PX, followed?.x),
    y: BAR_PX + place(layout.height, box.height - BAR_PX - MARGIN_PX, followed?.y),
    zoom,
  };
}

/** The middle of a state, in the chart's coordinates; null: it is not drawn. */
export function middleOf(layout: Layout, id: string): { x: number; y: number } | null {
  const byId = new Map(layout.nodes.map((n) => [n.id, n]));
  const own = byId.get(id);
  if (own === undefined) return null;
  const at = { x: own.width / 2, y: own.height / 2 };
  for (let n: typeof own | undefined = own; n !== undefined; n = byId.get(n.parent)) {
    at.x += n.x;
    at.y += n.y;
  }
  return at;
}
