/** Pods that admission refused: what is left of them in the runtime, and what happens when their manifest is put right. */
import { expect } from 'vitest';
import { isRefused } from '../../../src/machines/pods/manager/messages.ts';
import { itOnNode as it } from '../../integration/onNode.ts';
import { pod, virtualNode } from '../../integration/virtualNode.ts';

const good = { uid: 'pinned-1', life: 'term=3s' };
const bad = { ...good, spec: { volumes: [{ name: 'v', quobyte: { registry: 's', volume: 'x' } }] } };

it('runs when its manifest with a pinned UID is put right', async ({ h }) => {
  h.write('web', pod('web', bad));
  await h.until('it was refused', () => h.phase('web') === 'Failed');
  h.write('web', pod('web', good));
  await h.until('it runs', () => h.phase('web') === 'Running' && h.running('web').length === 1, 30_000);
  expect(h.record('web')).toMatchObject({ state: { is: 'running' } });
  expect(h.status('web')?.status.reason).toBeUndefined();
});

// Found by seed 2100185 at 6f00f92: a source that began anew named it again, and there was room by then.
it('stays refused when its source says the same again, whatever room there is by then', async ({ h }) => {
  const half = { requests: { cpu: '2500m' } };
  await h.run('first', pod('first', { container: { resources: half } }));
  h.write('second', pod('second', { container: { resources: half } }));
  await h.until('the second was refused', () => h.phase('second') === 'Failed');
  const refused = h.status('second')?.status;
  h.remove('first');
  await h.until('there is room', () => h.record('first') === undefined, 60_000);
  h.kill('node/pods/config');
  await h.advance(60_000);
  expect(h.status('second')?.status).toEqual(refused);
  expect(h.running('second')).toEqual([]);
  h.write('second', pod('second', { container: { resources: { requests: { cpu: '2' } } } }));
  await h.until('it runs once it is defined otherwise', () => h.phase('second') === 'Running', 60_000);
});

it('runs again when an update was refused, stopped it, and is put right', async ({ h }) => {
  await h.run('web', pod('web', good));
  h.write('web', pod('web', bad));
  await h.until('it failed', () => h.phase('web') === 'Failed' && h.running('web').length === 0);
  await h.advance(10_000);
  h.write('web', pod('web', good));
  await h.until('it runs again', () => h.phase('web') === 'Running' && h.running('web').length === 1, 30_000);
});

it('runs again when the update is put right while the pod is still being stopped for it', async ({ h }) => {
  await h.run('web', pod('web', good));
  const [old] = h.running('web');
  h.write('web', pod('web', bad));
  await h.until('it is being stopped', () => h.state(h.workerPath('web')) === 'terminating.stopping');
  h.write('web', pod('web', good));
  await h.until('another runs', () => h.running('web').some((c) => c.id !== old?.id) && h.phase('web') === 'Running', 60_000);
  expect(h.violations).toEqual([]);
});

it('runs on when the node cannot honour at its start what ran before', async ({ h }) => {
  h.write('web', pod('web', good));
  await h.until('it runs', () => h.running('web').length === 1);
  const [before] = h.running('web');
  await h.crash();
  h.write('web', pod('web', bad));
  await h.boot();
  await h.until('it is refused', () => isRefused(h.record('web') ?? { state: null }));
  await h.advance(60_000);
  expect(h.running('web').map((c) => c.id)).toEqual([before?.id]);
  expect(h.status('web')?.status.reason).toBe('UnsupportedField');
});

it('is stopped in the runtime when there is no room any more at its start for what ran before', async ({ h }) => {
  h.write('web', pod('web', good));
  await h.until('it runs', () => h.running('web').length === 1);
  await h.crash();
  h.write('web', pod('web', { uid: 'web-1', container: { resources: { requests: { memory: '64Ti' } } } }));
  await h.boot();
  await h.until('nothing of it runs', () => h.running('web').length === 0, 30_000);
  expect(isRefused(h.record('web') ?? { state: null })).toBe(true);
  expect(h.phase('web')).toBe('Failed');
  expect(h.status('web')?.status.reason).toBe('UnexpectedAdmissionError');
  h.write('web', pod('web', good));
  await h.until('it runs', () => h.phase('web') === 'Running' && h.running('web').length === 1, 60_000);
  h.remove('web');
  await h.until('all is gone', () => h.record('web') === undefined && h.runtime.dump().sandboxes.length === 0, 180_000);
});

it('is refused also when its pinned UID went and came back while it was being stopped', async ({ h }) => {
  await h.run('web', pod('web', good));
  h.remove('web');
  await h.until('it is being stopped', () => h.state(h.workerPath('web')) === 'terminating.stopping');
  h.write('web', pod('web', bad));
  await h.until('it was refused', () => isRefused(h.record('web') ?? { state: null }) && h.phase('web') === 'Failed', 30_000);
  expect(h.status('web')?.status.reason).toBe('UnsupportedField');
  await h.advance(60_000);
  expect(h.running('web')).toEqual([]);
});

it('is judged as it is now, not as it was, when it had to wait for the first listing', async () => {
  await using h = await virtualNode({
    config: { maxPods: 1 },
    before: (n) => {
      n.faults.away = true;
      n.write('a', pod('a', { uid: 'pinned-a' }));
      n.write('b', pod('b', { uid: 'pinned-b' }));
    },
  });
  await h.until('b waits', () => h.actor('node/pods/podManager')?.reason === 'LookingAgain');
  h.write('b', pod('b', { uid: 'pinned-b', container: { image: 'busybox:2' } }));
  await h.advance(1_000);
  h.kill('node/pods/config');
  await h.advance(1_000);
  h.faults.away = false;
  await h.until('a runs, b is refused', () => h.phase('a') === 'Running' && isRefused(h.record('b') ?? { state: null }), 60_000);
  expect(h.status('b')?.status.reason).toBe('UnexpectedAdmissionError');
  expect(h.record('b')?.pod.spec.containers[0]?.image).toBe('busybox:2');
  await h.advance(60_000);
  expect(h.running().map((c) => c.podUid)).toEqual(['pinned-a']);
});

// Found by seed 77000067 at 9c68004: a stopped sandbox let a pod in that had been refused, when the daemon was restarted.
it('is refused again by the next daemon when nothing but a stopped sandbox is left of it', async ({ h }) => {
  const half = { container: { resources: { requests: { cpu: '2500m' } } } };
  const web = pod('web', { ...half, uid: 'pinned-1' });
  h.faults.fault = (m) => {
    if (m === 'RemovePodSandbox') return { kind: 'refuse', code: 2, details: 'not today' };
    return m === 'CreateContainer' && h.record('other') === undefined ? { kind: 'refuse', code: 2, details: 'not yet' } : undefined;
  };
  h.write('web', web);
  await h.until('it has a sandbox', () => h.runtime.dump().sandboxes.length === 1);
  h.remove('web');
  await h.until('it has ended', () => h.record('web') === undefined, 60_000);
  h.write('other', pod('other', half));
  await h.until('the other one runs', () => h.running('other').length === 1, 60_000);
  h.write('web', web);
  await h.until('it is refused', () => h.phase('web') === 'Failed', 60_000);
  const refused = h.status('web')?.status;
  expect(refused?.message).toContain('cpu');
  await h.restart();
  await h.until('it was judged', () => h.phase('web') !== undefined, 60_000);
  await h.advance(60_000);
  expect(h.runtime.dump().sandboxes.filter((s) => s.uid === 'pinned-1')).toHaveLength(1);
  expect(h.status('web')?.status).toMatchObject({ phase: 'Failed', message: refused?.message });
});
