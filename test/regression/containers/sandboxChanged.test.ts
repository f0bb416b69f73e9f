/** Traps 34, 35: a sandbox that died is stopped (its network is released) and its replacement is announced. */

import { expect } from 'vitest';
import { eventsView } from '../../../src/machines/foundation/messages.ts';
import { itOnNode as it } from '../../integration/onNode.ts';
import { pod, type VirtualNode } from '../../integration/virtualNode.ts';

const announced = (h: VirtualNode) => h.tree.registry.read(eventsView)?.value.filter((e) => e.reason === 'SandboxChanged').length ?? 0;

it('died with all its containers: stopped before the new one is made, and announced once', async ({ h }) => {
  h.write('web', pod('web', { container: { command: ['x'] } }));
  await h.until('it runs', () => h.running('web').length === 1);
  const [sandbox] = h.runtime.dump().sandboxes;
  const [main] = h.running('web');
  await h.crash();
  await h.runtime.call('StopPodSandbox', { podSandboxId: sandbox?.id ?? '' }, { timeoutMs: null, signal: new AbortController().signal });
  expect(h.running('web')).toEqual([]);
  h.calls.splice(0);
  await h.boot();
  await h.until('it runs anew', () => h.running('web').some((c) => c.id !== main?.id));
  const acts = h.calls.map((c) => c.method).filter((m) => m === 'StopPodSandbox' || m === 'RunPodSandbox');
  expect(acts).toEqual(['StopPodSandbox', 'RunPodSandbox']);
  expect(announced(h)).toBe(1);
});

it('stopped with a container still up: stopped once, announced once', async ({ h }) => {
  h.write('web', pod('web'));
  await h.until('it runs', () => h.running('web').length === 1);
  const [main] = h.running('web');
  // Its address is lost.
  h.faults.answer = (method, value) =>
    method === 'PodSandboxStatus' && typeof value === 'object' && value !== null && 'status' in value
      ? { ...value, status: { ...(value.status as object), network: { ip: '', additionalIps: [] } } }
      : value;
  h.calls.splice(0);
  // No listing shows that: whoever looks anew finds it.
  h.kill(h.workerPath('web'));
  await h.until('it was stopped', () => h.running('web').length === 0, 180_000);
  h.faults.answer = (_, value) => value;
  await h.until('it runs anew', () => h.running('web').some((c) => c.id !== main?.id));
  const acts = h.calls.map((c) => c.method).filter((m) => m === 'StopPodSandbox' || m === 'RunPodSandbox');
  expect(acts.slice(0, 2)).toEqual(['StopPodSandbox', 'RunPodSandbox']);
  expect(announced(h)).toBe(1);
});

it('given up because the pod moved to the host network: not announced', async ({ h }) => {
  h.write('web', pod('web', { uid: 'pinned-1' }));
  await h.until('it runs', () => h.running('web').length === 1);
  const [main] = h.running('web');
  h.write('web', pod('web', { uid: 'pinned-1', spec: { hostNetwork: true } }));
  await h.until('it runs anew', () => h.running('web').some((c) => c.id !== main?.id));
  expect(announced(h)).toBe(0);
});
