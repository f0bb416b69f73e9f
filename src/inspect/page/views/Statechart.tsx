/** A machine's chart with the states that it is in lit, and the transitions that it took last. */
import {
  Background,
  BaseEdge,
  Controls,
  type Edge,
  EdgeLabelRenderer,
  type EdgeProps,
  Handle,
  type Node,
  type NodeProps,
  Panel,
  Position,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
} from '@xyflow/react';
import { useEffect, useMemo, useRef, useState } from 'react';
import type { Chart, ChartState } from '../../../machines/chart/definition.ts';
import { type Point, placeLabels } from '../labels.ts';
import { type Drawn, type Layout, layoutOf } from '../layout.ts';

type StateNode = Node<{ state: ChartState; initial: boolean; active: boolean; leaf: boolean; next: boolean; came: boolean }, 'state'>;
type StepEdge = Edge<{ drawn: Drawn; emphasis: 'taken' | 'open' | 'quiet'; label: string; labelAt: Point | null }, 'step'>;

const nodeTypes = { state: StateBox };
const edgeTypes = { step: StepLine };
const LABEL_CHARS_MAX = 44;
/** A chart that fits only at a smaller scale is followed instead. */
const READABLE_ZOOM = 0.72;
const FOLLOW_ZOOM = 0.95;

export interface StatechartProps {
  chart: Chart;
  active: ReadonlySet<string>;
  /** Ids of transitions, the last ones first. */
  taken: readonly string[];
  selected: string;
  onSelect(id: string): void;
}

export function Statechart(props: StatechartProps) {
  const { chart } = props;
  const [layout, setLayout] = useState<Layout | 'failed' | null>(null);
  useEffect(() => {
    let mine = true;
    setLayout(null);
    layoutOf(chart).then(
      (l) => mine && setLayout(l),
      () => mine && setLayout('failed'),
    );
    return () => {
      mine = false;
    };
  }, [chart]);
  if (layout === 'failed') return <p className="quiet pad">This chart could not be laid out.</p>;
  if (layout === null) return <div className="chart chart-wait">Drawing…</div>;
  return (
    <ReactFlowProvider>
      <Flow {...props} layout={layout} />
    </ReactFlowProvider>
  );
}

/** How the machine moves now; `selected`: the state that was asked about, or ''. */
interface Lit {
  layout: Layout;
  chart: Chart;
  active: ReadonlySet<string>;
  taken: ReadonlySet<string>;
  selected: string;
}

function Flow({ chart, active, taken, selected, onSelect, layout }: StatechartProps & { layout: Layout }) {
  const lastTaken = useMemo(() => new Set(taken), [taken]);
  const lit = useMemo((): Lit => ({ layout, chart, active, taken: lastTaken, selected }), [layout, chart, active, lastTaken, selected]);
  const edges = useMemo(() => edgesOf(lit), [lit]);
  const nodes = useMemo(() => nodesOf(lit, edges), [lit, edges]);
  const { frame, follow, setFollow } = useFollow(layout, active);
  return (
    <figure className="chart" aria-label={`Statechart of ${chart.id}`} ref={frame}>
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={nodeTypes}
        edgeTypes={edgeTypes}
        onNodeClick={(_, n) => onSelect(n.id === selected ? '' : n.id)}
        onPaneClick={() => onSelect('')}
        onNodesChange={(changes) => {
          for (const c of changes) if (c.type === 'select' && c.selected) onSelect(c.id);
        }}
        nodesDraggable={false}
        nodesConnectable={false}
        edgesFocusable={false}
        zoomOnScroll={false}
        preventScrolling={false}
        minZoom={0.15}
        maxZoom={2}
        proOptions={{ hideAttribution: true }}
        fitView
      >
        <Background gap={24} size={1} />
        <Controls showInteractive={false} showFitView={false} />
        <Panel position="top-right">
          <button type="button" aria-pressed={follow === true} onClick={() => setFollow(true)}>
            Follow
          </button>{' '}
          <button type="button" aria-pressed={follow === false} onClick={() => setFollow(false)}>
            Whole chart
          </button>
        </Panel>
      </ReactFlow>
    </figure>
  );
}

function edgesOf({ layout, chart, active, taken, selected }: Lit): StepEdge[] {
  const lines = layout.edges.map((drawn) => {
    const isTaken = drawn.transitions.some((t) => taken.has(t.id));
    const isOpen = isOpenFrom(drawn.source, active, chart);
    const isAsked = selected !== '' && (drawn.source === selected || drawn.target === selected);
    const emphasis: 'taken' | 'open' | 'quiet' = isTaken ? 'taken' : isOpen || isAsked ? 'open' : 'quiet';
    return { drawn, emphasis, label: emphasis === 'quiet' ? '' : labelOf(drawn, taken) };
  });
  // The way it came chooses its places first.
  const labelled = lines.filter((l) => l.label !== '').toSorted((a, b) => Number(b.emphasis === 'taken') - Number(a.emphasis === 'taken'));
  const places = placeLabels(
    labelled.map(({ drawn, label }) => ({ id: drawn.id, label, points: drawn.points })),
    layout.nodes,
  );
  return lines.map(({ drawn, emphasis, label }) => ({
    id: drawn.id,
    type: 'step' as const,
    source: drawn.source,
    target: drawn.target,
    data: { drawn, emphasis, label, labelAt: places.get(drawn.id) ?? null },
    zIndex: emphasis === 'quiet' ? 1 : 5,
    focusable: false,
    selectable: false,
  }));
}

function nodesOf({ layout, chart, active, selected }: Lit, edges: readonly StepEdge[]): StateNode[] {
  const initial = initialsOf(chart.root);
  const next = new Set(edges.flatMap((e) => (e.data?.emphasis === 'open' && active.has(e.source) ? [e.target] : [])));
  const came = new Set(edges.flatMap((e) => (e.data?.emphasis === 'taken' ? [e.source] : [])));
  return layout.nodes.map((n) => ({
    id: n.id,
    type: 'state' as const,
    position: { x: n.x, y: n.y },
    width: n.width,
    height: n.height,
    style: { width: n.width, height: n.height },
    ...(n.parent === '' ? {} : { parentId: n.parent }),
    selected: n.id === selected,
    data: {
      state: n.state,
      initial: initial.has(n.id),
      active: active.has(n.id),
      leaf: n.state.states.length === 0,
      next: next.has(n.id) && !active.has(n.id),
      came: came.has(n.id) && !active.has(n.id),
    },
    ariaLabel: `${n.state.key}${active.has(n.id) ? ', active' : ''}`,
    draggable: false,
    connectable: false,
  }));
}

/** Shows the whole chart, or follows the active state: as the reader chose, before that by whether the whole is readable. */
function useFollow(layout: Layout, active: ReadonlySet<string>) {
  const flow = useReactFlow();
  const [follow, setFollow] = useState<boolean | null>(null);
  const frame = useRef<HTMLElement>(null);
  const leaf = layout.nodes.find((n) => n.state.states.length === 0 && active.has(n.id));
  const focusOn = leaf?.id ?? '';
  useEffect(() => {
    const timer = setTimeout(() => {
      const box = frame.current?.getBoundingClientRect();
      const whole = box === undefined ? 1 : Math.min(box.width / layout.width, box.height / layout.height);
      const at = follow ?? whole < READABLE_ZOOM;
      if (follow === null) setFollow(at);
      const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
      if (!at || focusOn === '') void flow.fitView({ padding: 0.04, maxZoom: 1.15 });
      else {
        const { x, y } = middleOfState(layout, focusOn);
        void flow.setCenter(x, y, { zoom: FOLLOW_ZOOM, duration: calm ? 0 : 250 });
      }
    }, 30);
    return () => clearTimeout(timer);
  }, [flow, layout, follow, focusOn]);
  return { frame, follow, setFollow };
}

function middleOfState(layout: Layout, id: string): Point {
  const at = { x: 0, y: 0 };
  const own = layout.nodes.find((n) => n.id === id);
  for (let n = own; n !== undefined; n = layout.nodes.find((m) => m.id === n?.parent)) {
    at.x += n.x;
    at.y += n.y;
  }
  return { x: at.x + (own?.width ?? 0) / 2, y: at.y + (own?.height ?? 0) / 2 };
}

/** An outer state's transitions are open too, but are drawn as such only where they leave it. */
function isOpenFrom(id: string, active: ReadonlySet<string>, chart: Chart): boolean {
  return active.has(id) && id !== chart.root.id;
}

function labelOf(drawn: Drawn, taken: ReadonlySet<string>): string {
  const first = drawn.transitions.find((t) => taken.has(t.id)) ?? drawn.transitions[0];
  if (first === undefined) return '';
  const text = first.guard === '' || first.guard === 'inline' ? first.label : `${first.label} [${first.guard}]`;
  const more = new Set(drawn.transitions.map((t) => t.label)).size - 1;
  const cut = text.length > LABEL_CHARS_MAX ? `${text.slice(0, LABEL_CHARS_MAX - 1)}…` : text;
  return more > 0 ? `${cut} +${more}` : cut;
}

function initialsOf(state: ChartState): Set<string> {
  const out = new Set<string>(state.initial === '' ? [] : [state.initial]);
  for (const child of state.states) for (const id of initialsOf(child)) out.add(id);
  return out;
}

function StateBox({ data, selected }: NodeProps<StateNode>) {
  const { state } = data;
  const flags = [
    data.leaf ? 'leaf' : 'compound',
    state.type,
    data.active ? 'active' : '',
    data.next ? 'next' : '',
    data.came ? 'came' : '',
    selected ? 'asked' : '',
  ];
  return (
    <div
      className={`state ${flags.filter((f) => f !== '').join(' ')}`}
      title={[state.id, state.reason, state.message].filter((t) => t !== '').join('\n')}
    >
      <Handle type="target" position={Position.Top} isConnectable={false} />
      <span className="state-name">
        {data.initial && <i className="initial" />}
        {state.key}
      </span>
      <Handle type="source" position={Position.Bottom} isConnectable={false} />
    </div>
  );
}

function StepLine({ id, data }: EdgeProps<StepEdge>) {
  if (data === undefined) return null;
  const { points } = data.drawn;
  const path = points.map((p, i) => `${i === 0 ? 'M' : 'L'}${p.x},${p.y}`).join(' ');
  const { labelAt } = data;
  const end = points.at(-1);
  const before = points.at(-2);
  return (
    <>
      <BaseEdge id={id} path={path} className={`step step-${data.emphasis}`} />
      {end !== undefined && before !== undefined && <path className={`tip tip-${data.emphasis}`} d={tipOf(before, end)} />}
      {data.label !== '' && labelAt !== null && (
        <EdgeLabelRenderer>
          <div
            className={`step-label step-label-${data.emphasis}`}
            ref={(el) => {
              if (el !== null) el.style.transform = `translate(-50%, -50%) translate(${labelAt.x}px, ${labelAt.y}px)`;
            }}
          >
            {data.label}
          </div>
        </EdgeLabelRenderer>
      )}
    </>
  );
}

function tipOf(from: Point, to: Point): string {
  const angle = Math.atan2(to.y - from.y, to.x - from.x);
  const corner = (turn: number) => `${to.x - 7 * Math.cos(angle + turn)},${to.y - 7 * Math.sin(angle + turn)}`;
  return `M${to.x},${to.y} L${corner(0.45)} L${corner(-0.45)} Z`;
}
