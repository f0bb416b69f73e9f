/** A static pod that brings its own UID may go, or be refused, and come back: nothing of its earlier life is taken for the new one's. */

import { expect } from 'vitest';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { statusAddr } from '../../../src/machines/pods/status/messages.ts';
import { itOnNode as it } from '../../integration/onNode.ts';
import { pod, virtualNode } from '../../integration/virtualNode.ts';

const good = pod('web', { uid: 'pinned-1', life: 'term=1s' });
const refused = pod('web', { uid: 'pinned-1', life: 'term=1s', spec: { volumes: [{ name: 'v', quobyte: {} }] } });

it('a new life does not begin with the end of the one before, which is still being forgotten', async ({ h }) => {
  await h.run('web', good);
  h.write('web', refused);
  await h.until('it has failed', () => h.phase('web') === 'Failed' && h.record('web')?.worker?.phase === 'finished', 60_000);
  // Longer than the new life takes to look at the runtime and decide.
  using _ = h.tree.tap((to, _lane, e) => (to === 'node/pods/status' && e.type === 'status.forget' ? { delayMs: 2_000 } : 'pass'));
  h.write('web', good);
  await h.until('a new one runs', () => h.running('web').length === 1, 60_000);
  await h.until('and is shown as running', () => h.phase('web') === 'Running', 60_000);
  await h.advance(120_000);
  expect(h.running('web')).toHaveLength(1);
  expect(h.status('web')?.status).toMatchObject({ phase: 'Running', containerStatuses: [{ state: { running: {} } }] });
  expect(h.violations).toEqual([]);
});

it('a new life is not forgotten with the one before', async ({ h }) => {
  await h.run('web', good);
  const life = h.status('web')?.life ?? 0;
  h.remove('web');
  await h.until('it is gone', () => h.status('web') === undefined && h.record('web') === undefined, 60_000);
  h.write('web', good);
  await h.until('it runs again', () => h.phase('web') === 'Running', 60_000);
  expect(h.status('web')?.life).toBeGreaterThan(life);
  h.tree.registry.send(statusAddr, { type: 'status.forget', uid: 'pinned-1', life });
  await h.settle();
  expect(h.phase('web')).toBe('Running');
});

it('a new life is not refused for what the mirror pod tells of the one before (seed 3700704 with 8 pods)', async () => {
  await using h = await virtualNode({ cluster: true });
  const containers = ['main', 'side'].map((name) => ({ name, image: 'busybox:1' }));
  const lives = { main: 'run=60s,exit=0', side: 'run=30s,exit=0' };
  const job = pod('job', { uid: 'pinned-1', lives, spec: { restartPolicy: 'Never', containers } });
  const inApi = () => {
    const got = h.kube.handle({ verb: 'GET', path: '/api/v1/namespaces/default/pods/job-n1' });
    return got.ok ? (got.body as Pod) : undefined;
  };
  h.write('job', job);
  await h.until(
    'the mirror says that one has ended',
    () => (inApi()?.status.containerStatuses ?? []).some((c) => c.state.terminated !== undefined),
    60_000,
  );
  h.kube.trouble.verdict = (r) => (r.verb === 'GET' ? { delayMs: 0 } : { delayMs: 0, refuse: { status: 500 } });
  await h.until('it has ended', () => h.phase('job') === 'Succeeded' && h.record('job')?.worker?.phase === 'finished', 60_000);
  h.remove('job');
  await h.until('nothing of it is left here', () => h.record('job') === undefined && h.containers('job').length === 0, 300_000);
  expect(inApi()?.status.phase).toBe('Running');
  h.write('job', job);
  await h.until('it runs again', () => h.phase('job') === 'Running', 10_000);
  await h.until('and ends again', () => h.phase('job') === 'Succeeded', 90_000);
  h.kube.trouble.verdict = () => ({ delayMs: 0 });
  await h.until('as its mirror says', () => inApi()?.status.phase === 'Succeeded', 60_000);
});
