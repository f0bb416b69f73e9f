/** All pods: sorted by what a reader asks, those in trouble first; searched and filtered. */

import { podStatus, podTone, podTrouble, type Tone } from '@actorlet/shown/src/pods/podStatus.ts';
import { useMemo, useState } from 'react';
import type { PodRow } from '../../feed/frames.ts';
import { go, hrefOf } from '../route.ts';
import { nowMs, type PageState } from '../store.ts';
import { duration } from '../words.ts';

/** More are drawn when asked for. */
const SHOWN_AT_ONCE = 200;
const WORST_FIRST: Readonly<Record<Tone, number>> = { bad: 0, warn: 1, busy: 2, ok: 3, off: 4 };

const byName = (a: PodRow, b: PodRow): number => {
  const [one, other] = [`${a.namespace}/${a.name}`, `${b.namespace}/${b.name}`];
  return one < other ? -1 : Number(one > other);
};
const COLUMNS = {
  Pod: byName,
  Ready: (a, b) => a.ready / Math.max(1, a.containers) - b.ready / Math.max(1, b.containers),
  Status: (a, b, nowMs) => WORST_FIRST[podTone(a, nowMs)] - WORST_FIRST[podTone(b, nowMs)],
  Restarts: (a, b) => b.restarts - a.restarts,
  Age: (a, b) => b.seenAtMs - a.seenAtMs,
} as const satisfies Readonly<Record<string, (a: PodRow, b: PodRow, nowMs: number) => number>>;
type Column = keyof typeof COLUMNS;
const FILTERS: Readonly<Record<string, (p: PodRow) => boolean>> = {
  'Not ready': (p) => p.phase !== 'Succeeded' && p.ready < p.containers,
  Restarted: (p) => p.restarts > 0,
};

export function Pods({ state }: { state: PageState }) {
  const [query, setQuery] = useState('');
  const [filter, setFilter] = useState('');
  const [sort, setSort] = useState<{ by: Column; back: boolean }>({ by: 'Status', back: false });
  const [shownMax, setShownMax] = useState(SHOWN_AT_ONCE);
  const pods = useMemo(() => {
    const words = query.toLowerCase().split(/\s+/);
    const fits = FILTERS[filter] ?? (() => true);
    const way = sort.back ? -1 : 1;
    return [...state.pods.values()]
      .filter((p) => {
        const text = `${p.namespace}/${p.name} ${p.uid} ${podStatus(p)} ${p.phase} ${p.reason} ${p.workerState}`.toLowerCase();
        return fits(p) && words.every((w) => text.includes(w));
      })
      .sort((a, b) => way * COLUMNS[sort.by](a, b, state.atMs) || byName(a, b));
  }, [state.pods, state.atMs, query, filter, sort]);
  const now = nowMs(state);
  return (
    <section className="wide" aria-label="Pods">
      <div className="bar">
        <input
          type="search"
          aria-label="Find a pod"
          placeholder="Find a pod, a reason"
          value={query}
          onChange={(e) => setQuery(e.target.value)}
        />
        {Object.keys(FILTERS).map((name) => (
          <button key={name} type="button" aria-pressed={filter === name} onClick={() => setFilter(filter === name ? '' : name)}>
            {name}
          </button>
        ))}
        <span className="quiet">
          {pods.length} of {state.pods.size}
        </span>
      </div>
      <table className="pods">
        <thead>
          <tr>
            {(Object.keys(COLUMNS) as Column[]).map((by) => (
              <th key={by} aria-sort={sort.by === by ? (sort.back ? 'descending' : 'ascending') : undefined}>
                <button type="button" className="sort" onClick={() => setSort({ by, back: sort.by === by && !sort.back })}>
                  {by}
                </button>
              </th>
            ))}
            <th className="grow">Why</th>
          </tr>
        </thead>
        <tbody>
          {pods.slice(0, shownMax).map((p) => (
            <Row key={p.uid} p={p} now={now} />
          ))}
        </tbody>
      </table>
      {pods.length > shownMax && (
        <p className="pad">
          <button type="button" onClick={() => setShownMax(shownMax + SHOWN_AT_ONCE)}>{`Show more (${pods.length - shownMax})`}</button>
        </p>
      )}
      {state.pods.size === 0 && <p className="quiet pad">No pods on this node.</p>}
      {state.pods.size > 0 && pods.length === 0 && <p className="quiet pad">Nothing fits.</p>}
    </section>
  );
}

function Row({ p, now }: { p: PodRow; now: number }) {
  const status = podStatus(p);
  const tone = podTone(p, now);
  const trouble = podTrouble(p, now);
  return (
    <tr onClick={() => go('pods', p.uid)}>
      <td className="pod-name">
        <i className={`dot ${tone}`} />
        <a href={hrefOf('pods', p.uid)} onClick={(e) => e.stopPropagation()}>
          {p.name}
        </a>{' '}
        <span className="quiet">{p.namespace}</span>
      </td>
      <td>
        {p.ready}/{p.containers}
      </td>
      <td className={tone === 'bad' ? 'tone-bad' : ''}>{status}</td>
      <td className={p.restarts > 0 ? 'tone-warn' : ''}>
        {p.restarts}
        <span className="narrow-only">{p.restarts === 1 ? ' restart' : ' restarts'}</span>
      </td>
      <td className="nowrap">{duration(now - p.seenAtMs)}</td>
      <td className="grow">
        {/* What a pod that is well does is no news. */}
        {tone !== 'ok' && (
          <>
            {status === p.reason || trouble === p.reason || tone === 'warn' ? '' : p.reason} <span className="quiet">{trouble}</span>
          </>
        )}
      </td>
    </tr>
  );
}
