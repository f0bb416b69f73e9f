/** Large charts fold, and what of a chart is seen. */

import type { ChartState } from '@actorlet/kubelet/machines/chart/definition.ts';
import { chartOf, statesOf } from '@actorlet/kubelet/machines/chart/definition.ts';
import { podWorkerMachine } from '@actorlet/kubelet/machines/pods/workers/podWorkerMachine.ts';
import { expect, it } from 'vitest';
import { anyStateOf, compoundsOf, fold, pathTo } from '../../src/page/chart/fold.ts';
import { heightFor, isReadable, viewOf } from '../../src/page/chart/view.ts';

const step = (from: string, event: string, ...targets: string[]) => ({
  ...{ id: `${from}|${event}|0`, event, label: event, guard: '', actions: [], reenter: false },
  targets,
});
const state = (id: string, o: Partial<ChartState> = {}): ChartState => ({
  ...{
    id,
    key: id.slice(id.lastIndexOf('.') + 1),
    type: o.states === undefined ? 'atomic' : 'compound',
    initial: '',
    reason: '',
    message: '',
  },
  ...{ entry: [], exit: [], invokes: [], transitions: [], states: [] },
  ...o,
});
const root = state('m', {
  transitions: [step('m', 'reset', 'm.idle'), step('m', 'note')],
  states: [
    state('m.idle', { transitions: [step('m.idle', 'go', 'm.busy.first')] }),
    state('m.busy', {
      transitions: [step('m.busy', 'stop', 'm.idle')],
      states: [
        state('m.busy.first', { transitions: [step('m.busy.first', 'on', 'm.busy.last')] }),
        state('m.busy.last', { transitions: [step('m.busy.last', 'end', 'm.idle')] }),
      ],
    }),
  ],
});
const edges = (r: ChartState) => statesOf(r).flatMap((s) => s.transitions.map((t) => `${s.id} ${t.event} ${t.targets.join()}`));

it('a closed state is one box: steps within it are not drawn, those that leave it are its own, those into it end at it', () => {
  const closed = fold(root, new Set());
  expect(closed.inside).toEqual(new Map([['m.busy', 2]]));
  expect(edges(closed.root)).toEqual(['m|any reset m.idle', 'm.idle go m.busy', 'm.busy stop m.idle', 'm.busy end m.idle']);
});

it('an open one is drawn with all in it, and the ids of its transitions stay', () => {
  const open = fold(root, new Set(['m.busy']));
  expect(open.inside.size).toBe(0);
  expect(edges(open.root)).toContain('m.busy.first on m.busy.last');
  expect(statesOf(open.root).flatMap((s) => s.transitions.map((t) => t.id))).toContain('m.busy.first|on|0');
});

it('transitions of the root leave a box of their own, where they lead to a state', () => {
  expect(fold(root, new Set()).root.states[0]).toMatchObject({ id: anyStateOf(root), key: 'any state' });
  const silent = { ...root, transitions: [step('m', 'note')] };
  expect(fold(silent, new Set()).root.states.map((s) => s.id)).toEqual(['m.idle', 'm.busy']);
});

it('the worker of a pod, folded around its present state, hides all states beside its path, and all of them where it is opened', () => {
  const chart = chartOf(podWorkerMachine);
  if (chart === null) throw new Error('no chart');
  const settled = statesOf(chart.root).find((s) => s.id.endsWith('.settled'));
  const open = new Set(pathTo(chart.root, settled?.id ?? '').map((s) => s.id));
  const folded = fold(chart.root, open);
  const hidden = [...folded.inside.values()].reduce((sum, n) => sum + n, 0);
  expect(hidden).toBeGreaterThan(10);
  expect(statesOf(folded.root).length).toBe(statesOf(chart.root).length - hidden);
  expect(statesOf(folded.root).map((s) => s.id)).toContain(settled?.id);
  const whole = fold(chart.root, new Set(compoundsOf(chart.root).map((s) => s.id)));
  expect(statesOf(whole.root).length).toBeGreaterThanOrEqual(statesOf(chart.root).length);
});

it('a target that is not there is no transition', () => {
  const broken = state('m', { states: [state('m.a', { transitions: [step('m.a', 'go', 'm.gone')] })] });
  expect(edges(fold(broken, new Set()).root)).toEqual(['m.a go ']);
});

it('to follow a state crops a wide chart on neither side where its width can be read', () => {
  const box = { width: 900, height: 400 };
  const layout = { width: 1_100, height: 1_500 };
  expect(isReadable(layout, box)).toBe(false);
  const view = viewOf(layout, box, { x: 1_050, y: 700 });
  expect(view.x).toBeGreaterThanOrEqual(0);
  expect(view.x + layout.width * view.zoom).toBeLessThanOrEqual(box.width);
  // The state that is followed is in the box.
  const y = view.y + 700 * view.zoom;
  expect(y > 0 && y < box.height).toBe(true);
});

it('a chart that is wider than can be read shows no empty room beside it while a state at its edge is followed', () => {
  const view = viewOf({ width: 4_000, height: 300 }, { width: 400, height: 400 }, { x: 10, y: 10 });
  expect(view.x).toBeGreaterThanOrEqual(0);
  expect(view.x).toBeLessThanOrEqual(10);
});

it('the box takes the height that its chart needs, within what the window has', () => {
  expect(heightFor({ width: 400, height: 100 }, 900, 600)).toBe(180);
  expect(heightFor({ width: 900, height: 3_000 }, 900, 600)).toBe(600);
});
