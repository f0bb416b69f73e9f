/** Pod lifecycle 7.6: a pod that has ended says of none of its containers that it waits. */
import { expect, it } from 'vitest';
import { pod, virtualNode } from '../../integration/virtualNode.ts';

it('shows how each container ended, and what never came up as ended unseen', async () => {
  await using h = await virtualNode({ hollow: { image: (name) => (name.startsWith('gone') ? undefined : {}) } });
  const containers = [
    { name: 'steady', image: 'busybox:1' },
    { name: 'crasher', image: 'busybox:1' },
    { name: 'missing', image: 'gone:1' },
  ];
  h.write('web', pod('web', { lives: { crasher: 'run=1s,exit=3' }, spec: { activeDeadlineSeconds: 60, containers } }));
  await h.until('it backs off', () => h.containerState('web', 'crasher') === 'backingOff');
  await h.until('it has ended', () => h.record('web')?.worker?.phase === 'finished', 180_000);
  const states = h.status('web')?.status.containerStatuses?.map((c) => [c.name, c.state.terminated?.exitCode, c.state.terminated?.reason]);
  expect(states).toEqual([
    ['crasher', 3, 'Error'],
    ['missing', 137, 'ContainerStatusUnknown'],
    ['steady', 143, 'Error'],
  ]);
  expect(h.phase('web')).toBe('Failed');
});

it('leaves what an init container kept from ever beginning as it is', async () => {
  await using h = await virtualNode();
  h.write('web', pod('web', { inits: [{}], lives: { 'init-0': 'run=1s,exit=1' }, spec: { restartPolicy: 'Never' } }));
  await h.until('it has ended', () => h.record('web')?.worker?.phase === 'finished', 180_000);
  expect(h.status('web')?.status.containerStatuses?.[0]?.state.waiting?.reason).toBe('PodInitializing');
  expect(h.status('web')?.status.initContainerStatuses?.[0]?.state.terminated?.exitCode).toBe(1);
});
