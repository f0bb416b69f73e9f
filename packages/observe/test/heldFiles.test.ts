/** What is held in memory, against a plain list of paths. */
import { simRng } from '@actorlet/world/src/rng.ts';
import { expect, test } from 'vitest';
import { HeldFiles } from '../src/border/disk/heldFiles.ts';

test('what is below a folder is what a look at all paths finds, and nothing is left of what was dropped', () => {
  const held = new HeldFiles();
  const plain = new Set<string>();
  const below = (path: string, at: string) => at === path || at.startsWith(`${path}/`);
  const rng = simRng('held files');
  const pathOf = () => `/${Array.from({ length: 1 + rng.int(4) }, () => rng.pick(['a', 'b', 'c'])).join('/')}`;
  for (let i = 0; i < 3_000; i++) {
    const path = pathOf();
    const act = rng.int(4);
    if (act < 2) {
      held.put(path, { kind: 'dir', mode: 0o755, atMs: 0 });
      plain.add(path);
    } else if (act === 2) expect(held.drop(path)).toBe(plain.delete(path));
    else {
      const all = [...plain].filter((at) => below(path, at));
      expect(held.dropTree(path)).toBe(all.length > 0);
      for (const at of all) plain.delete(at);
    }
    const looked = pathOf();
    const names = [...plain].filter((at) => at.startsWith(`${looked}/`)).map((at) => at.slice(looked.length + 1).split('/', 1)[0]);
    expect(held.names(looked).sort()).toEqual([...new Set(names)].sort());
    expect(held.get(looked) !== undefined).toBe(plain.has(looked));
  }
});

test('a folder is dropped without a look at what is held elsewhere', () => {
  const held = new HeldFiles();
  for (let i = 0; i < 20_000; i++) held.put(`/pods/${i}/volumes/token`, { kind: 'file', mode: 0o644, atMs: 0 });
  const began = performance.now();
  for (let i = 0; i < 20_000; i++) held.dropTree(`/pods/${i}`);
  // 400 million paths would be looked at else.
  expect(performance.now() - began).toBeLessThan(2_000);
  expect(held.names('/pods')).toEqual([]);
});
