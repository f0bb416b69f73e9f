/** The supervision tree: a list that folds, for the mouse and for the arrow keys. */

import { podTone, type Tone } from '@actorlet/shown/src/pods/podStatus.ts';
import { type KeyboardEvent, useMemo, useRef, useState } from 'react';
import type { ActorRow, PodRow } from '../../feed/frames.ts';
import { Icon } from '../bits.tsx';
import { go } from '../route.ts';
import { nowMs, type PageState } from '../store.ts';
import { duration, toneOf } from '../words.ts';

interface Line {
  row: ActorRow;
  depth: number;
  children: number;
  open: boolean;
}
/** Dynamic supervisors with more children than this begin folded only where nothing below is unwell. */
const FOLD_FROM = 200;
const WORKERS = 'node/pods/workers/';
/** Lines drawn at once. */
const LINES_MAX = 600;

export function Tree({ state, selected }: { state: PageState; selected: string }) {
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set());
  const [query, setQuery] = useState('');
  const list = useRef<HTMLDivElement>(null);
  const lines = useMemo(() => linesOf(state.actors, { folded, query }), [state.actors, folded, query]);
  const own = selected.split('>', 1)[0] ?? '';
  const at = Math.max(
    0,
    lines.findIndex((l) => l.row.path === own),
  );

  // Only lines around the one that is chosen are shown, of very many.
  const from = Math.max(0, Math.min(lines.length - LINES_MAX, at - LINES_MAX / 2));

  const fold = (path: string, closed: boolean) => {
    const next = new Set(folded);
    if (closed) next.add(path);
    else next.delete(path);
    setFolded(next);
  };
  const move = (to: number) => {
    const line = lines[Math.min(lines.length - 1, Math.max(0, to))];
    if (line === undefined) return;
    go('actors', line.row.path);
    requestAnimationFrame(() => list.current?.querySelector<HTMLElement>(`[data-path="${CSS.escape(line.row.path)}"]`)?.focus());
  };
  const onKey = (e: KeyboardEvent) => {
    const line = lines[at];
    if (line === undefined) return;
    const parent = lines.findIndex((l) => l.row.path === line.row.parent);
    const keys: Record<string, () => void> = {
      ArrowDown: () => move(at + 1),
      ArrowUp: () => move(at - 1),
      Home: () => move(0),
      End: () => move(lines.length - 1),
      ArrowLeft: () => (line.open && line.children > 0 ? fold(line.row.path, true) : move(parent)),
      ArrowRight: () => (!line.open && line.children > 0 ? fold(line.row.path, false) : move(at + (line.children > 0 ? 1 : 0))),
      Enter: () => go('actors', line.row.path),
    };
    const act = keys[e.key];
    if (act === undefined) return;
    e.preventDefault();
    act();
  };

  return (
    <aside className="tree" aria-label="Supervision tree">
      <input
        type="search"
        placeholder="Find an actor, a pod, a state"
        aria-label="Find an actor"
        value={query}
        onChange={(e) => setQuery(e.target.value)}
      />
      <div className="tree-lines" role="tree" aria-label="Actors" ref={list} onKeyDown={onKey}>
        {lines.slice(from, from + LINES_MAX).map((line, i) => (
          <TreeLine
            key={line.row.path}
            line={line}
            current={from + i === at}
            selected={line.row.path === own}
            now={nowMs(state)}
            pod={line.row.path.startsWith(WORKERS) ? state.pods.get(line.row.pod) : undefined}
            fold={(closed) => fold(line.row.path, closed)}
          />
        ))}
        {lines.length > LINES_MAX && (
          <p className="quiet pad">{`${lines.length - LINES_MAX} more lines are not drawn: search, or fold what is not needed.`}</p>
        )}
        {lines.length === 0 && <p className="quiet pad">Nothing fits.</p>}
      </div>
    </aside>
  );
}

function TreeLine(o: {
  line: Line;
  current: boolean;
  selected: boolean;
  now: number;
  pod: PodRow | undefined;
  fold(closed: boolean): void;
}) {
  const { row, depth, children, open } = o.line;
  const depthMail = row.mail?.depth ?? 0;
  const isUp = row.lifecycle === 'running' || row.lifecycle === 'asleep';
  const said = isUp && row.state !== '' ? row.state : row.lifecycle;
  return (
    <div
      role="treeitem"
      aria-level={depth + 1}
      aria-selected={o.selected}
      aria-expanded={children > 0 ? open : undefined}
      tabIndex={o.current ? 0 : -1}
      data-path={row.path}
      className={`tree-line${o.selected ? ' selected' : ''}`}
      onClick={() => go('actors', row.path)}
      onKeyDown={() => undefined}
      title={[row.path, row.reason, row.message, row.error].filter((t) => t !== '').join('\n')}
      ref={(el) => {
        el?.style.setProperty('--depth', String(depth));
      }}
    >
      <button
        type="button"
        tabIndex={-1}
        className="twist"
        aria-label={open ? 'Fold' : 'Unfold'}
        onClick={(e) => {
          e.stopPropagation();
          o.fold(open);
        }}
      >
        {children > 0 && <Icon name={open ? 'open' : 'closed'} />}
      </button>
      <i className={`dot ${toneOfLine(row, o.pod, o.now)}`} />
      <span className="tree-name">{row.name}</span>
      {row.restarts > 0 && (
        <span className="badge" title={`${row.restarts} restarts`}>
          <Icon name="restart" />
          {row.restarts}
        </span>
      )}
      {depthMail > 0 && (
        <span
          className="badge mail"
          title={`${depthMail} messages wait, the oldest for ${duration(o.now - (row.mail?.oldestAtMs ?? o.now))}`}
        >
          <Icon name="mail" />
          {depthMail}
        </span>
      )}
      <span className="tree-state">{said}</span>
      <span className="tree-age">{duration(o.now - row.sinceMs)}</span>
    </div>
  );
}

/** A worker that does its work well has the colour of its pod, whose name it bears. */
function toneOfLine(row: ActorRow, pod: PodRow | undefined, now: number): Tone {
  const own = toneOf(row);
  const tone = pod === undefined ? 'ok' : podTone(pod, now);
  return own === 'ok' && (tone === 'bad' || tone === 'warn') ? tone : own;
}

function linesOf(actors: ReadonlyMap<string, ActorRow>, o: { folded: ReadonlySet<string>; query: string }): Line[] {
  const below = new Map<string, ActorRow[]>();
  for (const row of actors.values()) {
    const siblings = below.get(row.parent);
    if (siblings === undefined) below.set(row.parent, [row]);
    else siblings.push(row);
  }
  const words = o.query
    .toLowerCase()
    .split(/\s+/)
    .filter((w) => w !== '');
  const fits = (a: ActorRow): boolean => {
    const text = `${a.path} ${a.name} ${a.state} ${a.lifecycle} ${a.reason}`.toLowerCase();
    return words.every((w) => text.includes(w));
  };
  const lines: Line[] = [];
  const visit = (row: ActorRow, depth: number): boolean => {
    const children = below.get(row.path) ?? [];
    if (row.type === 'dynamic') children.sort((a, b) => (a.name < b.name ? -1 : 1));
    const open = words.length > 0 || (!o.folded.has(row.path) && children.length < FOLD_FROM);
    const at = lines.length;
    lines.push({ row, depth, children: children.length, open });
    let kept = words.length === 0 || fits(row);
    if (open) for (const child of children) kept = visit(child, depth + 1) || kept;
    if (!kept) lines.length = at;
    return kept;
  };
  for (const root of below.get('') ?? []) visit(root, 0);
  return lines;
}
