/** A new definition is acted on at once, whatever the worker was waiting for. */
import { expect } from 'vitest';
import { itOnNode as it } from '../../integration/onNode.ts';
import { pod } from '../../integration/virtualNode.ts';

it('after a failed sandbox', async ({ h }) => {
  h.faults.fault = (method) => (method === 'RunPodSandbox' ? { kind: 'refuse', code: 2, details: 'no' } : undefined);
  h.write('web', pod('web', { uid: 'pinned-1' }));
  await h.until('the act failed', () => h.record('web') !== undefined && h.state(h.workerPath('web')) === 'syncing.actFailed');
  h.faults.fault = () => undefined;
  h.write('web', pod('web', { uid: 'pinned-1', container: { image: 'busybox:2' } }));
  await h.until('it runs', () => h.running('web').length === 1, 3_000);
});

it('after a container that could not be made, whatever of it was changed', async ({ h }) => {
  h.faults.fault = (method, req) =>
    method === 'CreateContainer' && JSON.stringify(req).includes('bad-command') ? { kind: 'refuse', code: 2, details: 'no' } : undefined;
  h.write('web', pod('web', { uid: 'pinned-1', container: { command: ['bad-command'] } }));
  await h.until('it failed', () => h.containerState('web', 'main') === 'failed');
  h.write('web', pod('web', { uid: 'pinned-1', container: { command: ['good-command'] } }));
  await h.until('it runs', () => h.running('web').length === 1, 3_000);
});

it('but a repeated word is no new definition', async ({ h }) => {
  let made = 0;
  h.faults.fault = (method) => {
    if (method !== 'CreateContainer') return undefined;
    made += 1;
    return { kind: 'refuse', code: 2, details: 'no' };
  };
  h.write('web', pod('web'));
  await h.until('it failed', () => h.containerState('web', 'main') === 'failed');
  h.kill('node/pods/config');
  await h.advance(5_000);
  expect(made).toBe(1);
});
