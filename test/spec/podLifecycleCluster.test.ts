/** Traps of the pod lifecycle about what the API server is told, and when, in virtual time against the simulated one. */
import { describe, expect } from 'vitest';
import type { Pod, PodStatus } from '../../src/machines/kube/types.ts';
import { cluster, create, createReady, drop, inApi, isReady, NS } from '../integration/cluster/clusterPods.ts';
import { itOnCluster as it } from '../integration/onNode.ts';
import { pod as manifest, type VirtualNode } from '../integration/virtualNode.ts';

const running = (h: VirtualNode, name: string) => h.running().filter((c) => c.labels['io.kubernetes.pod.name'] === name);
/** Requests that change the pod, from the daemon, in order. */
const writes = (h: VirtualNode, name: string) =>
  h.kube.calls.filter((c) => c.request.verb !== 'GET' && c.request.path.startsWith(`${NS}/pods/${name}`) && c.code !== undefined);
const statusIn = (body: unknown): PodStatus => (body as { status?: PodStatus } | undefined)?.status ?? {};

describe('a pod that is deleted', () => {
  it('trap 8: before the daemon began is an ADD to it: ended, and never started', async () => {
    let made: Pod | undefined;
    await using h = await cluster({
      before: (v) => {
        made = create(v, 'web', { spec: { terminationGracePeriodSeconds: 30 } });
        drop(v, 'pods/web', 30);
      },
    });
    expect(made?.metadata.uid).toBeDefined();
    await h.until('gone from the API', () => inApi(h, 'web') === undefined, 120_000);
    await h.advance(60_000);
    expect(h.calls.filter((c) => c.method === 'RunPodSandbox' || c.method === 'CreateContainer')).toEqual([]);
    expect(h.pods()).toEqual([]);
  });

  it('trap 28: is shown as ended before it is deleted for good, by its UID, and one of its name that came after is left alone', async ({
    h,
  }) => {
    const { uid } = create(h, 'web').metadata;
    await h.until('Ready', () => isReady(h, 'web'));
    const from = h.kube.calls.length;
    drop(h, 'pods/web', 5);
    await h.until('gone from the API', () => inApi(h, 'web') === undefined);
    const own = writes(h, 'web').filter((c) => h.kube.calls.indexOf(c) >= from);
    const deletion = own.findIndex((c) => c.request.verb === 'DELETE');
    expect(own[deletion]?.request.body).toMatchObject({ gracePeriodSeconds: 0, preconditions: { uid } });
    const ended = own.findIndex((c) => ['Succeeded', 'Failed'].includes(statusIn(c.request.body).phase ?? ''));
    expect(ended).toBeGreaterThanOrEqual(0);
    expect(ended).toBeLessThan(deletion);
    const second = create(h, 'web').metadata.uid;
    await h.until('the second is Ready', () => isReady(h, 'web'));
    await h.advance(60_000);
    expect(inApi(h, 'web')?.metadata.uid).toBe(second);
    expect(running(h, 'web')).toHaveLength(1);
  });

  it('trap 29: goes from the API although the runtime removes nothing of it', async ({ h }) => {
    await createReady(h, 'web');
    h.faults.fault = (method) =>
      method === 'RemoveContainer' || method === 'RemovePodSandbox' ? { kind: 'refuse', code: 13, details: 'it stays' } : undefined;
    drop(h, 'pods/web', 2);
    await h.until('gone from the API', () => inApi(h, 'web') === undefined, 120_000);
    expect(h.runtime.dump().sandboxes).toHaveLength(1);
    h.faults.fault = () => undefined;
    await h.until('and from the runtime, once it can', () => h.runtime.dump().sandboxes.length === 0, 180_000);
  });

  it('trap 30: with less grace than before goes sooner; with more, no later', async ({ h }) => {
    await createReady(h, 'web', { life: 'run=forever,term=ignore', spec: { terminationGracePeriodSeconds: 300 } });
    drop(h, 'pods/web', 300);
    await h.advance(10_000);
    expect(running(h, 'web')).toHaveLength(1);
    const beganMs = h.time.clock.monoMs();
    drop(h, 'pods/web', 1);
    await h.advance(200);
    drop(h, 'pods/web', 600);
    await h.until('it has ended', () => running(h, 'web').length === 0, 30_000);
    expect(h.time.clock.monoMs() - beganMs).toBeLessThan(4_000);
    await h.until('gone from the API', () => inApi(h, 'web') === undefined);
  });
});

describe('an end that the node decides', () => {
  it('trap 27: is shown only when nothing runs any more', async ({ h }) => {
    await createReady(h, 'job', {
      life: 'run=forever,term=ignore',
      spec: { activeDeadlineSeconds: 30, terminationGracePeriodSeconds: 40 },
    });
    let early: string | undefined;
    const look = () => {
      const phase = inApi(h, 'job')?.status.phase;
      if (running(h, 'job').length > 0 && phase !== 'Running' && phase !== 'Pending') early ??= phase;
    };
    h.kube.onRequest = look;
    await h.until('it is being stopped', () => h.pods()[0] !== undefined && h.calls.some((c) => c.method === 'StopContainer'), 60_000);
    await h.advance(10_000);
    look();
    expect(running(h, 'job')).toHaveLength(1);
    expect(inApi(h, 'job')?.status.phase).toBe('Running');
    await h.until('Failed', () => inApi(h, 'job')?.status.phase === 'Failed', 120_000);
    expect(inApi(h, 'job')?.status.reason).toBe('DeadlineExceeded');
    expect(running(h, 'job')).toEqual([]);
    expect(early).toBeUndefined();
  });
});

describe('a static pod', () => {
  it('trap 53: has no status written while nothing mirrors it, and then to the UID of the mirror', async () => {
    await using h = await cluster({
      manifests: { web: manifest('web') },
      before: (v) => {
        v.kube.trouble.verdict = (r) =>
          r.verb === 'POST' && r.path === `${NS}/pods` ? { delayMs: 0, refuse: { status: 403 } } : { delayMs: 0 };
      },
    });
    await h.until('it runs', () => h.phase('web') === 'Running');
    await h.advance(120_000);
    expect(inApi(h, 'web-n1')).toBeUndefined();
    expect(h.kube.calls.filter((c) => c.request.verb === 'PATCH' && c.request.path.includes('/pods/'))).toEqual([]);
    h.kube.trouble.verdict = () => ({ delayMs: 0 });
    await h.until('it is mirrored', () => isReady(h, 'web-n1'), 900_000);
    const mirror = inApi(h, 'web-n1');
    expect(mirror?.metadata.uid).not.toBe(h.uid('web'));
    const patches = h.kube.calls.filter((c) => c.request.verb === 'PATCH' && c.request.path.includes('/pods/web-n1'));
    expect(patches.length).toBeGreaterThan(0);
    for (const p of patches) expect(p.request.body).toMatchObject({ metadata: { uid: mirror?.metadata.uid } });
  });
});

describe('a listing that hangs', () => {
  it('trap 11: for three minutes makes the node NotReady, and Ready again when it is answered', async ({ h }) => {
    await createReady(h, 'web');
    const ready = () => {
      const got = h.kube.handle({ verb: 'GET', path: '/api/v1/nodes/n1' });
      if (!got.ok) throw new Error(got.failure.message);
      const { status } = got.body as { status: { conditions: { type: string; status: string; message: string }[] } };
      return status.conditions.find((c) => c.type === 'Ready');
    };
    expect(ready()?.status).toBe('True');
    h.faults.fault = (method) =>
      method === 'ListContainers' || method === 'ListPodSandbox' ? { kind: 'timeout', effect: false, afterMs: 120_000 } : undefined;
    await h.until('NotReady', () => ready()?.status === 'False', 900_000);
    expect(ready()?.message).toMatch(/^PLEG is not healthy: pleg was last seen active .* ago; threshold is 3m0s$/);
    // What runs is not touched for want of a listing.
    expect(running(h, 'web')).toHaveLength(1);
    h.faults.fault = () => undefined;
    await h.until('Ready again', () => ready()?.status === 'True', 300_000);
  });
});

describe('a refused pod', () => {
  it('trap 55: has no worker, no sandbox and no probe, and goes when it is deleted', async ({ h }) => {
    const probe = { httpGet: { port: 80 }, periodSeconds: 1 };
    create(h, 'big', { container: { resources: { requests: { cpu: '400' } }, readinessProbe: probe } });
    await h.until('Failed', () => inApi(h, 'big')?.status.phase === 'Failed');
    expect(inApi(h, 'big')?.status.reason).toBe('OutOfcpu');
    await h.advance(30_000);
    expect(h.probes.asked).toEqual([]);
    expect(h.calls.filter((c) => c.method === 'RunPodSandbox')).toEqual([]);
    expect(h.tree.actorAt(`node/pods/workers/${inApi(h, 'big')?.metadata.uid}`)).toBeNull();
    drop(h, 'pods/big', 30);
    await h.until('gone from the API', () => inApi(h, 'big') === undefined, 60_000);
    await h.until('forgotten by the node', () => h.pods().length === 0);
  });
});

describe('a container whose end nobody saw', () => {
  it('trap 25: was removed while the daemon was away: it ended with 137, which is a restart, and its pod was Running all the time', async ({
    h,
  }) => {
    await createReady(h, 'web');
    const [first] = running(h, 'web');
    await h.crash();
    const o = { timeoutMs: null, signal: new AbortController().signal };
    await h.runtime.call('RemoveContainer', { containerId: first?.id ?? '' }, o);
    const phases = new Set<string | undefined>();
    const from = h.kube.calls.length;
    h.kube.onRequest = () => void phases.add(inApi(h, 'web')?.status.phase);
    // Long enough for its end to be seen without its successor.
    h.faults.latencyMs.CreateContainer = 20_000;
    await h.boot();
    await h.until('its end is told', () =>
      h.kube.calls.slice(from).some((c) => JSON.stringify(c.request.body)?.includes('ContainerStatusUnknown')),
    );
    expect(inApi(h, 'web')?.status.containerStatuses?.[0]).toMatchObject({
      restartCount: 1,
      lastState: { terminated: { exitCode: 137, reason: 'ContainerStatusUnknown' } },
    });
    await h.until('Ready again', () => isReady(h, 'web'), 120_000);
    expect(running(h, 'web')).toHaveLength(1);
    expect(running(h, 'web')[0]?.attempt).toBe(1);
    expect([...phases]).toEqual(['Running']);
  });
});
