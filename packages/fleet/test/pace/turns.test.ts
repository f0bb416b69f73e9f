/** All trees of a fleet take their turns on one thread, and none of them holds up what comes from outside. */
import { expect, it } from 'vitest';
import { FleetTurns } from '../../src/pace/turns.ts';

/** A clock that only turns move, and a loop that is told to go round. */
function loop() {
  let nowMs = 0;
  const asked: (() => void)[] = [];
  const timers: { fn: () => void; ms: number }[] = [];
  const state = { late: false };
  const turns = new FleetTurns({
    late: () => state.late,
    clock: { monoMs: () => nowMs, setTimeout: (fn, ms) => timers.push({ fn, ms }) },
    yield: { defer: (fn) => asked.push(fn) },
  });
  const order: string[] = [];
  return {
    turns,
    state,
    order,
    asked,
    timers,
    pass: (ms: number) => {
      nowMs += ms;
    },
    lasts: (name: string, ms: number) => () => {
      nowMs += ms;
      order.push(name);
    },
    /** What was asked for until now; answers how long it took. */
    round: () => {
      const beganMs = nowMs;
      for (const fn of asked.splice(0)) fn();
      return nowMs - beganMs;
    },
  };
}

it('a thousand trees that are busy leave the loop to others every few turns', () => {
  const { turns, order, lasts, round, asked } = loop();
  for (let i = 0; i < 1_000; i++) turns.defer(lasts(`n${i}`, 4));
  expect(asked).toHaveLength(1);
  const rounds: number[] = [];
  while (asked.length > 0) rounds.push(round());
  expect(Math.max(...rounds)).toBeLessThanOrEqual(20);
  expect(order).toEqual(Array.from({ length: 1_000 }, (_, i) => `n${i}`));
});

it('a tree that always has more to do takes its turn after all that wait', () => {
  const { turns, order, lasts, round } = loop();
  const again = () => {
    lasts('busy', 1)();
    turns.defer(again);
  };
  turns.defer(again);
  for (const name of ['a', 'b', 'c']) turns.defer(lasts(name, 1));
  round();
  expect(order.slice(0, 5)).toEqual(['busy', 'a', 'b', 'c', 'busy']);
  expect(order.length).toBeLessThan(20);
});

it('a turn that throws costs nobody else theirs', () => {
  const { turns, order, lasts, round } = loop();
  turns.defer(lasts('a', 1));
  turns.defer(() => {
    throw new Error('a fault');
  });
  turns.defer(lasts('b', 1));
  expect(round).toThrow('a fault');
  round();
  expect(order).toEqual(['a', 'b']);
});

it('new work comes in as there is room, in order, and never waits for good', async () => {
  const { turns, order, lasts, round, asked } = loop();
  for (let i = 0; i < 40; i++) turns.defer(lasts(`n${i}`, 4));
  const came: number[] = [];
  const all = Array.from({ length: 50 }, (_, i) => turns.room().then(() => came.push(i)));
  await Promise.resolve();
  expect(came).toEqual([]);
  while (asked.length > 0) {
    round();
    await new Promise(setImmediate);
    expect(came.length).toBeLessThanOrEqual(order.length + 32);
  }
  await Promise.all(all);
  expect(came).toEqual(Array.from({ length: 50 }, (_, i) => i));
});

it('while leases are late, one comes in each second; a thread that others hold up takes new work all the same', async () => {
  const { turns, round, pass, asked, state } = loop();
  let came = 0;
  state.late = true;
  const all = Array.from({ length: 20 }, () => turns.room().then(() => (came += 1)));
  const counts: number[] = [];
  for (let i = 0; i < 16; i++) {
    pass(150);
    round();
    await new Promise(setImmediate);
    counts.push(came);
  }
  expect(counts).toEqual([1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 3, 3]);
  state.late = false;
  pass(5_000);
  round();
  await Promise.all(all);
  expect([came, asked]).toEqual([20, []]);
});

it('while 256 pods are being made no other comes in; those that take 15 s are waited for no more', async () => {
  const { turns, round, pass, asked, timers } = loop();
  for (let i = 0; i < 256; i++) turns.begun(`pod-${i}`);
  let came = 0;
  const all = [1, 2, 3].map(async () => {
    await turns.room();
    came += 1;
    turns.begun(`new-${came}`);
  });
  const settle = async () => {
    await new Promise(setImmediate);
    while (asked.length > 0) {
      round();
      await new Promise(setImmediate);
    }
  };
  await settle();
  expect(came).toBe(0);
  turns.made('pod-7');
  turns.made('of nobody');
  await settle();
  expect(came).toBe(1);
  pass(15_000);
  expect(timers).toHaveLength(1);
  timers[0]?.fn();
  await settle();
  await Promise.all(all);
  expect(came).toBe(3);
});

it('while a hundred requests are under way nothing new comes in, and each that ends lets one in', async () => {
  const { turns, asked, round } = loop();
  const ends: (() => void)[] = [];
  const ask = () => turns.asking(() => new Promise<void>((resolve) => ends.push(resolve)));
  const settle = async () => {
    await new Promise(setImmediate);
    while (asked.length > 0) {
      round();
      await new Promise(setImmediate);
    }
  };
  const requests = Array.from({ length: 100 }, ask);
  const all = [1, 2].map(() => turns.room().then(() => requests.push(ask())));
  await settle();
  expect(requests).toHaveLength(100);
  for (const count of [101, 102]) {
    ends.shift()?.();
    await settle();
    expect(requests).toHaveLength(count);
  }
  for (const end of ends) end();
  await Promise.all([...all, ...requests]);
});

it('a request that fails is none any more', async () => {
  const { turns, round } = loop();
  for (let i = 0; i < 150; i++) await expect(turns.asking(() => Promise.reject(new Error('no answer')))).rejects.toThrow('no answer');
  const room = turns.room();
  round();
  await room;
});
