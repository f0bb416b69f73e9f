/** A map whose copies share their entries: it must do what a Map does, and copy far less. */
import { simRng } from '@actorlet/world/src/rng.ts';
import { describe, expect, it } from 'vitest';
import { SharedMap } from '../../src/machines/data/sharedMap.ts';

describe('a shared map', () => {
  it.each(['a', 'b', 'c', 'd'])('does what a Map does, in the order of a Map (seed %s)', (seed) => {
    const rng = simRng(seed);
    let shared = SharedMap.of<string, number>();
    let plain = new Map<string, number>();
    const before: { shared: SharedMap<string, number>; entries: [string, number][] }[] = [];
    for (let i = 0; i < 2_000; i++) {
      const draft = SharedMap.draft(shared);
      plain = new Map(plain);
      for (let n = 0; n < 3; n++) {
        const key = `k${Math.floor(rng.next() * 200)}`;
        if (rng.next() < 0.3) expect(draft.delete(key)).toBe(plain.delete(key));
        else {
          draft.set(key, i);
          plain.set(key, i);
        }
        expect(draft.get(key)).toBe(plain.get(key));
        expect(draft.has(key)).toBe(plain.has(key));
      }
      shared = draft.finish();
      if (i % 100 === 0) before.push({ shared, entries: [...plain] });
      expect(shared.size).toBe(plain.size);
    }
    expect([...shared]).toEqual([...plain]);
    expect([...shared.keys()]).toEqual([...plain.keys()]);
    expect([...shared.values()]).toEqual([...plain.values()]);
    const seen: [string, number][] = [];
    shared.forEach((value, key) => void seen.push([key, value]));
    expect(seen).toEqual([...plain]);
    for (const b of before) expect([...b.shared]).toEqual(b.entries);
  });

  it('is the same map when nothing was changed', () => {
    const map = SharedMap.of([['a', 1]]);
    const draft = SharedMap.draft(map);
    expect(draft.delete('b')).toBe(false);
    expect(draft.finish()).toBe(map);
  });

  it('holds what is undefined', () => {
    const map = SharedMap.draft(SharedMap.of<string, number | undefined>([['a', 1]]))
      .set('a', undefined)
      .set('b', undefined)
      .finish();
    expect([...map]).toEqual([
      ['a', undefined],
      ['b', undefined],
    ]);
    expect([map.has('a'), map.has('b'), map.get('a'), map.get('b')]).toEqual([true, true, undefined, undefined]);
  });

  it('copies far fewer entries than there are for one change of many', () => {
    let copied = 0;
    class Counted extends Map<string, number> {
      override set(key: string, value: number): this {
        copied += 1;
        return super.set(key, value);
      }
    }
    const plain = globalThis.Map;
    let map = SharedMap.of<string, number>(Array.from({ length: 5_000 }, (_, i) => [`k${i}`, i]));
    globalThis.Map = Counted as never;
    try {
      for (let i = 0; i < 1_000; i++) map = SharedMap.draft(map).set(`k${i}`, -i).finish();
    } finally {
      globalThis.Map = plain;
    }
    expect(map.get('k999')).toBe(-999);
    // A copy of all for each change would be five million.
    expect(copied).toBeLessThan(250_000);
  });
});
