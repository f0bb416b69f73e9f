/** A whole node that belongs to a cluster, in virtual time, against the simulated API server. */
import { describe, expect } from 'vitest';
import { apiView } from '../../src/machines/api/messages.ts';
import type { Pod } from '../../src/machines/kube/types.ts';
import { podsView } from '../../src/machines/pods/manager/messages.ts';
import { cluster, create, createReady, drop, inApi, isReady } from './cluster/clusterPods.ts';
import { itOnCluster as it } from './onNode.ts';
import { pod as manifest, type VirtualNode } from './virtualNode.ts';

const PODS = '/api/v1/namespaces/default/pods';

const condition = (pod: Pod | undefined, type: string) => pod?.status.conditions?.find((c) => c.type === type);
/** Requests that this node made about that pod since `from`. */
const requests = (h: VirtualNode, name: string, from = 0) =>
  h.kube.calls
    .slice(from)
    .filter((c) => c.request.path.includes(`/pods/${name}`))
    .map((c) => `${c.request.verb} ${c.code ?? 0}`);
const sandboxes = (h: VirtualNode, uid: string) => h.runtime.dump().sandboxes.filter((s) => s.uid === uid && s.ready);
const running = (h: VirtualNode, name: string) => h.running().filter((c) => c.labels['io.kubernetes.pod.name'] === name);

describe('a pod of the API', () => {
  it('runs, is Ready in the API with at most three requests, and is gone after its deletion', async ({ h }) => {
    await createReady(h, 'web');
    const pod = inApi(h, 'web');
    expect(pod?.status).toMatchObject({ phase: 'Running', hostIP: '192.0.2.1', qosClass: 'BestEffort' });
    expect(pod?.status.containerStatuses?.[0]).toMatchObject({ name: 'main', ready: true, restartCount: 0 });
    expect(condition(pod, 'PodScheduled')?.status).toBe('True');
    expect(requests(h, 'web').length).toBeLessThanOrEqual(3);
    const from = h.kube.calls.length;
    await h.advance(120_000);
    expect(requests(h, 'web', from)).toEqual([]);
    drop(h, 'pods/web', 2);
    await h.until('gone from the API', () => inApi(h, 'web') === undefined);
    expect(running(h, 'web')).toEqual([]);
    // The terminal phase is seen by the API first, then the object goes, with its UID as precondition.
    const last = h.kube.calls.filter((c) => c.request.path.includes('/pods/web')).at(-1);
    expect(last?.request).toMatchObject({ verb: 'DELETE', body: { gracePeriodSeconds: 0, preconditions: { uid: pod?.metadata.uid } } });
    await h.until('forgotten by the node', () => h.pods().length === 0);
    expect(h.violations).toEqual([]);
  });

  it('that ends by itself is Succeeded, stays, and a later deletion is none of our business', async ({ h }) => {
    create(h, 'job', { life: 'run=1s,exit=0', spec: { restartPolicy: 'Never' } });
    await h.until('Succeeded', () => inApi(h, 'job')?.status.phase === 'Succeeded');
    expect(condition(inApi(h, 'job'), 'Ready')).toMatchObject({ status: 'False', reason: 'PodCompleted' });
    drop(h, 'pods/job');
    expect(inApi(h, 'job')).toBeUndefined();
    await h.until('forgotten by the node', () => h.pods().length === 0);
  });

  it('that this node cannot honour fails with the reason, starts nothing, and can be deleted', async ({ h }) => {
    create(h, 'odd', { spec: { volumes: [{ name: 'v', cephfs: { monitors: ['m'] } }] } });
    await h.until('Failed', () => inApi(h, 'odd')?.status.phase === 'Failed');
    expect(inApi(h, 'odd')?.status).toMatchObject({ reason: 'UnsupportedField' });
    expect(h.runtime.dump().sandboxes).toEqual([]);
    drop(h, 'pods/odd');
    await h.until('forgotten by the node', () => h.pods().length === 0);
  });

  it('recreated under the same name is another pod: no status and no deletion reaches the wrong UID', async ({ h }) => {
    const first = await createReady(h, 'web', { life: 'term=ignore' });
    // Forced: the API forgets it at once, while its containers are still stopping.
    drop(h, 'pods/web', 0);
    const second = create(h, 'web');
    await h.until('the second is Ready', () => isReady(h, 'web'), 120_000);
    expect(inApi(h, 'web')?.metadata.uid).toBe(second.metadata.uid);
    await h.advance(60_000);
    expect(inApi(h, 'web')?.metadata.uid).toBe(second.metadata.uid);
    expect(sandboxes(h, first.metadata.uid)).toEqual([]);
    for (const c of h.kube.calls) {
      if (!c.request.path.includes('/pods/web') || c.request.verb === 'GET') continue;
      expect(JSON.stringify(c.request.body)).toMatch(/"uid":"[0-9a-f-]+"/);
    }
    expect(h.violations).toEqual([]);
  });

  it('deleted while it starts never runs after its end', async ({ h }) => {
    h.faults.latencyMs.RunPodSandbox = 3_000;
    create(h, 'web');
    await h.advance(1_000);
    drop(h, 'pods/web', 1);
    await h.until('gone from the API', () => inApi(h, 'web') === undefined, 120_000);
    expect(running(h, 'web')).toEqual([]);
  });
});

describe('what the scheduler has honoured', () => {
  it('is no reason to refuse a pod that it placed here', async ({ h }) => {
    create(h, 'placed', {
      spec: {
        affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'zone' }] } },
        topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }],
      },
    });
    await h.until('Ready', () => isReady(h, 'placed'));
  });

  it('a readiness gate holds Ready back until somebody says True', async ({ h }) => {
    create(h, 'gated', { spec: { readinessGates: [{ conditionType: 'example.com/gate' }] } });
    await h.until('containers are ready', () => condition(inApi(h, 'gated'), 'ContainersReady')?.status === 'True');
    expect(condition(inApi(h, 'gated'), 'Ready')).toMatchObject({ status: 'False', reason: 'ReadinessGatesNotReady' });
    const say = (status: string) =>
      h.kube.handle({
        verb: 'PATCH',
        path: `${PODS}/gated/status`,
        patchType: 'strategic',
        body: { status: { conditions: [{ type: 'example.com/gate', status }] } },
      });
    say('True');
    await h.until('Ready', () => isReady(h, 'gated'), 5_000);
    say('False');
    await h.until('not Ready', () => !isReady(h, 'gated'), 5_000);
    expect(condition(inApi(h, 'gated'), 'example.com/gate')?.status).toBe('False');
  });
});

describe('a node of a cluster that is killed', () => {
  it('finds its pods again: no container restarts, no condition changes, nothing is written', async ({ h }) => {
    for (const name of ['a', 'b', 'c']) create(h, name);
    await h.until('all Ready', () => ['a', 'b', 'c'].every((n) => isReady(h, n)));
    await h.advance(30_000);
    const before = ['a', 'b', 'c'].map((n) => inApi(h, n));
    const ids = h.running().map((c) => c.id);
    await h.crash();
    await h.advance(20_000);
    await h.boot();
    const from = h.kube.calls.length;
    await h.advance(120_000);
    expect(h.running().map((c) => c.id)).toEqual(ids);
    expect(['a', 'b', 'c'].map((n) => inApi(h, n))).toEqual(before);
    expect(['a', 'b', 'c'].flatMap((n) => requests(h, n, from))).toEqual([]);
  });

  it('ends a pod that was deleted meanwhile, and runs one that came', async ({ h }) => {
    await createReady(h, 'old');
    await h.crash();
    drop(h, 'pods/old', 1);
    create(h, 'new');
    await h.advance(5_000);
    await h.boot();
    await h.until('gone and come', () => inApi(h, 'old') === undefined && isReady(h, 'new'), 120_000);
    expect(running(h, 'old')).toEqual([]);
  });

  it('in the middle of deletions leaves nothing behind', async ({ h }) => {
    const names = Array.from({ length: 8 }, (_, i) => `p${i}`);
    for (const name of names) create(h, name);
    await h.until('all Ready', () => names.every((n) => isReady(h, n)));
    for (const name of names) drop(h, `pods/${name}`, 1);
    await h.advance(300);
    await h.restart();
    await h.until('all gone', () => names.every((n) => inApi(h, n) === undefined), 120_000);
    expect(h.running()).toEqual([]);
  });
});

describe('an API server that misbehaves', () => {
  const linkState = (h: VirtualNode) => h.tree.registry.read(apiView.link)?.value.state;

  it('away for minutes: pods run on, what happened meanwhile is said afterwards', async ({ h }) => {
    create(h, 'stays');
    create(h, 'ends', { life: 'run=60s,exit=0', spec: { restartPolicy: 'Never' } });
    await h.until('both run', () => isReady(h, 'stays') && isReady(h, 'ends'));
    const ids = running(h, 'stays').map((c) => c.id);
    h.kube.trouble.down = true;
    h.kube.cutWatches('truncate');
    await h.until('noticed', () => linkState(h) === 'lost', 120_000);
    await h.advance(300_000);
    expect(running(h, 'stays').map((c) => c.id)).toEqual(ids);
    create(h, 'later');
    h.kube.trouble.down = false;
    await h.until('found again', () => linkState(h) === 'reachable');
    await h.until('the end is told', () => inApi(h, 'ends')?.status.phase === 'Succeeded', 30_000);
    await h.until('what came meanwhile runs', () => isReady(h, 'later'), 30_000);
    expect(running(h, 'stays').map((c) => c.id)).toEqual(ids);
  });

  it('away at boot: nothing that runs is stopped for want of a list', async ({ h }) => {
    await createReady(h, 'web');
    const ids = h.running().map((c) => c.id);
    await h.crash();
    h.kube.trouble.partitioned = true;
    await h.boot();
    await h.advance(600_000);
    expect(h.running().map((c) => c.id)).toEqual(ids);
    h.kube.heal();
    await h.until('the pod is known again', () => h.pods().length === 1, 120_000);
    await h.advance(60_000);
    expect(h.running().map((c) => c.id)).toEqual(ids);
  });

  it('with its history compacted lists again and misses nothing', async ({ h }) => {
    create(h, 'a');
    create(h, 'gone');
    await h.until('Ready', () => isReady(h, 'a') && isReady(h, 'gone'));
    h.kube.trouble.down = true;
    h.kube.cutWatches('close');
    await h.advance(5_000);
    drop(h, 'pods/gone', 0);
    create(h, 'b');
    h.kube.store.compact();
    h.kube.trouble.down = false;
    await h.until('b runs', () => isReady(h, 'b'), 120_000);
    await h.until('gone is gone', () => running(h, 'gone').length === 0, 120_000);
  });

  it('with a watch that says nothing any more is asked again', async ({ h }) => {
    await createReady(h, 'a');
    h.kube.silenceWatches();
    create(h, 'b');
    await h.until('b runs all the same', () => isReady(h, 'b'), 120_000);
  });

  it.each([
    ['409', { delayMs: 0, refuse: { status: 409 } }],
    ['429', { delayMs: 0, refuse: { status: 429, retryAfterMs: 3_000 } }],
    ['500', { delayMs: 0, refuse: { status: 500 } }],
    ['no answer, without effect', { delayMs: 0, lost: 'without-effect' }],
    ['no answer, with effect', { delayMs: 0, lost: 'with-effect' }],
  ] as const)('answering writes with %s for a while delays the status and loses nothing', async (_, verdict) => {
    await using h = await cluster();
    let left = 4;
    h.kube.trouble.verdict = (r) => (r.verb !== 'GET' && r.path.includes('/pods/') && left-- > 0 ? verdict : { delayMs: 0 });
    create(h, 'web');
    await h.until('Ready', () => isReady(h, 'web'), 600_000);
    left = 3;
    drop(h, 'pods/web', 1);
    await h.until('gone', () => inApi(h, 'web') === undefined, 600_000);
    await h.until('forgotten by the node', () => h.pods().length === 0);
    expect(h.violations).toEqual([]);
  });
});

describe('somebody else who writes', () => {
  it('keeps conditions that are not ours, and ours are put right', async ({ h }) => {
    await createReady(h, 'web');
    const write = (status: object) =>
      h.kube.handle({ verb: 'PATCH', path: `${PODS}/web/status`, patchType: 'strategic', body: { status } });
    write({ conditions: [{ type: 'example.com/gate', status: 'True' }] });
    const from = h.kube.calls.length;
    await h.advance(60_000);
    expect(requests(h, 'web', from)).toEqual([]);
    write({ phase: 'Pending', conditions: [{ type: 'Ready', status: 'False', reason: 'Meddling' }] });
    await h.until('put right', () => isReady(h, 'web') && inApi(h, 'web')?.status.phase === 'Running');
    expect(condition(inApi(h, 'web'), 'example.com/gate')?.status).toBe('True');
  });
});

const NODE = '/api/v1/nodes/n1';
const LEASE = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1';
type Obj = {
  metadata: Record<string, unknown>;
  spec: Record<string, unknown>;
  status: Record<string, unknown> & { conditions?: Record<string, string>[] };
};
function object(h: VirtualNode, path: string): Obj | undefined {
  const got = h.kube.handle({ verb: 'GET', path });
  return got.ok ? (got.body as Obj) : undefined;
}
const nodeReady = (h: VirtualNode) => object(h, NODE)?.status?.conditions?.find((c) => c.type === 'Ready');

describe('the node object', () => {
  it('is registered with labels, addresses, capacity and every condition, and is Ready at once', async () => {
    await using h = await cluster({
      flags: { nodeLabels: { tier: 'edge' } },
      config: { registerWithTaints: [{ key: 'a', value: 'b', effect: 'NoSchedule' }] },
    });
    await h.until('Ready', () => nodeReady(h)?.status === 'True', 5_000);
    const node = object(h, NODE);
    expect(node?.metadata.labels).toMatchObject({ 'kubernetes.io/hostname': 'n1', 'kubernetes.io/os': 'linux', tier: 'edge' });
    expect(node?.spec.taints).toEqual([{ key: 'a', value: 'b', effect: 'NoSchedule' }]);
    expect(node?.status).toMatchObject({
      addresses: [
        { type: 'InternalIP', address: '192.0.2.1' },
        { type: 'Hostname', address: 'n1' },
      ],
      capacity: { cpu: '4', pods: '110' },
    });
    expect(node?.status.conditions?.map((c) => `${c.type}=${c.status} ${c.reason}`)).toEqual([
      'MemoryPressure=False KubeletHasSufficientMemory',
      'DiskPressure=False KubeletHasNoDiskPressure',
      'PIDPressure=False KubeletHasSufficientPID',
      'Ready=True KubeletReady',
    ]);
  });

  it('that exists already keeps what others wrote, and gets its own labels back', async () => {
    await using h = await cluster({
      before: (v) =>
        void v.kube.handle({
          verb: 'POST',
          path: '/api/v1/nodes',
          body: { metadata: { name: 'n1', labels: { 'kubernetes.io/hostname': 'other', mine: 'x' } }, spec: { unschedulable: true } },
        }),
      flags: { nodeLabels: { tier: 'edge' } },
    });
    await h.until('Ready', () => nodeReady(h)?.status === 'True');
    const node = object(h, NODE);
    expect(node?.metadata.labels).toMatchObject({ 'kubernetes.io/hostname': 'n1', mine: 'x' });
    expect(node?.metadata.labels).not.toHaveProperty('tier');
    expect(node?.spec.unschedulable).toBe(true);
  });

  it('is written every five minutes when nothing changes, and at once when the runtime is lost', async ({ h }) => {
    await h.until('Ready', () => nodeReady(h)?.status === 'True');
    await h.advance(60_000);
    const from = h.kube.calls.length;
    await h.advance(600_000);
    const patches = h.kube.calls.slice(from).filter((c) => c.request.verb === 'PATCH' && c.request.path.startsWith(NODE));
    expect(patches.length).toBeGreaterThanOrEqual(1);
    expect(patches.length).toBeLessThanOrEqual(3);
    h.faults.away = true;
    await h.until('NotReady', () => nodeReady(h)?.status === 'False', 60_000);
    expect(nodeReady(h)).toMatchObject({ reason: 'KubeletNotReady', message: expect.stringContaining('container runtime is down') });
    h.faults.away = false;
    await h.until('Ready again', () => nodeReady(h)?.status === 'True', 60_000);
  });

  it('that the cluster gave up on is said to be Ready again', async ({ h }) => {
    await h.until('Ready', () => nodeReady(h)?.status === 'True');
    const conditions = [{ type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown', message: 'Kubelet stopped posting node status.' }];
    h.kube.handle({ verb: 'PATCH', path: `${NODE}/status`, patchType: 'strategic', body: { status: { conditions } } });
    await h.until('Ready again', () => nodeReady(h)?.status === 'True', 15_000);
  });

  it('cannot be made while the API server is away: it is made when it comes', async () => {
    await using h = await cluster({
      before: (v) => {
        v.kube.trouble.down = true;
      },
    });
    await h.advance(120_000);
    expect(h.actor('node/api')?.lifecycle).toBe('running');
    h.kube.trouble.down = false;
    await h.until('Ready', () => nodeReady(h)?.status === 'True', 15_000);
  });
});

describe('the lease', () => {
  const renewedAt = (h: VirtualNode) => Date.parse(String(object(h, LEASE)?.spec.renewTime));

  it('is made with the node as its owner, and renewed every ten seconds without being read', async ({ h }) => {
    await h.until('the lease is there', () => object(h, LEASE) !== undefined);
    const lease = object(h, LEASE);
    expect(lease?.spec).toMatchObject({ holderIdentity: 'n1', leaseDurationSeconds: 40 });
    expect(lease?.metadata.ownerReferences).toEqual([{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: object(h, NODE)?.metadata.uid }]);
    await h.advance(20_000);
    const from = h.kube.calls.length;
    await h.advance(100_000);
    const verbs = h.kube.calls
      .slice(from)
      .filter((c) => c.request.path === LEASE)
      .map((c) => c.request.verb);
    expect(new Set(verbs)).toEqual(new Set(['PUT']));
    expect(verbs.length).toBeGreaterThanOrEqual(9);
    expect(h.time.clock.wallMs() - renewedAt(h)).toBeLessThan(11_000);
  });

  it('written by somebody else is read again and held', async ({ h }) => {
    await h.until('the lease is there', () => object(h, LEASE) !== undefined);
    h.kube.handle({ verb: 'PATCH', path: LEASE, patchType: 'merge', body: { metadata: { labels: { a: 'b' } } } });
    await h.advance(30_000);
    expect(h.time.clock.wallMs() - renewedAt(h)).toBeLessThan(11_000);
    expect(object(h, LEASE)?.metadata.labels).toEqual({ a: 'b' });
  });

  it('is renewed within two seconds of a new start, and of the return of the API server', async ({ h }) => {
    await h.until('the lease is there', () => object(h, LEASE) !== undefined);
    await h.crash();
    await h.advance(30_000);
    const began = h.time.clock.wallMs();
    await h.boot();
    await h.until('renewed', () => renewedAt(h) >= began, 2_000);
    h.kube.trouble.down = true;
    await h.advance(180_000);
    h.kube.trouble.down = false;
    const found = h.time.clock.wallMs();
    await h.until('renewed', () => renewedAt(h) >= found, 15_000);
  });
});

describe('a mirror pod', () => {
  it('shows a static pod and its status, and goes with it', async () => {
    await using h = await cluster({ manifests: { web: manifest('web') } });
    await h.until('Ready in the API', () => isReady(h, 'web-n1'));
    const mirror = inApi(h, 'web-n1');
    expect(mirror?.metadata.annotations?.['kubernetes.io/config.mirror']).toBe(mirror?.metadata.annotations?.['kubernetes.io/config.hash']);
    expect(mirror?.metadata.ownerReferences).toEqual([
      { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: object(h, NODE)?.metadata.uid, controller: true },
    ]);
    expect(mirror?.metadata.uid).not.toBe(h.uid('web'));
    expect(h.pods().map((p) => p.metadata.name)).toEqual(['web-n1']);
    h.remove('web');
    await h.until('gone from the API', () => inApi(h, 'web-n1') === undefined, 120_000);
    expect(h.running()).toEqual([]);
  });

  it('that a user deletes comes back, and no container notices', async () => {
    await using h = await cluster({ manifests: { web: manifest('web') } });
    await h.until('Ready in the API', () => isReady(h, 'web-n1'));
    const [ids, uid] = [h.running().map((c) => c.id), inApi(h, 'web-n1')?.metadata.uid];
    drop(h, 'pods/web-n1');
    await h.until('another mirror', () => inApi(h, 'web-n1')?.metadata.uid !== uid && isReady(h, 'web-n1'));
    drop(h, 'pods/web-n1', 0);
    await h.until('yet another mirror', () => isReady(h, 'web-n1'));
    expect(h.running().map((c) => c.id)).toEqual(ids);
  });

  it('of another definition is replaced when the manifest was edited', async () => {
    await using h = await cluster({ manifests: { web: manifest('web') } });
    await h.until('Ready in the API', () => isReady(h, 'web-n1'));
    const uid = inApi(h, 'web-n1')?.metadata.uid;
    h.write('web', manifest('web', { container: { image: 'busybox:2' } }));
    await h.until(
      'the new one is shown',
      () => inApi(h, 'web-n1')?.spec.containers[0]?.image === 'busybox:2' && isReady(h, 'web-n1'),
      120_000,
    );
    expect(inApi(h, 'web-n1')?.metadata.uid).not.toBe(uid);
  });

  // Found by seed 71039: it stayed in the API for as long as the static pod ran.
  it('gives way to a pod of its name that waits behind the static one, and that one can be deleted', async () => {
    await using h = await cluster({ manifests: { web: manifest('web') } });
    await h.until('the mirror is there', () => inApi(h, 'web-n1') !== undefined && running(h, 'web-n1').length === 1);
    const [container] = running(h, 'web-n1').map((c) => c.id);
    drop(h, 'pods/web-n1', 0);
    const { uid } = create(h, 'web-n1').metadata;
    const waits = () => h.tree.registry.read(podsView)?.value.records.get(uid)?.worker?.reason === 'WaitingForPredecessor';
    await h.until('it waits', waits);
    await h.advance(30_000);
    expect(sandboxes(h, uid)).toEqual([]);
    drop(h, 'pods/web-n1', 2);
    await h.until(
      'its object is gone, and the mirror is back',
      () => inApi(h, 'web-n1') !== undefined && inApi(h, 'web-n1')?.metadata.uid !== uid,
    );
    expect(running(h, 'web-n1').map((c) => c.id)).toEqual([container]);
    expect(h.runtime.dump().sandboxes.filter((s) => s.uid === uid)).toEqual([]);
    expect(h.violations).toEqual([]);
  });

  it('whose manifest went while the daemon was down is deleted', async () => {
    await using h = await cluster({ manifests: { web: manifest('web'), stays: manifest('stays') } });
    await h.until('Ready in the API', () => isReady(h, 'web-n1') && isReady(h, 'stays-n1'));
    const uid = inApi(h, 'stays-n1')?.metadata.uid;
    await h.crash();
    h.remove('web');
    await h.boot();
    await h.until('gone from the API', () => inApi(h, 'web-n1') === undefined, 120_000);
    expect(inApi(h, 'stays-n1')?.metadata.uid).toBe(uid);
  });

  it('waits for the API server while its pod does not', async () => {
    await using h = await cluster({
      manifests: { web: manifest('web') },
      before: (v) => {
        v.kube.trouble.down = true;
      },
    });
    await h.until('it runs', () => h.running('web').length === 1);
    await h.advance(60_000);
    h.kube.trouble.down = false;
    await h.until('shown in the API', () => isReady(h, 'web-n1'), 60_000);
  });
});

describe('events', () => {
  type Event = { reason: string; message: string; count: number; involvedObject: Record<string, string>; metadata: { namespace: string } };
  const events = (h: VirtualNode) => h.kube.store.list('events') as unknown as Event[];

  it('of a pod reach the API with its UID, and repeats are counted into one', async ({ h }) => {
    const pod = create(h, 'crash', { life: 'run=1s,exit=1' });
    await h.until('a repeat', () => events(h).some((e) => e.reason === 'BackOff' && e.count >= 2), 600_000);
    const started = events(h).find((e) => e.reason === 'Started');
    expect(started?.involvedObject).toMatchObject({
      kind: 'Pod',
      name: 'crash',
      uid: pod.metadata.uid,
      fieldPath: 'spec.containers{main}',
    });
    expect(events(h).filter((e) => e.reason === 'BackOff')).toHaveLength(1);
  });

  it('that the API server does not take for a while arrive later', async ({ h }) => {
    h.kube.trouble.verdict = (r) => (r.path.includes('/events') ? { delayMs: 0, refuse: { status: 500 } } : { delayMs: 0 });
    await createReady(h, 'web');
    await h.advance(20_000);
    expect(events(h).filter((e) => e.reason !== 'Starting')).toEqual([]);
    h.kube.trouble.verdict = () => ({ delayMs: 0 });
    await h.until('told', () => ['Created', 'Started'].every((r) => events(h).some((e) => e.reason === r)), 60_000);
  });

  it('about the node are in namespace default and name it by its name', async ({ h }) => {
    await h.until('Ready', () => nodeReady(h)?.status === 'True');
    h.faults.away = true;
    await h.until('told', () => events(h).some((e) => e.reason === 'NodeNotReady'), 60_000);
    const event = events(h).find((e) => e.reason === 'NodeNotReady');
    expect(event).toMatchObject({ metadata: { namespace: 'default' }, involvedObject: { kind: 'Node', name: 'n1', uid: 'n1' } });
    expect(event?.message).toBe('Node n1 status is now: NodeNotReady');
  });
});
