/** The states and transitions of a chart as React Flow draws them: those that matter now in colour, with their labels. */

import type { ChartState } from '@actorlet/kubelet/machines/chart/definition.ts';
import { BaseEdge, type Edge, EdgeLabelRenderer, type EdgeProps, Handle, type Node, type NodeProps, Position } from '@xyflow/react';
import { Icon } from '../bits.tsx';
import type { Drawn, Layout } from './drawing.ts';
import { anyStateOf } from './fold.ts';
import { type Point, placeLabels } from './labels.ts';

interface BoxData extends Record<string, unknown> {
  state: ChartState;
  marks: string;
  initial: boolean;
  /** States in it that are not drawn. */
  inside: number;
  canClose: boolean;
  turn(id: string): void;
}
export type StateNode = Node<BoxData, 'state'>;
export type StepEdge = Edge<{ drawn: Drawn; emphasis: 'taken' | 'open' | 'quiet'; label: string; labelAt: Point | null }, 'step'>;

export const nodeTypes = { state: StateBox };
export const edgeTypes = { step: StepLine };
const LABEL_CHARS_MAX = 44;

/** How the machine moves now. `selected`: the state that was asked about, or ''. `found`: what a search found. */
export interface Lit {
  layout: Layout;
  root: ChartState;
  inside: ReadonlyMap<string, number>;
  active: ReadonlySet<string>;
  taken: ReadonlySet<string>;
  selected: string;
  found: ReadonlySet<string>;
  canFold: boolean;
  turn(id: string): void;
}

export function edgesOf({ layout, root, active, taken, selected }: Lit): StepEdge[] {
  const any = anyStateOf(root);
  const lines = layout.edges.map((drawn) => {
    const isTaken = drawn.transitions.some((t) => taken.has(t.id));
    const isOpen = active.has(drawn.source === any ? root.id : drawn.source);
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

export function nodesOf(lit: Lit, edges: readonly StepEdge[]): StateNode[] {
  const { layout, root, inside, active, selected, found } = lit;
  const initial = initialsOf(root);
  const next = new Set(edges.flatMap((e) => (e.data?.emphasis === 'open' && active.has(e.source) ? [e.target] : [])));
  const came = new Set(edges.flatMap((e) => (e.data?.emphasis === 'taken' ? [e.source] : [])));
  return layout.nodes.map((n) => {
    const isActive = active.has(n.id);
    const marks = [
      n.state.states.length === 0 ? 'leaf' : 'compound',
      n.state.type === 'compound' ? '' : n.state.type,
      n.id === anyStateOf(root) ? 'any' : '',
      inside.has(n.id) ? 'closed' : '',
      isActive ? 'active' : '',
      next.has(n.id) && !isActive ? 'next' : '',
      came.has(n.id) && !isActive ? 'came' : '',
      found.has(n.id) ? 'found' : '',
    ];
    return {
      id: n.id,
      type: 'state' as const,
      position: { x: n.x, y: n.y },
      width: n.width,
      height: n.height,
      style: { width: n.width, height: n.height },
      // Known beforehand: lines are drawn at once, and stay while boxes change.
      measured: { width: n.width, height: n.height },
      handles: [
        { type: 'target' as const, position: Position.Top, x: n.width / 2, y: 0, width: 1, height: 1 },
        { type: 'source' as const, position: Position.Bottom, x: n.width / 2, y: n.height, width: 1, height: 1 },
      ],
      ...(n.parent === '' ? {} : { parentId: n.parent }),
      selected: n.id === selected,
      data: {
        state: n.state,
        marks: marks.filter((m) => m !== '').join(' '),
        initial: initial.has(n.id),
        inside: inside.get(n.id) ?? 0,
        canClose: lit.canFold && n.state.states.length > 0,
        turn: lit.turn,
      },
      ariaLabel: `${n.state.key}${isActive ? ', active' : ''}${inside.has(n.id) ? `, closed, ${inside.get(n.id)} states` : ''}`,
      draggable: false,
      connectable: false,
    };
  });
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
  const { state, inside } = data;
  return (
    <div
      className={`state ${data.marks}${selected ? ' asked' : ''}`}
      title={[state.id, state.reason, state.message].filter((t) => t !== '').join('\n')}
    >
      <Handle type="target" position={Position.Top} isConnectable={false} />
      <span className="state-name">
        {data.initial && <i className="initial" />}
        {(inside > 0 || data.canClose) && (
          <button
            type="button"
            className="twist nopan"
            aria-label={`${inside > 0 ? 'Open' : 'Close'} ${state.key}`}
            onClick={(e) => {
              e.stopPropagation();
              data.turn(state.id);
            }}
          >
            <Icon name={inside > 0 ? 'closed' : 'open'} />
          </button>
        )}
        {state.key}
        {inside > 0 && <span className="inside">{inside}</span>}
      </span>
      <Handle type="source" position={Position.Bottom} isConnectable={false} />
    </div>
  );
}

function StepLine({ id, data }: EdgeProps<StepEdge>) {
  if (data === undefined) return null;
  const { points, transitions } = data.drawn;
  const path = points.map((p, i) => `${i === 0 ? 'M' : 'L'}${p.x},${p.y}`).join(' ');
  const { labelAt } = data;
  const end = points.at(-1);
  const before = points.at(-2);
  return (
    <>
      <g>
        <title>{transitions.map((t) => (t.guard === '' ? t.label : `${t.label} [${t.guard}]`)).join('\n')}</title>
        <BaseEdge id={id} path={path} className={`step step-${data.emphasis}`} />
      </g>
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
