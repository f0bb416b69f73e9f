/** The matrix: restart type x exit x strategy, on a row of three children whose middle one exits. */
import { describe, expect, it } from 'vitest';
import { type AnyActorLogic, fromCallback, fromPromise, setup } from 'xstate';
import type { RestartType, Strategy } from '../../src/actors/supervision/types.ts';
import { address } from '../../src/machines/supervision/address.ts';
import { actor, idle, layer, type Rig, rig, type Say } from './helpers.ts';

const fail = () => {
  throw new Error('asked to');
};
const machine = setup({
  types: { events: {} as Say },
  actors: { rejects: fromPromise(() => Promise.reject(new Error('rejected'))) },
  actions: { fail },
}).createMachine({
  initial: 'up',
  states: {
    up: { on: { end: 'ended', crash: { actions: 'fail' }, say: 'entering', resync: 'invoking' } },
    ended: { type: 'final' },
    entering: { entry: 'fail' },
    invoking: { invoke: { src: 'rejects' } },
  },
});
const disposeThrows = (): AnyActorLogic => fromCallback(() => fail);

const say = (type: Say['type']) => (r: Rig) => void r.tree.registry.send(address<Say>('node/x'), { type });
const SCENARIOS: Record<string, { logic(): AnyActorLogic; clean: boolean; go(r: Rig): void }> = {
  'ends normally': { logic: () => machine, clean: true, go: say('end') },
  'throws in an action': { logic: () => machine, clean: false, go: say('crash') },
  'throws in an entry action': { logic: () => machine, clean: false, go: say('say') },
  'gets an unhandled error event from an invoked promise': { logic: () => machine, clean: false, go: say('resync') },
  'is killed': { logic: () => machine, clean: false, go: (r) => void r.tree.kill('node/x', 'the test') },
  'is killed and its dispose throws': { logic: disposeThrows, clean: false, go: (r) => void r.tree.kill('node/x', 'the test') },
};
const TYPES: RestartType[] = ['permanent', 'transient', 'temporary'];
const STRATEGIES: Strategy[] = ['one_for_one', 'rest_for_one'];

function expected(restarts: boolean, strategy: Strategy): string[] {
  if (!restarts) return [];
  switch (strategy) {
    case 'one_for_one':
      return ['started x'];
    case 'rest_for_one':
      return ['exited r shutdown', 'started x', 'started r'];
  }
}

const cases = TYPES.flatMap((restart) =>
  STRATEGIES.flatMap((strategy) => Object.keys(SCENARIOS).map((scenario) => ({ restart, strategy, scenario }))),
);

describe('a child in the middle', () => {
  it.each(cases)('$restart under $strategy that $scenario', async ({ restart, strategy, scenario }) => {
    const s = SCENARIOS[scenario];
    if (s === undefined) throw new Error('no such scenario');
    const x = actor('x', s.logic, { restart, poisonMax: 1 });
    const r = rig(layer('node', [actor('l', idle), x, actor('r', idle)], { strategy }));
    const up = r.tree.start();
    await r.ports.settle();
    await up;
    s.go(r);
    await r.ports.advance(150);
    const story = r.story().slice(3);
    expect(story[0]).toMatch(s.clean ? 'exited x normal' : /exited x (error|killed)/);
    const restarts = restart === 'permanent' || (restart === 'transient' && !s.clean);
    expect(story.slice(1)).toEqual(expected(restarts, strategy));
    expect(r.lifecycle('node')).toBe('running');
    expect(r.lifecycle('node/x')).toBe(restarts ? 'running' : 'stopped');
  });

  it.each(TYPES.flatMap((restart) => STRATEGIES.map((strategy) => ({ restart, strategy }))))(
    '$restart under $strategy whose start throws once, at the start of the tree',
    async ({ restart, strategy }) => {
      const x = actor('x', idle, { restart });
      const start = x.start;
      x.start = (ctx) => {
        if (ctx.incarnation === 1) throw new Error('no configuration');
        return start(ctx);
      };
      const r = rig(layer('node', [actor('l', idle), x, actor('r', idle)], { strategy }));
      const up = r.tree.start();
      await r.ports.settle();
      if (restart === 'temporary') {
        expect(r.story()).toEqual(['started l', 'started x', 'exited x error', 'started r']);
      } else {
        expect(r.lifecycle('node')).toBe('starting');
        await r.ports.advance(150);
        expect(r.story()).toEqual(['started l', 'started x', 'exited x error', 'started x', 'started r']);
      }
      await up;
    },
  );

  it.each(['permanent', 'transient', 'temporary'] as const)('%s whose logic is a promise that rejects, over and over', async (restart) => {
    const x = actor('x', () => fromPromise(() => Promise.reject(new Error('unreachable'))), { restart });
    const r = rig(layer('node', [x]));
    r.tree.start().catch(() => undefined);
    await r.ports.advance(350);
    // Back-off 100 then 200 ms: starts at 0, 100 and 300 ms.
    const starts = r.story().filter((line) => line === 'started x').length;
    expect(starts).toBe(restart === 'temporary' ? 1 : 3);
  });

  it('that is temporary is not revived when a sibling takes it down, and not when it ended before', async () => {
    const t1 = actor('t1', () => machine, { restart: 'temporary' });
    const t2 = actor('t2', idle, { restart: 'temporary' });
    const r = rig(layer('node', [actor('x', idle), t1, t2], { strategy: 'rest_for_one' }));
    await r.up();
    r.tree.registry.send(address<Say>('node/t1'), { type: 'end' });
    await r.ports.settle();
    r.tree.kill('node/x', 'the test');
    await r.ports.advance(200);
    expect(r.story().slice(3)).toEqual(['exited t1 normal', 'exited x killed', 'exited t2 shutdown', 'started x']);
  });

  it('that is transient and ended is started anew with its group', async () => {
    const job = actor('job', () => machine, { restart: 'transient' });
    const r = rig(layer('node', [actor('x', idle), job], { strategy: 'rest_for_one' }));
    await r.up();
    r.tree.registry.send(address<Say>('node/job'), { type: 'end' });
    await r.ports.settle();
    r.tree.kill('node/x', 'the test');
    await r.ports.advance(200);
    expect(r.story().slice(2)).toEqual(['exited job normal', 'exited x killed', 'started x', 'started job']);
  });
});
