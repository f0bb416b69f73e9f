import { useState } from 'react';
import { go, hrefOf } from '../route.ts';
import { nowMs, type PageState } from '../store.ts';
import { duration, podTone } from '../words.ts';

export function Pods({ state }: { state: PageState }) {
  const [query, setQuery] = useState('');
  const words = query.toLowerCase().split(/\s+/);
  const pods = [...state.pods.values()].filter((p) => {
    const text = `${p.namespace}/${p.name} ${p.uid} ${p.phase} ${p.reason} ${p.workerState}`.toLowerCase();
    return words.every((w) => text.includes(w));
  });
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
        <span className="quiet">
          {pods.length} of {state.pods.size}
        </span>
      </div>
      <div className="scroll">
        <table>
          <thead>
            <tr>
              <th>Pod</th>
              <th>Ready</th>
              <th>Phase</th>
              <th>Restarts</th>
              <th>Seen</th>
              <th className="grow">Why</th>
            </tr>
          </thead>
          <tbody>
            {pods.map((p) => (
              <tr key={p.uid} onClick={() => go('pods', p.uid)}>
                <td className="nowrap">
                  <i className={`dot ${podTone(p)}`} />
                  <a href={hrefOf('pods', p.uid)} onClick={(e) => e.stopPropagation()}>
                    {p.name}
                  </a>{' '}
                  <span className="quiet">{p.namespace}</span>
                </td>
                <td>
                  {p.ready}/{p.containers}
                </td>
                <td>{p.rejected ? 'Refused' : p.phase}</td>
                <td className={p.restarts > 0 ? 'tone-warn' : ''}>{p.restarts}</td>
                <td className="nowrap">{duration(now - p.seenAtMs)}</td>
                <td className="grow">
                  {p.reason} <span className="quiet">{p.message}</span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {state.pods.size === 0 && <p className="quiet pad">No pods on this node.</p>}
      </div>
    </section>
  );
}
