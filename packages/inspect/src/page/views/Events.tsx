/** Kubernetes' events of the node and its pods, as kubectl shows them. */
import { useState } from 'react';
import { hrefOf } from '../route.ts';
import { nowMs, type PageState } from '../store.ts';
import { duration } from '../words.ts';

const SHOWN_MAX = 300;

export function Events({ state }: { state: PageState }) {
  const [query, setQuery] = useState('');
  const [onlyWarnings, setOnlyWarnings] = useState(false);
  const all = state.kubeEvents?.events ?? null;
  if (all === null) return <p className="quiet pad">Asking…</p>;
  const words = query.toLowerCase().split(/\s+/);
  const shown = all.filter((e) => {
    const text = `${e.reason} ${e.message} ${e.pod?.namespace ?? ''}/${e.pod?.name ?? ''} ${e.pod?.uid ?? ''}`.toLowerCase();
    return (!onlyWarnings || e.type === 'Warning') && words.every((w) => text.includes(w));
  });
  const now = nowMs(state);
  return (
    <section className="wide" aria-label="Events">
      <div className="bar">
        <input
          type="search"
          aria-label="Search events"
          placeholder="Find a pod, a reason"
          value={query}
          onChange={(e) => setQuery(e.target.value)}
        />
        <button type="button" aria-pressed={onlyWarnings} onClick={() => setOnlyWarnings(!onlyWarnings)}>
          Warnings
        </button>
        <span className="quiet">
          {shown.length} of {all.length}
        </span>
      </div>
      <ol className="plain kube-events">
        {shown
          .slice(-SHOWN_MAX)
          .toReversed()
          .map((e) => (
            <li key={`${e.atMs} ${e.pod?.uid} ${e.reason} ${e.message}`}>
              <span className="quiet nowrap">{duration(now - e.atMs)}</span>
              <strong className={e.type === 'Warning' ? 'tone-warn' : ''}>{e.reason}</strong>
              {e.pod === undefined ? <span className="quiet">the node</span> : <a href={hrefOf('pods', e.pod.uid)}>{e.pod.name}</a>}
              <span>
                {e.message} {e.count > 1 && <span className="quiet">× {e.count}</span>}
              </span>
            </li>
          ))}
      </ol>
      {shown.length === 0 && <p className="quiet pad">{all.length === 0 ? 'No event was recorded yet.' : 'Nothing fits.'}</p>}
    </section>
  );
}
