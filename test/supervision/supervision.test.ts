import { describe, expect, it, vi } from 'vitest';
import { createMachine, fromCallback, fromPromise, setup } from 'xstate';
import { createTree } from '../../src/actors/supervision/tree.ts';
import { StallDetector } from '../../src/actors/supervision/watchdog.ts';
import { address, viewKey } from '../../src/machines/supervision/address.ts';
import { fakePorts } from './fakePorts.ts';
import { actor, idle, layer, receiver, rig, type Say } from './helpers.ts';

const boom = (what = 'boom') => {
  throw new Error(what);
};
/** Ends with an error by itself after `ms`, blaming no message. */
const failsAfter = (ms: number) =>
  setup({ actions: { boom: () => boom('timer') } }).createMachine({ after: { [ms]: { actions: 'boom' } } });

describe('a tree', () => {
  it('delivers, restarts a crashed child after its back-off, keeps its messages and stops right to left', async () => {
    const seen: number[] = [];
    const a = actor('a', () => receiver((e) => (e.type === 'crash' ? boom() : seen.push(e.n ?? 0))), { poisonMax: 1 });
    const r = rig(layer('node', [a, actor('b', idle)]));
    const up = r.tree.start();
    await r.ports.settle();
    await up;
    const to = address<Say>('node/a');
    expect(r.tree.registry.send(to, { type: 'say', n: 1 })).toBe('delivered');
    await r.ports.settle();
    r.tree.registry.send(to, { type: 'crash' });
    await r.ports.settle();
    expect(r.lifecycle('node/a')).toBe('restarting');
    expect(r.tree.registry.send(to, { type: 'say', n: 2 })).toBe('queued');
    await r.ports.advance(99);
    expect(seen).toEqual([1]);
    await r.ports.advance(1);
    expect(seen).toEqual([1, 2]);
    const down = r.tree.stop();
    await r.ports.settle();
    await down;
    expect(r.story()).toEqual(['started a', 'started b', 'exited a error', 'started a', 'exited b shutdown', 'exited a shutdown']);
    expect(r.tree.registry.send(to, { type: 'say' })).toBe('dead');
    expect(r.tree.aliveActors()).toBe(0);
    expect(r.ports.pendingTimers()).toBe(0);
  });

  it('waits for each child to be ready before it starts the next, over the layers', async () => {
    const slow = actor('slow', () => setup({}).createMachine({ initial: 'a', states: { a: { after: { 50: 'b' } }, b: {} } }), {
      ready: { when: (s) => (s as { value: string }).value === 'b', timeoutMs: 1000 },
    });
    const r = rig(layer('node', [layer('one', [slow]), actor('two', idle)]));
    let up = false;
    r.tree.start().then(() => {
      up = true;
    });
    await r.ports.advance(49);
    expect(r.story()).toEqual(['started one', 'started one/slow']);
    expect(up).toBe(false);
    await r.ports.advance(1);
    expect(r.story()).toEqual(['started one', 'started one/slow', 'started two']);
    expect(up).toBe(true);
  });

  it('counts a child that does not become ready in time as crashed', async () => {
    const never = actor('never', idle, { ready: { when: () => false, timeoutMs: 500 }, intensity: { max: 0, periodMs: 1000 } });
    const r = rig(layer('node', [never]));
    const up = r.tree.start();
    const rejected = expect(up).rejects.toThrow(/never was not ready within 500 ms/);
    await r.ports.advance(500);
    await rejected;
    expect((await r.tree.failed).message).toMatch(/node gave up/);
  });

  it('takes a note or a published view of a callback actor as a sign to ask again whether it is ready', async () => {
    let open = false;
    const listener = actor(
      'listener',
      (ctx) =>
        fromCallback(() => {
          const timer = ctx.ports.clock.setTimeout(() => {
            open = true;
            ctx.note('listening');
          }, 10);
          return () => ctx.ports.clock.clearTimeout(timer);
        }),
      { ready: { when: () => open, timeoutMs: 100 } },
    );
    const r = rig(layer('node', [listener]));
    const up = r.tree.start();
    await r.ports.advance(10);
    await up;
    expect(r.tree.state().children[0]?.reason).toBe('listening');
  });

  it('lives with as many crashes in the window as its limit says and gives up at one more', async () => {
    const x = () => actor('x', idle, { intensity: { max: 2, periodMs: 10_000 }, backoff: { minMs: 1, maxMs: 1, factor: 1, jitter: 0 } });
    const r = rig(layer('node', [x()], { intensity: { max: 100, periodMs: 10_000 } }));
    await r.up();
    for (let i = 0; i < 2; i++) {
      r.tree.kill('node/x', 'the test');
      await r.ports.advance(10);
    }
    expect(r.lifecycle('node/x')).toBe('running');
    r.tree.kill('node/x', 'the test');
    await r.ports.advance(10);
    expect(r.lifecycle('node')).toBe('failed');
    expect((await r.tree.failed).message).toMatch(/child x crashed more than 2 times in 10000 ms/);
  });

  it('multiplies the limits of its layers up to the root, whose failure settles `failed`', async () => {
    const fast = { backoff: { minMs: 1, maxMs: 1, factor: 1, jitter: 0 } };
    const limit = (max: number) => ({ intensity: { max, periodMs: 600_000 } });
    const x = actor('x', () => failsAfter(10), { ...fast, ...limit(100) });
    const r = rig(layer('node', [layer('inner', [x], { ...fast, ...limit(2) })], limit(1)));
    let failure: Error | null = null;
    r.tree.failed.then((e) => {
      failure = e;
    });
    r.tree.start().catch(() => undefined);
    await r.ports.advance(1000);
    // (2 + 1) crashes per life of the layer, (1 + 1) lives of the layer.
    expect(r.story().filter((l) => l === 'started inner/x')).toHaveLength(6);
    expect(String(failure)).toMatch(/supervisor node gave up/);
    expect(r.tree.aliveActors()).toBe(0);
    expect(r.ports.pendingTimers()).toBe(0);
  });

  it('parks a layer that must not escalate, says why, and starts it over later', async () => {
    let healthy = false;
    const x = actor('x', () => (healthy ? idle() : failsAfter(10)), { intensity: { max: 1, periodMs: 60_000 } });
    const parked = layer('api', [x], { escalate: { parkMs: 30_000 } });
    const r = rig(layer('node', [parked, actor('after', idle)]));
    const up = r.tree.start();
    await r.ports.advance(1000);
    await up;
    expect(r.lifecycle('node')).toBe('running');
    expect(r.lifecycle('node/api')).toBe('parked');
    const state = r.tree.state().children[0];
    expect(state?.message).toMatch(/child x crashed more than 1 times.*timer/);
    expect(r.lifecycle('node/api/x')).toBe('parked');
    expect(r.tree.registry.send(address<Say>('node/api/x'), { type: 'say' })).toBe('queued');
    healthy = true;
    await r.ports.advance(30_000);
    expect(r.lifecycle('node/api/x')).toBe('running');
  });

  it('lets a stop overtake a back-off', async () => {
    const r = rig(layer('node', [actor('x', idle, { backoff: { minMs: 60_000, maxMs: 60_000, factor: 1, jitter: 0 } })]));
    await r.up();
    r.tree.kill('node/x', 'the test');
    await r.ports.settle();
    expect(r.lifecycle('node/x')).toBe('restarting');
    const down = r.tree.stop();
    await r.ports.settle();
    await down;
    await r.ports.advance(120_000);
    expect(r.story()).toEqual(['started x', 'exited x killed']);
  });

  it('goes on starting and running other children while one cannot be brought back', async () => {
    const seen: number[] = [];
    const other = actor('other', () => receiver((e) => void seen.push(e.n ?? 0)));
    const x = actor('x', idle, { intensity: { max: 1000, periodMs: 1000 } });
    const start = x.start;
    x.start = (ctx) => (ctx.incarnation === 1 ? start(ctx) : boom('still broken'));
    const r = rig(layer('node', [x, other], { intensity: { max: 1000, periodMs: 1000 } }));
    await r.up();
    r.tree.kill('node/x', 'the test');
    await r.ports.advance(500);
    r.tree.registry.send(address<Say>('node/other'), { type: 'say', n: 7 });
    r.tree.kill('node/other', 'the test');
    await r.ports.advance(500);
    expect(r.lifecycle('node/x')).toBe('restarting');
    expect(r.lifecycle('node/other')).toBe('running');
    expect(seen).toEqual([7]);
  });

  it('asks for an orderly end first, and abandons what does not end in time, by name', async () => {
    const polite = setup({ types: { events: {} as Say } }).createMachine({
      initial: 'up',
      states: { up: { on: { stop: 'closing' } }, closing: { after: { 300: 'gone' } }, gone: { type: 'final' } },
    });
    const good = actor('good', () => polite, { stopEvent: { type: 'stop' } });
    const bad = actor('bad', idle, { stopEvent: { type: 'stop' }, shutdownMs: 500 });
    const r = rig(layer('node', [good, bad], { shutdownMs: 5000 }));
    await r.up();
    const down = r.tree.stop();
    await r.ports.advance(499);
    expect(r.story()).toEqual(['started good', 'started bad']);
    await r.ports.advance(301);
    await down;
    expect(r.story().slice(2)).toEqual(['exited bad shutdown', 'exited good shutdown']);
    const line = r.ports.lines.find((l) => l.msg.includes('abandoned'));
    expect(line?.fields.actor).toBe('node/bad');
  });

  it('stops although a child hangs longer than the whole layer may take', async () => {
    const hangs = actor('hangs', idle, { stopEvent: { type: 'stop' }, shutdownMs: 60_000 });
    const r = rig(layer('node', [actor('first', idle), hangs], { shutdownMs: 1000 }));
    await r.up();
    const down = r.tree.stop();
    await r.ports.advance(1000);
    await down;
    expect(r.ports.lines.find((l) => l.msg.includes('abandoned'))?.fields.abandoned).toEqual(['node/hangs', 'node/first']);
    expect(r.ports.pendingTimers()).toBe(0);
  });

  it('leaves no actor behind after a hundred crashes with children and grandchildren', async () => {
    let open = 0;
    const leaf = fromCallback(({ receive }) => {
      open += 1;
      receive(() => boom());
      return () => {
        open -= 1;
      };
    });
    const inner = setup({ actors: { leaf } }).createMachine({ invoke: { src: 'leaf' } });
    const outer = setup({
      types: { events: {} as Say, context: {} as Record<string, never> },
      actors: { inner, leaf },
      actions: { boom: () => boom() },
    }).createMachine({
      context: {},
      invoke: [
        { src: 'inner', id: 'inner' },
        { src: 'leaf', id: 'leaf' },
      ],
      on: { crash: { actions: 'boom' } },
    });
    const many = { intensity: { max: 1000, periodMs: 1 } };
    const x = actor('x', () => outer, { ...many, poisonMax: 1, backoff: { minMs: 1, maxMs: 1, factor: 1, jitter: 0 } });
    const r = rig(layer('node', [x], many));
    await r.up();
    for (let i = 0; i < 100; i++) {
      r.tree.registry.send(address<Say>('node/x'), { type: 'crash' });
      await r.ports.advance(1);
    }
    expect(r.tree.state().children[0]?.incarnation).toBe(101);
    expect(open).toBe(2);
    // The supervisor, the actor, its inner machine and the two leaves.
    expect(r.tree.aliveActors()).toBe(5);
    r.tree.stop();
    await r.ports.settle();
    expect(open).toBe(0);
  });

  it('disposes of a callback actor that throws in its receiver, at the root or below', async () => {
    const disposed = vi.fn();
    const root = actor('root', () => receiver(() => boom(), disposed), { poisonMax: 1 });
    const leaf = fromCallback(({ receive }) => {
      receive(() => boom());
      return disposed;
    });
    const nested = setup({ types: { events: {} as Say }, actors: { leaf } }).createMachine({
      invoke: { src: 'leaf', id: 'leaf' },
      on: { crash: { actions: ({ self }) => self.getSnapshot().children.leaf?.send({ type: 'x' }) } },
    });
    const r = rig(layer('node', [root, actor('nested', () => nested, { poisonMax: 1 })]));
    await r.up();
    r.tree.registry.send(address<Say>('node/root'), { type: 'crash' });
    await r.ports.settle();
    expect(disposed).toHaveBeenCalledTimes(1);
    r.tree.registry.send(address<Say>('node/nested'), { type: 'crash' });
    await r.ports.settle();
    expect(disposed).toHaveBeenCalledTimes(2);
  });

  it('aborts the signal and makes the context stale when an incarnation ends', async () => {
    const signals: AbortSignal[] = [];
    const key = viewKey<number>('v');
    const late: (() => void)[] = [];
    const results: string[] = [];
    const x = actor('x', (ctx) => {
      signals.push(ctx.signal);
      ctx.publish(key, ctx.incarnation);
      late.push(() => {
        ctx.publish(key, 99);
        results.push(ctx.registry.send(address<Say>('node/y'), { type: 'say' }));
      });
      return idle();
    });
    const r = rig(layer('node', [x, actor('y', idle)]));
    await r.up();
    r.tree.kill('node/x', 'the test');
    await r.ports.advance(100);
    expect(signals.map((s) => s.aborted)).toEqual([true, false]);
    for (const fn of late) fn();
    expect(results).toEqual(['dead', 'delivered']);
    expect(r.tree.registry.read(key)).toEqual({ version: 3, value: 99 });
    expect(r.tree.registry.deadLetters().byReason).toEqual({ 'stale-sender': 1 });
  });

  it('carries on when an observer, a watcher or an inspector throws', async () => {
    const seen: number[] = [];
    const key = viewKey<number>('v');
    const toggle = setup({ types: { events: {} as Say } }).createMachine({
      initial: 'a',
      states: { a: { on: { say: 'b' } }, b: { entry: () => seen.push(1), on: { say: 'a' } } },
    });
    const x = actor('x', (ctx) => {
      ctx.publish(key, 1);
      return toggle;
    });
    const ports = fakePorts();
    const tree = createTree(layer('node', [x]), ports, { observers: [() => boom('observer')] });
    tree.registry.watch(key, () => boom('watcher'));
    const up = tree.start();
    await ports.settle();
    await up;
    tree.inspect('node/x', () => boom('inspector'));
    for (let i = 0; i < 4; i++) tree.registry.send(address<Say>('node/x'), { type: 'say' });
    await ports.settle();
    expect(seen).toEqual([1, 1]);
    expect(ports.lines.filter((l) => l.msg.includes('an observer threw')).length).toBeGreaterThan(0);
  });

  it('shows state, reason and message of the innermost state that gives them, from text or from context', async () => {
    const m = setup({ types: { context: {} as { image: string } } }).createMachine({
      context: { image: 'busybox' },
      initial: 'syncing',
      meta: { reason: 'Outer' },
      states: {
        syncing: {
          initial: 'pulling',
          meta: { reason: 'Syncing' },
          states: { pulling: { meta: { reason: 'Pulling', message: (c: { image: string }) => `image ${c.image}` } } },
        },
      },
    });
    const r = rig(layer('node', [actor('x', () => m)]));
    r.tree.start();
    await r.ports.advance(250);
    expect(r.tree.state()).toMatchObject({
      type: 'supervisor',
      lifecycle: 'running',
      children: [
        { path: 'node/x', lifecycle: 'running', state: 'syncing.pulling', reason: 'Pulling', message: 'image busybox', ageMs: 250 },
      ],
    });
    const transition = r.events.find((e) => e.kind === 'transition' && e.path === 'node/x');
    expect(transition).toMatchObject({ from: '', to: 'syncing.pulling', reason: 'Pulling' });
  });

  it('names the event of each state change, also of timers and of invoked actors', async () => {
    const m = setup({
      actors: {
        fetch: fromPromise(() => Promise.resolve(1)),
        refuse: fromPromise(() => Promise.reject(new Error('no'))),
        nested: createMachine({ initial: 'end', states: { end: { type: 'final' } } }),
      },
      delays: { pause: 20 },
    }).createMachine({
      id: 'x',
      initial: 'fetching',
      states: {
        fetching: { invoke: { src: 'fetch', onDone: 'resting' } },
        resting: { after: { 500: 'pausing' } },
        pausing: { after: { pause: 'asking' } },
        asking: { invoke: { src: 'refuse', onError: 'up' } },
        up: {
          initial: 'waiting',
          states: { waiting: { on: { say: 'heard' } }, heard: { invoke: { id: 'own', src: 'nested', onDone: '#x.end' } } },
        },
        end: {},
      },
    });
    const r = rig(layer('node', [actor('x', () => m)]));
    r.tree.start();
    await r.ports.advance(1_000);
    r.tree.registry.send(address<Say>('node/x'), { type: 'say' });
    await r.ports.settle();
    const seen = r.events.flatMap((e) => (e.kind === 'transition' && e.path === 'node/x' ? [`${e.to} on ${e.event}`] : []));
    expect(seen).toEqual([
      'fetching on start',
      'resting on done:fetch',
      'pausing on after:500ms',
      'asking on after:pause',
      'up.waiting on error:refuse',
      'up.heard on say',
      'end on done:own',
    ]);
    const layers = r.events.flatMap((e) => (e.kind === 'transition' && e.path === 'node' ? [`${e.to} on ${e.event}`] : []));
    expect(layers).toEqual(['starting on start', 'running on child.ready']);
  });

  it('names the actor that holds the main thread, and is quiet about an idle one', async () => {
    const readings: (string | null)[] = [];
    const detector = new StallDetector({ everyMs: 10_000 });
    let stall: unknown = null;
    const hog = actor('hog', () =>
      receiver(() => {
        readings.push(r.tree.heartbeat.read().path);
        detector.look(r.tree.heartbeat.read(), 0);
        stall = detector.look(r.tree.heartbeat.read(), 30_000);
      }),
    );
    const r = rig(layer('node', [hog]));
    await r.up();
    r.tree.registry.send(address<Say>('node/hog'), { type: 'say' });
    await r.ports.settle();
    expect(readings).toEqual(['node/hog']);
    expect(stall).toEqual({ path: 'node/hog', forMs: 30_000 });
    expect(r.tree.heartbeat.read().path).toBeNull();
    expect(detector.look(r.tree.heartbeat.read(), 40_000).forMs).toBe(0);
    r.tree.heartbeat.pulse(1);
    expect(detector.look(r.tree.heartbeat.read(), 70_000).forMs).toBe(0);
    expect(detector.look(r.tree.heartbeat.read(), 100_000)).toEqual({ path: 'outside any actor', forMs: 30_000 });
    // Nobody looked for so long: the process was stopped.
    expect(detector.look(r.tree.heartbeat.read(), 200_000).forMs).toBe(30_000);
  });

  it('is one of a thousand in a process, and gone after its stop', async () => {
    const ports = fakePorts();
    for (let i = 0; i < 1000; i++) {
      const tree = createTree(layer('node', [actor('x', idle)]), ports);
      tree.start();
      tree.stop();
    }
    await ports.settle();
    expect(ports.pendingTimers()).toBe(0);
  });
});
