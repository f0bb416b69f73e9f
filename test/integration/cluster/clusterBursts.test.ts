/** What waits while pods start and stop: changes of a status that the next one says again, and events while many pods have their turn. */
import { describe, expect, it } from 'vitest';
import type { VirtualNode } from '../virtualNode.ts';
import { cluster, create, createReady, drop, inApi, isReady } from './clusterPods.ts';

/** Bodies of the patches of that pod's status, oldest first. */
function patches(h: VirtualNode, name: string): Record<string, unknown>[] {
  return h.kube.calls
    .filter((c) => c.request.verb === 'PATCH' && c.request.path.endsWith(`/pods/${name}/status`))
    .map((c) => (c.request.body as { status: Record<string, unknown> }).status);
}
const eventsSent = (h: VirtualNode) => h.kube.calls.filter((c) => c.request.verb === 'POST' && c.request.path.endsWith('/events')).length;
const hasSandbox = (h: VirtualNode, name: string) =>
  inApi(h, name)?.status.conditions?.some((c) => c.type === 'PodReadyToStartContainers' && c.status === 'True') === true;

describe('a change of a status that the next one says again', () => {
  it.each([
    ['waits for it: a pod that starts slowly is written twice, and once more when it was stopped', []],
    // Regression: on real servers no patch waited. Such a one differs in what it does not know, and each says `lastProbeTime: null`.
    ['waits for it on a server that is too old to know some fields', ['hostIPs', 'resources', 'volumeMounts', 'user']],
  ])('%s', async (_, unknown) => {
    await using h = await cluster({
      before: ({ faults }) =>
        Object.assign(faults.latencyMs, { RunPodSandbox: 800, CreateContainer: 800, StartContainer: 800, StopPodSandbox: 1_500 }),
    });
    h.kube.store.leavesOut = new Set(unknown);
    await createReady(h, 'web');
    expect(patches(h, 'web').map((p) => p.phase)).toEqual([undefined, 'Running']);
    expect(patches(h, 'web')[1]).toHaveProperty('podIPs');
    drop(h, 'pods/web', 2);
    await h.until('gone from the API', () => inApi(h, 'web') === undefined);
    expect(patches(h, 'web')).toHaveLength(3);
    expect(patches(h, 'web')[2]).toMatchObject({ containerStatuses: [{ name: 'main', state: { terminated: {} } }] });
  });

  it('is written after five seconds when nothing follows', async () => {
    await using h = await cluster({
      before: ({ faults }) => Object.assign(faults.latencyMs, { CreateContainer: 60_000, StopPodSandbox: 60_000 }),
    });
    create(h, 'slow');
    await h.until('its first word', () => patches(h, 'slow').length === 1);
    await h.advance(4_000);
    expect(hasSandbox(h, 'slow')).toBe(false);
    await h.advance(2_000);
    expect(hasSandbox(h, 'slow')).toBe(true);
    await h.until('Ready in the API', () => isReady(h, 'slow'), 120_000);
    const before = patches(h, 'slow').length;
    drop(h, 'pods/slow', 2);
    await h.advance(4_000);
    expect(patches(h, 'slow')).toHaveLength(before);
    await h.advance(6_000);
    // Its sandbox is not down yet, and the pod is there.
    expect(patches(h, 'slow')).toHaveLength(before + 1);
    expect(patches(h, 'slow')[before]).toMatchObject({ observedGeneration: 2 });
    await h.until('gone from the API', () => inApi(h, 'slow') === undefined, 120_000);
  });
});

describe('a change of readiness', () => {
  it('of a pod that is being deleted reaches the API as soon as that of any other', async () => {
    let code = 0;
    await using h = await cluster({ hollow: { exec: () => ({ exitCode: code }) } });
    create(h, 'web', {
      life: 'term=30s',
      container: { readinessProbe: { exec: { command: ['check'] }, periodSeconds: 1, failureThreshold: 1 } },
      spec: { terminationGracePeriodSeconds: 40 },
    });
    await h.until('Ready in the API', () => isReady(h, 'web'));
    drop(h, 'pods/web', 40);
    await h.advance(3_000);
    for (const ready of [false, true, false]) {
      code = ready ? 0 : 1;
      await h.advance(1_500);
      expect(isReady(h, 'web')).toBe(ready);
    }
    expect(inApi(h, 'web')?.status.containerStatuses).toMatchObject([{ state: { running: {} } }]);
  });
});

describe('events', () => {
  it('wait while more pods start than the runtime is given at once, and are all written then', async () => {
    await using h = await cluster({ before: ({ faults }) => Object.assign(faults.latencyMs, { RunPodSandbox: 400, StartContainer: 400 }) });
    await h.until('the node says that it started', () => eventsSent(h) > 0);
    await h.advance(5_000);
    const before = eventsSent(h);
    const names = Array.from({ length: 30 }, (_, i) => `p${i}`);
    for (const name of names) create(h, name);
    await h.until('half of them to be Ready', () => names.filter((name) => isReady(h, name)).length >= 15);
    const during = eventsSent(h) - before;
    await h.until('all of them to be Ready', () => names.every((name) => isReady(h, name)));
    await h.until('their events', () => eventsSent(h) - before >= 3 * names.length);
    expect(during).toBeLessThan(10);
  });
});
