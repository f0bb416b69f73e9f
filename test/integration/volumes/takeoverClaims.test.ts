/**
 * Volumes of claims that the kubelet of another agent left on the node: taken over where they stand, and left so that the
 * kubelet finds them. The names and files are those that the kubelet 1.36.2 was seen to write (`test/cluster/node/takeoverVolumes`).
 */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { driversView } from '../../../src/machines/services/plugins/messages.ts';
import { volumesView } from '../../../src/machines/services/volumes/messages.ts';
import { cluster, create, createReady, dirOf, drop, dropped, gone, isReady, must, post, put } from '../cluster/clusterPods.ts';
import { ROOT, type VirtualNode } from '../virtualNode.ts';

const NAME = 'csi.example.com';
const SOCKET = `${ROOT}/plugins_registry/${NAME}-reg.sock`;
const UNIQUE = `kubernetes.io/csi/${NAME}^vol-1`;

async function plugged(h: VirtualNode, o: { attachRequired: boolean } = { attachRequired: false }): Promise<void> {
  h.drivers.add(SOCKET, { name: NAME, capabilities: new Set(['STAGE_UNSTAGE_VOLUME']) });
  h.fs.makeSocket(SOCKET);
  put(h, '/apis/storage.k8s.io/v1/csidrivers', { metadata: { name: NAME }, spec: o });
  await h.until('the driver is registered', () => h.tree.registry.read(driversView)?.value.has(NAME) === true);
}
function claim(h: VirtualNode, o: { claim: string; volume: string; source: object }): void {
  const { claim: name, volume, source } = o;
  post(h, 'persistentvolumeclaims', { metadata: { name }, spec: { volumeName: volume }, status: { phase: 'Bound' } });
  const got = h.kube.handle({ verb: 'GET', path: `/api/v1/namespaces/default/persistentvolumeclaims/${name}` });
  const { uid } = ((got.ok ? got.body : {}) as Pod).metadata;
  put(h, '/api/v1/persistentvolumes', {
    metadata: { name: volume },
    spec: { accessModes: ['ReadWriteOnce'], claimRef: { uid }, ...source },
  });
}
const driven = { csi: { driver: NAME, volumeHandle: 'vol-1' } };
const using = (name: string, of: string, device = false) => ({
  container: device ? { volumeDevices: [{ name, devicePath: '/dev/x' }] } : { volumeMounts: [{ name, mountPath: '/data' }] },
  spec: { volumes: [{ name, persistentVolumeClaim: { claimName: of } }] },
});
const calls = (h: VirtualNode) => h.drivers.calls.map((c) => c.method).filter((m) => !m.startsWith('NodeGet'));
const targets = (h: VirtualNode) =>
  h.drivers.calls.filter((c) => c.method === 'NodePublishVolume').map((c) => (c.request as { targetPath: string }).targetPath);
const shown = (h: VirtualNode, pod: Pod) =>
  (h.tree.registry.read(volumesView)?.value.get(pod.metadata.uid) ?? []).map((v) => `${v.plugin}/${v.name} ${v.state}`);
const inUse = (h: VirtualNode): unknown => {
  const got = h.kube.handle({ verb: 'GET', path: '/api/v1/nodes/n1' });
  return got.ok ? (got.body as { status: { volumesInUse?: string[] } }).status.volumesInUse : undefined;
};

/** What the controller and the attacher of the cluster do. */
function attach(h: VirtualNode): void {
  const body = { status: { volumesAttached: [{ name: UNIQUE, devicePath: '' }] } };
  must(h, { verb: 'PATCH', path: '/api/v1/nodes/n1/status', patchType: 'merge', body });
  const name = `csi-${createHash('sha256').update(`vol-1${NAME}n1`).digest('hex')}`;
  put(h, '/apis/storage.k8s.io/v1/volumeattachments', { metadata: { name }, status: { attached: true } });
}
/** The kubelet keeps no records of ours. Of a volume of a driver it writes these keys. */
function asOfTheKubelet(h: VirtualNode, pod: Pod): void {
  for (const path of h.fs.below(`${ROOT}/pods/${pod.metadata.uid}/plugins`)) h.fs.drop(path);
  for (const path of h.fs.below(ROOT).filter((p) => p.endsWith('/vol_data.json'))) {
    const { 'actorlet.dev/attached': _, ...theirs } = JSON.parse(h.fs.textOf(path) ?? '') as Record<string, string>;
    h.fs.put(path, JSON.stringify(theirs));
  }
}
async function takenOver(h: VirtualNode, pod: Pod): Promise<void> {
  await h.crash();
  asOfTheKubelet(h, pod);
  await h.boot();
  await h.until(
    'the volume is known by its claim',
    () => shown(h, pod).length > 0 && shown(h, pod).every((v) => v.endsWith(' mounted')),
    400_000,
  );
}

/** Of a pod that the kubelet left, and that is gone when the node begins. */
async function goneMeanwhile(h: Awaited<ReturnType<typeof cluster>>, pod: Awaited<ReturnType<typeof createReady>>): Promise<void> {
  await h.crash();
  asOfTheKubelet(h, pod);
  drop(h, 'pods/web', 0);
  await h.boot();
  await gone(h, pod);
  expect(calls(h).filter((m) => m.startsWith('NodeUn'))).toEqual(['NodeUnpublishVolume', 'NodeUnstageVolume']);
}

describe('a volume of a claim', () => {
  it('of a driver stands where the kubelet has it, with the words of the kubelet', async () => {
    await using h = await cluster({ drivers: true });
    await plugged(h);
    claim(h, { claim: 'data', volume: 'pvc-7', source: driven });
    const pod = await createReady(h, 'web', using('disk', 'data'));
    expect(JSON.parse(h.fs.textOf(`${dirOf(pod, 'csi', 'pvc-7')}/vol_data.json`) ?? '')).toMatchObject({
      ...{ driverName: NAME, volumeHandle: 'vol-1', specVolID: 'pvc-7', nodeName: 'n1', volumeLifecycleMode: 'Persistent' },
      attachmentID: expect.stringMatching(/^csi-[0-9a-f]{64}$/),
    });
    expect(h.fs.below(`${ROOT}/pods/${pod.metadata.uid}/volumes`).some((p) => p.includes('/disk'))).toBe(false);
  });

  it('of a driver that the kubelet left is one volume, published at no second place, and taken down once', async () => {
    await using h = await cluster({ drivers: true });
    await plugged(h);
    claim(h, { claim: 'data', volume: 'pvc-7', source: driven });
    const pod = await createReady(h, 'web', using('disk', 'data'));
    await takenOver(h, pod);
    expect(shown(h, pod)).toEqual(['kubernetes.io~local-volume/disk mounted']);
    expect(new Set(targets(h))).toEqual(new Set([`${dirOf(pod, 'csi', 'pvc-7')}/mount`]));
    expect(h.mounts.table.filter((m) => m.path.includes('/pods/'))).toHaveLength(1);
    await dropped(h, pod);
    expect(calls(h).filter((m) => m.startsWith('NodeUn'))).toEqual(['NodeUnpublishVolume', 'NodeUnstageVolume']);
    expect([h.drivers.violations, h.mounts.table]).toEqual([[], []]);
  });

  it('that the kubelet left, of a pod that is gone since, is taken down by its name on disk', async () => {
    await using h = await cluster({ drivers: true });
    await plugged(h);
    claim(h, { claim: 'data', volume: 'pvc-7', source: driven });
    const pod = await createReady(h, 'web', using('disk', 'data'));
    await goneMeanwhile(h, pod);
    expect([h.drivers.violations, h.mounts.table]).toEqual([[], []]);
  });

  it('that was attached for the kubelet stays in use, under one name, until its pod goes', async () => {
    await using h = await cluster({ drivers: true });
    await plugged(h, { attachRequired: true });
    claim(h, { claim: 'data', volume: 'pvc-7', source: driven });
    const pod = create(h, 'web', using('disk', 'data'));
    await h.until('it is wanted', () => JSON.stringify(inUse(h)) === JSON.stringify([UNIQUE]));
    attach(h);
    await h.until('Ready', () => isReady(h, 'web'), 400_000);
    await takenOver(h, pod);
    await h.advance(30_000);
    expect(inUse(h)).toEqual([UNIQUE]);
    await dropped(h, pod);
    await h.until('it may be detached', () => (inUse(h) ?? []).toString() === '');
  });

  it('whose device a pod has is found by its link, with what is known of it in the folder of the node', async () => {
    await using h = await cluster({ drivers: true });
    await plugged(h);
    claim(h, { claim: 'data', volume: 'pvc-7', source: { ...driven, volumeMode: 'Block' } });
    const pod = await createReady(h, 'web', using('disk', 'data', true));
    const own = `${ROOT}/plugins/kubernetes.io/csi/volumeDevices`;
    expect(JSON.parse(h.fs.textOf(`${own}/pvc-7/data/vol_data.json`) ?? '')).toMatchObject({ specVolID: 'pvc-7', volumeHandle: 'vol-1' });
    const link = `${ROOT}/pods/${pod.metadata.uid}/volumeDevices/kubernetes.io~csi/pvc-7`;
    expect(await h.fs.readlink(link)).toBe(`${own}/publish/pvc-7/${pod.metadata.uid}`);
    // A directory of that name would be a file system to the kubelet.
    expect(h.fs.has(`${ROOT}/pods/${pod.metadata.uid}/volumes/kubernetes.io~csi`)).toBe(false);
    await goneMeanwhile(h, pod);
    expect(h.fs.below(own).filter((p) => p.includes('pvc-7'))).toEqual([]);
  });

  it.each([
    ['nfs', { nfs: { server: '10.0.0.1', path: '/export' } }, 'nfs'],
    ['local', { local: { path: '/srv/data' } }, 'local-volume'],
  ])('of kind %s stands below its plugin, and is taken over without a second mount', async (_, source, plugin) => {
    await using h = await cluster();
    h.fs.makeDir('/srv/data');
    claim(h, { claim: 'data', volume: 'pvc-7', source });
    const pod = await createReady(h, 'web', using('disk', 'data'));
    const at = () => h.mounts.table.filter((m) => m.path.includes('/pods/')).map((m) => m.path);
    expect(at()).toEqual([dirOf(pod, plugin, 'pvc-7')]);
    await takenOver(h, pod);
    expect(at()).toEqual([dirOf(pod, plugin, 'pvc-7')]);
    expect(shown(h, pod)).toEqual(['kubernetes.io~local-volume/disk mounted']);
    await dropped(h, pod);
    expect(h.mounts.table).toEqual([]);
  });

  it('named like the PersistentVolume of another claim of the pod is not taken for it', async () => {
    await using h = await cluster();
    for (const name of ['/srv/one', '/srv/two']) h.fs.makeDir(name);
    claim(h, { claim: 'one', volume: 'b', source: { local: { path: '/srv/one' } } });
    claim(h, { claim: 'two', volume: 'a', source: { local: { path: '/srv/two' } } });
    const pod = create(h, 'web', {
      container: { volumeMounts: ['a', 'b'].map((name) => ({ name, mountPath: `/${name}` })) },
      spec: {
        volumes: [['a', 'one'] as const, ['b', 'two'] as const].map(([name, claimName]) => ({
          name,
          persistentVolumeClaim: { claimName },
        })),
      },
    });
    await h.until('Ready', () => isReady(h, 'web'));
    const at = () => h.mounts.table.map((m) => `${m.source} ${m.path.slice(m.path.lastIndexOf('/') + 1)}`).sort();
    expect(at()).toEqual(['/srv/one b', '/srv/two a']);
    await takenOver(h, pod);
    expect(at()).toEqual(['/srv/one b', '/srv/two a']);
    await dropped(h, pod);
    expect(h.mounts.table).toEqual([]);
  });
});
