/** What was said to a pod manager that is no more, about pods that its successor does not know yet. */

import { expect, it } from 'vitest';
import { type PodManagerEvent, podManagerAddr, podsView } from '../../../src/machines/pods/manager/messages.ts';
import { pod, virtualNode } from '../../integration/virtualNode.ts';

/** The pods of the present view, and which pod manager says so. */
const epochOf = (h: Awaited<ReturnType<typeof virtualNode>>) => h.tree.registry.read(podsView)?.value.epoch ?? 0;

it('an orphan that was found by the ledger of an earlier pod manager is not stopped by the next one', async () => {
  await using h = await virtualNode({ manifests: { web: pod('web') } });
  await h.until('it runs', () => h.phase('web') === 'Running');
  const [before] = h.running('web');
  const uid = h.uid('web');
  const epoch = epochOf(h);
  expect(epoch).toBe(1);
  h.kill('node/pods/podManager');
  await h.until('it has ended', () => h.actor('node/pods/podManager')?.lifecycle !== 'running');
  // Left in the mailbox: taken before the sources have said what they want.
  const orphan: PodManagerEvent = {
    type: 'pods.orphan',
    epoch,
    listed: { uid, name: 'web-node1', namespace: 'default', sandboxes: [], containers: [] },
  };
  expect(h.tree.registry.send(podManagerAddr, orphan)).toBe('queued');
  await h.until('the next one has begun', () => epochOf(h) === 2);
  await h.until('and knows the pod', () => h.record('web')?.worker?.phase === 'syncing', 60_000);
  await h.advance(60_000);
  expect(h.running('web').map((c) => c.id)).toEqual([before?.id]);
  expect(h.record('web')).toMatchObject({ source: 'file', state: { is: 'running' } });
});

it('a pod whose worker was set aside under an earlier pod manager is worked on under the next one', async () => {
  await using h = await virtualNode({ manifests: { web: pod('web', { uid: 'pinned-1' }) } });
  await h.until('it runs', () => h.phase('web') === 'Running');
  const [before] = h.running('web');
  // Its mailbox is slow: the word arrives when the next one has begun and knows the pod.
  using _ = h.tree.tap((to, __, e) => (to === 'node/pods/podManager' && e.type === 'pods.quarantined' ? { delayMs: 2_000 } : 'pass'));
  h.tree.registry.send(podManagerAddr, { type: 'pods.quarantined', uid: 'pinned-1', error: 'kept failing', epoch: epochOf(h) });
  h.kill('node/pods/podManager');
  await h.advance(10_000);
  expect(epochOf(h)).toBe(2);
  h.write('web', pod('web', { uid: 'pinned-1', container: { image: 'other:1' } }));
  await h.until('it is replaced', () => h.running('web').length === 1 && h.running('web')[0]?.id !== before?.id, 60_000);
});

it('a stop that an earlier pod manager asked for does not reach the worker of the next one', async () => {
  await using h = await virtualNode({ manifests: { web: pod('web', { uid: 'pinned-1' }) } });
  await h.until('it runs', () => h.phase('web') === 'Running');
  const [before] = h.running('web');
  {
    using _ = h.tree.tap((to, __, e) => (to === 'node/pods/workers' && e.type === 'pod.kill' ? { delayMs: 5_000 } : 'pass'));
    h.remove('web');
    await h.until('a stop was asked for', () => h.record('web')?.state.is === 'leaving');
    h.write('web', pod('web', { uid: 'pinned-1' }));
    h.kill('node/pods/podManager');
    await h.until('the next one wants it', () => epochOf(h) === 2 && h.record('web')?.worker?.phase === 'syncing', 60_000);
    await h.advance(10_000);
  }
  await h.advance(60_000);
  expect(h.running('web').map((c) => c.id)).toEqual([before?.id]);
  expect(h.phase('web')).toBe('Running');
});
