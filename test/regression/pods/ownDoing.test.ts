/** What a listing shows as its worker saw it is not asked for again: each look of a worker costs the runtime two lists. */
import { expect, it } from 'vitest';
import { pod, virtualNode } from '../../integration/virtualNode.ts';

it('a pod that starts is looked at after each act and no more', async () => {
  await using h = await virtualNode();
  await h.until('the node is up', () => h.pods().length === 0 && h.calls.length > 0);
  await h.advance(5_000);
  h.calls.splice(0);
  await h.run('web', pod('web'));
  await h.advance(20_000);
  const count = (method: string) => h.calls.filter((c) => c.method === method).length;
  expect(count('RunPodSandbox')).toBe(1);
  // One look at the new pod, one after its sandbox, one after its container.
  expect(
    h.calls.filter((c) => c.method === 'ListContainers' && JSON.stringify(c.req).includes('labelSelector')).length,
  ).toBeLessThanOrEqual(4);
  expect(count('PodSandboxStatus')).toBe(1);
  expect(count('ContainerStatus')).toBeLessThanOrEqual(2);
});
