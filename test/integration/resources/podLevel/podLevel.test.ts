/** Resources of a pod as a whole, in a whole node. */
import { expect } from 'vitest';
import { itOnNode as it } from '../../onNode.ts';
import { pod } from '../../virtualNode.ts';

it('gives a container the weight of its own request, and shows no other, on a node without cgroups of pods', async ({ h }) => {
  const containers = [
    { name: 'one', image: 'busybox:1', resources: { requests: { cpu: '100m' } } },
    { name: 'two', image: 'busybox:1' },
  ];
  await h.run('whole', pod('whole', { spec: { resources: { requests: { cpu: '2' } }, containers } }));
  expect(h.runtime.dump().containers.map((c) => Number(c.resources.cpuShares))).toEqual([102, 2]);
  const shown = h.status('whole')?.status.containerStatuses?.map(({ resources }) => resources?.requests?.cpu);
  expect(shown).toEqual(['100m', undefined]);
});

it('takes a pod by what it asks for as a whole, and refuses one whose limits could not be kept', async ({ h }) => {
  const resources = { requests: { memory: '1Gi' }, limits: { cpu: '1', memory: '2Gi' } };
  await h.run('whole', pod('whole', { spec: { resources } }));
  expect(h.status('whole')?.status.qosClass).toBe('Burstable');
  const made = h.calls.find((c) => c.method === 'CreateContainer')?.req;
  expect(made).toMatchObject({
    config: { linux: { resources: { cpuShares: 1024, cpuQuota: 100_000, memoryLimitInBytes: 2 * 1024 ** 3, oomScoreAdj: 875 } } },
  });

  const containers = ['one', 'two'].map((name) => ({ name, image: 'busybox:1' }));
  h.write('loose', pod('loose', { spec: { resources, containers } }));
  await h.until('it is refused', () => h.phase('loose') === 'Failed');
  expect(h.status('loose')?.status.message).toContain('spec.resources.limits.memory (this node limits containers, not pods');

  h.write('large', pod('large', { spec: { resources: { requests: { memory: '8Gi' } } } }));
  await h.until('it does not fit', () => h.phase('large') === 'Failed');
  // A static pod is critical: others would have to go for it, and none would do.
  expect(h.status('large')?.status.reason).toBe('UnexpectedAdmissionError');
  expect(h.status('large')?.status.message).toContain('memory');
});
