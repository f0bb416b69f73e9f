/** Pod lifecycle 6.3: a pod that outlives its active deadline is told so, once, by an event. */

import { expect } from 'vitest';
import { eventsView } from '../../../src/machines/foundation/messages.ts';
import { itOnNode as it } from '../../integration/onNode.ts';
import { pod } from '../../integration/virtualNode.ts';

it('records DeadlineExceeded', async ({ h }) => {
  h.write('web', pod('web', { spec: { activeDeadlineSeconds: 30 } }));
  await h.until('it failed', () => h.phase('web') === 'Failed' && h.running('web').length === 0, 90_000);
  await h.advance(60_000);
  const said = h.tree.registry.read(eventsView)?.value.filter((e) => e.reason === 'DeadlineExceeded') ?? [];
  expect(said.map((e) => [e.type, e.message, e.count])).toEqual([
    ['Normal', 'Pod was active on the node longer than the specified deadline', 1],
  ]);
});

it('does not turn a pod that had succeeded in time into a failed one, when the daemon starts after the deadline', async ({ h }) => {
  h.write('web', pod('web', { life: 'run=2s,exit=0', spec: { activeDeadlineSeconds: 30, restartPolicy: 'Never' } }));
  await h.until('it succeeded', () => h.phase('web') === 'Succeeded');
  await h.crash();
  await h.advance(60_000);
  await h.boot();
  await h.until('it has a status', () => h.record('web')?.worker?.phase === 'finished');
  expect(h.phase('web')).toBe('Succeeded');
});

it('counts a new life of a pinned UID from its own beginning', async ({ h }) => {
  const manifest = pod('web', { uid: 'pinned-1', life: 'term=3s', spec: { activeDeadlineSeconds: 30 } });
  h.write('web', manifest);
  await h.until('it runs', () => h.running('web').length === 1);
  const [old] = h.running('web');
  await h.advance(20_000);
  h.remove('web');
  await h.until('it is being stopped', () => h.state(h.workerPath('web')) === 'terminating.stopping');
  h.write('web', manifest);
  await h.until('another runs', () => h.running('web').some((c) => c.id !== old?.id));
  await h.advance(20_000);
  expect(h.phase('web')).toBe('Running');
  await h.until('it failed', () => h.phase('web') === 'Failed', 30_000);
});
