/** Where a pod's life stands in the pod manager, as its chart, and the way it came there. */
import { useMemo, useState } from 'react';
import { lifeChart, lifeStateId, lifeTransitionsOf } from '../../../machines/pods/manager/life.ts';
import { LIFE_STATES, type LifeStep } from '../../../machines/pods/manager/messages.ts';
import { Section } from '../bits.tsx';
import { clock, duration } from '../words.ts';
import { Statechart } from './Statechart.tsx';

const CHART = lifeChart();
const WHEN = new Map(CHART.root.states.flatMap((s) => s.transitions.map((t) => [t.id, t.label])));

export function Life({ way, now }: { way: readonly LifeStep[]; now: number }) {
  const [asked, setAsked] = useState('');
  const last = way.at(-1);
  const active = useMemo(() => new Set(last === undefined ? [] : [lifeStateId(last.is)]), [last]);
  // A frame comes every second: the chart is drawn anew only where the pod went on.
  const text = way.map(({ is }) => is).join();
  const taken = useMemo(() => lifeTransitionsOf(way), [text]);
  if (last === undefined) return null;
  return (
    <Section title="Life" note="in the pod manager">
      <Statechart chart={CHART} active={active} taken={taken} selected={asked} onSelect={setAsked} />
      <ol className="plain way">
        {way.map((step, i) => (
          <li key={`${step.atMs} ${step.is}`}>
            <time>{clock(step.atMs)}</time> <strong>{step.is}</strong>{' '}
            <span className="quiet">
              {WHEN.get(taken[i] ?? '')}, for {duration((way[i + 1]?.atMs ?? now) - step.atMs)}
            </span>
          </li>
        ))}
      </ol>
      {asked !== '' && <p className="quiet">{said(asked)}</p>}
    </Section>
  );
}

function said(id: string): string {
  return Object.entries(LIFE_STATES).find(([key]) => lifeStateId(key) === id)?.[1] ?? '';
}
