/** A container that was being started when its pod had to be stopped for a new sandbox. */
import { expect, it } from 'vitest';
import { pod, virtualNode } from '../../integration/virtualNode.ts';

it('gets its signal and its grace like the others, though it came up after the decision', async () => {
  await using h = await virtualNode();
  const spec = { containers: ['main', 'second'].map((name) => ({ name, image: 'busybox:1' })) };
  const o = { uid: 'pinned-1', lives: { second: 'startDelay=5s' } };
  h.faults.deaf = true;
  h.write('web', pod('web', { ...o, spec }));
  await h.until('second is being started', () => h.containerState('web', 'second') === 'starting' && h.running('web').length === 1);
  h.write('web', pod('web', { ...o, spec: { ...spec, hostNetwork: true } }));
  await h.until('both run anew', () => h.running('web').length === 2 && h.running('web').every((c) => c.attempt === 1));
  const ended = h.containers('web').filter((c) => c.state === 'CONTAINER_EXITED');
  expect(ended.map((c) => [c.name, c.exitCode]).sort()).toEqual([
    ['main', 143],
    ['second', 143],
  ]);
});
