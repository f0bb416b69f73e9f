/** A CreateContainer whose answer was lost may be done late, when its name is free again because somebody removed the container. */
import { expect, it } from 'vitest';
import type { CriRequest } from '../../../src/machines/wire/criCalls.ts';
import { pod, virtualNode } from '../../integration/virtualNode.ts';

const BY_HAND = { timeoutMs: null, signal: new AbortController().signal };

it('what a late create leaves is not started beside the instance that runs', async () => {
  await using h = await virtualNode();
  await h.run('web', pod('web', { life: 'run=forever' }));
  const [first] = h.running('web');
  const create = h.calls.find((c) => c.method === 'CreateContainer')?.req as CriRequest<'CreateContainer'>;
  await h.runtime.call('RemoveContainer', { containerId: first?.id ?? '' }, BY_HAND);
  await h.until('it runs again', () => h.running('web').length === 1 && h.running('web')[0]?.id !== first?.id, 60_000);
  const [second] = h.running('web');
  const { containerId: late } = await h.runtime.call('CreateContainer', create, BY_HAND);
  await h.advance(180_000);
  expect(h.violations).toEqual([]);
  expect(h.running('web').map((c) => c.id)).toEqual([second?.id]);
  expect(h.status('web')?.status.containerStatuses?.[0]).toMatchObject({ restartCount: 1, ready: true, state: { running: {} } });

  // Its successor has a number of its own, and what was left is gone.
  h.runtime.exit(second?.id ?? '', { exitCode: 1, reason: '' });
  await h.until('it is started once more', () => h.running('web').some((c) => c.id !== second?.id), 60_000);
  expect(h.running('web')[0]?.attempt).toBe(2);
  expect(h.containers('web').some((c) => c.id === late)).toBe(false);
  await h.until('that is shown', () => h.status('web')?.status.containerStatuses?.[0]?.restartCount === 2, 60_000);
  expect(h.violations).toEqual([]);
});
