/** A container that a manifest with a pinned UID no longer names. */
import { expect } from 'vitest';
import { itOnNode as it } from '../../integration/onNode.ts';
import { pod } from '../../integration/virtualNode.ts';

const both = { uid: 'pinned-1', spec: { containers: ['main', 'side'].map((name) => ({ name, image: `${name}:1` })) } };
const alone = { uid: 'pinned-1', spec: { containers: [{ name: 'main', image: 'main:1' }] } };

it('is stopped, and the others are not touched', async ({ h }) => {
  h.write('web', pod('web', both));
  await h.until('both run', () => h.running('web').length === 2);
  const main = h.running('web').find((c) => c.name === 'main');
  h.write('web', pod('web', alone));
  await h.until('one runs', () => h.running('web').length === 1, 5_000);
  expect(h.running('web')[0]?.id).toBe(main?.id);
  await h.advance(120_000);
  expect(h.running('web').map((c) => c.id)).toEqual([main?.id]);
  expect(h.phase('web')).toBe('Running');
});

it('is not started when its image arrives only after that', async ({ h }) => {
  h.faults.latencyMs.PullImage = 20_000;
  h.write('web', pod('web', both));
  await h.until('main runs, side is pulled', () => h.running('web').length === 1 && h.containerState('web', 'side') === 'pulling');
  h.write('web', pod('web', alone));
  await h.advance(180_000);
  expect(h.containers('web').map((c) => c.name)).toEqual(['main']);
});

it('has no back-off that goes on without it', async ({ h }) => {
  h.write('web', pod('web', { ...both, lives: { side: 'run=1s,exit=1' } }));
  await h.until('side backs off', () => h.containerState('web', 'side') === 'backingOff');
  h.write('web', pod('web', alone));
  await h.advance(10_000);
  expect(h.containerState('web', 'side')).toBe('');
  expect(h.record('web')?.worker?.containers.map((c) => c.name)).toEqual(['main']);
});
