import { describe, expect, test } from 'vitest';
import { address } from '../../src/machines/supervision/address.ts';
import { fakePorts } from './fakePorts.ts';
import { actor, idle, layer, receiver, rig, type Say } from './helpers.ts';

/** Ports whose deferred work waits until `run` lets it go, one turn of the loop at a time. */
function gated() {
  const gate: (() => void)[] = [];
  let extraMs = 0;
  const base = fakePorts();
  const ports = fakePorts({
    yield: { defer: (fn) => void gate.push(fn) },
    clock: { ...base.clock, monoMs: () => base.clock.monoMs() + extraMs },
  });
  return {
    ports: { ...ports, advance: base.advance },
    /** How many turns ran. */
    run(turnsMax = 1000): number {
      let turns = 0;
      for (let fn = gate.shift(); fn !== undefined; fn = turns < turnsMax ? gate.shift() : undefined) {
        fn();
        turns += 1;
        if (turns === turnsMax) break;
      }
      return turns;
    },
    work: (ms: number) => {
      extraMs += ms;
    },
  };
}
const it = test.extend('g', () => gated());

describe('the scheduler', () => {
  it('yields to I/O after about four milliseconds, whoever has not had a turn yet', ({ g }) => {
    const order: string[] = [];
    const slow = (id: string) =>
      actor(id, () =>
        receiver(() => {
          g.work(3);
          order.push(id);
        }),
      );
    const r = rig(layer('node', ['a', 'b', 'c', 'd'].map(slow)), g.ports);
    r.tree.start();
    g.run();
    for (const id of ['a', 'b', 'c', 'd']) r.tree.registry.send(address<Say>(`node/${id}`), { type: 'say' });
    g.run(1);
    expect(order).toEqual(['a', 'b']);
    g.run(1);
    expect(order).toEqual(['a', 'b', 'c', 'd']);
  });

  it('takes as long a turn as I/O took since the one before, up to a bound', ({ g }) => {
    const order: string[] = [];
    const ids = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'];
    const slow = (id: string) =>
      actor(id, () =>
        receiver(() => {
          g.work(3);
          order.push(id);
        }),
      );
    const r = rig(layer('node', ids.map(slow)), g.ports);
    r.tree.start();
    g.run();
    for (const id of ids) r.tree.registry.send(address<Say>(`node/${id}`), { type: 'say' });
    // Nothing was left to do before: the time until now is no measure.
    g.work(1_000);
    g.run(1);
    expect(order.join('')).toBe('ab');
    g.work(8);
    g.run(1);
    expect(order.join('')).toBe('abcde');
    for (const id of ids) r.tree.registry.send(address<Say>(`node/${id}`), { type: 'say' });
    g.work(1_000);
    g.run(1);
    expect(order.join('')).toBe('abcdeffgghhiiabc');
  });

  it('gives the only mailbox that is ready more than one slice of a long turn', ({ g }) => {
    const seen: unknown[] = [];
    const busy = actor('busy', () =>
      receiver((e) => {
        g.work(1);
        seen.push(e.n);
      }),
    );
    const r = rig(layer('node', [busy]), g.ports);
    r.tree.start();
    g.run();
    for (let n = 0; n < 60; n++) r.tree.registry.send(address<Say>('node/busy'), { type: 'say', n });
    g.run(1);
    expect(seen).toHaveLength(4);
    g.work(1_000);
    g.run(1);
    expect(seen).toHaveLength(4 + 32);
  });

  it('voids a restart that a supervisor decided on when that supervisor is killed before it is carried out', async ({ g }) => {
    const r = rig(layer('node', [layer('l', [actor('x', idle)])]), g.ports);
    r.tree.start();
    g.run();
    r.tree.kill('node/l/x', 'the test');
    g.run();
    // Waiting now: the kill of the layer, and behind it the start that its last timer asks for.
    r.tree.kill('node/l', 'the test');
    await g.ports.advance(100);
    g.run();
    expect(r.story().slice(2)).toEqual(['exited l/x killed', 'exited l killed']);
    await g.ports.advance(100);
    g.run();
    expect(r.story().slice(4)).toEqual(['started l', 'started l/x']);
  });
});
