/** Where the states of a chart stand: laid out by ELK in a worker, so that the page stays alive meanwhile. */
import ELK, { type ElkExtendedEdge, type ElkNode } from 'elkjs/lib/elk-api.js';
import workerUrl from 'elkjs/lib/elk-worker.min.js?url';
import type { Chart, ChartState, ChartTransition } from '../../machines/chart/definition.ts';

/** Transitions between the same two states, drawn as one line. */
export interface Bundle {
  id: string;
  source: string;
  target: string;
  transitions: readonly ChartTransition[];
}
interface Placed {
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

const CHAR_PX = 7.4;
const NODE_PX = { height: 34, padding: 28 };

let elk: InstanceType<typeof ELK> | null = null;
const known = new Map<string, Promise<Layout>>();
const KNOWN_MAX = 40;

export function layoutOf(chart: Chart): Promise<Layout> {
  const key = JSON.stringify(chart);
  const made = known.get(key) ?? compute(chart);
  known.set(key, made);
  if (known.size > KNOWN_MAX) known.delete(known.keys().next().value ?? '');
  return made;
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

async function compute(chart: Chart): Promise<Layout> {
  elk ??= new ELK({ workerUrl });
  const { root } = chart;
  const bundles = bundlesOf(root).filter((b) => b.source !== b.target && b.source !== root.id && b.target !== root.id);
  const graph: ElkNode = {
    ...node(root),
    edges: bundles.map((b): ElkExtendedEdge => ({ id: b.id, sources: [b.source], targets: [b.target] })),
    layoutOptions: {
      'elk.algorithm': 'layered',
      'elk.direction': 'DOWN',
      'elk.hierarchyHandling': 'INCLUDE_CHILDREN',
      'elk.edgeRouting': 'ORTHOGONAL',
      'elk.json.edgeCoords': 'ROOT',
      'elk.layered.spacing.nodeNodeBetweenLayers': '44',
      'elk.spacing.nodeNode': '28',
      'elk.spacing.edgeNode': '16',
      'elk.spacing.edgeEdge': '10',
      'elk.layered.spacing.edgeNodeBetweenLayers': '16',
      // States are written down in the order of a life: what leads back is what is drawn upwards.
      'elk.layered.considerModelOrder.strategy': 'NODES_AND_EDGES',
      'elk.layered.cycleBreaking.strategy': 'MODEL_ORDER',
      'elk.aspectRatio': '1.7',
      'elk.padding': '[top=8,left=8,bottom=8,right=8]',
    },
  };
  const done = await elk.layout(graph);
  const states = new Map<string, ChartState>();
  const index = (s: ChartState) => {
    states.set(s.id, s);
    s.states.forEach(index);
  };
  index(root);
  const nodes: Placed[] = [];
  const visit = (n: ElkNode, parent: string) => {
    const state = states.get(n.id);
    if (state !== undefined && n.id !== root.id) {
      nodes.push({ id: n.id, parent, state, x: n.x ?? 0, y: n.y ?? 0, width: n.width ?? 0, height: n.height ?? 0 });
    }
    for (const child of n.children ?? []) visit(child, n.id === root.id ? '' : n.id);
  };
  visit(done, '');
  const sections = new Map((done.edges ?? []).map((e) => [e.id, e.sections?.[0]]));
  const edges = bundles.flatMap((b): Drawn[] => {
    const s = sections.get(b.id);
    return s === undefined ? [] : [{ ...b, points: [s.startPoint, ...(s.bendPoints ?? []), s.endPoint] }];
  });
  return { nodes, edges, width: done.width ?? 0, height: done.height ?? 0 };
}

function node(state: ChartState, first = false): ElkNode {
  // What a machine begins with stands at the top.
  const place = first ? { 'elk.layered.layering.layerConstraint': 'FIRST' } : {};
  if (state.states.length === 0) {
    return {
      id: state.id,
      width: Math.max(70, state.key.length * CHAR_PX + NODE_PX.padding),
      height: NODE_PX.height,
      layoutOptions: place,
    };
  }
  return {
    id: state.id,
    children: state.states.map((s) => node(s, s.id === state.initial)),
    layoutOptions: {
      ...place,
      'elk.padding': '[top=34,left=14,bottom=14,right=14]',
      'elk.nodeSize.constraints': 'MINIMUM_SIZE',
      'elk.nodeSize.minimum': `(${state.key.length * CHAR_PX + NODE_PX.padding + 20},60)`,
    },
  };
}
