/** A pod that is changed before its worker was made. */

import { expect, it } from 'vitest';
import { podManagerAddr } from '../../../src/machines/pods/manager/messages.ts';

import { pod, virtualNode } from '../../integration/virtualNode.ts';

it('gets its worker all the same, with the newest definition', async () => {
  await using h = await virtualNode({ manifests: { first: pod('first', { uid: 'u-1' }) } });
  await h.until('it runs', () => h.phase('first') === 'Running');
  const known = h.record('first')?.pod;
  if (known === undefined) throw new Error('no pod');
  const twin = (image: string) => ({
    ...structuredClone(known),
    metadata: { ...known.metadata, uid: 'u-2', name: 'second-n1' },
    spec: { ...known.spec, containers: [{ name: 'main', image }] },
  });
  // Both lie in the mailbox of the workers before any is handled.
  h.tree.registry.send(podManagerAddr, { type: 'pods.op', op: 'ADD', source: 'file', pods: [twin('busybox:1')] });
  h.tree.registry.send(podManagerAddr, { type: 'pods.op', op: 'UPDATE', source: 'file', pods: [twin('busybox:2')] });
  await h.until('it runs', () => h.phase('second') === 'Running');
  expect(h.record('second')?.pod.spec.containers[0]?.image).toBe('busybox:2');
  expect(h.running('second')).toHaveLength(1);
});
