/** Labels of a chart on the page: where they stand. */
import { expect, it } from 'vitest';
import { type PlacedState, placeLabels } from '../../src/page/chart/labels.ts';

const state = (id: string, o: Partial<PlacedState>): PlacedState => ({
  ...{ id, parent: '', x: 0, y: 0, width: 70, height: 34, state: { states: [] } },
  ...o,
});

it('a label stands in the middle of the longest part of its line', () => {
  const points = [
    { x: 0, y: 0 },
    { x: 0, y: 20 },
    { x: 200, y: 20 },
  ];
  expect(placeLabels([{ id: 'a', label: 'pod.kill', points }], [])).toEqual(new Map([['a', { x: 100, y: 20 }]]));
});

it('the first label keeps its place, and the next ones stand clear of it', () => {
  const down = (x: number) => [
    { x, y: 0 },
    { x, y: 200 },
  ];
  const labels = ['a', 'b', 'c'].map((id, i) => ({ id, label: 'its worker has finished', points: down(10 * i) }));
  const placed = placeLabels(labels, []);
  expect(placed.get('a')?.y).toBe(100);
  const rows = [...placed.values()].map((p) => p.y).sort((a, b) => a - b);
  for (const [i, y] of rows.entries()) if (i > 0) expect(y - (rows[i - 1] ?? 0)).toBeGreaterThanOrEqual(18);
});

it('a label stands clear of a state, also of one inside another', () => {
  const outer = { x: 60, y: 60, width: 200, height: 200, state: { states: [{}] } };
  const states = [state('outer', outer), state('inner', { parent: 'outer', x: 10, y: 23 })];
  const points = [
    { x: 105, y: 0 },
    { x: 105, y: 200 },
  ];
  const at = placeLabels([{ id: 'a', label: 'removed', points }], states).get('a');
  // The state covers the middle, from 83 to 117.
  expect(at?.y === undefined || at.y + 9 <= 83 || at.y - 9 >= 117).toBe(true);
});

it('a crowded line takes the place where the least is covered', () => {
  const states = [state('all', { x: -500, y: -500, width: 1_000, height: 1_000 })];
  const points = [
    { x: 0, y: 0 },
    { x: 0, y: 40 },
  ];
  expect(placeLabels([{ id: 'a', label: 'removed', points }], states).size).toBe(1);
  expect(placeLabels([{ id: 'a', label: 'removed', points: [] }], states).size).toBe(0);
});

it('a label that could only cover another label is left out', () => {
  const points = [
    { x: 0, y: 0 },
    { x: 0, y: 10 },
  ];
  const placed = placeLabels(
    ['a', 'b', 'c', 'd'].map((id) => ({ id, label: 'its worker has finished', points })),
    [],
  );
  expect(placed.has('a')).toBe(true);
  expect(placed.size).toBeLessThan(4);
});
