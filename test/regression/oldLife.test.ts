/** A static pod that brings its own UID may go, or be refused, and come back: nothing of its earlier life is taken for the new one's. */
import { expect, it } from 'vitest';
import { addr } from '../../src/machines/protocol.ts';
import { pod, virtualNode } from '../integration/virtualNode.ts';

const good = pod('web', { uid: 'pinned-1', life: 'term=1s' });
const refused = pod('web', { uid: 'pinned-1', life: 'term=1s', spec: { volumes: [{ name: 'v', nfs: {} }] } });

it('a new life does not begin with the end of the one before, which is still being forgotten', async () => {
  await using h = await virtualNode();
  h.write('web', good);
  await h.until('it runs', () => h.phase('web') === 'Running');
  h.write('web', refused);
  await h.until('it has failed', () => h.phase('web') === 'Failed' && h.record('web')?.worker?.phase === 'finished', 60_000);
  // Longer than the new life takes to look at the runtime and decide.
  using _ = h.tree.tap((to, _lane, e) => (to === 'node/pods/status' && e.type === 'status.forget' ? { delayMs: 2_000 } : 'pass'));
  h.write('web', good);
  await h.until('a new one runs', () => h.running('web').length === 1, 60_000);
  await h.until('and is shown as running', () => h.phase('web') === 'Running', 60_000);
  await h.advance(120_000);
  expect(h.running('web')).toHaveLength(1);
  expect(h.status('web')?.status).toMatchObject({ phase: 'Running', containerStatuses: [{ state: { running: {} } }] });
  expect(h.violations).toEqual([]);
});

it('a new life is not forgotten with the one before', async () => {
  await using h = await virtualNode();
  h.write('web', good);
  await h.until('it runs', () => h.phase('web') === 'Running');
  const life = h.status('web')?.incarnation ?? 0;
  h.remove('web');
  await h.until('it is gone', () => h.status('web') === undefined && h.record('web') === undefined, 60_000);
  h.write('web', good);
  await h.until('it runs again', () => h.phase('web') === 'Running', 60_000);
  expect(h.status('web')?.incarnation).toBeGreaterThan(life);
  h.tree.registry.send(addr.status, { type: 'status.forget', uid: 'pinned-1', incarnation: life });
  await h.settle();
  expect(h.phase('web')).toBe('Running');
});
