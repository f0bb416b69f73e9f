/** Where a pod's life stands in the pod manager, as its chart, and the way it came there. */

import type { Chart, ChartState } from '@actorlet/kubelet/machines/chart/definition.ts';
import type { LifeStep } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { useMemo, useState } from 'react';
import { Section } from '../../bits.tsx';
import { pathTo } from '../../chart/fold.ts';
import { Statechart } from '../../chart/Statechart.tsx';
import { clock, duration } from '../../words.ts';

export function Life({ chart, way, now }: { chart: Chart; way: readonly LifeStep[]; now: number }) {
  const [asked, setAsked] = useState('');
  const last = way.at(-1);
  const active = useMemo(() => new Set(last === undefined ? [] : pathTo(chart.root, last.is).map(({ id }) => id)), [chart, last]);
  // A frame comes every second: the chart is drawn anew only where the pod went on.
  const text = way.map(({ by }) => by).join();
  const taken = useMemo(() => way.map(({ by }) => by), [text]);
  if (last === undefined) return null;
  return (
    <Section title="Life" note="in the pod manager">
      <Statechart chart={chart} active={active} taken={taken} selected={asked} onSelect={setAsked} />
      <ol className="plain way">
        {way.map((step, i) => (
          <li key={`${step.atMs} ${step.is}`}>
            <time>{clock(step.atMs)}</time> <strong>{step.is}</strong>{' '}
            <span className="quiet">
              {WORDS[eventOf(chart.root, step.by)] ?? labelOf(chart.root, step.by)}, for {duration((way[i + 1]?.atMs ?? now) - step.atMs)}
            </span>
          </li>
        ))}
      </ol>
      {asked !== '' && <p className="quiet">{pathTo(chart.root, asked).at(-1)?.message}</p>}
    </Section>
  );
}

/** What an event of the chart means to a reader. */
const WORDS: Readonly<Record<string, string>> = {
  'life.turn': 'a source names it',
  'life.added': 'a source names it again',
  'life.changed': 'its definition changed',
  'life.refused': 'it, or an update of it, is refused',
  'life.leftAlone': 'it cannot be read',
  'life.redefined': 'its definition was put right',
  'life.removed': 'its source no longer names it',
  'life.evicted': 'evicted',
  'life.found': 'the runtime holds containers of it',
  'life.finished': 'its worker has finished',
  'life.quarantined': 'its worker kept failing',
};

function eventOf(state: ChartState, id: string): string {
  const own = state.transitions.find((t) => t.id === id)?.event;
  return own ?? state.states.map((s) => eventOf(s, id)).find((event) => event !== '') ?? '';
}

function labelOf(state: ChartState, id: string): string {
  const own = state.transitions.find((t) => t.id === id)?.label;
  return own ?? state.states.map((s) => labelOf(s, id)).find((label) => label !== '') ?? '';
}
