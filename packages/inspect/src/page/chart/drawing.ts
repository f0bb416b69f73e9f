/** A chart as it is drawn: boxes with their places, lines with their corners. */
import type { ChartState, ChartTransition } from '@actorlet/kubelet/machines/chart/definition.ts';

/** Transitions between the same two states, drawn as one line. */
export interface Bundle {
  id: string;
  source: string;
  target: string;
  transitions: readonly ChartTransition[];
}
export interface Placed {
  id: string;
  parent: string;
  state: ChartState;
  x: number;
  y: number;
  width: number;
  height: number;
}
export interface Drawn extends Bundle {
  points: readonly { x: number; y: number }[];
}
export interface Layout {
  nodes: readonly Placed[];
  edges: readonly Drawn[];
  width: number;
  height: number;
}

export function bundlesOf(root: ChartState): Bundle[] {
  const out = new Map<string, Bundle & { transitions: ChartTransition[] }>();
  const visit = (state: ChartState) => {
    for (const t of state.transitions) {
      for (const target of t.targets) {
        const id = `${state.id}→${target}`;
        const bundle = out.get(id) ?? { id, source: state.id, target, transitions: [] };
        bundle.transitions.push(t);
        out.set(id, bundle);
      }
    }
    state.states.forEach(visit);
  };
  visit(root);
  return [...out.values()];
}
