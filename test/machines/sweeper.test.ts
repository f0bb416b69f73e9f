/** When a reclaiming actor sweeps: those who ask one after the other get one sweep, and nobody waits for ever. */
import { expect, it } from 'vitest';
import { createActor } from 'xstate';
import { sweeperLogic } from '../../src/actors/supervision/looks/sweeper.ts';
import type { SweeperEvent } from '../../src/machines/reclaim/sweeperMachine.ts';
import { virtualTime } from '../integration/virtualTime.ts';

const EVERY_MS = 60_000;
const QUIET_MS = 2_000;
const ASK: SweeperEvent = { type: 'gc.run', why: 'a pod has ended' };

/** `tookMs`: how long each sweep takes. Moments at which one began, seconds. */
function bench({ tookMs = 0, isDue = (): boolean => true } = {}) {
  const time = virtualTime();
  const beganMs: number[] = [];
  const urgent: boolean[] = [];
  const sweep = async (_: AbortSignal, how: { urgent: boolean }): Promise<string> => {
    beganMs.push(time.clock.monoMs());
    urgent.push(how.urgent);
    if (tookMs > 0) await new Promise<void>((done) => time.clock.setTimeout(done, tookMs));
    return '';
  };
  const logic = sweeperLogic(time.clock, { sweep, due: isDue });
  const { clock } = time;
  const actor = createActor(logic, { clock, input: { everyMs: EVERY_MS, quietMs: QUIET_MS } }).start();
  const from = time.clock.monoMs();
  return { time, actor, urgent, began: () => beganMs.map((ms) => (ms - from) / 1000) };
}

it('sweeps from time to time though nobody asks', async () => {
  const { time, began } = bench();
  await time.advance(2.5 * EVERY_MS);
  expect(began()).toEqual([60, 120]);
});

it('sweeps once for all who ask, when nobody has asked for a while', async () => {
  const { time, actor, began } = bench();
  for (let i = 0; i < 10; i++) {
    actor.send(ASK);
    await time.advance(1_000);
  }
  await time.advance(10_000);
  expect(began()).toEqual([11]);
});

it('lets nobody wait for longer than 15 s, however many ask', async () => {
  const { time, actor, began } = bench();
  for (let i = 0; i < 35; i++) {
    actor.send(ASK);
    await time.advance(1_000);
  }
  expect(began()).toEqual([15, 30]);
});

it('sweeps at once for whoever cannot wait, and says so to that sweep alone', async () => {
  const { time, actor, began, urgent } = bench();
  actor.send(ASK);
  await time.advance(1_000);
  actor.send({ ...ASK, urgent: true });
  await time.advance(10_000);
  expect(began()).toEqual([1]);
  actor.send(ASK);
  await time.advance(10_000);
  expect(urgent).toEqual([true, false]);
});

it('sweeps once more when it is asked during a sweep', async () => {
  const { time, actor, began } = bench({ tookMs: 5_000 });
  actor.send({ ...ASK, urgent: true });
  await time.advance(1_000);
  actor.send(ASK);
  actor.send({ ...ASK, urgent: true });
  await time.advance(20_000);
  expect(began()).toEqual([0, 5]);
});

it('sweeps at its time only where something may have changed, and whenever it is asked', async () => {
  let isDue = false;
  const { time, actor, began } = bench({ isDue: () => isDue });
  await time.advance(2.5 * EVERY_MS);
  actor.send(ASK);
  await time.advance(5_000);
  isDue = true;
  await time.advance(EVERY_MS);
  expect(began()).toEqual([152, 212]);
});
