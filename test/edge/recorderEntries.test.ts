import { expect, it } from 'vitest';
import { createRecorder } from '../../src/actors/recorder/recorder.ts';
import type { SupervisionEvent } from '../../src/actors/supervision/types.ts';

const message = (n: number, from?: string): SupervisionEvent => ({
  kind: 'message',
  atMs: n,
  to: 'node/b',
  type: `m${n}`,
  causes: [],
  ...(from === undefined ? {} : { from }),
});

it('keeps who sent a message, as data, and overwrites the oldest entries', () => {
  const recorder = createRecorder(4);
  for (let n = 0; n < 6; n++) recorder.observe(message(n, n % 2 === 0 ? 'node/a' : undefined));
  expect(recorder.since(0, 100).map((e) => [e.n, e.what, e.from])).toEqual([
    [2, 'm2', 'node/a'],
    [3, 'm3', ''],
    [4, 'm4', 'node/a'],
    [5, 'm5', ''],
  ]);
  expect(recorder.since(0, 2).map((e) => e.n)).toEqual([4, 5]);
  expect(recorder.since(5, 100).map((e) => e.n)).toEqual([5]);
  expect(recorder.since(6, 100)).toEqual([]);
  expect(recorder.last(1, (e) => e.from !== '').map((e) => e.n)).toEqual([4]);
});
