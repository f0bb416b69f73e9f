/**
 * A pod's life in the pod manager: the one table of its states and transitions. The page, docs/architecture/pod-flow.md and
 * `why` are drawn from it, and test/pods/podLife.test.ts holds the pod manager to it.
 */

import type { Chart, ChartState, ChartTransition } from '../../chart/definition.ts';
import { LIFE_STATES, type LifeStep, type PodLifeState } from './messages.ts';

/** `[*]`: before the pod manager knows the pod, and after it forgot it. */
type End = PodLifeState | '[*]';

/** From, to, and when. */
export const LIFE_TRANSITIONS: readonly (readonly [from: End, to: End, when: string])[] = [
  ['[*]', 'waiting', 'another pod of its name is there'],
  ['[*]', 'running', 'a source names it'],
  ['[*]', 'refused', 'admission refuses it'],
  ['[*]', 'leaving', 'only the runtime knows it'],
  ['[*]', 'quarantined', 'its definition cannot be read or handled'],
  ['waiting', 'running', 'the name is free'],
  ['waiting', '[*]', 'removed or refused'],
  ['running', 'failing', 'evicted, or an update is refused'],
  ['running', 'leaving', 'removed'],
  ['running', 'ended', 'its worker has finished'],
  ['running', 'quarantined', 'its worker kept failing'],
  ['failing', 'leaving', 'removed'],
  ['failing', 'ended', 'its worker has finished'],
  ['failing', 'quarantined', 'its worker kept failing'],
  ['failing', '[*]', 'finished, and its definition was put right'],
  ['leaving', 'running', 'named again before every source has delivered'],
  ['leaving', '[*]', 'its worker has finished'],
  ['refused', 'failing', 'the runtime still holds containers of it'],
  ['refused', '[*]', 'removed or put right'],
  ['ended', 'running', 'the runtime still holds containers of it'],
  ['ended', 'failing', 'the same, of a pod that failed'],
  ['ended', '[*]', 'removed or put right'],
  ['quarantined', 'ended', 'its worker had finished'],
  ['quarantined', 'failing', 'a refused pod of which the runtime holds containers'],
  ['quarantined', '[*]', 'removed or put right'],
];

/** States of one life that are remembered, the newest ones. Most lives have two. */
export const LIFE_STEPS_MAX = 12;

interface Lived {
  readonly life: number;
  readonly state: { readonly is: PodLifeState };
  readonly way: readonly LifeStep[];
}
/** The way to `after`; `before`: the record before the event. The very list of before where the state is the same. */
export function wayTo(before: Lived | undefined, after: Lived, atMs: number): readonly LifeStep[] {
  const { is } = after.state;
  const way = before?.life === after.life ? before.way : [];
  return way.at(-1)?.is === is ? way : [...way, { is, atMs }].slice(-LIFE_STEPS_MAX);
}

const CHART_ID = 'life';
const [SEEN, FORGOTTEN] = ['seen', 'forgotten'];
/** Of a state in {@link lifeChart}. */
export const lifeStateId = (key: string): string => `${CHART_ID}.${key}`;

/** Ids of the transitions in {@link lifeChart} between these steps, the one into the first included where it began the life. */
export function lifeTransitionsOf(way: readonly LifeStep[]): string[] {
  return way.map(({ is }, i) => transitionId(way[i - 1]?.is ?? '[*]', is));
}
function transitionId(from: End, to: End): string {
  return `${from} --> ${to}`;
}

/** The table as a chart that the page draws like that of a machine. */
export function lifeChart(): Chart {
  const state = (key: string, from: End, type: ChartState['type'], said: string): ChartState => ({
    ...{ id: lifeStateId(key), key, type, initial: '', reason: '', message: said },
    ...{ entry: [], exit: [], invokes: [], states: [] },
    transitions: type === 'final' ? [] : LIFE_TRANSITIONS.filter(([a]) => a === from).map(([a, b, when]) => drawn(a, b, when)),
  });
  const known = Object.entries(LIFE_STATES).map(([key, said]) => state(key, key as PodLifeState, 'atomic', said));
  const states = [
    state(SEEN, '[*]', 'atomic', 'the pod manager hears of it'),
    ...known,
    state(FORGOTTEN, '[*]', 'final', 'the pod manager has forgotten it'),
  ];
  const root = { id: CHART_ID, key: CHART_ID, type: 'compound', initial: lifeStateId(SEEN), reason: '', message: '' } as const;
  return { id: CHART_ID, root: { ...root, entry: [], exit: [], invokes: [], transitions: [], states } };
}

function drawn(from: End, to: End, when: string): ChartTransition {
  const targets = [lifeStateId(to === '[*]' ? FORGOTTEN : to)];
  return { id: transitionId(from, to), event: when, label: when, guard: '', targets, actions: [], reenter: false };
}
