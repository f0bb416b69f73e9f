/** Where the states of a chart stand: laid out by ELK in a worker, so that the page stays alive meanwhile. */

import { type ChartState, statesOf } from '@actorlet/kubelet/machines/chart/definition.ts';
import ELK, { type ElkExtendedEdge, type ElkNode } from 'elkjs/lib/elk-api.js';
import workerUrl from 'elkjs/lib/elk-worker.min.js?url';
import { embeddedUrl } from '../embedded.ts';
import { bundlesOf, type Drawn, type Layout, type Placed } from './drawing.ts';

const CHAR_PX = 6.9;
/** `twist`: the button and the count of a state that is closed. */
const NODE_PX = { height: 30, padding: 27, twist: 38 };
/** Lines to one state join: a chart of the same states takes half the room. */
const JOINED = { 'elk.layered.mergeEdges': 'true', 'elk.layered.mergeHierarchyEdges': 'true' } as const;

let elk: InstanceType<typeof ELK> | null = null;
const known = new Map<string, Promise<Layout>>();
const KNOWN_MAX = 40;

/** `root`: as {@link fold} left it. */
export function layoutOf(root: ChartState): Promise<Layout> {
  const key = JSON.stringify(root);
  const made = known.get(key) ?? compute(root);
  known.set(key, made);
  if (known.size > KNOWN_MAX) known.delete(known.keys().next().value ?? '');
  return made;
}

async function compute(root: ChartState): Promise<Layout> {
  elk ??= new ELK({ workerUrl: (await embeddedUrl('layout')) ?? workerUrl });
  const states = new Map(statesOf(root).map((s) => [s.id, s]));
  const isDrawn = (id: string): boolean => id !== root.id && states.has(id);
  const bundles = bundlesOf(root).filter((b) => b.source !== b.target && isDrawn(b.source) && isDrawn(b.target));
  const graph: ElkNode = {
    ...node(root),
    edges: bundles.map((b): ElkExtendedEdge => ({ id: b.id, sources: [b.source], targets: [b.target] })),
    layoutOptions: {
      'elk.algorithm': 'layered',
      'elk.direction': 'DOWN',
      'elk.hierarchyHandling': 'INCLUDE_CHILDREN',
      'elk.edgeRouting': 'ORTHOGONAL',
      'elk.json.edgeCoords': 'ROOT',
      ...JOINED,
      'elk.layered.spacing.nodeNodeBetweenLayers': '30',
      'elk.spacing.nodeNode': '12',
      'elk.spacing.edgeNode': '10',
      'elk.spacing.edgeEdge': '7',
      'elk.layered.spacing.edgeEdgeBetweenLayers': '7',
      'elk.layered.spacing.edgeNodeBetweenLayers': '10',
      // States are written down in the order of a life: what leads back is what is drawn upwards.
      'elk.layered.considerModelOrder.strategy': 'NODES_AND_EDGES',
      'elk.layered.cycleBreaking.strategy': 'MODEL_ORDER',
      'elk.padding': '[top=8,left=8,bottom=8,right=8]',
    },
  };
  const done = await elk.layout(graph);
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
  const place: Record<string, string> = first ? { ...JOINED, 'elk.layered.layering.layerConstraint': 'FIRST' } : JOINED;
  if (state.states.length === 0) {
    const twist = state.type === 'compound' || state.type === 'parallel' ? NODE_PX.twist : 0;
    return {
      id: state.id,
      width: Math.max(64, state.key.length * CHAR_PX + NODE_PX.padding + twist),
      height: NODE_PX.height,
      layoutOptions: place,
    };
  }
  return {
    id: state.id,
    children: state.states.map((s) => node(s, s.id === state.initial)),
    layoutOptions: {
      ...place,
      'elk.padding': '[top=32,left=10,bottom=10,right=10]',
      'elk.nodeSize.constraints': 'MINIMUM_SIZE',
      'elk.nodeSize.minimum': `(${state.key.length * CHAR_PX + NODE_PX.padding + 20},60)`,
    },
  };
}
