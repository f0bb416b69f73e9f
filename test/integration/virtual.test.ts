import { expect, it } from 'vitest';
import { pod, virtualNode } from './virtualNode.ts';

it('runs a node in virtual time: a pod appears, runs for ten minutes, and goes', async () => {
  await using h = await virtualNode();
  await h.run('web', pod('web'));
  const [before] = h.running('web');
  await h.advance(600_000);
  expect(h.running('web')).toEqual([before]);
  h.remove('web');
  await h.until('nothing is left', () => h.runtime.dump().containers.length === 0 && h.runtime.dump().sandboxes.length === 0);
  expect(h.violations).toEqual([]);
});
