/** The restart count that was shown is the one that the next instance carries: whoever asks the runtime alone must find it. */
import { expect, it } from 'vitest';
import { pod, virtualNode } from '../../integration/virtualNode.ts';

it('it does not fall when the daemon restarts, though the instances and logs before were taken away', async () => {
  await using h = await virtualNode();
  await h.run('web', pod('web'));
  const [first] = h.running('web');
  const shown = () => h.status('web')?.status.containerStatuses?.[0];
  // Its log has gone with it (this runtime writes none).
  h.faults.fault = (method) => (method === 'CreateContainer' ? { kind: 'refuse', code: 14, details: 'not now' } : undefined);
  await h.runtime.call('RemoveContainer', { containerId: first?.id ?? '' }, { timeoutMs: null, signal: new AbortController().signal });
  await h.until('its end is shown', () => shown()?.restartCount === 1, 60_000);
  h.faults.fault = () => undefined;
  await h.until('it runs again', () => h.running('web').length === 1 && shown()?.state.running !== undefined, 60_000);
  expect(shown()?.restartCount).toBe(1);
  await h.restart();
  await h.until('it is shown again', () => shown()?.state.running !== undefined, 60_000);
  expect(shown()?.restartCount).toBe(1);
});
