/** Time of a run in which a part of what came is left out. */
import { expect, it } from 'vitest';
import { Edit } from '../../src/lenient/edit.ts';
import type { Script } from '../../src/lenient/script.ts';
import { LenientTime } from '../../src/lenient/time.ts';
import { inputsOf } from './quickStart.ts';

/** A worker that slept then left its timer, and the sleepers' woke it. Without the other pods it began a little earlier, and is awake. */
const LEFT = { order: 5, ms: 15_217, atMs: 3_070, fired: null, clearedMs: 13_516 };
const script = { ...{ timers: [LEFT], turns: [], wall: [], causes: [], looks: new Map() }, endMs: 40_000 } as unknown as Script;
const { header } = inputsOf(['{"monoMs":3041,"wallMs":1000}']);

it.each([
  ['as the one that was cleared ended', true, 15_246, 18_287],
  ['at another time', true, 20_000, null],
  ['where nothing comes but what came then', false, 15_246, null],
])('a timer that ends %s (%s)', (_, firesCleared, ms, at) => {
  const time = new LenientTime(script, header, { edit: new Edit({ only: new Set(), firesCleared }), inOrder: true });
  let fired: number | null = null;
  time.clock.setTimeout(() => {
    fired = time.nowMs;
  }, ms);
  while (time.step(39_000));
  expect(fired).toBe(at);
});
