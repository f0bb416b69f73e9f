/** Nodes of a fleet start while those that run hold their leases in time, and wait while the machine is behind. */
import type { ReplyTo } from '@actorlet/kubelet/machines/supervision/address.ts';
import { expect, it } from 'vitest';
import { fakePorts } from '../../../../test/supervision/fakePorts.ts';
import { Leases } from '../../src/pace/leases.ts';
import { type StartsEvent, startsAddr } from '../../src/pace/messages.ts';
import { startsSpec } from '../../src/pace/starts.ts';
import { fleetTree } from '../../src/tree.ts';

const LEASE = (node: string) => `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${node}`;

/** A hundred nodes whose leases were written at the beginning. */
function hundred() {
  const ports = fakePorts();
  const leases = new Leases(ports.clock);
  const tree = fleetTree([startsSpec({ leases, nodes: 200 })], { ...ports, stopMs: 1_000 });
  void tree.start();
  const renew = (from: number, to: number): void => {
    for (let i = from; i < to; i++) leases.done(`n${i}`, { verb: 'PUT', path: LEASE(`n${i}`) });
  };
  renew(0, 100);
  let asked = 0;
  let started: string[] = [];
  return {
    ...{ leases, renew },
    over: (node: string) => void tree.registry.send(startsAddr, { type: 'turn.over', node }),
    state: () => tree.stateAt('fleet/starts'),
    kill: () => tree.kill('fleet/starts', 'a test'),
    /** Numbers of running nodes in the lines that say that nodes wait. */
    waits: () => ports.lines.flatMap(({ fields }) => ('running' in fields ? [fields.running] : [])),
    /** One more node would start. */
    start: () => {
      const node = `m${asked++}`;
      const question = (replyTo: ReplyTo<null>): StartsEvent => ({ type: 'turn.ask', node, replyTo });
      const answer = tree.registry.ask(startsAddr, question, { timeoutMs: 1e9 });
      void answer.then(({ kind }) => {
        started = [...started, kind === 'reply' ? node : kind];
      });
    },
    /** How many have started so far. */
    after: async (ms: number): Promise<number> => {
      await ports.advance(ms);
      return started.length;
    },
    started: () => started,
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
  expect(waits()).toEqual([]);
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
  expect(waits()).toEqual([100]);
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

it('what is not a lease that was written counts for nothing', async () => {
  const { leases, start, after } = hundred();
  await after(30_000);
  for (let i = 0; i < 100; i++) leases.done(`n${i}`, { verb: 'GET', path: LEASE(`n${i}`) });
  for (let i = 0; i < 100; i++) leases.done(`n${i}`, { verb: 'PATCH', path: `/api/v1/nodes/n${i}/status` });
  start();
  start();
  expect(await after(1_000)).toBe(1);
});

it('starts 50 at a time, in their order, and the next when one has started or waits no longer', async () => {
  const { start, after, over, started, state } = hundred();
  for (let i = 0; i < 53; i++) start();
  expect(await after(0)).toBe(50);
  expect(state()).toMatchObject({ state: 'inTime', message: '50 nodes start, 3 wait for their turn' });
  over('m50');
  over('m7');
  expect(await after(0)).toBe(51);
  expect(started().at(-1)).toBe('m51');
});

it('that crashes has forgotten those who wait, and they hear it', async () => {
  const { start, after, kill, started } = hundred();
  for (let i = 0; i < 52; i++) start();
  await after(0);
  kill();
  await after(1_000);
  expect(started().slice(50)).toEqual(['lost', 'lost']);
  start();
  await after(0);
  expect(started().at(-1)).toBe('m52');
});
