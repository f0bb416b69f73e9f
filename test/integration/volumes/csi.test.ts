/** Volumes of CSI drivers that registered themselves beside the node: a whole node in virtual time (resources and volumes 8.17, 10). */
import type { SimDriver } from '@actorlet/world/src/plugins/drivers.ts';
import { describe, expect } from 'vitest';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { driversView } from '../../../src/machines/services/plugins/messages.ts';
import type { CsiMethod, PublishRequest, StageRequest } from '../../../src/machines/wire/csi.ts';
import {
  cluster,
  create,
  created,
  createReady,
  dirOf,
  drop,
  dropped,
  events,
  get,
  gone,
  inApi,
  isReady,
  must,
  NS,
  put,
  secret,
} from '../cluster/clusterPods.ts';
import { itWith } from '../onNode.ts';
import { ROOT, type VirtualNode, type VirtualNodeOptions } from '../virtualNode.ts';

const NAME = 'csi.example.com';
const SOCKET = `${ROOT}/plugins_registry/${NAME}-reg.sock`;
const STORAGE = '/apis/storage.k8s.io/v1';

const node = (o: VirtualNodeOptions = {}) => cluster({ drivers: true, ...o });
const it = itWith(node);
function plug(h: VirtualNode, o: Partial<SimDriver> = {}, socket = SOCKET): SimDriver {
  const driver = h.drivers.add(socket, { name: NAME, ...o });
  h.fs.makeSocket(socket);
  return driver;
}
async function plugged(h: VirtualNode): Promise<SimDriver> {
  const driver = plug(h);
  await h.until('the driver is registered', () => known(h).includes(NAME));
  return driver;
}
const rules = (h: VirtualNode, spec: object = {}) =>
  put(h, `${STORAGE}/csidrivers`, { metadata: { name: NAME }, spec: { attachRequired: false, ...spec } });
const inlineRules = (h: VirtualNode, spec: object = {}) => rules(h, { volumeLifecycleModes: ['Persistent', 'Ephemeral'], ...spec });

/** A claim that is bound to a volume of the driver. */
function provide(h: VirtualNode, o: { claim?: object; pv?: object; csi?: object } = {}): void {
  put(h, `${NS}/persistentvolumeclaims`, {
    metadata: { name: 'data', ...o.claim },
    spec: { volumeName: 'pv-1' },
    status: { phase: 'Bound' },
  });
  const name = (o.claim as { name?: string } | undefined)?.name ?? 'data';
  const { metadata } = get(h, `${NS}/persistentvolumeclaims/${name}`) as { metadata: { uid: string } };
  const csi = { driver: NAME, volumeHandle: 'vol-1', volumeAttributes: { tier: 'gold' }, ...o.csi };
  const spec = { accessModes: ['ReadWriteOnce'], claimRef: { uid: metadata.uid }, csi, ...o.pv };
  put(h, '/api/v1/persistentvolumes', { metadata: { name: 'pv-1' }, spec });
}
const claiming = (spec: object = {}) => ({
  container: { volumeMounts: [{ name: 'disk', mountPath: '/data' }] },
  spec: { volumes: [{ name: 'disk', persistentVolumeClaim: { claimName: 'data' } }], ...spec },
});
const inline = (csi: object = {}) => ({
  container: { volumeMounts: [{ name: 'disk', mountPath: '/data' }] },
  spec: { volumes: [{ name: 'disk', csi: { driver: NAME, volumeAttributes: { size: '1' }, ...csi } }] },
});
const dir = (pod: Pod) => dirOf(pod, 'csi', 'pv-1');
const inlineDir = (pod: Pod) => dirOf(pod, 'csi', 'disk');
const requests = <T>(h: VirtualNode, method: CsiMethod) => h.drivers.calls.filter((c) => c.method === method).map((c) => c.request as T);
const publishes = (h: VirtualNode) => requests<PublishRequest>(h, 'NodePublishVolume');
const stages = (h: VirtualNode) => requests<StageRequest>(h, 'NodeStageVolume');
const order = (h: VirtualNode) => h.drivers.calls.map((c) => c.method).filter((m) => !m.startsWith('NodeGet'));
/** The driver, its rules, and a claim that is bound to a volume of it. */
async function provided(h: VirtualNode): Promise<SimDriver> {
  const driver = await plugged(h);
  rules(h);
  provide(h);
  return driver;
}
/** Nothing of any volume is left on the machine, and nothing was done out of order. */
function clean(h: VirtualNode): void {
  expect(h.drivers.violations).toEqual([]);
  expect(h.mounts.table).toEqual([]);
  for (const driver of h.drivers.sockets.values()) expect([...driver.published, ...driver.staged]).toEqual([]);
  expect(h.fs.below(`${ROOT}/plugins`).filter((p) => p.endsWith('.json') || p.endsWith('globalmount'))).toEqual([]);
}
const known = (h: VirtualNode) => [...(h.tree.registry.read(driversView)?.value.keys() ?? [])];

describe('a driver', () => {
  it('that comes to the folder of plugins is registered and told to the cluster, and unregistered when its socket goes', async ({ h }) => {
    plug(h, { nodeId: 'i-1', volumesMax: 7, topology: { 'topology.example.com/zone': 'z1' } });
    await h.until('registered', () => known(h).includes(NAME));
    expect(h.drivers.told).toEqual([{ socket: SOCKET, error: '' }]);
    await h.until('the cluster knows', () => get(h, `${STORAGE}/csinodes/n1`) !== undefined);
    expect(get(h, `${STORAGE}/csinodes/n1`)).toMatchObject({
      metadata: { ownerReferences: [{ kind: 'Node', name: 'n1' }] },
      spec: { drivers: [{ name: NAME, nodeID: 'i-1', topologyKeys: ['topology.example.com/zone'], allocatable: { count: 7 } }] },
    });
    expect(get(h, '/api/v1/nodes/n1')).toMatchObject({
      metadata: {
        annotations: { 'csi.volume.kubernetes.io/nodeid': JSON.stringify({ [NAME]: 'i-1' }) },
        labels: { 'topology.example.com/zone': 'z1' },
      },
    });
    h.fs.drop(SOCKET);
    await h.until('unregistered', () => known(h).length === 0);
    await h.until(
      'the cluster knows',
      () => (get(h, `${STORAGE}/csinodes/n1`) as { spec: { drivers: unknown[] } }).spec.drivers.length === 0,
    );
    const { metadata } = get(h, '/api/v1/nodes/n1') as { metadata: { annotations: Record<string, string> } };
    expect(metadata.annotations['csi.volume.kubernetes.io/nodeid']).toBeUndefined();
  });

  it('that asks its cloud for a minute and more where it is has the time for it', async ({ h }) => {
    h.drivers.latencyMs = (method) => (method === 'NodeGetInfo' ? 110_000 : 1);
    plug(h);
    await h.until('registered', () => known(h).includes(NAME), 300_000);
    expect(h.drivers.told).toEqual([{ socket: SOCKET, error: '' }]);
  });

  it('is told in a CSINode of this node, and not in one that an earlier node of its name left', async () => {
    const driver = { name: NAME, nodeID: 'i-1', topologyKeys: null };
    const earlier = { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'an-earlier-one' };
    const left = { metadata: { name: 'n1', ownerReferences: [earlier] }, spec: { drivers: [driver] } };
    await using h = await node({ before: (v) => put(v, `${STORAGE}/csinodes`, left) });
    plug(h, { nodeId: 'i-1' });
    const uid = () => (get(h, '/api/v1/nodes/n1') as { metadata: { uid: string } } | undefined)?.metadata.uid ?? 'none yet';
    const csiNode = () => JSON.stringify(get(h, `${STORAGE}/csinodes/n1`) ?? {});
    await h.until('there is one of this node', () => csiNode().includes(uid()));
    await h.until('it has the driver', () => csiNode().includes(NAME));
    expect(JSON.parse(csiNode())).toMatchObject({ metadata: { ownerReferences: [{ uid: uid() }] }, spec: { drivers: [driver] } });
  });

  it('whose socket has a name with a dot in front, or is no socket, is not asked (trap 64); one in a folder below is', async ({ h }) => {
    plug(h, { name: 'hidden.example.com' }, `${ROOT}/plugins_registry/.x.sock`);
    h.fs.put(`${ROOT}/plugins_registry/readme`, 'x');
    plug(h, {}, `${ROOT}/plugins_registry/below/x.sock`);
    await h.until('registered', () => known(h).length > 0);
    await h.advance(60_000);
    expect(known(h)).toEqual([NAME]);
    expect(h.drivers.told.map((t) => t.socket)).toEqual([`${ROOT}/plugins_registry/below/x.sock`]);
  });

  it('of a name that is taken is refused until it has a higher version or the other goes; one made anew is met anew (trap 65)', async ({
    h,
  }) => {
    const other = `${ROOT}/plugins_registry/other.sock`;
    plug(h, { nodeId: 'first' });
    await h.until('registered', () => known(h).length > 0);
    plug(h, { nodeId: 'second' }, other);
    await h.until('the second is refused', () => h.drivers.told.some((t) => t.socket === other));
    expect(h.drivers.told.find((t) => t.socket === other)?.error).toContain(`CSI driver ${NAME} is already registered with version 1.0.0`);
    h.drivers.add(other, { name: NAME, nodeId: 'second', versions: ['1.1.0'] });
    const nodeId = () => h.tree.registry.read(driversView)?.value.get(NAME)?.nodeId;
    await h.until('the newer one has the name', () => nodeId() === 'second', 200_000);
    h.fs.drop(SOCKET);
    await h.advance(30_000);
    expect(nodeId()).toBe('second');
    h.fs.drop(other);
    plug(h, { nodeId: 'third' }, other);
    await h.until('the one made anew is known', () => nodeId() === 'third');
  });

  it.each([
    ['no versions', { versions: [] }, 'CSI driver reporting empty array for supported versions'],
    ['versions of the past only', { versions: ['0.3.0'] }, 'unsupported versions [0.3.0]'],
    ['an empty node id', { nodeId: '' }, 'gave an empty node id'],
  ])('that has %s is told so, and registered when it is put right', async (_, wrong, why) => {
    await using h = await node();
    const driver = plug(h, wrong);
    await h.until('told', () => h.drivers.told.length > 0);
    expect(h.drivers.told[0]?.error).toContain(why);
    expect(known(h)).toEqual([]);
    Object.assign(driver, { versions: ['1.5.0'], nodeId: 'i-1' });
    await h.until('registered', () => known(h).length > 0, 200_000);
  });
});

describe('a claim that two volumes of a pod name', () => {
  const twice = {
    container: {
      volumeMounts: [
        { name: 'disk', mountPath: '/data' },
        { name: 'again', mountPath: '/again' },
      ],
    },
    spec: { volumes: ['disk', 'again'].map((name) => ({ name, persistentVolumeClaim: { claimName: 'data' } })) },
  };

  it('is staged and published once, shown twice, found by the next daemon, and given back whole', async ({ h }) => {
    await provided(h);
    const pod = await createReady(h, 'web', twice);
    expect(created(h, 'web')[0]?.mounts?.map((m) => m.containerPath)).toEqual(expect.arrayContaining(['/data', '/again']));
    await h.restart();
    await h.until('Ready', () => isReady(h, 'web'));
    await h.advance(300_000);
    expect([stages(h), publishes(h)].map((calls) => calls.length)).toEqual([1, 1]);
    await dropped(h, pod);
    expect(requests(h, 'NodeUnpublishVolume')).toHaveLength(1);
    clean(h);
  });

  it('is published again once at each refresh', async () => {
    const published: number[] = [];
    for (const spec of [claiming(), twice]) {
      await using h = await node();
      await plugged(h);
      rules(h, { requiresRepublish: true });
      provide(h);
      await createReady(h, 'web', spec);
      await h.advance(1_200_000);
      published.push(publishes(h).length);
    }
    const [one = 0, two = 0] = published;
    expect(one).toBeGreaterThan(10);
    expect(Math.abs(two - one)).toBeLessThan(one / 4);
  });

  it('and that is a disk of the node is mounted once, and unmounted with its pod', async ({ h }) => {
    h.special.set('/dev/loop7', 'block');
    provide(h, { pv: { csi: undefined, local: { path: '/dev/loop7', fsType: 'ext4' } } });
    const pod = await createReady(h, 'web', twice);
    expect(h.mounts.table.filter((m) => m.path.endsWith('/pv-1') && m.path.includes('/pods/'))).toHaveLength(1);
    await h.restart();
    await h.until('Ready', () => isReady(h, 'web'));
    await dropped(h, pod);
    clean(h);
  });
});

describe('a volume of an old plugin', () => {
  const EBS = 'ebs.csi.aws.com';
  const old = (awsElasticBlockStore: object) => ({
    container: { volumeMounts: [{ name: 'disk', mountPath: '/data' }] },
    spec: { volumes: [{ name: 'disk', awsElasticBlockStore }] },
  });
  const serving = async (h: VirtualNode): Promise<void> => {
    plug(h, { name: EBS, capabilities: new Set(['STAGE_UNSTAGE_VOLUME']) });
    put(h, `${STORAGE}/csidrivers`, { metadata: { name: EBS }, spec: { attachRequired: false } });
    await h.until('the driver is registered', () => known(h).includes(EBS));
  };

  it('that stands in the pod is served by the driver that took its place, and found again after a restart', async ({ h }) => {
    await serving(h);
    const pod = await createReady(h, 'web', old({ volumeID: 'aws://us-east-1a/vol-1', fsType: 'xfs', partition: 2 }));
    expect(stages(h)).toMatchObject([
      { volumeId: 'vol-1', volumeCapability: { mount: { fsType: 'xfs' } }, volumeContext: { partition: '2' } },
    ]);
    h.kill('node/services/volumes');
    await h.advance(30_000);
    expect(order(h)).toEqual(['NodeStageVolume', 'NodePublishVolume']);
    await dropped(h, pod);
    expect(order(h).slice(2)).toEqual(['NodeUnpublishVolume', 'NodeUnstageVolume']);
    clean(h);
    // What takes it down knows the driver alone, as in the kubelet.
    const counted = (await h.metrics.render()).split('\n').filter((line) => line.startsWith('csi_operations_seconds_count'));
    const migrated = (method: string) => counted.find((line) => line.includes(method))?.includes('migrated="true"');
    expect(['NodeStageVolume', 'NodePublishVolume', 'NodeUnpublishVolume'].map(migrated)).toEqual([true, true, false]);
  });

  it('is attached by the name of that driver, and cannot be used with an id that is none', async ({ h }) => {
    plug(h, { name: EBS });
    put(h, `${STORAGE}/csidrivers`, { metadata: { name: EBS }, spec: { attachRequired: true } });
    await h.until('the driver is registered', () => known(h).includes(EBS));
    create(h, 'web', old({ volumeID: 'vol-1' }));
    const inUse = () => (get(h, '/api/v1/nodes/n1') as { status?: { volumesInUse?: string[] } }).status?.volumesInUse ?? [];
    await h.until('the cluster is told', () => inUse().length > 0);
    expect(inUse()).toEqual([`kubernetes.io/csi/${EBS}^vol-1`]);
    create(h, 'wrong', old({ volumeID: 'aws://us-east-1a/disk-1' }));
    await h.until('the event', () => events(h, 'FailedMount').some((said) => said.includes('Invalid format for AWS volume')));
  });
});

describe('an inline volume', () => {
  it('is published for its pod alone, with what the driver asks to know, and goes with it', async ({ h }) => {
    await plugged(h);
    inlineRules(h, { podInfoOnMount: true });
    secret(h, 'creds', { password: 's3cret' });
    const pod = await createReady(h, 'web', inline({ nodePublishSecretRef: { name: 'creds' }, fsType: 'ext4' }));
    expect(order(h)).toEqual(['NodePublishVolume']);
    const [request] = publishes(h);
    expect(request).toMatchObject({
      volumeId: expect.stringMatching(/^csi-[0-9a-f]{64}$/),
      targetPath: `${inlineDir(pod)}/mount`,
      stagingTargetPath: '',
      readonly: false,
      secrets: { password: 's3cret' },
      volumeCapability: { mount: { fsType: 'ext4', mountFlags: [] }, accessMode: { mode: 'SINGLE_NODE_WRITER' } },
      volumeContext: {
        size: '1',
        'csi.storage.k8s.io/pod.name': 'web',
        'csi.storage.k8s.io/pod.namespace': 'default',
        'csi.storage.k8s.io/pod.uid': pod.metadata.uid,
        'csi.storage.k8s.io/ephemeral': 'true',
      },
    });
    expect(created(h, 'web')[0]?.mounts?.[0]).toMatchObject({
      containerPath: '/data',
      hostPath: `${inlineDir(pod)}/mount`,
      readonly: false,
    });
    expect(JSON.stringify([h.lines, h.node.recorder(), h.tree.state()])).not.toContain('s3cret');
    await dropped(h, pod);
    expect(order(h)).toEqual(['NodePublishVolume', 'NodeUnpublishVolume']);
    clean(h);
  });

  it.each([
    ['with the attributes of the volume, as before 1.35', false],
    ['with the secrets, where the driver asks for that', true],
  ])('comes with a token of its pod: %s', async (_, serviceAccountTokenInSecrets) => {
    await using h = await node();
    await plugged(h);
    put(h, `${NS}/serviceaccounts`, { metadata: { name: 'default' } });
    inlineRules(h, { tokenRequests: [{ audience: 'vault' }], serviceAccountTokenInSecrets });
    secret(h, 'creds', { password: 's3cret' });
    await createReady(h, 'web', inline({ nodePublishSecretRef: { name: 'creds' } }));
    const [request] = publishes(h);
    const key = 'csi.storage.k8s.io/serviceAccount.tokens';
    const [there, elsewhere] = serviceAccountTokenInSecrets
      ? [request?.secrets, request?.volumeContext]
      : [request?.volumeContext, request?.secrets];
    expect(JSON.parse(there?.[key] ?? '{}')).toEqual({ vault: expect.objectContaining({ token: expect.any(String) }) });
    expect(elsewhere).not.toHaveProperty([key]);
    expect(request?.secrets).toMatchObject({ password: 's3cret' });
  });

  it('of a driver that is not there waits for it, with the words of the reference, and goes on the moment it comes', async ({ h }) => {
    inlineRules(h);
    create(h, 'web', inline());
    await h.until('the mount failed', () => events(h, 'FailedMount').length > 0);
    expect(events(h, 'FailedMount')[0]).toBe(
      `MountVolume.SetUp failed for volume "disk" : kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: driver name ${NAME} not found in the list of registered CSI drivers`,
    );
    await h.advance(300_000);
    plug(h);
    await h.until('Ready', () => isReady(h, 'web'), 20_000);
  });

  it.each([
    ['has no object in the cluster', 'no CSIDriver object', () => {}],
    ['is for persistent ones only', 'only supports ["Persistent"]', (h: VirtualNode) => rules(h)],
  ])('is refused where the driver %s', async (_, why, say) => {
    await using h = await node();
    await plugged(h);
    say(h);
    create(h, 'web', inline());
    await h.until('the mount failed', () => events(h, 'FailedMount').length > 0);
    expect(events(h, 'FailedMount')[0]).toContain(`volume mode "Ephemeral" not supported by driver ${NAME} (${why})`);
    expect(order(h)).toEqual([]);
  });
});

describe('a claim that a driver serves', () => {
  it('is staged once and published for each pod, and unstaged with the last one', async ({ h }) => {
    await plugged(h);
    rules(h);
    secret(h, 'creds', { key: 'k1' });
    provide(h, {
      csi: { fsType: 'xfs', nodeStageSecretRef: { name: 'creds', namespace: 'default' } },
      pv: { mountOptions: ['noatime'], accessModes: ['ReadWriteMany'] },
    });
    const [one, two] = [create(h, 'one', claiming()), create(h, 'two', claiming())];
    await h.until('both Ready', () => isReady(h, 'one') && isReady(h, 'two'));
    expect(order(h)).toEqual(['NodeStageVolume', 'NodePublishVolume', 'NodePublishVolume']);
    const staging = stages(h)[0]?.stagingTargetPath ?? '';
    expect(staging).toMatch(new RegExp(`^${ROOT}/plugins/kubernetes.io/csi/${NAME}/[0-9a-f]{64}/globalmount$`));
    expect(stages(h)[0]).toMatchObject({
      volumeId: 'vol-1',
      secrets: { key: 'k1' },
      volumeContext: { tier: 'gold' },
      volumeCapability: { mount: { fsType: 'xfs', mountFlags: ['noatime'] }, accessMode: { mode: 'MULTI_NODE_MULTI_WRITER' } },
    });
    expect(publishes(h)[0]?.stagingTargetPath).toBe(staging);
    drop(h, 'pods/one');
    await gone(h, one);
    expect(order(h).slice(3)).toEqual(['NodeUnpublishVolume']);
    drop(h, 'pods/two');
    await gone(h, two);
    expect(order(h).slice(4)).toEqual(['NodeUnpublishVolume', 'NodeUnstageVolume']);
    clean(h);
  });

  it('waits until the use was posted and the volume attached, and hands on what the attacher left (trap 44)', async ({ h }) => {
    await plugged(h);
    put(h, `${STORAGE}/csidrivers`, { metadata: { name: NAME }, spec: { attachRequired: true } });
    provide(h);
    const pod = create(h, 'web', claiming());
    const unique = `kubernetes.io/csi/${NAME}^vol-1`;
    const status = () => (get(h, '/api/v1/nodes/n1')?.status ?? {}) as { volumesInUse?: string[] };
    await h.until('the use is posted', () => status().volumesInUse?.includes(unique) === true);
    await h.advance(60_000);
    expect(order(h)).toEqual([]);
    const attach = (body: object, path: string) => {
      must(h, { verb: 'PATCH', path, patchType: 'merge', body });
    };
    attach({ status: { volumesAttached: [{ name: unique, devicePath: '' }] } }, '/api/v1/nodes/n1/status');
    await h.advance(60_000);
    expect(order(h)).toEqual([]);
    const { createHash } = await import('node:crypto');
    const id = `csi-${createHash('sha256').update(`vol-1${NAME}n1`).digest('hex')}`;
    put(h, `${STORAGE}/volumeattachments`, {
      metadata: { name: id },
      status: { attached: true, attachmentMetadata: { devicePath: '/dev/vdb' } },
    });
    await h.until('Ready', () => isReady(h, 'web'), 300_000);
    expect(stages(h)[0]?.publishContext).toEqual({ devicePath: '/dev/vdb' });
    expect(publishes(h)[0]?.publishContext).toEqual({ devicePath: '/dev/vdb' });
    // Restarted, it goes on saying so from the first status on (trap 71).
    await h.crash();
    const patches = h.kube.calls.length;
    await h.boot();
    await h.advance(60_000);
    const posted = h.kube.calls.slice(patches).filter((c) => c.request.verb === 'PATCH' && c.request.path.endsWith('/nodes/n1/status'));
    for (const { request } of posted) expect(JSON.stringify(request.body)).not.toContain('"volumesInUse":[]');
    expect(status().volumesInUse).toEqual([unique]);
    await dropped(h, pod);
    await h.until('it is in use no more', () => (status().volumesInUse ?? []).length === 0);
    clean(h);
  });

  it('is not attached by the node itself where the controller is not to do it, as in the kubelet', async () => {
    await using h = await node({ config: { enableControllerAttachDetach: false } });
    await plugged(h);
    rules(h, { attachRequired: true });
    provide(h);
    create(h, 'web', claiming());
    await h.until('it is told', () => events(h, 'FailedAttachVolume').length > 0);
    expect(events(h, 'FailedAttachVolume')[0]).toContain('attaching volumes from the kubelet is not supported');
    expect(get(h, '/api/v1/nodes/n1')).not.toMatchObject({
      metadata: { annotations: { 'volumes.kubernetes.io/controller-managed-attach-detach': 'true' } },
    });
  });

  it('is found by the next daemon, which asks nobody about it, and taken down by it', async ({ h }) => {
    await provided(h);
    const pod = await createReady(h, 'web', claiming());
    await h.crash();
    const before = order(h).length;
    const asked = () => h.kube.calls.filter((c) => c.request.path.includes('persistentvolumes/')).length;
    const [calls] = [asked()];
    await h.boot();
    await h.until('Ready', () => isReady(h, 'web'));
    await h.advance(120_000);
    expect(order(h)).toHaveLength(before);
    expect(asked()).toBe(calls);
    await dropped(h, pod);
    expect(order(h).slice(before)).toEqual(['NodeUnpublishVolume', 'NodeUnstageVolume']);
    clean(h);
  });

  it('whose pod went while the daemon was away is taken down by the next', async ({ h }) => {
    await provided(h);
    const pod = await createReady(h, 'web', claiming());
    await h.crash();
    drop(h, 'pods/web', 0);
    await h.boot();
    await gone(h, pod);
    clean(h);
  });

  it.each(['NodeStageVolume', 'NodePublishVolume'] as const)(
    'whose %s was not answered in time is undone with its pod, whatever became of it (trap 47)',
    async (method) => {
      await using h = await node();
      await provided(h);
      h.drivers.fault = (_, m) => (m === method ? { code: 4, details: 'context deadline exceeded', effect: true } : undefined);
      const pod = create(h, 'web', claiming());
      await h.until('the mount failed', () => events(h, 'FailedMount').length > 0);
      expect(events(h, 'FailedMount')[0]).toContain('rpc error: code = DeadlineExceeded desc = context deadline exceeded');
      expect(h.fs.has(`${dir(pod)}/vol_data.json`)).toBe(true);
      await dropped(h, pod);
      expect(order(h)).toContain('NodeUnpublishVolume');
      expect(order(h)).toContain('NodeUnstageVolume');
      clean(h);
    },
  );

  const failingFor = (h: VirtualNode, method: CsiMethod) => {
    h.drivers.fault = (_, m) => (m === method ? { code: 3, details: 'no such filesystem', effect: false } : undefined);
  };
  it('whose NodeStageVolume failed for good leaves nothing behind, and is tried again (traps 48, 49)', async ({ h }) => {
    await provided(h);
    failingFor(h, 'NodeStageVolume');
    const pod = create(h, 'web', claiming());
    await h.until('the mount failed', () => events(h, 'FailedMount').length > 0);
    expect(events(h, 'FailedMount')[0]).toContain('rpc error: code = InvalidArgument desc = no such filesystem');
    expect(h.fs.has(dir(pod))).toBe(false);
    clean(h);
    h.drivers.fault = () => undefined;
    await h.until('Ready', () => isReady(h, 'web'), 300_000);
  });

  it('whose NodePublishVolume failed for good stays staged, and is unstaged with its pod', async ({ h }) => {
    await provided(h);
    failingFor(h, 'NodePublishVolume');
    const pod = create(h, 'web', claiming());
    await h.until('it was tried again', () => publishes(h).length > 2, 300_000);
    expect(stages(h)).toHaveLength(1);
    expect(h.fs.has(`${dir(pod)}/mount`)).toBe(false);
    h.drivers.fault = () => undefined;
    await h.until('Ready', () => isReady(h, 'web'), 300_000);
    await dropped(h, pod);
    clean(h);
    failingFor(h, 'NodePublishVolume');
    const second = create(h, 'second', claiming());
    await h.until('it failed too', () => stages(h).length > 1, 300_000);
    await dropped(h, second);
    clean(h);
  });

  it('stays until its driver is back, where that one died in between', async ({ h }) => {
    const driver = await provided(h);
    driver.down = true;
    await h.advance(1_000);
    const pod = create(h, 'web', claiming());
    await h.until('the mount failed', () => events(h, 'FailedMount').length > 0);
    driver.down = false;
    await h.until('Ready', () => isReady(h, 'web'), 300_000);
    driver.down = true;
    drop(h, 'pods/web');
    await h.advance(120_000);
    expect(h.fs.has(`${dir(pod)}/vol_data.json`)).toBe(true);
    expect(h.mounts.table).not.toEqual([]);
    driver.down = false;
    await gone(h, pod);
    clean(h);
  });

  it('is taken from one pod before it is given to the next: one thing at a time is done to a device (trap 45)', async ({ h }) => {
    await provided(h);
    const one = await createReady(h, 'one', claiming());
    let asked = false;
    h.drivers.latencyMs = (method) => {
      asked ||= method === 'NodeUnpublishVolume';
      return method === 'NodeUnpublishVolume' ? 20_000 : 1;
    };
    drop(h, 'pods/one');
    await h.until('it is being unpublished', () => asked);
    create(h, 'two', claiming());
    await h.until('Ready', () => isReady(h, 'two'), 200_000);
    const acts = order(h).slice(2);
    expect(acts.indexOf('NodeUnpublishVolume')).toBeLessThan(acts.indexOf('NodePublishVolume'));
    await gone(h, one);
    expect(h.drivers.violations).toEqual([]);
  });

  it('that cannot be unstaged keeps what is needed to take it down, until it can (trap 50)', async ({ h }) => {
    await provided(h);
    const pod = await createReady(h, 'web', claiming());
    h.drivers.fault = (_, m) => (m === 'NodeUnstageVolume' ? { code: 13, details: 'busy', effect: false } : undefined);
    drop(h, 'pods/web');
    await h.until('it was tried', () => order(h).includes('NodeUnstageVolume'));
    await h.advance(60_000);
    expect(h.fs.has(`${dir(pod)}/vol_data.json`)).toBe(true);
    h.drivers.fault = () => undefined;
    await gone(h, pod);
    clean(h);
  });

  it.each([
    ['that ends by itself', { life: 'run=5s,exit=0' }, 'Succeeded'],
    ['that is deleted', {}, 'Failed'],
  ])('that cannot be taken down does not keep back the end of a pod %s', async (_, life, phase) => {
    await using h = await node();
    await provided(h);
    h.drivers.fault = (_, m) => (m === 'NodeUnpublishVolume' ? { code: 13, details: 'busy', effect: false } : undefined);
    const pod = await createReady(h, 'web', { ...life, ...claiming({ restartPolicy: 'Never' }) });
    if (phase === 'Failed') drop(h, 'pods/web');
    await h.until('its end is told', () => inApi(h, 'web')?.status.phase === phase, 60_000);
    await h.advance(120_000);
    expect(order(h)).toContain('NodeUnpublishVolume');
    // It is deleted when its volumes are down.
    expect(inApi(h, 'web')?.status.phase).toBe(phase);
    h.drivers.fault = () => undefined;
    if (phase === 'Succeeded') drop(h, 'pods/web');
    await gone(h, pod);
    expect(inApi(h, 'web')).toBeUndefined();
    clean(h);
  });

  it('of a pod alone is refused to a second pod of the node', async ({ h }) => {
    await plugged(h);
    rules(h);
    provide(h, { pv: { accessModes: ['ReadWriteOncePod'] } });
    await createReady(h, 'one', claiming());
    create(h, 'two', claiming());
    await h.until('the mount failed', () => events(h, 'FailedMount').length > 0);
    expect(events(h, 'FailedMount')[0]).toContain('volume uses the ReadWriteOncePod access mode and is already in use by another pod');
  });

  it('is published again at each refresh where the driver asks for it', async ({ h }) => {
    await plugged(h);
    rules(h, { requiresRepublish: true });
    provide(h);
    await createReady(h, 'web', claiming());
    await h.until('published again', () => publishes(h).length > 2, 400_000);
    expect(stages(h)).toHaveLength(1);
    expect(isReady(h, 'web')).toBe(true);
    h.drivers.fault = (_, m) => (m === 'NodePublishVolume' ? { code: 3, details: 'not now', effect: false } : undefined);
    await h.until('it failed', () => events(h, 'FailedMount').length > 0, 400_000);
    expect(h.mounts.table).toHaveLength(2);
  });
});

describe('a volume made for one pod', () => {
  const own = { container: claiming().container, spec: { volumes: [{ name: 'disk', ephemeral: { volumeClaimTemplate: { spec: {} } } }] } };
  const owner = (uid: string) => ({
    name: 'web-disk',
    ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'web', controller: true, uid }],
  });

  it('is the claim that the cluster made for it', async ({ h }) => {
    await plugged(h);
    rules(h);
    const pod = create(h, 'web', own);
    provide(h, { claim: owner(pod.metadata.uid) });
    await h.until('Ready', () => isReady(h, 'web'), 300_000);
    expect(publishes(h)[0]?.volumeId).toBe('vol-1');
  });

  it('is not a claim of that name that belongs to another', async ({ h }) => {
    await plugged(h);
    rules(h);
    provide(h, { claim: owner('somebody') });
    create(h, 'web', own);
    await h.until('the mount failed', () => events(h, 'FailedMount').length > 0);
    expect(events(h, 'FailedMount')[0]).toContain('PVC default/web-disk was not created for pod default/web (pod is not owner)');
    await h.advance(60_000);
    expect(order(h)).toEqual([]);
  });
});

describe('a device', () => {
  const block = { container: { volumeDevices: [{ name: 'disk', devicePath: '/dev/xvda' }] }, spec: claiming().spec };

  it('of a local volume is linked and given to the container', async ({ h }) => {
    h.special.set('/dev/loop7', 'block');
    provide(h, { pv: { csi: undefined, local: { path: '/dev/loop7' }, volumeMode: 'Block' } });
    const pod = await createReady(h, 'web', block);
    const link = `${ROOT}/pods/${pod.metadata.uid}/volumeDevices/kubernetes.io~local-volume/pv-1`;
    expect(created(h, 'web')[0]?.devices).toEqual([{ containerPath: '/dev/xvda', hostPath: link, permissions: 'mrw' }]);
    expect(await h.fs.readlink(link)).toBe('/dev/loop7');
    await h.restart();
    await h.until('Ready', () => isReady(h, 'web'));
    await dropped(h, pod);
    clean(h);
  });

  it('of a machine that lost its power is published anew before a container gets it, however much of the directory is there', async ({
    h,
  }) => {
    await plugged(h);
    inlineRules(h);
    const pod = await createReady(h, 'web', inline());
    await h.crash();
    h.mounts.powerLoss({ emptyDir: () => {} });
    h.drivers.powerLoss();
    for (const c of h.running()) h.runtime.exit(c.id, { exitCode: 255 });
    await h.boot();
    await h.until('it runs again', () => h.running().length > 0);
    expect([...(h.drivers.sockets.get(SOCKET)?.published.keys() ?? [])]).toEqual([`${inlineDir(pod)}/mount`]);
  });

  it('of a driver is published to a place of its own', async ({ h }) => {
    await plugged(h);
    rules(h);
    provide(h, { pv: { volumeMode: 'Block' } });
    const pod = await createReady(h, 'web', block);
    const link = `${ROOT}/pods/${pod.metadata.uid}/volumeDevices/kubernetes.io~csi/pv-1`;
    expect(created(h, 'web')[0]?.devices).toEqual([{ containerPath: '/dev/xvda', hostPath: link, permissions: 'mrw' }]);
    expect(publishes(h)[0]).toMatchObject({ volumeCapability: { block: {} }, targetPath: await h.fs.readlink(link) });
    await h.until('it is said that the device is there', () => events(h, 'SuccessfulMountVolume').length > 0);
    expect(events(h, 'SuccessfulMountVolume')).toEqual([
      expect.stringMatching(/^MapVolume\.MapPodDevice succeeded for volume "pv-1" volumeMapPath ".+"$/),
    ]);
    await dropped(h, pod);
    clean(h);
  });

  it.each([
    ['a directory', block, {}, 'volume disk has volumeMode Filesystem, but is specified in volumeDevices', 'FailedMapVolume'],
    [
      'a device, mounted',
      claiming(),
      { volumeMode: 'Block' },
      'volume disk has volumeMode Block, but is specified in volumeMounts',
      'FailedMount',
    ],
  ])('is not %s', async (_, pod, pv, why, reason) => {
    await using h = await node();
    await plugged(h);
    rules(h);
    provide(h, { pv });
    create(h, 'web', pod);
    await h.until('it failed', () => events(h, reason).length > 0);
    expect(events(h, reason)[0]).toContain(why);
  });
});
