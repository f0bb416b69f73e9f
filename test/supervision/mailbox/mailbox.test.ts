import { describe, expect, it } from 'vitest';
import { setup } from 'xstate';
import type { ActorCtx, MailboxSpec } from '../../../src/actors/supervision/types.ts';
import { address, type Cause, type ReplyTo } from '../../../src/machines/supervision/address.ts';
import { fakePorts } from '../fakePorts.ts';
import { actor, idle, layer, receiver, rig, type Say } from '../helpers.ts';

const to = address<Say>('node/x');
const many = { intensity: { max: 1000, periodMs: 1000 } };

/** One receiver behind a mailbox; `seen` are the numbers it got, in order. */
async function inbox(mailbox: MailboxSpec<Say>, on?: (e: Say, ctx: ActorCtx<Say>) => void) {
  const seen: (number | string)[] = [];
  const x = actor(
    'x',
    (c) =>
      receiver((e) => {
        seen.push(e.n ?? e.type);
        on?.(e, c);
      }),
    { mailbox, ...many },
  );
  const r = rig(layer('node', [x], many));
  await r.up();
  const send = (e: Omit<Say, 'type'> & { type?: Say['type'] }) => r.tree.registry.send(to, { type: 'say', ...e });
  const box = () => r.tree.state().children[0]?.mailbox;
  return { r, seen, send, box };
}

const byKey = { key: (e: Say) => e.key };
const urgent = { lane: (e: Say) => (e.type === 'stop' ? ('control' as const) : ('data' as const)) };

describe('a mailbox', () => {
  it('never runs the receiver inside send', async () => {
    const { seen, send, r } = await inbox({});
    expect(send({ n: 1 })).toBe('delivered');
    expect(seen).toEqual([]);
    await r.ports.settle();
    expect(seen).toEqual([1]);
  });

  it('refuses beyond its capacity with a dead letter, and takes more once there is room', async () => {
    const { seen, send, r, box } = await inbox({ capacity: 2 });
    expect([send({ n: 1 }), send({ n: 2 }), send({ n: 3 })]).toEqual(['delivered', 'delivered', 'dead']);
    expect(r.tree.registry.deadLetters()).toMatchObject({ total: 1, byReason: { overflow: 1 } });
    expect(box()).toMatchObject({ depth: 2, depthMax: 2, dropped: 1 });
    await r.ports.settle();
    expect(send({ n: 4 })).toBe('delivered');
    await r.ports.settle();
    expect(seen).toEqual([1, 2, 4]);
  });

  it('with mark-resync tells the owner once that hints were lost', async () => {
    const { seen, send, r } = await inbox({ capacity: 2, overflow: 'mark-resync', resync: () => ({ type: 'resync' }) });
    for (let n = 1; n <= 5; n++) expect(send({ n })).not.toBe('dead');
    await r.ports.settle();
    expect(seen.filter((s) => s === 'resync')).toEqual(['resync']);
    expect(seen.filter((s) => s !== 'resync')).toEqual([1, 2]);
    send({ n: 6 });
    await r.ports.settle();
    expect(seen.at(-1)).toBe(6);
    expect(r.tree.registry.deadLetters().total).toBe(0);
  });

  it('with drop-oldest keeps the newest', async () => {
    const { seen, send, r } = await inbox({ capacity: 2, overflow: 'drop-oldest' });
    for (let n = 1; n <= 5; n++) send({ n });
    await r.ports.settle();
    expect(seen).toEqual([4, 5]);
  });

  it('lets control overtake data, first come first served inside a lane, and a flood of data never refuses control', async () => {
    const { seen, send, r } = await inbox({ capacity: 3, ...urgent });
    for (let n = 1; n <= 4; n++) send({ n });
    expect([send({ n: 10, type: 'stop' }), send({ n: 11, type: 'stop' })]).toEqual(['delivered', 'delivered']);
    await r.ports.settle();
    expect(seen).toEqual([10, 11, 1, 2, 3]);
  });

  it('coalesces by key in the place of the oldest and joins the causes', async () => {
    const causes: (readonly Cause[] | undefined)[] = [];
    const { seen, send, r, box } = await inbox(byKey, (e) => causes.push(e.causes));
    const why = (what: string) => ({ causes: [{ atMs: 1, by: 'test', what }] });
    send({ n: 1, key: 'a', ...why('first') });
    send({ n: 2, key: 'b' });
    send({ n: 3, key: 'a', ...why('second') });
    send({ n: 4 });
    send({ n: 5 });
    await r.ports.settle();
    expect(seen).toEqual([3, 2, 4, 5]);
    expect(causes[0]?.map((c) => c.what)).toEqual(['first', 'second']);
    expect(box()?.coalesced).toBe(1);
  });

  it('uses the given merge, and moves an item to the control lane when a control event joins it', async () => {
    const { seen, send, r } = await inbox({ ...byKey, ...urgent, coalesce: (a, b) => ({ ...b, n: (a.n ?? 0) + (b.n ?? 0) }) });
    send({ n: 1 });
    send({ n: 2, key: 'a' });
    send({ n: 30, key: 'a', type: 'stop' });
    await r.ports.settle();
    expect(seen).toEqual([32, 1]);
  });

  it('keeps and coalesces what comes while its actor is restarting, with its age', async () => {
    const { seen, send, r, box } = await inbox(byKey);
    r.tree.kill('node/x', 'the test');
    await r.ports.settle();
    for (let n = 1; n <= 50; n++) expect(send({ n, key: 'a' })).toBe('queued');
    await r.ports.advance(60);
    expect(box()).toMatchObject({ depth: 1, coalesced: 49, oldestAgeMs: 60, suspended: true });
    await r.ports.advance(40);
    expect(seen).toEqual([50]);
  });

  it('turns what waits into dead letters when its actor has ended for good', async () => {
    const x = actor(
      'x',
      () => setup({}).createMachine({ initial: 'up', states: { up: { on: { end: 'gone' } }, gone: { type: 'final' } } }),
      {
        restart: 'transient',
      },
    );
    const r = rig(layer('node', [x]));
    await r.up();
    r.tree.registry.send(to, { type: 'end' });
    r.tree.registry.send(to, { type: 'say' });
    await r.ports.settle();
    expect(r.tree.registry.deadLetters().byReason).toEqual({ stopped: 1 });
    expect(r.tree.registry.send(to, { type: 'say' })).toBe('dead');
  });

  it('takes messages before the tree is started', async () => {
    const seen: number[] = [];
    const r = rig(layer('node', [actor('x', () => receiver((e) => void seen.push(e.n ?? 0)))]));
    expect(r.tree.registry.send(to, { type: 'say', n: 1 })).toBe('queued');
    await r.up();
    expect(seen).toEqual([1]);
  });

  it('counts a message to nowhere and keeps the newest 256', async () => {
    const { r } = await inbox({});
    for (let i = 0; i < 300; i++) r.tree.registry.send(address<Say>('node/nobody'), { type: 'say' });
    const dead = r.tree.registry.deadLetters();
    expect([dead.total, dead.recent.length, dead.byReason['unknown-address']]).toEqual([300, 256, 300]);
    // 1, 2, 4, ... 256.
    expect(r.ports.lines.filter((l) => l.msg.startsWith('dead letter')).length).toBe(9);
  });

  it('lets a quiet actor have its turn while another is flooded', async () => {
    const order: string[] = [];
    const flood = actor('flood', (ctx) =>
      receiver(() => {
        order.push('f');
        if (order.length < 500) ctx.registry.send(ctx.self, { type: 'say' });
      }),
    );
    const r = rig(layer('node', [flood, actor('quiet', () => receiver(() => void order.push('q')))]));
    await r.up();
    for (let i = 0; i < 200; i++) r.tree.registry.send(address<Say>('node/flood'), { type: 'say' });
    r.tree.registry.send(address<Say>('node/quiet'), { type: 'say' });
    await r.ports.settle();
    expect(order.indexOf('q')).toBe(64);
    expect(order.length).toBeGreaterThan(500);
  });

  it('ends a slice by time as well as by number', async () => {
    const ports = fakePorts();
    let mono = 0;
    const clock = { ...ports.clock, monoMs: () => mono };
    const slow = fakePorts({ clock });
    const order: string[] = [];
    const take = (who: string) => () =>
      receiver(() => {
        mono += 3;
        order.push(who);
      });
    const r = rig(layer('node', [actor('x', take('x')), actor('y', take('y'))]), slow);
    r.tree.start();
    await slow.settle();
    for (let i = 0; i < 3; i++) {
      r.tree.registry.send(to, { type: 'say' });
      r.tree.registry.send(address<Say>('node/y'), { type: 'say' });
    }
    await slow.settle();
    expect(order).toEqual(['x', 'x', 'y', 'y', 'x', 'y']);
  });

  it('reports depth, merges, drops and restarts under the path of the specification', async () => {
    const { r, send } = await inbox({ ...byKey, capacity: 1 });
    send({ n: 1, key: 'a' });
    send({ n: 2, key: 'a' });
    send({ n: 3, key: 'b' });
    const before = (await r.ports.metrics.render()).split('\n');
    expect(before).toContain('actorlet_mailbox_depth{path="node/x"} 1');
    expect(before).toContain('actorlet_mailbox_enqueued_total{path="node/x"} 2');
    expect(before).toContain('actorlet_mailbox_coalesced_total{path="node/x"} 1');
    expect(before).toContain('actorlet_mailbox_dropped_total{path="node/x",reason="overflow"} 1');
    r.tree.kill('node/x', 'the test');
    await r.ports.advance(100);
    const after = (await r.ports.metrics.render()).split('\n');
    expect(after).toContain('actorlet_actor_restarts_total{path="node/x",reason="killed"} 1');
    expect(after).toContain('actorlet_mailbox_dwell_seconds_count{path="node/x"} 1');
  });
});

describe('poison', () => {
  it('is tried once more, then dead-lettered and its key shut out, without counting towards the limit', async () => {
    const seen: (number | undefined)[] = [];
    const bad = (n: number | undefined) => n !== undefined && n >= 100;
    const x = actor(
      'x',
      () =>
        receiver((e) => {
          seen.push(e.n);
          if (bad(e.n)) throw new Error(`cannot digest ${e.n}`);
        }),
      { mailbox: byKey, intensity: { max: 0, periodMs: 60_000 } },
    );
    const r = rig(layer('node', [x], { intensity: { max: 0, periodMs: 60_000 } }));
    await r.up();
    const { registry } = r.tree;
    registry.send(to, { type: 'say', n: 100, key: 'p', life: 1 });
    registry.send(to, { type: 'say', n: 2, key: 'q' });
    await r.ports.advance(1000);
    expect(seen).toEqual([100, 100, 2]);
    expect(registry.deadLetters()).toMatchObject({ byReason: { poison: 1 }, recent: [{ key: 'p', reason: 'poison' }] });
    expect(registry.send(to, { type: 'say', n: 3, key: 'p', life: 1 })).toBe('dead');
    expect(registry.send(to, { type: 'say', n: 4, key: 'p', life: 2 })).toBe('delivered');
    await r.ports.settle();
    expect(seen.at(-1)).toBe(4);
    expect(r.lifecycle('node')).toBe('running');
  });

  it('counts after all when the item is handled in the end', async () => {
    let crashes = 0;
    const flaky = actor('x', () => receiver((e) => (e.n !== crashes ? undefined : fail())), { intensity: { max: 1, periodMs: 60_000 } });
    const fail = () => {
      crashes += 1;
      throw new Error('flaky');
    };
    const r = rig(layer('node', [flaky]));
    await r.up();
    r.tree.registry.send(to, { type: 'say', n: 0 });
    await r.ports.advance(5000);
    expect(r.lifecycle('node')).toBe('running');
    r.tree.registry.send(to, { type: 'say', n: 1 });
    await r.ports.advance(5000);
    expect(r.lifecycle('node')).toBe('failed');
  });
});

describe('ask', () => {
  type Q = Say & { replyTo?: ReplyTo<number> };
  const there = address<Q>('node/x');
  const question = (n: number) => (replyTo: ReplyTo<number>) => ({ type: 'say' as const, n, replyTo });
  async function answering(on: (e: Q) => void, capacity = 10) {
    const r = rig(layer('node', [actor('x', () => receiver((e) => on(e as Q)), { mailbox: { capacity, ...byKey } }), actor('y', idle)]));
    await r.up();
    return r;
  }

  it('answers with the reply, or the refusal and its reason', async () => {
    const r = await answering((e) => (e.n === 1 ? e.replyTo?.(42) : e.replyTo?.refuse('busy')));
    const a = r.tree.registry.ask(there, question(1), { timeoutMs: 1000 });
    const b = r.tree.registry.ask(there, question(2), { timeoutMs: 1000 });
    await r.ports.settle();
    expect(await a).toEqual({ kind: 'reply', value: 42 });
    expect(await b).toEqual({ kind: 'refused', reason: 'busy' });
    expect(r.ports.pendingTimers()).toBe(0);
  });

  it('is lost at the time-out, tells the asked actor, and ignores a late reply', async () => {
    let late: ReplyTo<number> | undefined;
    const r = await answering((e) => {
      late = e.replyTo;
    });
    const a = r.tree.registry.ask(there, question(1), { timeoutMs: 1000 });
    await r.ports.advance(1000);
    expect(await a).toEqual({ kind: 'lost', reason: 'no answer within 1000 ms' });
    expect(late?.signal.aborted).toBe(true);
    late?.(1);
    expect(await a).toMatchObject({ kind: 'lost' });
  });

  it('is lost when the asked incarnation ends, but not while it still waits in the mailbox', async () => {
    let ends = 0;
    const r = await answering((e) => {
      if (e.n === 2) e.replyTo?.(2);
      else ends += 1;
    });
    const a = r.tree.registry.ask(there, question(1), { timeoutMs: 60_000 });
    await r.ports.settle();
    r.tree.kill('node/x', 'the test');
    await r.ports.settle();
    expect(await a).toMatchObject({ kind: 'lost', reason: expect.stringContaining('ended before it answered') });
    const b = r.tree.registry.ask(there, question(2), { timeoutMs: 60_000 });
    await r.ports.advance(200);
    expect(await b).toEqual({ kind: 'reply', value: 2 });
    expect(ends).toBe(1);
  });

  it('is lost when the asker ends or gives up', async () => {
    const r = await answering(() => undefined);
    const giveUp = new AbortController();
    const a = r.tree.registry.ask(there, question(1), { timeoutMs: 60_000, signal: giveUp.signal });
    giveUp.abort();
    expect(await a).toMatchObject({ kind: 'lost' });
  });

  it('is refused by a full mailbox and by an address nobody has', async () => {
    const r = await answering(() => undefined, 1);
    const asks = [1, 2].map((n) => r.tree.registry.ask(there, question(n), { timeoutMs: 1000 }));
    expect(await asks[1]).toMatchObject({ kind: 'refused', reason: expect.stringContaining('full') });
    expect(await r.tree.registry.ask(address<Q>('node/z'), question(1), { timeoutMs: 1000 })).toMatchObject({ kind: 'refused' });
  });

  it('is never coalesced with another of its key', async () => {
    const r = await answering((e) => e.replyTo?.(e.n ?? 0));
    const asks = [1, 2].map((n) =>
      r.tree.registry.ask(there, (replyTo: ReplyTo<number>) => ({ type: 'say' as const, n, key: 'k', replyTo }), { timeoutMs: 1000 }),
    );
    await r.ports.settle();
    expect(await Promise.all(asks)).toEqual([
      { kind: 'reply', value: 1 },
      { kind: 'reply', value: 2 },
    ]);
  });
});
