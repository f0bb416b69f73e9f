/** Claims that grow while pods use them, and while they are being mounted: a whole node in virtual time (KEP-556, KEP-1790). */
import type { SimDriver } from '@actorlet/world/src/plugins/drivers.ts';
import { describe, expect } from 'vitest';
import { eventsView } from '../../../src/machines/foundation/messages.ts';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { driversView } from '../../../src/machines/services/plugins/messages.ts';
import { volumesView } from '../../../src/machines/services/volumes/messages.ts';
import type { CsiRequest } from '../../../src/machines/wire/csi.ts';
import { cluster, create, createReady, drop, events, isReady, must, NS, patch } from '../cluster/clusterPods.ts';
import { itWith } from '../onNode.ts';
import { ROOT, type VirtualNode } from '../virtualNode.ts';

const NAME = 'csi.example.com';
const SOCKET = `${ROOT}/plugins_registry/${NAME}-reg.sock`;
const GI = 1024 ** 3;
type Claim = {
  metadata: { uid: string };
  status: {
    capacity: object;
    conditions?: { type: string; message?: string }[];
    allocatedResourceStatuses?: object;
    allocatedResources?: object;
  };
};

function ask(h: VirtualNode, verb: 'POST' | 'PATCH' | 'GET', path: string, body?: object): unknown {
  return must<unknown>(h, {
    verb,
    path,
    ...(body === undefined ? {} : { body }),
    ...(verb === 'PATCH' ? { patchType: 'merge' as const } : {}),
  });
}
const claim = (h: VirtualNode) => ask(h, 'GET', `${NS}/persistentvolumeclaims/data`) as Claim;
const status = (h: VirtualNode, body: object) => ask(h, 'PATCH', `${NS}/persistentvolumeclaims/data/status`, { status: body });

async function grown(o: { driver?: Partial<SimDriver>; modes?: string[]; pv?: object } = {}): Promise<VirtualNode> {
  const h = await cluster({ drivers: true });
  h.drivers.add(SOCKET, { name: NAME, capabilities: new Set(['STAGE_UNSTAGE_VOLUME', 'EXPAND_VOLUME']), ...o.driver });
  h.fs.makeSocket(SOCKET);
  await h.until('registered', () => h.tree.registry.read(driversView)?.value.has(NAME) === true);
  ask(h, 'POST', '/apis/storage.k8s.io/v1/csidrivers', { metadata: { name: NAME }, spec: { attachRequired: false } });
  const accessModes = o.modes ?? ['ReadWriteOnce'];
  ask(h, 'POST', `${NS}/persistentvolumeclaims`, {
    metadata: { name: 'data' },
    spec: { volumeName: 'pv-1', accessModes, resources: { requests: { storage: '1Gi' } } },
    status: { phase: 'Bound', capacity: { storage: '1Gi' } },
  });
  const csi = { driver: NAME, volumeHandle: 'vol-1', fsType: 'ext4' };
  const spec = { accessModes, claimRef: { uid: claim(h).metadata.uid }, capacity: { storage: '1Gi' }, csi, ...o.pv };
  ask(h, 'POST', '/api/v1/persistentvolumes', { metadata: { name: 'pv-1' }, spec });
  return h;
}
const it = itWith(grown);
/** What a user does, and what the controller does then. */
const request = (h: VirtualNode, size: string) =>
  patch(h, 'persistentvolumeclaims/data', { spec: { resources: { requests: { storage: size } } } });
function resized(h: VirtualNode, size: string, o: { legacy?: boolean } = {}): void {
  ask(h, 'PATCH', '/api/v1/persistentvolumes/pv-1', { spec: { capacity: { storage: size } } });
  const steps = { allocatedResources: { storage: size }, allocatedResourceStatuses: { storage: 'NodeResizePending' } };
  status(h, { conditions: [{ type: 'FileSystemResizePending', status: 'True' }], ...(o.legacy === true ? {} : steps) });
}
function grows(h: VirtualNode, o: { legacy?: boolean } = {}): void {
  request(h, '2Gi');
  resized(h, '2Gi', o);
}
const pod = (volume: object = {}) => ({
  container: { volumeMounts: [{ name: 'disk', mountPath: '/data' }] },
  spec: { volumes: [{ name: 'disk', persistentVolumeClaim: { claimName: 'data', ...volume } }] },
});
const block = {
  container: { volumeDevices: [{ name: 'disk', devicePath: '/dev/xvda' }] },
  spec: { volumes: [{ name: 'disk', persistentVolumeClaim: { claimName: 'data' } }] },
};
const expands = (h: VirtualNode) =>
  h.drivers.calls.filter((c) => c.method === 'NodeExpandVolume').map((c) => c.request as CsiRequest<'NodeExpandVolume'>);
const about = (h: VirtualNode, reason: string) =>
  (h.tree.registry.read(eventsView)?.value ?? []).filter((e) => e.reason === reason).map((e) => e.about?.name ?? `pod ${e.pod?.name}`);
async function running(h: VirtualNode, spec: object = pod()): Promise<Pod> {
  const made = await createReady(h, 'web', spec);
  return made;
}
/** A pod is synced once in this time, whatever happens. */
const SYNC_MS = 90_000;
const settled = (h: VirtualNode, withinMs = 200_000) =>
  h.until('the claim has its size', () => JSON.stringify(claim(h).status.capacity) === '{"storage":"2Gi"}', withinMs);

describe('a claim that is given more room', () => {
  it('while its pod runs is grown when the pod is synced, and its status says so', async ({ h }) => {
    const p = await running(h);
    request(h, '2Gi');
    await h.advance(5_000);
    expect(expands(h)).toEqual([]);
    resized(h, '2Gi');
    await settled(h, SYNC_MS + 2_000);
    const [call] = expands(h);
    const target = `${ROOT}/pods/${p.metadata.uid}/volumes/kubernetes.io~csi/pv-1/mount`;
    expect(call).toMatchObject({
      volumeId: 'vol-1',
      volumePath: target,
      capacityRange: { requiredBytes: String(2 * GI) },
      stagingTargetPath: expect.stringContaining('/globalmount'),
      volumeCapability: { mount: { fsType: 'ext4' }, accessMode: { mode: 'SINGLE_NODE_WRITER' } },
    });
    expect(claim(h).status).toEqual({
      phase: 'Bound',
      capacity: { storage: '2Gi' },
      allocatedResources: { storage: '2Gi' },
      conditions: [],
    });
    expect(about(h, 'FileSystemResizeSuccessful')).toEqual(['pod web', 'data']);
    expect(events(h, 'FileSystemResizeSuccessful')[0]).toBe('MountVolume.NodeExpandVolume succeeded for volume "pv-1" n1');
    await h.advance(60_000);
    expect(expands(h)).toHaveLength(1);
  });

  it('on a disk of the node has its file system grown, again where that failed; one in a directory has its room', async () => {
    for (const [path, is, tries] of [
      ['/dev/sdx', 'block', 2],
      ['/mnt/disk', 'dir', 0],
    ] as const) {
      await using h = await grown({ pv: { csi: undefined, local: { path, fsType: 'xfs' } } });
      h.special.set(path, is);
      const asked: string[] = [];
      h.mounts.trouble.failing = (op, at) => (op === 'grow' && asked.push(at) === 1 ? 'EIO' : undefined);
      const p = await running(h);
      grows(h);
      await settled(h);
      expect(asked).toEqual(Array(tries).fill(`${ROOT}/pods/${p.metadata.uid}/volumes/kubernetes.io~local-volume/pv-1`));
    }
  });

  it('by an older controller, which keeps no steps, is grown all the same', async ({ h }) => {
    await running(h);
    grows(h, { legacy: true });
    await settled(h);
    expect(expands(h)).toHaveLength(1);
    expect(claim(h).status).toEqual({ phase: 'Bound', capacity: { storage: '2Gi' }, conditions: [] });
  });

  it('before its pod starts is grown before the pod runs', async ({ h }) => {
    grows(h);
    await running(h);
    expect(h.drivers.calls.map((c) => c.method).filter((m) => !m.startsWith('NodeGet'))).toEqual([
      'NodeStageVolume',
      'NodePublishVolume',
      'NodeExpandVolume',
    ]);
    expect(claim(h).status.capacity).toEqual({ storage: '2Gi' });
  });

  it('as a block device is told to the driver by its device', async () => {
    await using h = await grown({ pv: { volumeMode: 'Block' } });
    const p = await running(h, block);
    grows(h);
    await settled(h);
    expect(expands(h)[0]).toMatchObject({ volumeCapability: { block: {} }, volumePath: expect.stringContaining(`volumeDevices/publish/`) });
    expect(expands(h)[0]?.volumePath).toContain(p.metadata.uid);
  });

  it('which many nodes use is grown here too when another node has said that it has grown', async () => {
    await using h = await grown({ modes: ['ReadWriteMany'] });
    await running(h);
    await h.advance(5_000);
    ask(h, 'PATCH', '/api/v1/persistentvolumes/pv-1', { spec: { capacity: { storage: '2Gi' } } });
    status(h, { capacity: { storage: '2Gi' }, allocatedResources: { storage: '2Gi' } });
    await h.until('it is grown', () => expands(h).length === 1, SYNC_MS + 10_000);
    await h.advance(60_000);
    expect(expands(h)).toHaveLength(1);
    expect(h.kube.calls.some((c) => c.request.verb === 'PATCH' && c.request.path.includes('persistentvolumeclaims'))).toBe(false);
  });

  it('and is mounted read-only is not grown, and the user is told at the mount', async ({ h }) => {
    grows(h);
    await running(h, pod({ readOnly: true }));
    await h.advance(30_000);
    expect(expands(h)).toEqual([]);
    expect(about(h, 'FileSystemResizeFailed')).toEqual(['pod web', 'data']);
  });

  it.each([
    ['cannot have that size', 11, { storage: 'NodeResizeInfeasible' }],
    ['fails otherwise', 13, { storage: 'NodeResizeInProgress' }],
  ])('and %s says why in its status, while its pod runs on', async (_, code, steps) => {
    await using h = await grown();
    await running(h);
    h.drivers.fault = (_name, method) => (method === 'NodeExpandVolume' ? { code, details: 'no room', effect: false } : undefined);
    grows(h);
    await h.until('it has failed', () => events(h, 'VolumeResizeFailed').length > 0, SYNC_MS + 10_000);
    expect(events(h, 'VolumeResizeFailed')[0]).toContain('no room');
    const { status: now } = claim(h);
    expect(now.allocatedResourceStatuses).toEqual(steps);
    expect(now.capacity).toEqual({ storage: '1Gi' });
    expect(now.conditions?.map((c) => c.type)).toEqual(['FileSystemResizePending', 'NodeResizeError']);
    expect(now.conditions?.[1]?.message).toMatch(/^failed to expand pvc with .*no room$/);
    expect(isReady(h, 'web')).toBe(true);
    h.drivers.fault = () => undefined;
    if (code === 11) {
      // The controller has made room of another size meanwhile.
      await h.advance(60_000);
      expect(expands(h)).toHaveLength(1);
      status(h, { allocatedResourceStatuses: { storage: 'NodeResizePending' } });
    }
    await settled(h);
    expect(claim(h).status.conditions).toEqual([]);
  });

  it('of another size meanwhile is marked infeasible when it fails once more, so that the controller may go there', async ({ h }) => {
    await running(h);
    h.drivers.fault = (_name, method) => (method === 'NodeExpandVolume' ? { code: 13, details: 'no', effect: false } : undefined);
    grows(h);
    await h.until('it has failed', () => events(h, 'VolumeResizeFailed').length > 0, SYNC_MS + 10_000);
    request(h, '1536Mi');
    await h.until(
      'it is infeasible',
      () => JSON.stringify(claim(h).status.allocatedResourceStatuses) === '{"storage":"NodeResizeInfeasible"}',
      SYNC_MS + 10_000,
    );
  });

  it('of which nobody knows what became is asked for again, and its claim blames nobody', async ({ h }) => {
    await running(h);
    h.drivers.fault = (_name, method) => (method === 'NodeExpandVolume' ? { code: 4, details: 'late', effect: true } : undefined);
    grows(h);
    await h.until('it has failed', () => events(h, 'VolumeResizeFailed').length > 0, SYNC_MS + 10_000);
    expect(claim(h).status.conditions?.map((c) => c.type)).toEqual(['FileSystemResizePending']);
    h.drivers.fault = () => undefined;
    await settled(h);
  });

  it('and does not grow while it is used here is left until its pod is set up anew', async ({ h }) => {
    await running(h);
    h.drivers.fault = (_name, method) => (method === 'NodeExpandVolume' ? { code: 9, details: 'in use', effect: false } : undefined);
    grows(h);
    await h.until('it was tried', () => expands(h).length > 0, SYNC_MS + 10_000);
    await h.advance(120_000);
    expect([expands(h).length, events(h, 'VolumeResizeFailed')]).toEqual([1, []]);
    h.drivers.fault = () => undefined;
    drop(h, 'pods/web');
    await h.until('the pod is gone', () => h.fs.below(`${ROOT}/pods`).length === 0, 200_000);
    await running(h);
    await settled(h);
  });

  it('by a driver that does not grow volumes on nodes says so once, and again when one comes that does', async () => {
    await using h = await grown({ driver: { capabilities: new Set(['STAGE_UNSTAGE_VOLUME']) } });
    await running(h);
    grows(h);
    await h.until('it has failed', () => events(h, 'VolumeResizeFailed').length > 0, SYNC_MS + 10_000);
    expect(events(h, 'VolumeResizeFailed')[0]).toContain(`NodeExpand is not supported by the CSI driver ${NAME}`);
    h.drivers.sockets.get(SOCKET)?.capabilities.add('EXPAND_VOLUME');
    await settled(h);
    expect(h.drivers.violations).toEqual([]);
  });

  it('is finished by the daemon that comes after one that was killed between the driver and the status', async ({ h }) => {
    await running(h);
    h.drivers.answerMs = (method) => (method === 'NodeExpandVolume' ? 60_000 : 0);
    grows(h);
    await h.until('the driver was asked', () => expands(h).length > 0, SYNC_MS + 10_000);
    await h.crash();
    h.drivers.answerMs = () => 0;
    await h.boot();
    await settled(h);
    expect(claim(h).status.allocatedResourceStatuses).toBeUndefined();
  });

  it('does not hold up the end of its pod, except for what its driver is doing', async ({ h }) => {
    const p = await running(h);
    h.drivers.answerMs = (method) => (method === 'NodeExpandVolume' ? 20_000 : 0);
    grows(h);
    await h.until('the driver was asked', () => expands(h).length > 0, SYNC_MS + 10_000);
    drop(h, 'pods/web', 1);
    await h.until('the pod is gone', () => !h.fs.has(`${ROOT}/pods/${p.metadata.uid}`), 60_000);
    expect(claim(h).status.capacity).toEqual({ storage: '2Gi' });
    expect(h.drivers.violations).toEqual([]);
  });
});

describe('a claim that does not grow', () => {
  const reads = (h: VirtualNode, from: number) =>
    h.kube.calls
      .slice(from)
      .filter((c) => c.request.path.includes('persistentvolume'))
      .map((c) => c.request.path.replace(/.*\/(persistentvolume)/, '$1'));
  const TEN_MINUTES_MS = 600_000;

  it('is read once when its pod is synced, 60 to 90 s later, also while its controller never answers', async ({ h }) => {
    await running(h);
    for (const [size, pvs] of [
      ['1Gi', false],
      ['2Gi', true],
    ] as const) {
      request(h, size);
      const from = h.kube.calls.length;
      await h.advance(TEN_MINUTES_MS);
      const read = reads(h, from);
      const claims = read.filter((path) => path === 'persistentvolumeclaims/data').length;
      expect(claims).toBeGreaterThanOrEqual(6);
      expect(claims).toBeLessThanOrEqual(10);
      expect(read.length).toBe(pvs ? 2 * claims : claims);
    }
    const volume = h.tree.registry.read(volumesView)?.value.values().next().value?.[0];
    expect(volume?.state).toBe('mounted');
  });

  it.each([
    ['hostPath', { hostPath: { path: '/srv' } }],
    ['nfs', { nfs: { server: '10.0.0.9', path: '/x' } }],
  ])('since it is of %s is read at the first sync at most, and never again', async (_, source) => {
    await using h = await grown({ pv: { csi: undefined, ...source } });
    h.special.set('/srv', 'dir');
    await running(h);
    request(h, '2Gi');
    await h.advance(SYNC_MS);
    const from = h.kube.calls.length;
    await h.advance(TEN_MINUTES_MS);
    expect(reads(h, from)).toEqual([]);
  });

  it('of a driver that wants it published again is read for that, and no second time; it grows all the same', async ({ h }) => {
    ask(h, 'PATCH', `/apis/storage.k8s.io/v1/csidrivers/${NAME}`, { spec: { requiresRepublish: true } });
    await running(h);
    const from = h.kube.calls.length;
    await h.advance(TEN_MINUTES_MS);
    const read = reads(h, from);
    const published = h.kube.calls.slice(from).length;
    expect(published).toBeGreaterThan(0);
    const claims = read.filter((path) => path === 'persistentvolumeclaims/data').length;
    expect(claims).toBeGreaterThanOrEqual(6);
    expect(claims).toBeLessThanOrEqual(10);
    expect(read.length).toBe(2 * claims);
    grows(h);
    await settled(h, SYNC_MS + 2_000);
    expect(expands(h)).toHaveLength(1);
  });
});

describe('a burst of pods with claims of their own', () => {
  /** The kubelet of 1.36 asks three times or more for what the driver can do: before Stage, in Stage and in Publish. */
  it('costs each volume one question about the driver, one Stage and one Publish', async () => {
    const count = 40;
    await using h = await grown();
    const names = Array.from({ length: count }, (_, i) => `c${i}`);
    for (const name of names) {
      ask(h, 'POST', `${NS}/persistentvolumeclaims`, {
        metadata: { name },
        spec: { volumeName: `pv-${name}`, accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
        status: { phase: 'Bound', capacity: { storage: '1Gi' } },
      });
      const { uid } = (ask(h, 'GET', `${NS}/persistentvolumeclaims/${name}`) as Claim).metadata;
      const csi = { driver: NAME, volumeHandle: `vol-${name}` };
      const spec = { accessModes: ['ReadWriteOnce'], claimRef: { uid }, capacity: { storage: '1Gi' }, csi };
      ask(h, 'POST', '/api/v1/persistentvolumes', { metadata: { name: `pv-${name}` }, spec });
    }
    const before = h.drivers.calls.length;
    for (const name of names) {
      const container = { volumeMounts: [{ name: 'disk', mountPath: '/data' }] };
      create(h, `p-${name}`, { container, spec: { volumes: [{ name: 'disk', persistentVolumeClaim: { claimName: name } }] } });
    }
    await h.until('all are ready', () => names.every((name) => isReady(h, `p-${name}`)), 300_000);
    const made: Record<string, number> = {};
    for (const { method } of h.drivers.calls.slice(before)) made[method] = (made[method] ?? 0) + 1;
    expect(made).toEqual({ NodeGetCapabilities: count, NodeStageVolume: count, NodePublishVolume: count });
  });
});
