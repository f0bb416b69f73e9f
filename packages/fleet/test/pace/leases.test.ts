/** Nodes of a fleet start while those that run hold their leases in time, and wait while the machine is behind. */
import { expect, it } from 'vitest';
import { Leases } from '../../src/pace/leases.ts';

const LEASE = (node: string) => `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${node}`;

/** A hundred nodes whose leases were written at the beginning. */
function hundred() {
  let nowMs = 0;
  const timers: (() => void)[] = [];
  const waits: number[] = [];
  const leases = new Leases({
    clock: { monoMs: () => nowMs, setTimeout: (fn) => timers.push(fn) },
    onWait: (running) => void waits.push(running),
  });
  const renew = (from: number, to: number): void => {
    for (let i = from; i < to; i++) leases.done(`n${i}`, { verb: 'PUT', path: LEASE(`n${i}`) });
  };
  renew(0, 100);
  let started = 0;
  return {
    ...{ leases, renew, waits },
    /** One more node would start. */
    start: () => void leases.inTime().then(() => (started += 1)),
    /** How many have started so far. */
    after: async (ms: number): Promise<number> => {
      nowMs += ms;
      for (const fn of timers.splice(0)) fn();
      await new Promise(setImmediate);
      return started;
    },
  };
}

it('starts while leases are in time', async () => {
  const { start, after, renew, waits } = hundred();
  start();
  expect(await after(13_000)).toBe(1);
  renew(5, 100);
  await after(1);
  start();
  expect(await after(0)).toBe(2);
  expect(waits).toEqual([]);
});

it('waits while more than one in twenty is late, and says so once', async () => {
  const { start, after, renew, waits } = hundred();
  start();
  await after(0);
  renew(6, 100);
  await after(7_000);
  renew(6, 100);
  await after(7_000);
  renew(6, 100);
  start();
  start();
  expect(await after(1_000)).toBe(1);
  expect(waits).toEqual([100]);
  renew(0, 1);
  expect(await after(1_000)).toBe(3);
});

it('starts one a minute all the same, and does not count nodes that are off', async () => {
  const { leases, start, after, renew } = hundred();
  await after(30_000);
  renew(10, 100);
  start();
  start();
  expect(await after(0)).toBe(1);
  for (let s = 10; s < 60; s += 10) {
    expect(await after(10_000)).toBe(1);
    renew(10, 100);
  }
  expect(await after(10_000)).toBe(2);
  start();
  expect(await after(1_000)).toBe(2);
  for (let i = 0; i < 6; i++) leases.gone(`n${i}`);
  expect(await after(1_000)).toBe(3);
});

it('what is not a lease that was written counts for nothing, and at the end nobody waits', async () => {
  const { leases, start, after } = hundred();
  await after(30_000);
  for (let i = 0; i < 100; i++) leases.done(`n${i}`, { verb: 'GET', path: LEASE(`n${i}`) });
  for (let i = 0; i < 100; i++) leases.done(`n${i}`, { verb: 'PATCH', path: `/api/v1/nodes/n${i}/status` });
  start();
  start();
  expect(await after(1_000)).toBe(1);
  leases.end();
  expect(await after(1_000)).toBe(2);
});
