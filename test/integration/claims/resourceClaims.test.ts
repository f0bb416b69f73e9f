/** Dynamic resources: a whole node in virtual time, with drivers beside it. */
import { decisionsFrame } from '@actorlet/inspect/src/feed/decisions.ts';
import { momentOf } from '@actorlet/inspect/src/feed/live.ts';
import { describe, expect } from 'vitest';
import { INSPECT, inspectedOf } from '../../../packages/inspect/test/rig.ts';
import { claimHealthView } from '../../../src/machines/allocation/claims/messages.ts';
import { HEALTH_MAX } from '../../../src/machines/allocation/claims/types.ts';
import { podsView } from '../../../src/machines/pods/manager/messages.ts';
import { created, drop, events, inApi, isReady, NS } from '../cluster/clusterPods.ts';
import { itWith } from '../onNode.ts';
import { whyOf } from '../told.ts';
import { ROOT, type VirtualNode } from '../virtualNode.ts';
import {
  bind,
  CLAIMS,
  chart,
  claim,
  claimNode,
  claimPath,
  DRIVER,
  driven,
  driver,
  known,
  onDisk,
  registered,
  reserve,
  SOCKET,
  STATE,
  setStatus,
  slice,
  slices,
  unbound,
  unplug,
  using,
  withClaim,
} from './resourceClaims.ts';

const it = itWith(claimNode);

const cdi = (h: VirtualNode, name: string) => created(h, name).map((c) => (c.CDIDevices ?? []).map((d) => d.name));
const worker = (h: VirtualNode, name: string) =>
  h.tree.registry.read(podsView)?.value.records.get(inApi(h, name)?.metadata.uid ?? '')?.worker;
const methods = (h: VirtualNode) => h.dra.calls.map((c) => c.method);

describe('a claim', () => {
  it('is prepared before the sandbox, gives its devices to the container, and is unprepared after the pod', async ({ h }) => {
    const gpu = driver(h);
    const { uid } = withClaim(h, 'web');
    await h.until('Ready', () => isReady(h, 'web'));
    expect(cdi(h, 'web')).toEqual([[`${DRIVER}/claim=${uid}`]]);
    expect(h.dra.calls).toEqual([{ driver: DRIVER, method: 'NodePrepareResources', uid }]);
    expect(await onDisk(h)).toEqual(['default/web-gpu']);
    expect(chart(h, 'default/web-gpu')).toBe('prepared');
    drop(h, 'pods/web');
    await h.until('gone', () => inApi(h, 'web') === undefined);
    expect(methods(h)).toEqual(['NodePrepareResources', 'NodeUnprepareResources']);
    expect(gpu.prepared.size).toBe(0);
    expect(await onDisk(h)).toEqual([]);
    expect(chart(h, 'default/web-gpu')).toBe('');
  });

  describe('whose device the runtime cannot find', () => {
    const UNRESOLVED = 'CDI device injection failed: unresolvable CDI devices gpu.example.com/claim=x';
    /** The specification of a device is lost; a driver that prepares its claim writes it anew. */
    const losing = (h: VirtualNode, o: { details?: string } = {}) => {
      let lost = true;
      h.dra.onCall = ({ method }) => {
        if (method === 'NodePrepareResources') lost = false;
      };
      h.faults.fault = (method) =>
        lost && method === 'CreateContainer' ? { kind: 'refuse', code: 2, details: o.details ?? UNRESOLVED } : undefined;
      return { lose: () => (lost = true), isLost: () => lost };
    };

    it('is prepared again before the next try, and once', async ({ h }) => {
      await driven(h);
      const { uid } = withClaim(h, 'web');
      losing(h);
      h.dra.onCall = () => {};
      await h.until('it was prepared, and is lost', () => events(h, 'Failed').some((m) => m.includes('unresolvable')));
      expect(h.dra.calls.filter((c) => c.method === 'NodePrepareResources')).not.toEqual([]);
      losing(h);
      await h.until('Ready', () => isReady(h, 'web'), 120_000);
      expect(cdi(h, 'web').at(-1)).toEqual([`${DRIVER}/claim=${uid}`]);
      const prepared = methods(h).length;
      expect(new Set(methods(h))).toEqual(new Set(['NodePrepareResources']));
      await h.advance(120_000);
      expect([methods(h).length, chart(h, 'default/web-gpu')]).toEqual([prepared, 'prepared']);
    });

    it('of a running pod is prepared again when its container restarts', async ({ h }) => {
      await driven(h);
      const pod = unbound(h, 'web', { ...using('web-gpu'), life: 'run=5s,exit=1;run=forever' });
      claim(h, 'web-gpu', { pods: [pod] });
      const device = losing(h);
      bind(h, 'web');
      await h.until('it runs', () => isReady(h, 'web'));
      device.lose();
      await h.until('it cannot restart', () => events(h, 'Failed').some((m) => m.includes('unresolvable')), 120_000);
      await h.until('it runs again', () => !device.isLost() && isReady(h, 'web'), 300_000);
      expect(methods(h)).toEqual(['NodePrepareResources', 'NodePrepareResources']);
      expect(await onDisk(h)).toEqual(['default/web-gpu']);
    });

    it.each(['no such image', 'CDI device injection failed: registry error'])(
      'is not prepared again for another failure (%s)',
      async (details) => {
        await using h = await claimNode();
        await driven(h);
        withClaim(h, 'web');
        losing(h, { details });
        h.dra.onCall = () => {};
        await h.until('it fails', () => events(h, 'Failed').length > 0);
        await h.advance(60_000);
        expect(methods(h)).toEqual(['NodePrepareResources']);
      },
    );
  });

  it('of a template is found in the status of the pod, and must be owned by it', async ({ h }) => {
    await driven(h);
    const templated = {
      container: { resources: { claims: [{ name: 'gpu' }] } },
      spec: {
        resourceClaims: [
          { name: 'gpu', resourceClaimTemplateName: 'template' },
          { name: 'none', resourceClaimTemplateName: 'other' },
        ],
      },
    };
    const pod = unbound(h, 'web', templated);
    const uid = claim(h, 'web-gpu-x7', { pods: [pod], owner: pod });
    setStatus(h, `${NS}/pods/web`, { resourceClaimStatuses: [{ name: 'gpu', resourceClaimName: 'web-gpu-x7' }, { name: 'none' }] });
    bind(h, 'web');
    await h.until('Ready', () => isReady(h, 'web'));
    expect(cdi(h, 'web')).toEqual([[`${DRIVER}/claim=${uid}`]]);
    expect(inApi(h, 'web')?.status.resourceClaimStatuses).toHaveLength(2);
    const other = unbound(h, 'other', templated);
    claim(h, 'stolen', { pods: [other], owner: pod });
    setStatus(h, `${NS}/pods/other`, { resourceClaimStatuses: [{ name: 'gpu', resourceClaimName: 'stolen' }, { name: 'none' }] });
    bind(h, 'other');
    await h.until('it is refused', () => events(h, 'FailedPrepareDynamicResources').length > 0);
    expect(events(h, 'FailedPrepareDynamicResources')[0]).toBe(
      'Failed to prepare dynamic resources: prepare dynamic resources: ResourceClaim default/stolen was not created for pod default/other (pod is not owner)',
    );
  });

  it('that is made after its pod was bound is used as soon as the status of the pod names it', async ({ h }) => {
    await driven(h);
    const pod = unbound(h, 'web', {
      container: { resources: { claims: [{ name: 'gpu' }] } },
      spec: { resourceClaims: [{ name: 'gpu', resourceClaimTemplateName: 'template' }] },
    });
    bind(h, 'web');
    await h.until('it waits', () => events(h, 'FailedPrepareDynamicResources').length > 0);
    expect(events(h, 'FailedPrepareDynamicResources')[0]).toMatch(/ResourceClaim not created yet$/);
    const uid = claim(h, 'web-gpu-x7', { pods: [pod], owner: pod });
    setStatus(h, `${NS}/pods/web`, { resourceClaimStatuses: [{ name: 'gpu', resourceClaimName: 'web-gpu-x7' }] });
    await h.until('Ready', () => isReady(h, 'web'));
    expect(cdi(h, 'web')).toEqual([[`${DRIVER}/claim=${uid}`]]);
  });

  it('that several pods and containers use is prepared once, and unprepared after the last', async ({ h }) => {
    driver(h, {
      devices: () => [
        { pool: 'p', device: 'a', shareId: null, requests: ['big'], cdiIds: ['x/y=big'] },
        { pool: 'p', device: 'b', shareId: 's', requests: ['small'], cdiIds: ['x/y=small'] },
        { pool: 'p', device: 'c', shareId: null, requests: [], cdiIds: ['x/y=all'] },
      ],
    });
    const [one, two] = [unbound(h, 'one', using('shared', { request: 'big' })), unbound(h, 'two', using('shared'))];
    claim(h, 'shared', { pods: [one, two] });
    bind(h, 'one');
    bind(h, 'two');
    await h.until('both are Ready', () => isReady(h, 'one') && isReady(h, 'two'));
    expect(cdi(h, 'one')).toEqual([['x/y=big', 'x/y=all']]);
    expect(cdi(h, 'two')).toEqual([['x/y=big', 'x/y=small', 'x/y=all']]);
    expect(methods(h)).toEqual(['NodePrepareResources']);
    drop(h, 'pods/one');
    await h.until('one is gone', () => inApi(h, 'one') === undefined);
    expect(methods(h)).toEqual(['NodePrepareResources']);
    drop(h, 'pods/two');
    await h.until('two is gone', () => inApi(h, 'two') === undefined);
    expect(methods(h)).toEqual(['NodePrepareResources', 'NodeUnprepareResources']);
  });

  it('is prepared as soon as its driver has registered, however long that took', async ({ h }) => {
    withClaim(h, 'web');
    await h.until('it is told', () => events(h, 'FailedPrepareDynamicResources').length > 0);
    await h.advance(40_000);
    await driven(h);
    await h.until('it is asked', () => methods(h).includes('NodePrepareResources'), 500);
    await h.until('Ready', () => isReady(h, 'web'));
  });

  it.each([
    ['is not reserved for the pod', { allocated: true, reserved: false }, /is not allowed to use ResourceClaim shared/],
    ['is not allocated', { allocated: false, reserved: true }, /ResourceClaim shared: not allocated/],
    [
      'has a driver that is not registered',
      { allocated: true, reserved: true, drivers: ['other.example.com'] },
      /DRA driver other.example.com is not registered/,
    ],
  ])(
    'that %s is not recorded, and its pod waits',
    async (_, { allocated, reserved, drivers }: { allocated: boolean; reserved: boolean; drivers?: string[] }, why) => {
      await using h = await claimNode();
      driver(h);
      const pod = unbound(h, 'web', using('shared'));
      claim(h, 'shared', { allocated, pods: reserved ? [pod] : [], ...(drivers === undefined ? {} : { drivers }) });
      bind(h, 'web');
      await h.until('it is told', () => events(h, 'FailedPrepareDynamicResources').length > 0);
      expect(events(h, 'FailedPrepareDynamicResources')[0]).toMatch(why);
      expect(known(h)).toEqual([]);
      expect(h.dra.calls).toEqual([]);
      drop(h, 'pods/web');
      await h.until('gone', () => inApi(h, 'web') === undefined);
    },
  );

  it('that was made again under its name waits until the old one is unprepared', async ({ h }) => {
    await driven(h);
    withClaim(h, 'web', 'shared');
    await h.until('Ready', () => isReady(h, 'web'));
    h.kube.handle({ verb: 'DELETE', path: claimPath('shared') });
    const next = unbound(h, 'next', using('shared'));
    const uid = claim(h, 'shared', { pods: [next] });
    bind(h, 'next');
    await h.until('it is told', () => events(h, 'FailedPrepareDynamicResources').length > 0);
    expect(events(h, 'FailedPrepareDynamicResources')[0]).toMatch(
      /old ResourceClaim with same name shared and different UID .* still exists/,
    );
    drop(h, 'pods/web');
    await h.until('the next is Ready', () => isReady(h, 'next'));
    expect(cdi(h, 'next')).toEqual([[`${DRIVER}/claim=${uid}`]]);
  });

  // A spec of Kubernetes: "blocks new pod after force-delete".
  it('that was made again with its pod, which was deleted by force, waits until the old one is unprepared', async ({ h }) => {
    await driven(h);
    withClaim(h, 'web');
    await h.until('Ready', () => isReady(h, 'web'));
    h.dra.fault = ({ method }) => (method === 'NodeUnprepareResources' ? { kind: 'error', error: 'the device is busy' } : undefined);
    drop(h, 'pods/web', 0);
    h.kube.handle({ verb: 'DELETE', path: claimPath('web-gpu') });
    const { uid } = withClaim(h, 'web');
    await h.until('it is told', () => events(h, 'FailedPrepareDynamicResources').length > 0);
    expect(events(h, 'FailedPrepareDynamicResources')[0]).toMatch(/old ResourceClaim with same name web-gpu and different UID .* exists/);
    h.dra.fault = () => undefined;
    await h.until('the next is Ready', () => isReady(h, 'web'));
    expect(cdi(h, 'web').at(-1)).toEqual([`${DRIVER}/claim=${uid}`]);
  });

  it('that hangs says where, holds up no other pod, and not the end of its own', async () => {
    await using h = await claimNode(INSPECT);
    driver(h);
    h.dra.latencyMs = () => Number.POSITIVE_INFINITY;
    withClaim(h, 'stuck');
    await h.until('it is being prepared', () => chart(h, 'default/stuck-gpu') === 'preparing');
    expect(worker(h, 'stuck')).toMatchObject({ reason: 'PreparingResourceClaims' });
    await h.advance(12_000);
    const words = `NodePrepareResources of DRA driver ${DRIVER}, no answer for 12s`;
    expect(whyOf(h, 'stuck')).toContain(`Resource claims\n  stuck-gpu: ${words}`);
    expect(decisionsFrame(momentOf(inspectedOf(h))).claims).toEqual([{ claim: 'default/stuck-gpu', pods: ['default/stuck'], words }]);
    const free = unbound(h, 'free');
    bind(h, free.metadata.name);
    await h.until('the other is Ready', () => isReady(h, 'free'), 5_000);
    h.dra.latencyMs = (method) => (method === 'NodePrepareResources' ? Number.POSITIVE_INFINITY : 1);
    drop(h, 'pods/stuck');
    await h.until('gone', () => inApi(h, 'stuck') === undefined, 40_000);
    expect(known(h)).toEqual([]);
  });

  it('keeps its pod until it is unprepared', async ({ h }) => {
    const gpu = driver(h);
    withClaim(h, 'web');
    await h.until('Ready', () => isReady(h, 'web'));
    h.dra.fault = ({ method }) => (method === 'NodeUnprepareResources' ? { kind: 'error', error: 'the device is busy' } : undefined);
    drop(h, 'pods/web');
    await h.until('it is told', () => worker(h, 'web')?.reason === 'FailedUnprepareDynamicResources');
    expect(worker(h, 'web')?.message).toContain('NodeUnprepareResources failed for ResourceClaim web-gpu: the device is busy');
    await h.advance(60_000);
    expect(inApi(h, 'web')).toBeDefined();
    expect(chart(h, 'default/web-gpu')).toBe('failed');
    h.dra.fault = () => undefined;
    await h.until('gone', () => inApi(h, 'web') === undefined);
    expect(gpu.prepared.size).toBe(0);
  });
});

describe('a restart of the daemon', () => {
  it('finds its claims again, and unprepares those of pods that went meanwhile', async ({ h }) => {
    const gpu = driver(h);
    withClaim(h, 'web');
    withClaim(h, 'gone');
    await h.until('both are Ready', () => isReady(h, 'web') && isReady(h, 'gone'));
    await h.crash();
    drop(h, 'pods/gone', 0);
    await h.boot();
    await h.until('unprepared', () => gpu.prepared.size === 1, 200_000);
    expect(chart(h, 'default/web-gpu')).toBe('restored');
    expect(isReady(h, 'web')).toBe(true);
    expect(await onDisk(h)).toEqual(['default/web-gpu']);
    drop(h, 'pods/web');
    await h.until('gone', () => inApi(h, 'web') === undefined);
    expect(gpu.prepared.size).toBe(0);
  });

  it('unprepares those of a pod that it does not let in any more, although its object stays', async ({ h }) => {
    const gpu = driver(h);
    h.faults.fault = (method) => (method === 'RunPodSandbox' ? { kind: 'refuse', code: 2, details: 'no network yet' } : undefined);
    withClaim(h, 'web');
    await h.until('prepared', () => gpu.prepared.size === 1);
    await h.crash();
    const body = { spec: { taints: [{ key: 'drained', effect: 'NoExecute' }] } };
    h.kube.handle({ verb: 'PATCH', path: '/api/v1/nodes/n1', patchType: 'merge', body });
    await h.boot();
    await h.until('refused', () => inApi(h, 'web')?.status.reason === 'TaintToleration', 60_000);
    await h.until('unprepared', () => gpu.prepared.size === 0, 200_000);
    expect(await onDisk(h)).toEqual([]);
    expect(inApi(h, 'web')?.status.phase).toBe('Failed');
  });

  it('with a record that cannot be believed goes on, and prepares anew what containers need', async ({ h }) => {
    driver(h);
    const { uid } = withClaim(h, 'web');
    await h.until('Ready', () => isReady(h, 'web'));
    await h.crash();
    h.fs.put(STATE, '{"Data":"{}","Checksum":1}');
    await h.boot();
    await h.until('it is said', () => h.lines.some((l) => l.msg.startsWith('the record of ResourceClaims cannot be believed')));
    const [container] = h.running();
    h.runtime.exit(container?.id ?? '', { exitCode: 1 });
    await h.until('another container', () => created(h, 'web').length === 2, 60_000);
    expect(cdi(h, 'web')[1]).toEqual([`${DRIVER}/claim=${uid}`]);
    expect(await onDisk(h)).toEqual(['default/web-gpu']);
  });
});

describe('a driver', () => {
  it('that is away for 30 s loses its ResourceSlices; one that comes back before keeps them; all go when the daemon starts', async () => {
    await using h = await claimNode({ before: (node) => slice(node, 'old') });
    await h.until('slices of an earlier time are gone', () => slices(h).length === 0);
    driver(h);
    await h.advance(11_000);
    slice(h, 'mine');
    slice(h, 'elsewhere', { node: 'n2' });
    slice(h, 'other', { driver: 'other.example.com' });
    h.dra.die(SOCKET);
    await h.advance(20_000);
    h.dra.back(SOCKET);
    await h.advance(20_000);
    expect(slices(h)).toEqual(['elsewhere', 'mine', 'other']);
    unplug(h);
    await h.until('gone', () => !slices(h).includes('mine'), 60_000);
    expect(slices(h)).toEqual(['elsewhere', 'other']);
  });

  it('may serve both versions: the first that it names and the node knows is spoken; a stranger is told', async ({ h }) => {
    driver(h, { versions: ['v9.DRAPlugin'] });
    await h.until('it is told', () => h.drivers.told.length > 0);
    expect(h.drivers.told[0]?.error).toContain('none of services supported by the plugin (["v9.DRAPlugin"]) are supported by the kubelet');
    driver(h, { versions: ['v1beta1.DRAPlugin', 'v1.DRAPlugin'] });
    await h.until('it is registered', () => h.drivers.told.at(-1)?.error === '', 200_000);
    withClaim(h, 'web');
    await h.until('Ready', () => isReady(h, 'web'));
  });

  it.each([['dies in the middle', (h: VirtualNode) => h.dra.die(SOCKET), /NodePrepareResources: gpu.example.com/]])(
    'that %s fails that claim, and prepares it once it is back',
    async (_, trouble, why) => {
      await using h = await claimNode();
      driver(h);
      await h.advance(11_000);
      let first = true;
      h.dra.fault = () => {
        if (!first) return undefined;
        first = false;
        trouble(h);
        return { kind: 'refuse', details: 'transport is closing' };
      };
      withClaim(h, 'web');
      await h.until('it is told', () => events(h, 'FailedPrepareDynamicResources').length > 0);
      expect(events(h, 'FailedPrepareDynamicResources')[0]).toMatch(why);
      h.dra.back(SOCKET);
      await h.until('Ready', () => isReady(h, 'web'), 60_000);
    },
  );

  it.each([
    ['for another claim', (uid: string) => ({ [`${uid}-other`]: { devices: [], error: '' } }), /returned result for unknown claim UID/],
    ['without the claim', () => ({}), /NodePrepareResources skipped 1 ResourceClaims/],
  ])('that answers %s fails that claim alone', async (_, answer, why) => {
    await using h = await claimNode();
    await driven(h);
    h.dra.fault = ({ uid }) => ({ kind: 'answer', answer: () => answer(uid) });
    withClaim(h, 'web');
    await h.until('it is told', () => events(h, 'FailedPrepareDynamicResources').length > 0);
    expect(events(h, 'FailedPrepareDynamicResources')[0]).toMatch(why);
    h.dra.fault = () => undefined;
    await h.until('Ready', () => isReady(h, 'web'), 60_000);
  });

  it('that serves at no path of a socket may not register, and is told so; the manager goes on', async ({ h }) => {
    const odd = ['gpu.sock', 'tcp://127.0.0.1:1', '/run/a\nb.sock'];
    for (const [i, endpoint] of odd.entries()) driver(h, { endpoint, socket: `${ROOT}/plugins_registry/${i}.sock` });
    await h.until('all are told', () => new Set(h.drivers.told.map((t) => t.socket)).size === odd.length);
    for (const { error } of h.drivers.told)
      expect(error).toMatch(/^the endpoint ".*" of DRA driver plugin gpu.example.com is no path of a socket$/);
    await h.advance(60_000);
    expect(h.tree.stateAt(CLAIMS)).toMatchObject({ restarts: 0, lifecycle: 'running' });
    driver(h);
    const { uid } = withClaim(h, 'web');
    await h.until('Ready', () => isReady(h, 'web'));
    expect(cdi(h, 'web')).toEqual([[`${DRIVER}/claim=${uid}`]]);
  });

  it('that lists 10,000 devices with names that are no CDI names is taken at its word', async ({ h }) => {
    const names = Array.from({ length: 10_000 }, (_, i) => `no cdi name \u0000 ${i}`);
    driver(h, { devices: () => names.map((n) => ({ pool: '', device: n, shareId: null, requests: [], cdiIds: [n] })) });
    withClaim(h, 'web');
    await h.until('Ready', () => isReady(h, 'web'));
    expect(cdi(h, 'web')[0]).toHaveLength(10_000);
    expect(await onDisk(h)).toEqual(['default/web-gpu']);
  });

  it('that says how its devices are is heard in the status of pods', async ({ h }) => {
    driver(h, { health: [] });
    const { uid } = withClaim(h, 'web');
    await h.until('Ready', () => isReady(h, 'web'));
    const status = () => inApi(h, 'web')?.status.containerStatuses?.[0]?.allocatedResourcesStatus;
    const told = { pool: 'node', device: `dev-${uid}`, timeoutMs: 30_000 };
    h.dra.tell(SOCKET, [{ ...told, health: 'Unhealthy', message: 'it is hot' }]);
    const resourceID = `${DRIVER}/claim=${uid}`;
    await h.until('told', () => status()?.[0]?.resources[0]?.health === 'Unhealthy', 20_000);
    expect(status()).toEqual([{ name: 'claim:gpu', resources: [{ resourceID, health: 'Unhealthy', message: 'it is hot' }] }]);
    h.dra.die(SOCKET);
    await h.until('unknown', () => status()?.[0]?.resources[0]?.health === 'Unknown', 20_000);
  });
});

it('health of devices that a driver tells of without end is kept for as long as it holds, and of so many devices', async ({ h }) => {
  driver(h, { health: [] });
  await registered(h);
  await h.advance(5_000);
  const health = (prefix: string, n: number, timeoutMs: number) =>
    Array.from({ length: n }, (_, i) => ({ pool: prefix, device: `${i}`, health: 'Healthy' as const, message: '', timeoutMs }));
  const kept = () => [...(h.tree.registry.read(claimHealthView)?.value.get(DRIVER)?.keys() ?? [])];
  for (let i = 0; i < 20; i++) {
    h.dra.tell(SOCKET, health(`p${i}`, 100, 5_000));
    await h.advance(10_000);
  }
  expect(kept()).toHaveLength(100);
  h.dra.tell(SOCKET, health('many', HEALTH_MAX, 60_000));
  h.dra.tell(SOCKET, health('more', 1_000, 60_000));
  await h.advance(2_000);
  expect(kept()).toHaveLength(HEALTH_MAX);
});

describe('extended resources of a claim', () => {
  it('are the claim of the scheduler, which no device plugin is asked for', async () => {
    await using h = await claimNode({ devices: true });
    driver(h);
    const pod = unbound(h, 'web', {
      container: { resources: { limits: { 'example.com/gpu': '1' }, requests: { 'example.com/gpu': '1' } } },
    });
    const uid = claim(h, 'made', { pods: [pod] });
    setStatus(h, `${NS}/pods/web`, {
      extendedResourceClaimStatus: {
        resourceClaimName: 'made',
        requestMappings: [{ containerName: 'main', resourceName: 'example.com/gpu', requestName: 'r' }],
      },
    });
    bind(h, 'web');
    await h.until('Ready', () => isReady(h, 'web'), 30_000);
    expect(cdi(h, 'web')).toEqual([[`${DRIVER}/claim=${uid}`]]);
    expect(inApi(h, 'web')?.status.extendedResourceClaimStatus?.resourceClaimName).toBe('made');
  });
});

it('reserves again, and the pod goes on', async ({ h }) => {
  driver(h);
  const pod = unbound(h, 'web', using('shared'));
  claim(h, 'shared');
  bind(h, 'web');
  await h.until('it is told', () => events(h, 'FailedPrepareDynamicResources').length > 0);
  reserve(h, 'shared', [pod]);
  await h.until('Ready', () => isReady(h, 'web'), 30_000);
});
