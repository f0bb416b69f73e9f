/** Passivation: an actor with nothing to do ends and keeps its name, its mailbox and one record. What comes makes it again. */
import { describe, expect, test } from 'vitest';
import { type AnyActorLogic, assign, fromPromise, raise, setup } from 'xstate';
import { WHEEL_GRAIN_MS } from '../../src/actors/supervision/sleep/wheel.ts';
import type { ActorCtx, ActorSpec, DynamicSpec, Passivation, Started, Woken } from '../../src/actors/supervision/types.ts';
import { specProblems } from '../../src/actors/supervision/validate.ts';
import { address, type Message, type ReplyTo } from '../../src/machines/supervision/address.ts';
import { fakePorts, seededRng } from './fakePorts.ts';
import { actor, idle, layer, rig } from './helpers.ts';

const AFTER_MS = 1_000;
/** Asleep by then, whenever its last step was. */
const ASLEEP_MS = 2 * AFTER_MS + 2 * WHEEL_GRAIN_MS;

interface Count extends Message {
  type: 'add' | 'crash' | 'end' | 'work' | 'done' | 'alarm' | 'ask' | 'tick';
  key: string;
  replyTo?: ReplyTo<number>;
}
interface Counted {
  n: number;
  alarmAtMonoMs: number | null;
}
const family = address<Count>('node/counters');

/** Counts what it is told. `alarm` sets a timer of 10 s, which counts 100; `work` invokes a promise. */
function counters(
  more: {
    passivate?: Partial<Passivation>;
    keep?: Started['keep'];
    child?: Partial<ActorSpec<Count>>;
    start?: (woken?: Woken) => void;
  } = {},
) {
  const told: string[] = [];
  const contexts: ActorCtx<Count>[] = [];
  const work = Promise.withResolvers<void>();
  const machine = (ctx: ActorCtx<Count>) =>
    setup({
      types: { context: {} as Counted, input: {} as Counted, events: {} as Count },
      actors: { work: fromPromise(() => work.promise) },
      actions: {
        fail: () => {
          throw new Error('cannot count');
        },
        answer: ({ context, event }) => event.replyTo?.(context.n),
        tell: ({ context, event }) => void told.push(`${ctx.id}:${context.n} ${event.type}`),
      },
      delays: { alarm: ({ context }) => Math.max(0, (context.alarmAtMonoMs ?? 0) - ctx.ports.clock.monoMs()) },
    }).createMachine({
      context: ({ input }) => input,
      initial: 'counting',
      states: {
        counting: {
          meta: { reason: 'Counting', message: 'waits for the next' },
          always: { guard: ({ context }) => context.alarmAtMonoMs !== null, target: 'alarmed' },
          on: {
            add: { actions: [assign({ n: ({ context }) => context.n + 1 }), 'tell'] },
            alarm: { target: 'alarmed', actions: assign({ alarmAtMonoMs: () => ctx.ports.clock.monoMs() + 10_000 }) },
            crash: { actions: 'fail' },
            work: 'working',
            ask: { actions: 'answer' },
            end: 'ended',
          },
        },
        alarmed: {
          entry: raise({ type: 'tick', key: '' }, { id: 'tick', delay: 'alarm' }),
          on: {
            tick: { target: 'counting', actions: [assign({ n: ({ context }) => context.n + 100, alarmAtMonoMs: null }), 'tell'] },
            add: { actions: [assign({ n: ({ context }) => context.n + 1 }), 'tell'] },
          },
        },
        working: { invoke: { src: 'work', onDone: 'counting' } },
        ended: { type: 'final' },
      },
    });
  const spec: DynamicSpec<Count> = {
    type: 'dynamic',
    id: 'counters',
    mailbox: { capacity: 100 },
    route: (e) => e.key,
    starts: () => true,
    child: (key) =>
      ({
        ...actor(key, idle),
        restart: 'transient',
        start: (ctx: ActorCtx<Count>, woken?: Woken): Started => {
          contexts.push(ctx);
          more.start?.(woken);
          return {
            logic: machine(ctx) as AnyActorLogic,
            input: (woken?.kept as Counted | undefined) ?? { n: 0, alarmAtMonoMs: null },
            keep: more.keep ?? ((snapshot) => (snapshot as { context: Counted }).context),
          };
        },
        passivate: { afterMs: AFTER_MS, ...more.passivate },
        ...more.child,
      }) as ActorSpec<Count>,
  };
  const r = rig(layer('node', [spec, actor('other', idle)]));
  r.tree.start();
  const send = (key: string, type: Count['type'] = 'add') => r.tree.registry.send(family, { type, key });
  const at = (key: string) => r.tree.stateAt(`node/counters/${key}`);
  const sleep = () => r.ports.advance(ASLEEP_MS);
  const naps = () => r.events.flatMap((e) => (e.kind === 'child.asleep' || e.kind === 'child.woken' ? [`${e.kind} ${e.incarnation}`] : []));
  return { r, told, contexts, work, send, at, sleep, naps };
}
const it = test.extend('f', () => counters());

describe('an actor that sleeps', () => {
  it('ends when it rested long enough, and is shown with its state and since when', async ({ f }) => {
    f.send('a');
    await f.r.ports.advance(AFTER_MS - 1);
    expect(f.at('a')).toMatchObject({ lifecycle: 'running', state: 'counting' });
    await f.sleep();
    await f.r.ports.advance(60_000);
    const shown = f.at('a');
    expect(shown).toMatchObject({
      lifecycle: 'asleep',
      state: 'counting',
      reason: 'Counting',
      message: 'waits for the next',
      incarnation: 1,
      restarts: 0,
    });
    expect(shown?.asleepMs).toBeGreaterThanOrEqual(60_000);
    // The age of its state goes on.
    expect(shown?.ageMs).toBe(AFTER_MS - 1 + ASLEEP_MS + 60_000);
    expect([f.r.tree.aliveActors() > 0, f.r.tree.actorAt('node/counters/a'), f.r.ports.pendingTimers()]).toEqual([true, null, 0]);
    expect(f.r.tree.state().children[0]).toMatchObject({ message: '1 children' });
  });

  it('goes on with what it kept when a message comes: another incarnation, and no restart', async ({ f }) => {
    f.send('a');
    f.send('a');
    await f.sleep();
    expect(f.send('a')).toBe('delivered');
    await f.r.ports.settle();
    expect(f.told).toEqual(['a:1 add', 'a:2 add', 'a:3 add']);
    expect(f.at('a')).toMatchObject({ lifecycle: 'running', state: 'counting', incarnation: 2, restarts: 0 });
    expect(f.naps()).toEqual(['child.asleep 1', 'child.woken 2']);
    expect(f.r.events.filter((e) => e.kind === 'child.exited' || e.kind === 'child.restarting')).toEqual([]);
    // It left its state in no step.
    expect(f.r.events.filter((e) => e.kind === 'transition' && e.path === 'node/counters/a')).toHaveLength(1);
  });

  it('is woken by a question, and by its own address', async ({ f }) => {
    f.send('a');
    await f.sleep();
    const answer = f.r.tree.registry.ask<Count, number>(family, (replyTo) => ({ type: 'ask', key: 'a', replyTo }), { timeoutMs: 1_000 });
    await f.r.ports.settle();
    expect(await answer).toMatchObject({ kind: 'reply', value: 1 });
    await f.sleep();
    f.r.tree.registry.send(address<Count>('node/counters/a'), { type: 'add', key: 'a' });
    await f.r.ports.settle();
    expect(f.told.at(-1)).toBe('a:2 add');
  });

  it('is woken when its timer is due, not before and once', async ({ f }) => {
    f.send('a', 'alarm');
    await f.sleep();
    expect(f.at('a')).toMatchObject({ lifecycle: 'asleep', state: 'alarmed' });
    expect(f.r.ports.pendingTimers()).toBe(1);
    await f.r.ports.advance(10_000 - ASLEEP_MS - 1);
    expect([f.told, f.naps()]).toEqual([[], ['child.asleep 1']]);
    await f.r.ports.advance(1 + WHEEL_GRAIN_MS);
    expect(f.told).toEqual(['a:100 tick']);
    await f.r.ports.advance(60_000);
    expect([f.told, f.naps()]).toEqual([['a:100 tick'], ['child.asleep 1', 'child.woken 2', 'child.asleep 2']]);
  });

  it('keeps the time of its timer when something else wakes it', async ({ f }) => {
    f.send('a', 'alarm');
    await f.sleep();
    f.send('a');
    await f.r.ports.advance(5_000);
    expect(f.told).toEqual(['a:1 add']);
    await f.r.ports.advance(5_000 - ASLEEP_MS + WHEEL_GRAIN_MS);
    expect(f.told).toEqual(['a:1 add', 'a:101 tick']);
  });

  it('sleeps on where a look at its record is enough', async () => {
    const looks: unknown[] = [];
    const f = counters({
      passivate: {
        look: (kept, { ports }) => {
          looks.push(kept);
          return looks.length < 4 ? ports.clock.monoMs() + 5_000 : null;
        },
      },
    });
    f.send('a', 'alarm');
    await f.r.ports.advance(20_000);
    expect([looks.length, f.naps()]).toEqual([3, ['child.asleep 1']]);
    expect(looks[0]).toMatchObject({ n: 0 });
    await f.r.ports.advance(10_000);
    expect([looks.length, f.told, f.at('a')?.incarnation]).toEqual([4, ['a:100 tick'], 2]);
  });

  it.each([
    ['a promise that it invoked', 'work'],
    ['a question that it has not answered', 'question'],
    ['what it calls work itself', 'own'],
    ['a keep that throws', 'throws'],
  ])('does not sleep with %s', async (_, what) => {
    const keep = {
      own: () => null,
      throws: () => {
        throw new Error('cannot tell');
      },
    }[what];
    const f = counters(keep === undefined ? {} : { keep });
    f.send('a');
    if (what === 'work') f.send('a', 'work');
    // Nobody answers an `add`.
    if (what === 'question')
      void f.r.tree.registry.ask<Count, number>(family, (replyTo) => ({ type: 'add', key: 'a', replyTo }), { timeoutMs: 90_000 });
    await f.r.ports.advance(60_000);
    expect([f.at('a')?.lifecycle, f.naps()]).toEqual(['running', []]);
    if (what === 'throws') expect(f.r.ports.lines.map((l) => l.msg)).toContain('what the actor does to sleep threw; it stays awake');
    if (what === 'work') f.work.resolve();
    await f.r.ports.advance(60_000);
    expect(f.at('a')?.lifecycle).toBe(what === 'work' || what === 'question' ? 'asleep' : 'running');
  });

  it('does not sleep while something happens at least every so often', async ({ f }) => {
    for (let i = 0; i < 50; i++) {
      f.send('a');
      await f.r.ports.advance(AFTER_MS / 2);
    }
    expect([f.at('a')?.lifecycle, f.told.length]).toEqual(['running', 50]);
  });

  it('is forgotten at its end, and with its supervisor', async ({ f }) => {
    f.send('a');
    f.send('b');
    await f.sleep();
    f.send('a', 'end');
    await f.r.ports.settle();
    expect([f.at('a'), f.at('b')?.lifecycle]).toEqual([undefined, 'asleep']);
    f.r.tree.kill('node/counters', 'the test');
    await f.r.ports.advance(1_000);
    expect(f.at('b')).toBeUndefined();
    f.send('b');
    await f.r.ports.settle();
    expect([f.told.at(-1), f.at('b')]).toMatchObject(['b:1 add', { incarnation: 2 }]);
    f.r.tree.stop();
    await f.r.ports.advance(1_000);
    expect(f.r.ports.pendingTimers()).toBe(0);
  });

  it('does not hold back the end of the tree', async ({ f }) => {
    f.send('a');
    await f.sleep();
    let ended = false;
    void f.r.tree.stop().then(() => {
      ended = true;
    });
    await f.r.ports.settle();
    expect([ended, f.r.ports.pendingTimers()]).toEqual([true, 0]);
  });

  it('loses what it kept when it is killed, and restarts as after a crash', async ({ f }) => {
    f.send('a');
    await f.sleep();
    expect(f.r.tree.kill('node/counters/a', 'the test')).toBe(true);
    await f.r.ports.settle();
    expect(f.at('a')).toMatchObject({ lifecycle: 'restarting', lastError: 'was killed by the test' });
    f.send('a');
    await f.r.ports.advance(1_000);
    expect([f.told.at(-1), f.at('a')]).toMatchObject(['a:1 add', { lifecycle: 'running', incarnation: 2, restarts: 1 }]);
  });

  it('crashes into an ordinary restart when it cannot start with what it kept, and the message waits', async () => {
    const f = counters({
      start: (woken) => {
        if (woken !== undefined) throw new Error('cannot read this');
      },
    });
    f.send('a');
    await f.sleep();
    f.send('a');
    await f.r.ports.advance(1_000);
    expect([f.told, f.at('a')]).toMatchObject([['a:1 add', 'a:1 add'], { lifecycle: 'running', incarnation: 3, restarts: 1 }]);
  });

  it('counts crashes from before its sleep', async () => {
    const f = counters({ child: { intensity: { max: 1, periodMs: 600_000 }, poisonMax: 1 } });
    f.r.tree.registry.send(family, { type: 'add', key: 'a' });
    await f.sleep();
    for (const by of ['one', 'two']) {
      f.r.tree.kill('node/counters/a', by);
      await f.r.ports.advance(2_000);
      await f.sleep();
    }
    expect(f.at('a')).toMatchObject({ lifecycle: 'quarantined' });
  });

  it('sends no message in the name of the incarnation that ended', async ({ f }) => {
    f.send('a');
    await f.sleep();
    const [ctx] = f.contexts;
    expect(ctx?.signal.aborted).toBe(true);
    expect(ctx?.registry.send(family, { type: 'add', key: 'b' })).toBe('dead');
  });

  it('costs one timer for all that rest, and none once all sleep', async ({ f }) => {
    for (let i = 0; i < 50; i++) f.send(`k${i}`);
    await f.r.ports.settle();
    expect(f.r.ports.pendingTimers()).toBe(1);
    await f.sleep();
    expect([f.r.ports.pendingTimers(), f.naps().length]).toEqual([0, 50]);
  });
});

it('refuses a static actor that would sleep: nothing would make it again', () => {
  const passivate = { afterMs: 1 };
  expect(specProblems(layer('node', [actor('a', idle, { passivate })]))).toEqual([
    'node/a: passivate: only children of a dynamic supervisor sleep',
  ]);
});

describe('a random life of sleepers', () => {
  it.each(Array.from({ length: 8 }, (_, i) => i + 1))(
    'counts every message once, wakes once, and sleeps in the end (seed %i)',
    async (seed) => {
      const rng = seededRng(seed);
      const f = counters({ child: { intensity: { max: 1_000, periodMs: 1 } } });
      const KEYS = ['a', 'b', 'c'];
      const sent = new Map(KEYS.map((k) => [k, 0]));
      for (let i = 0; i < 120; i++) {
        const key = KEYS[Math.floor(rng.next() * KEYS.length)] ?? 'a';
        if (rng.next() < 0.5) {
          f.send(key);
          sent.set(key, (sent.get(key) ?? 0) + 1);
        } else await f.r.ports.advance(Math.floor(rng.next() * 4_000));
      }
      await f.sleep();
      for (const key of KEYS) {
        const told = f.told.filter((t) => t.startsWith(`${key}:`));
        expect(told).toEqual(Array.from({ length: sent.get(key) ?? 0 }, (_, n) => `${key}:${n + 1} add`));
      }
      expect(KEYS.filter((k) => (sent.get(k) ?? 0) > 0).map((k) => f.at(k)?.lifecycle)).not.toContain('running');
      // Asleep and awake in turns, with incarnations that count up.
      for (const key of KEYS) {
        const naps = f.r.events.flatMap((e) =>
          (e.kind === 'child.asleep' || e.kind === 'child.woken') && e.path.endsWith(`/${key}`) ? [e] : [],
        );
        naps.forEach((e, i) => {
          expect([e.kind, e.incarnation]).toEqual(i % 2 === 0 ? ['child.asleep', i / 2 + 1] : ['child.woken', (i + 1) / 2 + 1]);
        });
      }
      expect(f.r.ports.pendingTimers()).toBe(0);
    },
  );
});

it('tells the same story for the same seed', async () => {
  const story = async () => {
    const f = counters();
    for (const key of ['a', 'b', 'a', 'c']) {
      f.send(key, key === 'b' ? 'alarm' : 'add');
      await f.r.ports.advance(1_700);
    }
    await f.r.ports.advance(30_000);
    return f.r.events.map((e) => JSON.stringify(e));
  };
  expect(await story()).toEqual(await story());
  expect(fakePorts().pendingTimers()).toBe(0);
});
