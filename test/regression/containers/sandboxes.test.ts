/** Sandboxes that end, change or are of unknown outcome. */
import { describe, expect } from 'vitest';
import { eventsView } from '../../../src/machines/foundation/messages.ts';
import type { CriMethod, CriRequest } from '../../../src/machines/wire/criCalls.ts';
import { itOnNode as it } from '../../integration/onNode.ts';
import { pod, type VirtualNode } from '../../integration/virtualNode.ts';

describe('sandboxes that end under a pod, sandboxes whose making had no answer, and what orphaned pods leave', () => {
  const direct = <M extends CriMethod>(h: VirtualNode, method: M, req: unknown) =>
    h.runtime.call(method, req as CriRequest<M>, { timeoutMs: null, signal: new AbortController().signal });

  it('fails a Never pod whose sandbox ended before every container had run: nothing of it can ever start', async ({ h }) => {
    h.faults.latencyMs.PullImage = 100_000;
    const containers = ['a', 'b'].map((name) => ({ name, image: `${name}:1` }));
    h.write('web', pod('web', { spec: { restartPolicy: 'Never', containers }, lives: { a: 'run=1s,exit=0' } }));
    await h.until('a has ended', () => h.containers('web').some((c) => c.state === 'CONTAINER_EXITED'), 200_000);
    await direct(h, 'StopPodSandbox', { podSandboxId: h.runtime.dump().sandboxes[0]?.id });
    await h.until('it failed', () => h.phase('web') === 'Failed' && h.record('web')?.worker?.phase === 'finished', 180_000);
    expect(h.status('web')?.status.reason).toBe('SandboxLost');
    expect(h.runtime.dump().counts.sandboxesRun).toBe(1);
  });

  it('makes an OnFailure pod a new one, for the containers that did not succeed only', async ({ h }) => {
    const containers = ['a', 'b'].map((name) => ({ name, image: `${name}:1` }));
    h.write('web', pod('web', { spec: { restartPolicy: 'OnFailure', containers }, lives: { a: 'run=1s,exit=0' } }));
    await h.until('a has ended', () => h.containers('web').some((c) => c.state === 'CONTAINER_EXITED'));
    await direct(h, 'StopPodSandbox', { podSandboxId: h.runtime.dump().sandboxes[0]?.id });
    await h.until('b runs anew', () => h.running('web').some((c) => c.name === 'b' && c.attempt === 1));
    await h.advance(60_000);
    expect(h.containers('web').filter((c) => c.name === 'a')).toHaveLength(1);
  });

  it('is not doubled when its making had no answer and its effect came late', async ({ h }) => {
    h.faults.latencyMs.RunPodSandbox = 5_000;
    let asked = 0;
    h.faults.fault = (method) => {
      if (method !== 'RunPodSandbox') return undefined;
      asked += 1;
      return asked === 1 ? { kind: 'timeout', effect: true, afterMs: 1_000 } : undefined;
    };
    h.write('web', pod('web'));
    await h.until('it runs', () => h.running('web').length === 1);
    await h.advance(120_000);
    expect(h.runtime.dump().sandboxes.map((s) => [s.attempt, s.ready])).toEqual([[0, true]]);
    expect(h.running('web').map((c) => c.attempt)).toEqual([0]);
  });

  it('leaves nothing of an orphaned pod with only a created container and sandboxes that are not ready', async ({ h }) => {
    const labels = { 'io.kubernetes.pod.uid': 'g1', 'io.kubernetes.pod.name': 'ghost', 'io.kubernetes.pod.namespace': 'default' };
    const config = (attempt: number) => ({
      metadata: { name: 'ghost', namespace: 'default', uid: 'g1', attempt },
      labels,
      annotations: {},
      hostname: '',
      logDirectory: '',
      portMappings: [],
    });
    await direct(h, 'PullImage', { image: { image: 'x' } });
    for (const attempt of [0, 1]) {
      const { podSandboxId } = await direct(h, 'RunPodSandbox', { config: config(attempt) });
      const container = { metadata: { name: 'c', attempt: 0 }, image: { image: 'x' }, annotations: {}, logPath: '', mounts: [], envs: [] };
      const named = { ...container, labels: { ...labels, 'io.kubernetes.container.name': 'c' }, command: [], args: [] };
      if (attempt === 0) await direct(h, 'CreateContainer', { podSandboxId, sandboxConfig: config(0), config: named });
      await direct(h, 'StopPodSandbox', { podSandboxId });
    }
    await h.until('nothing is left', () => h.runtime.dump().sandboxes.length + h.runtime.dump().containers.length === 0, 180_000);
    expect(h.pods()).toEqual([]);
  });
});

describe('Traps 34, 35: a sandbox that died is stopped (its network is released) and its replacement is announced', () => {
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
});
