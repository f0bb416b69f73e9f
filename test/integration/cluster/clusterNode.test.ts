/** What a whole node tells the cluster about itself, in virtual time, against the simulated API server. */
import { imageId } from '@actorlet/runtimes/src/hollow/calls/images.ts';
import { describe, expect } from 'vitest';
import { itOnCluster as it } from '../onNode.ts';
import { pod as manifest, type VirtualNode } from '../virtualNode.ts';
import { cluster, create, created, envOf, events, inApi, isReady, NS, waiting } from './clusterPods.ts';

const NODE = '/api/v1/nodes/n1';
interface NodeBody {
  metadata: { uid: string; annotations?: Record<string, string> };
  spec: Record<string, unknown>;
  status: {
    addresses?: { type: string; address: string }[];
    capacity?: Record<string, string>;
    allocatable?: Record<string, string>;
    images?: object[];
    conditions?: { type: string; status: string; message: string }[];
  };
}
function node(h: VirtualNode): NodeBody | undefined {
  const got = h.kube.handle({ verb: 'GET', path: NODE });
  return got.ok ? (got.body as NodeBody) : undefined;
}
const readyOf = (h: VirtualNode) => node(h)?.status.conditions?.find((c) => c.type === 'Ready');
function patchNode(h: VirtualNode, body: object, path = NODE): void {
  const made = h.kube.handle({ verb: 'PATCH', path, patchType: 'merge', body });
  if (!made.ok) throw new Error(made.failure.message);
}
/** Reasons of the events about the node as the API server has them. */
function told(h: VirtualNode): string[] {
  const got = h.kube.handle({ verb: 'GET', path: '/api/v1/events' });
  const list = got.ok ? (got.body as { items: { reason: string; count: number; involvedObject: { kind: string } }[] }).items : [];
  return list.filter((e) => e.involvedObject.kind === 'Node').map((e) => `${e.reason} x${e.count}`);
}

describe('events about the node', () => {
  it('are its start and the first word on each pressure, and none on Ready (trap 50)', async ({ h }) => {
    await h.until('Ready', () => readyOf(h)?.status === 'True');
    const fresh = ['Starting x1', 'NodeHasSufficientMemory x1', 'NodeHasNoDiskPressure x1', 'NodeHasSufficientPID x1'];
    await h.until('told', () => told(h).length >= fresh.length);
    await h.advance(30_000);
    expect(told(h)).toEqual(fresh);
    h.kill('node/api/nodeStatus');
    await h.advance(30_000);
    expect(told(h)).toEqual(fresh);
  });

  it('say that it is cordoned, and that it is not any more', async ({ h }) => {
    await h.until('Ready', () => readyOf(h)?.status === 'True');
    patchNode(h, { spec: { unschedulable: true } });
    await h.until('told', () => told(h).includes('NodeNotSchedulable x1'));
    patchNode(h, { spec: { unschedulable: null } });
    await h.until('told', () => told(h).includes('NodeSchedulable x1'));
    await h.advance(60_000);
    expect(told(h).filter((t) => /Schedulable/.test(t))).toEqual(['NodeNotSchedulable x1', 'NodeSchedulable x1']);
  });

  it('say that the machine was booted anew', async () => {
    await using h = await cluster({
      before: (v) =>
        void v.kube.handle({
          verb: 'POST',
          path: '/api/v1/nodes',
          body: { metadata: { name: 'n1' }, spec: {}, status: { nodeInfo: { bootID: 'boot-0' } } },
        }),
    });
    await h.until('told', () => told(h).includes('Rebooted x1'));
    expect(events(h, 'Rebooted')).toEqual(['Node n1 has been rebooted, boot id: boot-1']);
  });
});

describe('the addresses of a node', () => {
  const external = { cloudProvider: 'external' };

  it('are those that the controller of its cloud set, once it has', async () => {
    await using h = await cluster({ flags: { ...external, nodeIPs: ['192.0.2.5'] } });
    await h.until('Ready', () => readyOf(h)?.status === 'True');
    const own = [
      { type: 'InternalIP', address: '192.0.2.5' },
      { type: 'Hostname', address: 'n1' },
    ];
    expect(node(h)?.status.addresses).toEqual(own);
    expect(node(h)?.metadata.annotations).toMatchObject({ 'alpha.kubernetes.io/provided-node-ip': '192.0.2.5' });
    const ofCloud = [
      { type: 'InternalIP', address: '10.0.0.5' },
      { type: 'ExternalIP', address: '203.0.113.5' },
      { type: 'InternalDNS', address: 'n1.cloud.example' },
    ];
    patchNode(h, { status: { addresses: ofCloud } }, `${NODE}/status`);
    patchNode(h, { metadata: { annotations: { 'alpha.kubernetes.io/provided-node-ip': null } } });
    await h.advance(360_000);
    expect(node(h)?.status.addresses).toEqual(ofCloud);
    expect(node(h)?.metadata.annotations).toMatchObject({ 'alpha.kubernetes.io/provided-node-ip': '192.0.2.5' });
  });

  it.each<[string[], { type: string; address: string }[]]>([
    [[], []],
    [['0.0.0.0'], [{ type: 'InternalIP', address: '192.0.2.1' }]],
  ])('with --node-ip %j are its name and %j until the controller of its cloud has come', async (nodeIPs, found) => {
    await using h = await cluster({ flags: { ...external, nodeIPs } });
    await h.until('Ready', () => readyOf(h)?.status === 'True');
    expect(node(h)?.status.addresses).toEqual([...found, { type: 'Hostname', address: 'n1' }]);
    expect(node(h)?.metadata.annotations).not.toHaveProperty('alpha.kubernetes.io/provided-node-ip');
  });

  it('of its pods are those that the controller of its cloud set, and none before', async () => {
    await using h = await cluster({ flags: external });
    await h.until('Ready', () => readyOf(h)?.status === 'True');
    const env = [{ name: 'HOST_IPS', valueFrom: { fieldRef: { fieldPath: 'status.hostIPs' } } }];
    create(h, 'early', { spec: { hostNetwork: true } });
    create(h, 'asks', { container: { env } });
    await h.until('early runs', () => inApi(h, 'early')?.status.phase === 'Running');
    await h.until('the other one waits', () => waiting(h, 'asks')?.reason === 'CreateContainerConfigError');
    for (const field of ['hostIP', 'podIP']) expect(inApi(h, 'early')?.status).not.toHaveProperty(field);
    expect(created(h, 'early')[0]?.mounts?.map((m) => m.containerPath)).toContain('/etc/hosts');
    const addresses = [
      { type: 'ExternalIP', address: '203.0.113.5' },
      { type: 'InternalIP', address: '10.0.0.5' },
      { type: 'InternalIP', address: 'fd00::5' },
    ];
    patchNode(h, { status: { addresses } }, `${NODE}/status`);
    await h.until('both families are told', () => inApi(h, 'early')?.status.podIPs?.length === 2, 240_000);
    const ips = [{ ip: '10.0.0.5' }, { ip: 'fd00::5' }];
    expect(inApi(h, 'early')?.status).toMatchObject({ hostIP: '10.0.0.5', hostIPs: ips, podIP: '10.0.0.5', podIPs: ips });
    await h.until('the other one runs', () => isReady(h, 'asks'), 240_000);
    expect(envOf(created(h, 'asks')[0])).toMatchObject({ HOST_IPS: '10.0.0.5,fd00::5' });
  });

  it('is one of the family that --node-ip asks for', async () => {
    await using h = await cluster({ flags: { nodeIPs: ['0.0.0.0'] } });
    await h.until('Ready', () => readyOf(h)?.status === 'True');
    expect(node(h)?.status.addresses?.[0]).toEqual({ type: 'InternalIP', address: '192.0.2.1' });
  });
});

describe('parts of the status', () => {
  it('that cannot be had hold up no other: they stay what they were (trap 49)', async ({ h }) => {
    await h.until('Ready', () => readyOf(h)?.status === 'True');
    create(h, 'web');
    await h.until('web runs', () => inApi(h, 'web')?.status.phase === 'Running');
    await h.until('its image is told', () => (node(h)?.status.images ?? []).length > 0, 600_000);
    const { images } = node(h)?.status ?? {};
    let asked = 0;
    h.faults.fault = (method) => {
      if (method !== 'ListImages') return undefined;
      asked += 1;
      return { kind: 'refuse', code: 13, details: 'no images today' };
    };
    await h.until('images cannot be had', () => asked > 0, 120_000);
    h.memory.availableBytes = 1024 ** 2;
    await h.until('what is short is told', () =>
      node(h)?.status.conditions?.some((c) => c.type === 'MemoryPressure' && c.status === 'True'),
    );
    expect(node(h)?.status.images).toEqual(images);
  });
});

describe('a network that is not ready', () => {
  it('makes the node NotReady and holds back what needs it, and nothing else (trap 55)', async () => {
    const conditions = [
      { type: 'RuntimeReady', status: true, reason: '', message: '' },
      { type: 'NetworkReady', status: false, reason: 'NetworkPluginNotReady', message: 'cni plugin not initialized' },
    ];
    let ready = false;
    await using h = await cluster({
      before: (v) => {
        v.faults.answer = (method, value) => (method === 'Status' && !ready ? { status: { conditions }, info: {} } : value);
      },
      manifests: { local: manifest('local', { spec: { hostNetwork: true } }), web: manifest('web') },
    });
    await h.until('the pod of the host network runs', () => h.running('local').length === 1);
    await h.until('told', () => events(h, 'NetworkNotReady').length > 0);
    await h.until('NotReady', () => readyOf(h)?.status === 'False');
    expect(readyOf(h)?.message).toBe(
      'container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:cni plugin not initialized',
    );
    expect(h.running('web')).toEqual([]);
    ready = true;
    await h.until('the other runs too', () => h.running('web').length === 1);
    await h.until('Ready', () => readyOf(h)?.status === 'True');
  });
});

describe('a sweep for dead containers', () => {
  it('that cannot be made is told of the node (ContainerGCFailed)', async ({ h }) => {
    await h.until('Ready', () => readyOf(h)?.status === 'True');
    h.faults.fault = (method) => (method === 'ListContainers' ? { kind: 'refuse', code: 13, details: 'no list today' } : undefined);
    await h.until('told', () => events(h, 'ContainerGCFailed').length > 0, 180_000);
    expect(events(h, 'ContainerGCFailed')[0]).toContain('no list today');
    h.faults.fault = () => undefined;
  });
});

describe('heartbeats', () => {
  const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
  /** Refuses so many requests, by what fits, and counts how often connections of the heartbeat were closed meanwhile. */
  function refusing(h: VirtualNode, fits: (verb: string, path: string) => boolean, times: number): { left: number } {
    const state = { left: times };
    h.kube.trouble.verdict = (r) => (fits(r.verb, r.path) && state.left-- > 0 ? { delayMs: 0, refuse: { status: 500 } } : { delayMs: 0 });
    return state;
  }
  const isReport = (verb: string, path: string) => verb === 'PATCH' && path === `${NODE}/status`;
  const isRenewal = (verb: string, path: string) => verb === 'PUT' && path.startsWith(LEASES);

  /** As the node controller: so that there is something to report. */
  function doubt(h: VirtualNode): void {
    const body = { status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } };
    const made = h.kube.handle({ verb: 'PATCH', path: `${NODE}/status`, patchType: 'strategic', body });
    if (!made.ok) throw new Error(made.failure.message);
  }

  it.each([
    ['report', isReport],
    ['renewal', isRenewal],
  ])('close no connection for one %s that failed, and close them from the second on (trap 45)', async (_what, fits) => {
    const closed: string[] = [];
    await using h = await cluster({
      before: (v) => {
        const connect = v.kube.connect.bind(v.kube);
        v.kube.connect = (daemon) => {
          const api = connect(daemon);
          return {
            ...api,
            closeConnections(of) {
              closed.push(of);
              api.closeConnections(of);
            },
          };
        };
      },
    });
    await h.until('Ready', () => readyOf(h)?.status === 'True');
    await h.advance(30_000);
    const once = refusing(h, fits, 1);
    doubt(h);
    await h.until('refused once', () => once.left < 0, 60_000);
    expect(closed).toEqual([]);
    await h.until('Ready again', () => readyOf(h)?.status === 'True');
    await h.advance(2_000);
    const twice = refusing(h, fits, 2);
    doubt(h);
    await h.until('refused twice', () => twice.left < 0, 60_000);
    expect(closed).toEqual(['heartbeat']);
  });

  it('are no lease while there is no node, and the server is not asked in a spin (trap 43)', async () => {
    await using h = await cluster({ config: { registerNode: false } });
    const from = h.kube.calls.length;
    await h.advance(60_000);
    const asked = h.kube.calls.slice(from).filter((c) => c.request.path.startsWith(LEASES));
    expect(asked.filter((c) => c.request.verb === 'POST')).toEqual([]);
    expect(asked.length).toBeLessThanOrEqual(1);
    h.kube.handle({ verb: 'POST', path: '/api/v1/nodes', body: { metadata: { name: 'n1' }, spec: {}, status: {} } });
    await h.until('the lease is made', () => h.kube.handle({ verb: 'GET', path: `${LEASES}/n1` }).ok, 60_000);
  });

  it('are no lease and no mirror pod of a node that was deleted, until there is one of its name again', async () => {
    await using h = await cluster({ manifests: { web: manifest('web') } });
    const mirror = `${NS}/pods/web-n1`;
    const isThere = (path: string) => h.kube.handle({ verb: 'GET', path }).ok;
    await h.until('both are there', () => isThere(`${LEASES}/n1`) && isThere(mirror));
    h.kube.handle({ verb: 'DELETE', path: NODE });
    await h.advance(15_000);
    // As the cluster does with what a node owned that is gone.
    h.kube.handle({ verb: 'DELETE', path: `${LEASES}/n1` });
    h.kube.handle({ verb: 'DELETE', path: mirror, body: { gracePeriodSeconds: 0 } });
    await h.advance(120_000);
    expect([isThere(`${LEASES}/n1`), isThere(mirror)]).toEqual([false, false]);
    h.kube.handle({ verb: 'POST', path: '/api/v1/nodes', body: { metadata: { name: 'n1' }, spec: {}, status: {} } });
    await h.until('both are there again', () => isThere(`${LEASES}/n1`) && isThere(mirror), 60_000);
    const { uid = '' } = node(h)?.metadata ?? {};
    expect(uid).not.toBe('');
    expect(JSON.stringify(h.kube.handle({ verb: 'GET', path: `${LEASES}/n1` }))).toContain(uid);
    expect(JSON.stringify(h.kube.handle({ verb: 'GET', path: mirror }))).toContain(uid);
  });
});

describe('the room of the node', () => {
  it('is less what is reserved, and a pod that does not fit is turned away', async () => {
    await using h = await cluster({ config: { systemReserved: { cpu: '1' }, kubeReserved: { cpu: '500m' }, podsPerCore: 10 } });
    await h.until('Ready', () => readyOf(h)?.status === 'True');
    expect(node(h)?.status.capacity).toMatchObject({ cpu: '4', pods: '40' });
    expect(node(h)?.status.allocatable).toMatchObject({ cpu: '2500m', memory: '8092Mi' });
    create(h, 'large', { container: { resources: { requests: { cpu: '2600m' } } } });
    await h.until('turned away', () => inApi(h, 'large')?.status.reason === 'OutOfcpu');
  });
  it('is not begun with where more is reserved than there is, under any policy', async () => {
    const words = 'invalid Node Allocatable configuration. Resource "memory" has a reservation of 1Ti but capacity of 8Gi';
    await expect(cluster({ config: { systemReserved: { memory: '1Ti' }, evictionHard: {} } })).rejects.toThrow(words);
    const cpus = [0, 1].map((id) => ({ id, socket: 0, siblings: [id], node: 0 }));
    const missing = 'reservedSystemCPUs: 2-3 of 0,2-3 are not there: online are 0-1';
    await expect(cluster({ cpus, config: { reservedSystemCPUs: '0,2-3' } })).rejects.toThrow(missing);
  });
});

describe('the range of pod addresses', () => {
  it('is told to the runtime when the cluster gives or changes it, again until it took it', async ({ h }) => {
    await h.until('Ready', () => readyOf(h)?.status === 'True');
    const asked = () => h.calls.filter((c) => c.method === 'UpdateRuntimeConfig').map((c) => c.req);
    expect(asked()).toEqual([]);
    let refusals = 1;
    h.faults.fault = (method) =>
      method === 'UpdateRuntimeConfig' && refusals-- > 0 ? { kind: 'refuse', code: 13, details: 'not now' } : undefined;
    patchNode(h, { spec: { podCIDR: '10.1.0.0/24', podCIDRs: ['10.1.0.0/24', 'fd00::/64'] } });
    await h.until('told', () => asked().length > 0);
    await h.advance(60_000);
    expect(asked()).toEqual([{ runtimeConfig: { networkConfig: { podCidr: '10.1.0.0/24,fd00::/64' } } }]);
    expect(refusals).toBeLessThan(0);
  });
});

describe('the node object', () => {
  /** Requests about the node since then, as `VERB PATH`. */
  const asked = (h: VirtualNode, from: number): string[] =>
    h.kube.calls
      .slice(from)
      .filter((c) => c.request.path.startsWith('/api/v1/nodes') && c.request.query?.watch !== 'true')
      .map((c) => `${c.request.verb} ${c.request.path}`);
  const watches = (h: VirtualNode) => h.until('the watch is open', () => h.state('node/api/nodeWatch').includes('listening'));
  const start = async (config = {}) => {
    const h = await cluster({ config });
    await h.until('Ready', () => readyOf(h)?.status === 'True');
    await watches(h);
    await h.advance(2_000);
    return h;
  };

  it('is watched: no report asks for it, and the status is written every five minutes', async () => {
    await using h = await start();
    const from = h.kube.calls.length;
    await h.advance(240_000);
    expect(asked(h, from)).toEqual([]);
    await h.advance(360_000);
    expect(new Set(asked(h, from))).toEqual(new Set([`PATCH ${NODE}/status`]));
    expect(asked(h, from).length).toBeLessThanOrEqual(3);
  });

  it('that another program changes is looked at within a second, and its own reports are no such change', async () => {
    await using h = await start();
    const from = h.time.clock.monoMs();
    patchNode(h, { spec: { unschedulable: true }, metadata: { labels: { zone: 'a' } } });
    await h.until('it is told', () => told(h).includes('NodeNotSchedulable x1'));
    expect(h.time.clock.monoMs() - from).toBeLessThan(1_000);
    const conditions = [{ type: 'Ready', status: 'Unknown', message: 'NodeStatusUnknown', reason: 'NodeStatusUnknown' }];
    patchNode(h, { status: { conditions } }, `${NODE}/status`);
    await h.until('it is put right', () => readyOf(h)?.status === 'True', 11_000);
  });

  it('has the labels of its machine again within a report, and keeps those that others may set', async () => {
    await using h = await start();
    const labels = { 'kubernetes.io/os': 'plan9', 'kubernetes.io/arch': null, 'kubernetes.io/hostname': 'other', mine: 'x' };
    patchNode(h, { metadata: { labels } });
    const now = () =>
      (h.kube.handle({ verb: 'GET', path: NODE }) as { body: { metadata: { labels?: Record<string, string> } } }).body.metadata.labels;
    expect(now()).toMatchObject({ 'kubernetes.io/os': 'plan9' });
    await h.until('it is put right', () => now()?.['kubernetes.io/os'] === 'linux', 11_000);
    // As in the reference, the others are put right when the node registers again.
    expect(now()).toMatchObject({ 'kubernetes.io/arch': 'amd64', 'kubernetes.io/hostname': 'other', mine: 'x' });
    const from = h.kube.calls.length;
    await h.advance(60_000);
    expect(asked(h, from)).toEqual([]);
  });

  it('is asked for while its watch is refused, and again not when it is open', async () => {
    await using h = await start();
    h.kube.trouble.verdict = (r) => (r.path === '/api/v1/nodes' ? { delayMs: 0, refuse: { status: 403 } } : { delayMs: 0 });
    h.kube.cutWatches('close');
    const from = h.kube.calls.length;
    await h.advance(540_000);
    expect(asked(h, from).filter((a) => a === `GET ${NODE}`).length).toBeGreaterThan(3);
    expect(readyOf(h)?.status).toBe('True');
    h.kube.trouble.verdict = () => ({ delayMs: 0 });
    await watches(h);
    // Until its first bookmark nobody knows that it says all.
    await h.advance(65_000);
    const later = h.kube.calls.length;
    await h.advance(60_000);
    expect(asked(h, later).filter((a) => a === `GET ${NODE}`)).toEqual([]);
  });

  it('goes on being reported while its watch has not heard of the last report', async () => {
    await using h = await start({ nodeStatusReportFrequency: 10_000, nodeStatusUpdateFrequency: 10_000 });
    h.kube.silenceWatches();
    const version = () => (h.kube.handle({ verb: 'GET', path: NODE }) as { body: { metadata: { resourceVersion: string } } }).body;
    const before = Number(version().metadata.resourceVersion);
    await h.advance(60_000);
    expect(Number(version().metadata.resourceVersion)).toBeGreaterThan(before);
    expect(readyOf(h)?.status).toBe('True');
  });
});

describe('an extended resource that an administrator counts', () => {
  const FOO = 'example.com/foo';
  const patchCapacity = (h: VirtualNode, amount: string | null) =>
    patchNode(h, { status: { capacity: { [FOO]: amount } } }, `${NODE}/status`);
  const asking = (amount: string) => ({ container: { resources: { requests: { [FOO]: amount }, limits: { [FOO]: amount } } } });
  const phase = (h: VirtualNode, name: string) => inApi(h, name)?.status.phase;

  it('may be used at once, and stays whatever the node reports', async ({ h }) => {
    await h.until('Ready', () => readyOf(h)?.status === 'True');
    patchCapacity(h, '5');
    await h.until('it is allocatable', () => node(h)?.status.allocatable?.[FOO] === '5', 2_000);
    await h.advance(11 * 60_000);
    expect(node(h)?.status.capacity?.[FOO]).toBe('5');
    patchCapacity(h, '3');
    await h.until('it follows', () => node(h)?.status.allocatable?.[FOO] === '3', 2_000);
    patchCapacity(h, null);
    await h.until('it goes', () => node(h)?.status.allocatable?.[FOO] === undefined, 2_000);
    await h.advance(60_000);
    expect(node(h)?.status.capacity).not.toHaveProperty([FOO]);
  });

  it('is counted when pods are admitted', async () => {
    await using h = await cluster({ devices: true });
    await h.until('Ready', () => readyOf(h)?.status === 'True');
    patchCapacity(h, '5');
    await h.until('it is allocatable', () => node(h)?.status.allocatable?.[FOO] === '5');
    create(h, 'three', asking('3'));
    await h.until('it runs', () => phase(h, 'three') === 'Running');
    create(h, 'more', asking('3'));
    await h.until('it is refused', () => phase(h, 'more') === 'Failed');
    expect(inApi(h, 'more')?.status).toMatchObject({ reason: `OutOf${FOO}` });
    create(h, 'two', asking('2'));
    await h.until('it runs', () => phase(h, 'two') === 'Running');
    // What runs was let in: fewer of it, and a new start, end nothing.
    patchCapacity(h, '1');
    await h.until('it follows', () => node(h)?.status.allocatable?.[FOO] === '1');
    await h.restart();
    await h.advance(30_000);
    expect([phase(h, 'three'), phase(h, 'two')]).toEqual(['Running', 'Running']);
  });

  it('that are images: largest first, and those of one size as the kubelet has them, the last id first', async () => {
    const names = Array.from({ length: 6 }, (_, i) => `same.io/size:${i}`);
    await using h = await cluster({ hollow: { images: names, image: () => ({ sizeBytes: 1024 ** 2 }) } });
    await h.until('they are told', () => node(h)?.status.images?.length === names.length, 600_000);
    const told = (node(h)?.status.images ?? []).map((image) => (image as { names: string[] }).names.at(-1));
    expect(told).toEqual(names.toSorted((a, b) => (imageId(a) > imageId(b) ? -1 : 1)));
  });
});
