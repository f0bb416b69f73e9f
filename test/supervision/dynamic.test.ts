import { describe, expect, test } from 'vitest';
import { fromCallback, setup } from 'xstate';
import { complete } from '../../src/actors/supervision/policy.ts';
import type { ActorCtx, ActorSpec, ActorState, DynamicSpec } from '../../src/actors/supervision/types.ts';
import { address } from '../../src/machines/supervision/address.ts';
import { actor, idle, layer, receiver, rig, type Say } from './helpers.ts';

const pods = address<Say>('node/pods');

/** Children by key; each notes `key:n`. `crash` throws, `end` ends normally. */
function family(more: Partial<DynamicSpec<Say>> = {}, child: Partial<ActorSpec<Say>> = {}) {
  const seen: string[] = [];
  const notes: string[] = [];
  const contexts: ActorCtx<Say>[] = [];
  const machine = (key: string) =>
    setup({
      types: { events: {} as Say },
      actions: {
        take: ({ event }) => {
          seen.push(`${key}:${event.n ?? event.type}`);
        },
        fail: ({ event }) => {
          seen.push(`${key}:crash`);
          throw new Error(`cannot digest ${event.n ?? 'it'}`);
        },
      },
    }).createMachine({
      initial: 'up',
      states: { up: { on: { say: { actions: 'take' }, crash: { actions: 'fail' }, end: 'gone' } }, gone: { type: 'final' } },
    });
  const { intensity, backoff } = complete(actor('d', idle));
  const spec: DynamicSpec<Say> = {
    type: 'dynamic',
    id: 'pods',
    restart: 'permanent',
    shutdownMs: 1000,
    intensity,
    backoff,
    mailbox: { key: (e) => e.key, capacity: 100 },
    route: (e) => e.key ?? 'none',
    starts: (e) => e.type !== 'stop',
    child: (key) =>
      actor(
        key,
        (ctx) => {
          contexts.push(ctx);
          return machine(key);
        },
        { restart: 'transient', ...child },
      ),
    onExit: (key, reason) => void notes.push(`exit ${key} ${reason.kind}`),
    onQuarantine: (key, error) => void notes.push(`quarantine ${key} ${error.message}`),
    ...more,
  };
  const r = rig(layer('node', [spec, actor('other', idle)]));
  r.tree.start();
  const send = (key: string, n?: number, type: Say['type'] = 'say', life?: number) =>
    r.tree.registry.send(pods, { type, key, ...(n === undefined ? {} : { n }), ...(life === undefined ? {} : { life }) });
  const children = () => r.tree.state().children[0]?.children ?? [];
  return { r, seen, notes, send, children, contexts };
}
const it = test.extend('f', () => family());

describe('a dynamic supervisor', () => {
  describe('with room for two children', () => {
    const keys = (f: ReturnType<typeof family>) => f.children().map((c) => c.path.split('/').at(-1));

    it('lets the others wait, in the order of their coming, what they are told meanwhile with it', async () => {
      const f = family({ childrenMax: 2 });
      for (const key of ['a', 'b', 'c', 'd']) f.send(key, 1);
      await f.r.ports.settle();
      f.send('c', 2);
      await f.r.ports.settle();
      expect([keys(f), f.seen]).toEqual([
        ['a', 'b'],
        ['a:1', 'b:1'],
      ]);
      f.send('a', undefined, 'end');
      await f.r.ports.settle();
      expect([keys(f), f.seen.slice(2)]).toEqual([['b', 'c'], ['c:2']]);
      f.send('b', undefined, 'end');
      f.send('c', undefined, 'end');
      await f.r.ports.settle();
      expect([keys(f), f.seen.slice(3)]).toEqual([['d'], ['d:1']]);
    });

    it('gives the place of one that is quarantined to another', async () => {
      const f = family({ childrenMax: 2 }, { intensity: { max: 0, periodMs: 1_000 } });
      for (const key of ['a', 'b', 'c']) f.send(key, 1);
      f.send('a', 2, 'crash');
      await f.r.ports.advance(5_000);
      expect([keys(f), f.seen.at(-1)]).toEqual([['a', 'b', 'c'], 'c:1']);
    });

    it('lets them in after a restart of its own', async () => {
      const f = family({ childrenMax: 2 });
      for (const key of ['a', 'b', 'c', 'd', 'e']) f.send(key, 1);
      await f.r.ports.settle();
      f.r.tree.kill('node/pods', 'the test');
      await f.r.ports.advance(5_000);
      expect([keys(f), f.seen.slice(2)]).toEqual([
        ['c', 'd'],
        ['c:1', 'd:1'],
      ]);
      f.send('c', undefined, 'end');
      await f.r.ports.settle();
      expect([keys(f), f.seen.at(-1)]).toEqual([['d', 'e'], 'e:1']);
    });
  });

  it('tells of one actor what it tells of all', async ({ f }) => {
    f.send('a', 1);
    await f.r.ports.settle();
    const { tree } = f.r;
    const all = (s: ActorState): ActorState[] => [s, ...s.children.flatMap(all)];
    const states = all(tree.state());
    expect(states.map((s) => s.path)).toEqual(['node', 'node/pods', 'node/pods/a', 'node/other']);
    for (const s of states) expect(tree.stateAt(s.path)).toEqual(s);
    for (const path of ['', 'nod', 'node/', 'node/pod', 'node/pods/', 'node/pods/a/b', 'node/none'])
      expect(tree.stateAt(path), path).toBeUndefined();
  });

  it('creates a child by the first event that may start it, and routes by key', async ({ f }) => {
    f.send('a', 1);
    f.send('b', 2);
    await f.r.ports.settle();
    f.send('a', 3);
    f.send('c', undefined, 'stop');
    await f.r.ports.settle();
    expect(f.seen).toEqual(['a:1', 'b:2', 'a:3']);
    expect(f.children().map((c) => [c.path, c.lifecycle, c.state])).toEqual([
      ['node/pods/a', 'running', 'up'],
      ['node/pods/b', 'running', 'up'],
    ]);
    expect(f.r.tree.registry.deadLetters()).toMatchObject({ total: 1, recent: [{ key: 'c', reason: 'stopped' }] });
  });

  it('gives an event that may not start a child to `unknown`', async () => {
    const unknown: string[] = [];
    const f = family({ unknown: (e) => void unknown.push(e.key ?? '') });
    f.send('c', undefined, 'stop');
    await f.r.ports.settle();
    expect(unknown).toEqual(['c']);
    expect(f.r.tree.registry.deadLetters().total).toBe(0);
  });

  it('reaches a child by its own address too', async ({ f }) => {
    f.send('a', 1);
    await f.r.ports.settle();
    const ctx = f.contexts[0];
    if (ctx === undefined) throw new Error('no child was started');
    expect(ctx.self.path).toBe('node/pods/a');
    ctx.registry.send(ctx.self, { type: 'say', n: 2 });
    await f.r.ports.settle();
    expect(f.seen).toEqual(['a:1', 'a:2']);
  });

  it('forgets a child that ended, creates it anew with a later incarnation, and keeps its waiting messages for it', async ({ f }) => {
    f.send('a', 1);
    await f.r.ports.settle();
    f.send('a', undefined, 'end');
    await f.r.ports.settle();
    expect(f.children()).toEqual([]);
    expect(f.notes).toEqual(['exit a normal']);
    f.send('a', 2);
    await f.r.ports.settle();
    expect(f.children()).toMatchObject([{ incarnation: 2, restarts: 0 }]);
    expect(f.seen).toEqual(['a:1', 'a:2']);
  });

  it('holds the messages of a restarting child, merged, while others flow on', async () => {
    const f = family({}, { poisonMax: 3 });
    f.send('a', 1);
    await f.r.ports.settle();
    f.r.tree.kill('node/pods/a', 'the test');
    await f.r.ports.settle();
    f.send('a', 2);
    f.send('b', 3);
    await f.r.ports.settle();
    f.send('a', 4);
    await f.r.ports.settle();
    expect(f.seen).toEqual(['a:1', 'b:3']);
    expect(f.r.tree.state().children[0]?.mailbox).toMatchObject({ depth: 1, coalesced: 1 });
    await f.r.ports.advance(100);
    expect(f.seen).toEqual(['a:1', 'b:3', 'a:4']);
    expect(f.r.tree.state().children[0]?.mailbox?.depth).toBe(0);
    expect(f.children()[0]).toMatchObject({ incarnation: 2, restarts: 1 });
  });

  it('starts a child again that was killed twice before the first time took effect', async ({ f }) => {
    f.send('a', 1);
    await f.r.ports.settle();
    expect(f.r.tree.kill('node/pods/a', 'the test')).toBe(true);
    f.r.tree.kill('node/pods/a', 'the test');
    await f.r.ports.settle();
    expect(f.notes).toEqual(['exit a killed']);
    await f.r.ports.advance(100);
    f.send('a', 2);
    await f.r.ports.settle();
    expect(f.children()[0]).toMatchObject({ incarnation: 2, restarts: 1, lifecycle: 'running' });
    expect(f.seen).toEqual(['a:1', 'a:2']);
  });

  it('gives what lies behind the first message of a child that ends in its start to the next child', async () => {
    const over = setup({}).createMachine({ initial: 'gone', states: { gone: { type: 'final' } } });
    const seen: string[] = [];
    const f = family({
      mailbox: { key: (e) => `${e.key} ${e.life}`, capacity: 100 },
      child: (key, first) =>
        actor(key, () => (first.life === 1 ? over : receiver((e) => void seen.push(`${key}:${e.n}`))), { restart: 'transient' }),
    });
    f.send('a', 1, 'say', 1);
    f.send('a', 2, 'say', 2);
    await f.r.ports.settle();
    expect(seen).toEqual(['a:2']);
    expect(f.children()[0]).toMatchObject({ lifecycle: 'running' });
    expect(f.r.tree.state().children[0]?.mailbox?.depth).toBe(0);
  });

  it('keeps the order of unkeyed messages it held', async () => {
    const f = family({ mailbox: { capacity: 100 } });
    f.send('a', 1);
    await f.r.ports.settle();
    f.r.tree.kill('node/pods/a', 'the test');
    await f.r.ports.settle();
    for (const n of [2, 3]) f.send('a', n);
    await f.r.ports.settle();
    f.send('a', 4);
    await f.r.ports.advance(100);
    expect(f.seen).toEqual(['a:1', 'a:2', 'a:3', 'a:4']);
  });

  it('quarantines a child that is poisoned, refuses its messages, and lets a newer life in', async () => {
    const f = family({ release: (e) => (e.life ?? 0) > 1 });
    f.send('a', 7, 'crash', 1);
    f.send('b', 1);
    await f.r.ports.advance(1000);
    expect(f.seen).toEqual(['a:crash', 'b:1', 'a:crash']);
    expect(f.notes).toContain('quarantine a cannot digest 7');
    expect(f.children()).toMatchObject([
      { path: 'node/pods/a', lifecycle: 'quarantined', reason: 'Quarantined', message: 'cannot digest 7' },
      { path: 'node/pods/b', lifecycle: 'running' },
    ]);
    f.send('a', 8, 'say', 1);
    await f.r.ports.settle();
    expect(f.r.tree.registry.deadLetters().byReason).toEqual({ poison: 1, quarantined: 1 });
    f.send('a', 9, 'say', 2);
    await f.r.ports.settle();
    expect(f.seen.at(-1)).toBe('a:9');
    expect(f.children()[0]).toMatchObject({ lifecycle: 'running', incarnation: 3 });
    expect(f.r.lifecycle('node')).toBe('running');
  });

  it('quarantines a child over its own intensity and never fails itself', async () => {
    const f = family({}, { intensity: { max: 2, periodMs: 60_000 } });
    f.send('a', 1);
    await f.r.ports.settle();
    for (let i = 0; i < 3; i++) {
      f.r.tree.kill('node/pods/a', 'the test');
      await f.r.ports.advance(1000);
    }
    expect(f.children()).toMatchObject([{ lifecycle: 'quarantined', message: expect.stringContaining('more than 2 times') }]);
    expect(f.r.story().filter((l) => l.startsWith('exited pods '))).toEqual([]);
    expect(f.r.ports.pendingTimers()).toBe(0);
  });

  it('quarantines a child that cannot even be started once it is over its intensity, its first message with it', async () => {
    const f = family({
      child: (key) => ({
        ...actor(key, idle),
        start: () => {
          throw new Error('no such pod');
        },
      }),
    });
    f.send('a', 1);
    await f.r.ports.settle();
    expect(f.children()).toMatchObject([{ lifecycle: 'restarting', lastError: 'no such pod' }]);
    expect(f.r.tree.state().children[0]?.mailbox?.depth).toBe(1);
    await f.r.ports.advance(10_000);
    // Five restarts are within the limit, the sixth crash is not.
    expect(f.notes.filter((n) => n.startsWith('exit'))).toHaveLength(6);
    expect(f.children()).toMatchObject([{ lifecycle: 'quarantined', message: expect.stringContaining('last: no such pod') }]);
    expect(f.r.tree.registry.deadLetters().byReason).toEqual({ quarantined: 1 });
  });

  it('dead-letters an event that its own functions choke on, and goes on', async () => {
    const f = family({
      route: (e) => {
        if (e.key === 'bad') throw new Error('unroutable');
        return e.key ?? 'none';
      },
    });
    f.send('bad', 1);
    f.send('a', 2);
    await f.r.ports.settle();
    expect(f.seen).toEqual(['a:2']);
    expect(f.r.tree.registry.deadLetters().byReason).toEqual({ poison: 1 });
  });

  it('stops its children in parallel, each with its own time', async () => {
    const slow = setup({ types: { events: {} as Say } }).createMachine({
      initial: 'up',
      states: { up: { on: { stop: 'closing' } }, closing: { after: { 300: 'gone' } }, gone: { type: 'final' } },
    });
    const f = family({ child: (key) => actor(key, () => slow, { stopEvent: { type: 'stop' }, restart: 'transient' }) });
    for (const key of ['a', 'b', 'c']) f.send(key, 1);
    await f.r.ports.settle();
    const down = f.r.tree.stop();
    await f.r.ports.advance(300);
    await down;
    expect(f.r.story().slice(-4)).toEqual([
      'exited pods/a shutdown',
      'exited pods/b shutdown',
      'exited pods/c shutdown',
      'exited pods shutdown',
    ]);
    expect(f.r.ports.pendingTimers()).toBe(0);
    expect(f.r.tree.aliveActors()).toBe(0);
  });

  it('stops while a child is in back-off', async ({ f }) => {
    f.send('a', 1);
    await f.r.ports.settle();
    f.r.tree.kill('node/pods/a', 'the test');
    await f.r.ports.settle();
    const down = f.r.tree.stop();
    await f.r.ports.settle();
    await down;
    await f.r.ports.advance(1000);
    expect(f.contexts).toHaveLength(1);
  });

  it('when it is killed itself comes back empty with its mailbox kept', async ({ f }) => {
    f.send('a', 1);
    await f.r.ports.settle();
    f.r.tree.kill('node/pods', 'the test');
    await f.r.ports.settle();
    expect(f.send('a', 2)).toBe('queued');
    await f.r.ports.advance(100);
    expect(f.seen).toEqual(['a:1', 'a:2']);
    expect(f.children()).toMatchObject([{ incarnation: 2 }]);
  });

  it('gives its children no series of their own', async ({ f }) => {
    for (let i = 0; i < 20; i++) f.send(`pod-${i}`, i);
    await f.r.ports.settle();
    f.r.tree.kill('node/pods/pod-3', 'the test');
    await f.r.ports.advance(100);
    const text = await f.r.ports.metrics.render();
    expect(text).not.toContain('pod-');
    expect(text).toContain('actorlet_actor_restarts_total{path="node/pods",reason="killed"} 1');
  });

  it('leaves nothing open after a hundred children crashed', async () => {
    let open = 0;
    const leaf = fromCallback(() => {
      open += 1;
      return () => {
        open -= 1;
      };
    });
    const machine = setup({
      types: { events: {} as Say },
      actors: { leaf },
      actions: {
        boom: () => {
          throw new Error('boom');
        },
      },
    }).createMachine({ invoke: { src: 'leaf' }, on: { crash: { actions: 'boom' } } });
    const f = family({ child: (key) => actor(key, () => machine, { restart: 'temporary', poisonMax: 5 }), mailbox: { capacity: 500 } });
    for (let i = 0; i < 100; i++) {
      f.send(`k${i}`, 1);
      f.send(`k${i}`, 1, 'crash');
    }
    await f.r.ports.settle();
    expect(open).toBeLessThanOrEqual(100);
    f.r.tree.stop();
    await f.r.ports.settle();
    expect(open).toBe(0);
    expect(f.r.tree.aliveActors()).toBe(0);
  });

  it('does not let one throwing child keep others from their messages', async () => {
    const seen: string[] = [];
    const f = family({
      child: (key) =>
        actor(key, () =>
          receiver((e) => {
            if (key === 'bad') throw new Error('always');
            seen.push(`${key}:${e.n}`);
          }),
        ),
    });
    for (let n = 1; n <= 3; n++) {
      f.send('bad', n);
      f.send('good', n);
      await f.r.ports.settle();
    }
    expect(seen).toEqual(['good:1', 'good:2', 'good:3']);
  });
});
