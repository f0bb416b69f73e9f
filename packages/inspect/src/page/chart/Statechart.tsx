/** A machine's chart with the states that it is in lit, and the transitions that it took last. Large charts begin folded. */

import { type Chart, type ChartState, statesOf } from '@actorlet/kubelet/machines/chart/definition.ts';
import { Background, Controls, ReactFlow, ReactFlowProvider, useReactFlow } from '@xyflow/react';
import { type RefObject, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { edgesOf, edgeTypes, type Lit, nodesOf, nodeTypes } from './boxes.tsx';
import type { Layout } from './drawing.ts';
import { anyStateOf, compoundsOf, type Folded, fold, pathTo } from './fold.ts';
import { layoutOf } from './layout.ts';
import { heightFor, isReadable, middleOf, viewOf } from './view.ts';

/** A chart with no more states is drawn whole. */
const FOLD_FROM = 12;
/** Share of the window's height that a chart takes at most. */
const HEIGHT_SHARE_MAX = 0.76;
/** More states than this that a search finds are marked where they are seen, and not opened. */
const FOUND_OPENED_MAX = 12;

export interface StatechartProps {
  chart: Chart;
  active: ReadonlySet<string>;
  /** Ids of transitions, the last ones first. */
  taken: readonly string[];
  selected: string;
  onSelect(id: string): void;
}
interface Shown extends Folded {
  layout: Layout;
}

export function Statechart({ active: isNow, ...rest }: StatechartProps) {
  const { chart } = rest;
  const active = useSameSet(isNow);
  const props = { ...rest, active };
  const folding = useFolding(chart, active);
  const shown = useLayout(folding.folded);
  if (shown === 'failed') return <p className="quiet pad">This chart could not be laid out.</p>;
  if (shown === null) return <div className="chart chart-wait">Drawing…</div>;
  return (
    <ReactFlowProvider>
      <Flow {...props} shown={shown} folding={folding} />
    </ReactFlowProvider>
  );
}

/** The same object while it has the same members: a frame each second draws nothing anew. */
function useSameSet(members: ReadonlySet<string>): ReadonlySet<string> {
  const text = [...members].join('\n');
  return useMemo(() => new Set(text.split('\n')), [text]);
}

/** Until the next layout is there, the last one stays. */
function useLayout(folded: Folded): Shown | 'failed' | null {
  const [shown, setShown] = useState<Shown | 'failed' | null>(null);
  useEffect(() => {
    let mine = true;
    layoutOf(folded.root).then(
      (layout) => mine && setShown({ ...folded, layout }),
      () => mine && setShown('failed'),
    );
    return () => {
      mine = false;
    };
  }, [folded]);
  return shown;
}

interface Folding {
  folded: Folded;
  canFold: boolean;
  whole: boolean;
  query: string;
  found: ReadonlySet<string>;
  setWhole(whole: boolean): void;
  turn(id: string): void;
  search(query: string): void;
}

/** What is open: where the machine is or was since somebody looks, what the reader opened, and what a search found. */
function useFolding(chart: Chart, active: ReadonlySet<string>): Folding {
  const [whole, setAllOpen] = useState(false);
  const [turned, setTurned] = useState<ReadonlyMap<string, boolean>>(new Map());
  const [been, setBeen] = useState<ReadonlySet<string>>(active);
  const [query, setQuery] = useState('');
  useEffect(() => setBeen((known) => ([...active].every((id) => known.has(id)) ? known : new Set([...known, ...active]))), [active]);
  const found = useMemo(() => matches(chart.root, query), [chart, query]);
  const canFold = useMemo(() => statesOf(chart.root).length > FOLD_FROM && compoundsOf(chart.root).length > 0, [chart]);
  const openText = useMemo(() => {
    const around = found.length > FOUND_OPENED_MAX ? [] : found.flatMap((s) => pathTo(chart.root, s.id).slice(0, -1));
    const sought = new Set(around.map((s) => s.id));
    const isOpen = (id: string): boolean => !canFold || sought.has(id) || (turned.get(id) ?? (whole || been.has(id)));
    return compoundsOf(chart.root).flatMap((s) => (isOpen(s.id) ? [s.id] : []));
  }, [chart, canFold, whole, turned, been, found]).join('\n');
  const folded = useMemo(() => fold(chart.root, new Set(openText.split('\n'))), [chart, openText]);
  return {
    ...{ folded, canFold, whole, query },
    found: useMemo(() => new Set(found.map((s) => s.id)), [found]),
    setWhole: (all) => {
      setAllOpen(all);
      setTurned(new Map());
    },
    turn: useCallback((id: string) => setTurned((known) => new Map(known).set(id, folded.inside.has(id))), [folded]),
    search: setQuery,
  };
}

function matches(root: ChartState, query: string): ChartState[] {
  const word = query.trim().toLowerCase();
  if (word === '') return [];
  return statesOf(root).filter((s) => s !== root && `${s.key} ${s.reason}`.toLowerCase().includes(word));
}

function Flow({ chart, active, taken, selected, onSelect, shown, folding }: StatechartProps & { shown: Shown; folding: Folding }) {
  const { layout, root, inside } = shown;
  const { found, canFold, turn } = folding;
  const any = anyStateOf(root);
  const lastTaken = useMemo(() => new Set(taken), [taken]);
  const lit = useMemo(
    (): Lit => ({
      ...{ layout, root, inside, active, found, canFold, turn },
      taken: lastTaken,
      selected: selected === root.id ? any : selected,
    }),
    [layout, root, inside, active, found, canFold, turn, lastTaken, selected, any],
  );
  const edges = useMemo(() => edgesOf(lit), [lit]);
  const nodes = useMemo(() => nodesOf(lit, edges), [lit, edges]);
  const [full, setFull] = useFullScreen();
  const frame = useRef<HTMLElement>(null);
  const sought = layout.nodes.find((n) => found.has(n.id))?.id;
  const focusOn = sought ?? innermost(layout, active);
  const { follow, setFollow } = useView(layout, frame, { focusOn, full, mustFollow: sought !== undefined });
  const select = (id: string) => onSelect(id === any ? root.id : id);
  return (
    <figure className={`chart${full ? ' full' : ''}`} aria-label={`Statechart of ${chart.id}`} ref={frame}>
      <figcaption className="chart-bar">
        <input
          type="search"
          aria-label="Find a state"
          placeholder="Find state"
          value={folding.query}
          onChange={(e) => folding.search(e.target.value)}
        />
        {folding.query !== '' && <span className="quiet">{found.size}</span>}
        {canFold && (
          <button type="button" aria-pressed={folding.whole} onClick={() => folding.setWhole(!folding.whole)}>
            Whole chart
          </button>
        )}
        <button type="button" aria-pressed={follow} onClick={() => setFollow(!follow)}>
          Follow
        </button>
        <button type="button" aria-pressed={full} onClick={() => setFull(!full)}>
          Full screen
        </button>
      </figcaption>
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={nodeTypes}
        edgeTypes={edgeTypes}
        onNodeClick={(_, n) => (inside.has(n.id) ? turn(n.id) : select(n.id === lit.selected ? '' : n.id))}
        onPaneClick={() => onSelect('')}
        onNodesChange={(changes) => {
          for (const c of changes) if (c.type === 'select' && c.selected) select(c.id);
        }}
        nodesDraggable={false}
        nodesConnectable={false}
        edgesFocusable={false}
        zoomOnScroll={full}
        preventScrolling={full}
        minZoom={0.15}
        maxZoom={2}
        proOptions={{ hideAttribution: true }}
      >
        <Background gap={24} size={1} />
        <Controls showInteractive={false} showFitView={false} />
      </ReactFlow>
    </figure>
  );
}

/** The innermost state that is active and drawn. */
function innermost(layout: Layout, active: ReadonlySet<string>): string {
  return layout.nodes.findLast((n) => active.has(n.id) && n.state.states.length === 0)?.id ?? '';
}

/** Esc leaves it; else that would lead back to the list. */
function useFullScreen() {
  const [full, setFull] = useState(false);
  useEffect(() => {
    if (!full) return;
    const onKey = (e: KeyboardEvent) => {
      if (e.key !== 'Escape') return;
      e.stopImmediatePropagation();
      setFull(false);
    };
    addEventListener('keydown', onKey, true);
    return () => removeEventListener('keydown', onKey, true);
  }, [full]);
  return [full, setFull] as const;
}

/** Shows the whole chart, or follows the active state: as the reader chose, before that by whether the whole is readable. */
function useView(
  layout: Layout,
  frame: RefObject<HTMLElement | null>,
  o: { focusOn: string; full: boolean; mustFollow: boolean },
): { follow: boolean; setFollow(follow: boolean): void } {
  const flow = useReactFlow();
  const [chosen, setChosen] = useState<boolean | null>(null);
  const [readable, setReadable] = useState(true);
  const follow = chosen ?? !readable;
  const { focusOn, full, mustFollow } = o;
  useEffect(() => {
    const look = (calm: boolean) => {
      const el = frame.current;
      if (el === null) return;
      const { clientWidth: width } = el;
      const height = full ? window.innerHeight : heightFor(layout, width, Math.max(320, window.innerHeight * HEIGHT_SHARE_MAX));
      if (full) el.style.removeProperty('height');
      else el.style.setProperty('height', `${Math.round(height)}px`);
      const box = { width, height };
      setReadable(isReadable(layout, box));
      const followed = mustFollow || (chosen ?? !isReadable(layout, box)) ? middleOf(layout, focusOn) : null;
      void flow.setViewport(viewOf(layout, box, followed), { duration: calm || followed === null ? 0 : 250 });
    };
    look(matchMedia('(prefers-reduced-motion: reduce)').matches);
    const again = () => look(true);
    addEventListener('resize', again);
    return () => removeEventListener('resize', again);
  }, [flow, frame, layout, chosen, focusOn, full, mustFollow]);
  return { follow, setFollow: setChosen };
}
