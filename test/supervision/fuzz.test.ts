/** Random walks, seeded: whatever happens in whatever order, the bookkeeping stays true. A failing seed becomes a fixed one. */
import { describe, expect, it } from 'vitest';
import { fromPromise, setup } from 'xstate';
import type { RestartType, Strategy } from '../../src/actors/supervision/types.ts';
import { address } from '../../src/machines/supervision/address.ts';
import { fakePorts, seededRng } from './fakePorts.ts';
import { actor, idle, layer, receiver, rig, type Say } from './helpers.ts';

const SEEDS = Array.from({ length: 12 }, (_, i) => i + 1);
const pick = <T>(list: readonly T[], random: number): T => {
  const found = list[Math.floor(random * list.length)];
  if (found === undefined) throw new Error('nothing to pick from');
  return found;
};
const generous = { intensity: { max: 12, periodMs: 60_000 }, backoff: { minMs: 10, maxMs: 200, factor: 2, jitter: 0.5 } };

describe('a random life of a tree', () => {
  it.each(SEEDS)('never runs a child twice, leaves none behind, and settles when left alone (seed %i)', async (seed) => {
    const rng = seededRng(seed);
    const slow = setup({ types: { events: {} as Say } }).createMachine({
      initial: 'up',
      states: { up: { on: { stop: 'closing', end: 'gone' } }, closing: { after: { 30: 'gone' } }, gone: { type: 'final' } },
    });
    const leaf = (id: string) => {
      const restart: RestartType = pick(['permanent', 'permanent', 'transient', 'temporary'], rng.next());
      const kind = rng.next();
      if (kind < 0.2) return actor(id, () => fromPromise(async () => 1), { ...generous, restart: 'transient' });
      if (kind < 0.6) return actor(id, () => slow, { ...generous, restart, stopEvent: { type: 'stop' } });
      return actor(id, idle, { ...generous, restart });
    };
    const strategy = (): Strategy => pick(['one_for_one', 'rest_for_one'], rng.next());
    const branch = (id: string) =>
      layer(id, ['x', 'y', 'z'].map(leaf), {
        ...generous,
        strategy: strategy(),
        escalate: rng.next() < 0.5 ? 'parent' : { parkMs: 100 },
        shutdownMs: pick([20, 1000], rng.next()),
      });
    const r = rig(layer('node', ['a', 'b', 'c'].map(branch), { ...generous, strategy: strategy() }), fakePorts({}, { seed }));
    let failed = false;
    r.tree.failed.then(() => {
      failed = true;
    });
    r.tree.start().catch(() => undefined);
    const paths = ['a', 'b', 'c'].flatMap((l) => [`node/${l}`, ...['x', 'y', 'z'].map((c) => `node/${l}/${c}`)]);
    for (let i = 0; i < 60; i++) {
      const path = pick(paths, rng.next());
      if (rng.next() < 0.7) r.tree.kill(path, 'the walk');
      else r.tree.registry.send(address<Say>(path), { type: 'end' });
      await r.ports.advance(Math.floor(rng.next() * 60));
    }
    await r.ports.advance(10_000);
    expect(r.lifecycle('node')).toBe(failed ? 'failed' : 'running');
    r.tree.stop();
    await r.ports.advance(5000);
    const live = new Map<string, number>();
    const used = new Map<string, number>();
    for (const e of r.events) {
      if (e.kind === 'child.started') {
        expect(live.has(e.path)).toBe(false);
        expect(e.incarnation).toBe((used.get(e.path) ?? 0) + 1);
        live.set(e.path, e.incarnation);
        used.set(e.path, e.incarnation);
      } else if (e.kind === 'child.exited') {
        expect(live.get(e.path)).toBe(e.incarnation);
        live.delete(e.path);
      }
    }
    expect([...live.keys()]).toEqual([]);
    expect(r.tree.aliveActors()).toBe(0);
    expect(r.ports.pendingTimers()).toBe(0);
    expect(r.ports.lines.filter((l) => l.msg.includes('fault in the supervision'))).toEqual([]);
  });
});

describe('a random life of a keyed mailbox', () => {
  it.each(SEEDS)('delivers the newest of every key last and ends empty (seed %i)', async (seed) => {
    const rng = seededRng(seed);
    const KEYS = ['a', 'b', 'c', 'd'];
    const last = new Map<string, number>();
    const sent = new Map<string, number>();
    const x = actor('x', () => receiver((e) => void (e.key !== undefined && last.set(e.key, e.n ?? 0))), {
      intensity: { max: 1000, periodMs: 1000 },
      backoff: { minMs: 5, maxMs: 5, factor: 1, jitter: 0 },
      mailbox: { key: (e) => e.key, lane: (e) => ((e.n ?? 0) % 3 === 0 ? 'control' : 'data') },
    });
    const r = rig(layer('node', [x], { intensity: { max: 1000, periodMs: 1000 } }));
    await r.up();
    for (let n = 1; n <= 300; n++) {
      const roll = rng.next();
      const key = pick(KEYS, rng.next());
      if (roll < 0.6) {
        r.tree.registry.send(address<Say>('node/x'), { type: 'say', n, key });
        sent.set(key, n);
      } else if (roll < 0.63) r.tree.kill('node/x', 'the walk');
      else await r.ports.advance(Math.floor(rng.next() * 8));
      expect(r.tree.state().children[0]?.mailbox?.depth).toBeLessThanOrEqual(KEYS.length);
    }
    await r.ports.advance(40);
    expect(last).toEqual(sent);
    expect(r.tree.state().children[0]?.mailbox?.depth).toBe(0);
    expect(r.ports.lines.filter((l) => l.msg.includes('fault in the supervision'))).toEqual([]);
  });
});
