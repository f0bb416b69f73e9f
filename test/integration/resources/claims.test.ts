/** Claims of pods of the API, bound to volumes of this node: a whole node in virtual time (resources and volumes 8.4, 8.18). */
import { describe, expect } from 'vitest';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { cluster, create, created, createReady, dirOf, drop, events, isReady, must, NS, patch, post } from '../cluster/clusterPods.ts';
import { itOnCluster as it } from '../onNode.ts';
import { ROOT, type VirtualNode } from '../virtualNode.ts';

const CLAIM = 'persistentvolumeclaims/data';

/** A claim that is bound, and what it is bound to. */
function provide(h: VirtualNode, source: object, status: object = { phase: 'Bound' }, annotations: object = {}): void {
  post(h, 'persistentvolumeclaims', { metadata: { name: 'data' }, spec: { volumeName: 'pv-1' }, status });
  const got = h.kube.handle({ verb: 'GET', path: `${NS}/${CLAIM}` });
  const { metadata } = (got.ok ? got.body : {}) as { metadata: { uid: string } };
  const body = { metadata: { name: 'pv-1', annotations }, spec: { claimRef: { uid: metadata.uid }, ...source } };
  must(h, { verb: 'POST', path: '/api/v1/persistentvolumes', body });
}
const claiming = (o: { mount?: object; readOnly?: boolean; fsGroup?: number } = {}) => ({
  container: { volumeMounts: [{ name: 'disk', mountPath: '/data', ...o.mount }] },
  spec: {
    volumes: [
      { name: 'disk', persistentVolumeClaim: { claimName: 'data', ...(o.readOnly === undefined ? {} : { readOnly: o.readOnly }) } },
    ],
    ...(o.fsGroup === undefined ? {} : { securityContext: { fsGroup: o.fsGroup } }),
  },
});
const dir = (pod: Pod) => dirOf(pod, 'local-volume', 'pv-1');
const asked = (h: VirtualNode) => h.kube.calls.filter((c) => c.request.path.includes('persistentvolume')).map((c) => c.request.path);

describe('a claim', () => {
  it('whose disk holds another file system than its volume names fails, and an event of the PersistentVolume says so', async ({ h }) => {
    const path = '/dev/sdb';
    h.special.set(path, 'block');
    h.mounts.formatted.set(path, 'xfs');
    h.mounts.trouble.failing = (op) => (op === 'mount' ? 'EIO' : undefined);
    provide(h, { local: { path, fsType: 'ext4' } });
    create(h, 'web', claiming());
    const reason = 'FailedMountOnFilesystemMismatch';
    await h.until('it is told', () => events(h, reason).length > 0);
    expect(events(h, reason)[0]).toMatch(/^MountVolume failed for volume "pv-1" .*EIO/);
    const sent = () => h.kube.store.list('events').find((e) => e.reason === reason);
    await h.until('the API has it', () => sent() !== undefined);
    const got = h.kube.handle({ verb: 'GET', path: '/api/v1/persistentvolumes/pv-1' });
    const { uid } = ((got.ok ? got.body : {}) as { metadata: { uid: string } }).metadata;
    expect(sent()).toMatchObject({
      metadata: { namespace: 'default' },
      type: 'Warning',
      involvedObject: { apiVersion: 'v1', kind: 'PersistentVolume', name: 'pv-1', uid },
    });
    expect(sent()?.involvedObject).not.toHaveProperty('namespace');
    h.mounts.trouble.failing = () => undefined;
    await h.until('Ready', () => isReady(h, 'web'), 300_000);
    expect(h.mounts.overwritten).toEqual([]);
  });

  it('that is bound to a local volume is bound into the pod, and let go with it; its content stays', async ({ h }) => {
    const path = '/mnt/disk';
    h.fs.makeDir(path);
    provide(h, { local: { path } });
    const pod = await createReady(h, 'web', claiming());
    expect(h.mounts.table).toMatchObject([{ path: dir(pod), source: path, options: ['bind'] }]);
    expect(created(h, 'web')[0]?.mounts?.[0]).toMatchObject({ containerPath: '/data', hostPath: dir(pod), readonly: false });
    h.fs.put(`${path}/kept`, 'yes');
    drop(h, 'pods/web');
    await h.until('its directory goes', () => !h.fs.has(`${ROOT}/pods/${pod.metadata.uid}`), 300_000);
    expect(h.mounts.table).toEqual([]);
    expect(h.fs.has(`${path}/kept`)).toBe(true);
  });

  it.each([
    ['without a type, and is missing: the runtime makes it', { path: '/srv/pv', type: '' }],
    ['that is made where it is missing', { path: '/srv/pv', type: 'DirectoryOrCreate' }],
    ['of a socket', { path: '/srv/pv', type: 'Socket' }],
  ])('of a path of the host %s is given to containers as it is, after a restart too', async (_, hostPath) => {
    await using h = await cluster();
    if (hostPath.type === 'Socket') h.special.set(hostPath.path, 'socket');
    provide(h, { hostPath });
    const pod = await createReady(h, 'web', claiming());
    const given = { containerPath: '/data', hostPath: '/srv/pv', readonly: false, selinuxRelabel: false };
    expect(created(h, 'web')[0]?.mounts?.[0]).toMatchObject(given);
    expect(h.mounts.table).toEqual([]);
    await h.crash();
    const before = created(h, 'web').length;
    await h.boot();
    for (const c of h.running()) h.runtime.exit(c.id, { exitCode: 1 });
    await h.until('it runs again', () => created(h, 'web').length > before);
    expect(created(h, 'web').at(-1)?.mounts?.[0]).toMatchObject(given);
    drop(h, 'pods/web');
    await h.until('its directory goes', () => !h.fs.has(`${ROOT}/pods/${pod.metadata.uid}`), 300_000);
  });

  it.each([
    ['not bound', { phase: 'Pending' }, 'PVC is not bound'],
    ['lost', { phase: 'Lost' }, 'PVC is not bound'],
  ])('that is %s keeps its pod waiting, with the words of the reference, and lets it go on when it is bound', async (_, status, why) => {
    await using h = await cluster();
    h.fs.makeDir('/mnt/disk');
    provide(h, { local: { path: '/mnt/disk' } }, status);
    create(h, 'web', claiming());
    await h.until('the mount failed', () => events(h, 'FailedMount').length > 0);
    expect(events(h, 'FailedMount')[0]).toBe(`MountVolume.SetUp failed for volume "disk" : error processing PVC default/data: ${why}`);
    expect(h.runtime.dump().sandboxes).toEqual([]);
    await h.advance(120_000);
    const before = asked(h).length;
    await h.advance(150_000);
    // The kubelet of 1.36.2 asks 12 times.
    expect(asked(h).length - before).toBeLessThanOrEqual(12);
    patch(h, `${CLAIM}/status`, { status: { phase: 'Bound' } });
    await h.until('Ready', () => isReady(h, 'web'), 15_000);
  });

  it('that is being deleted, and protected, is mounted again after the machine was restarted', async ({ h }) => {
    h.fs.makeDir('/mnt/disk');
    provide(h, { local: { path: '/mnt/disk' } });
    const pod = await createReady(h, 'web', claiming());
    patch(h, CLAIM, { metadata: { finalizers: ['kubernetes.io/pvc-protection'] } });
    drop(h, CLAIM);
    await h.crash();
    h.mounts.powerLoss({ emptyDir: () => {} });
    for (const c of h.running()) h.runtime.exit(c.id, { exitCode: 255 });
    await h.boot();
    await h.until('it is mounted', () => h.mounts.table.some((m) => m.path === dir(pod)), 60_000);
    expect(events(h, 'FailedMount')).toEqual([]);
  });

  it('that nobody has made is said to be missing', async ({ h }) => {
    create(h, 'web', claiming());
    await h.until('the mount failed', () => events(h, 'FailedMount').length > 0);
    expect(events(h, 'FailedMount')[0]).toContain('error processing PVC default/data: failed to fetch PVC from API server: ');
    expect(events(h, 'FailedMount')[0]).toContain('not found');
  });

  it('whose path is not there keeps its pod waiting until it is', async ({ h }) => {
    provide(h, { local: { path: '/mnt/disk' } });
    create(h, 'web', claiming());
    await h.until('the mount failed', () => events(h, 'FailedMount').length > 0);
    expect(events(h, 'FailedMount')[0]).toBe('MountVolume.SetUp failed for volume "pv-1" : path "/mnt/disk" does not exist');
    expect(h.mounts.table).toEqual([]);
    h.fs.makeDir('/mnt/disk');
    await h.until('Ready', () => isReady(h, 'web'), 300_000);
  });

  it('is read-only where the pod says so, has parts, and is given to the group of the pod that has it first', async ({ h }) => {
    h.fs.makeDir('/mnt/disk');
    provide(h, { local: { path: '/mnt/disk' } });
    const reader = await createReady(h, 'reader', claiming({ readOnly: true, fsGroup: 1 }));
    expect(created(h, 'reader')[0]?.mounts?.[0]).toMatchObject({ readonly: true });
    expect(h.mounts.owners.get(dir(reader))).toBeUndefined();
    drop(h, 'pods/reader');
    await h.until('the reader is gone', () => h.mounts.table.length === 0, 300_000);
    const first = await createReady(h, 'first', claiming({ fsGroup: 1, mount: { subPath: 'a/b' } }));
    expect(h.mounts.owners.get(dir(first))).toBe('-:1');
    expect(h.mounts.table.map((m) => m.root)).toContain(`${dir(first)}/a/b`);
    await createReady(h, 'same', claiming({ fsGroup: 1 }));
    expect(events(h, 'AlreadyMountedVolume')).toEqual([]);
    const second = await createReady(h, 'second', claiming({ fsGroup: 2 }));
    expect(h.mounts.owners.get(dir(second))).toBeUndefined();
    expect(events(h, 'AlreadyMountedVolume')).toEqual([
      'The requested fsGroup is 2, but the volume disk is mounted by another pod of this node and belongs to group 1. The volume may not be shareable.',
    ]);
  });

  it('whose many files are being given to the group of its pod says so', async ({ h }) => {
    h.fs.makeDir('/mnt/disk');
    provide(h, { local: { path: '/mnt/disk' } });
    h.mounts.trouble = { delayMs: (op) => (op === 'chown' ? 100_000 : 0), failing: () => undefined, hanging: () => false };
    const pod = create(h, 'web', claiming({ fsGroup: 7 }));
    await h.until('Ready', () => isReady(h, 'web'), 120_000);
    const said = `The files of ${pod.metadata.uid}/volumes/kubernetes.io~local-volume/pv-1 are being given to group 7`;
    expect(events(h, 'VolumePermissionChangeInProgress')[0]).toContain(said);
    await h.advance(300_000);
    expect(events(h, 'VolumePermissionChangeInProgress').length).toBeLessThanOrEqual(2);
  });

  it('gives containers the group that its volume names, after a restart too', async ({ h }) => {
    h.fs.makeDir('/mnt/disk');
    provide(h, { local: { path: '/mnt/disk' } }, { phase: 'Bound' }, { 'pv.beta.kubernetes.io/gid': '1234' });
    await createReady(h, 'web', claiming({ fsGroup: 1 }));
    const groups = () => created(h, 'web').at(-1)?.linux?.securityContext?.supplementalGroups?.map(Number);
    expect(groups()).toEqual([1, 1234]);
    await h.crash();
    const before = created(h, 'web').length;
    await h.boot();
    for (const c of h.running()) h.runtime.exit(c.id, { exitCode: 1 });
    await h.until('it runs again', () => created(h, 'web').length > before);
    expect(groups()).toEqual([1, 1234]);
  });

  it('is found by the next daemon, which asks for it, and mounts nothing anew', async ({ h }) => {
    h.fs.makeDir('/mnt/disk');
    provide(h, { local: { path: '/mnt/disk' } });
    const pod = await createReady(h, 'web', claiming());
    const table = structuredClone(h.mounts.table);
    await h.crash();
    const before = asked(h).length;
    expect(before).toBeGreaterThan(0);
    await h.boot();
    await h.until('Ready', () => isReady(h, 'web'));
    await h.advance(60_000);
    expect(h.mounts.table).toEqual(table);
    expect([...new Set(asked(h).slice(before))]).toEqual([
      '/api/v1/namespaces/default/persistentvolumeclaims/data',
      '/api/v1/persistentvolumes/pv-1',
    ]);
    drop(h, 'pods/web');
    await h.until('its directory goes', () => !h.fs.has(`${ROOT}/pods/${pod.metadata.uid}`), 300_000);
    expect(h.mounts.table).toEqual([]);
  });

  it('is never emptied: what lies in its directory while nothing is mounted there stays until somebody takes it away', async ({ h }) => {
    h.fs.makeDir('/mnt/disk');
    provide(h, { local: { path: '/mnt/disk' } });
    const pod = await createReady(h, 'web', claiming());
    h.mounts.take(dir(pod));
    h.fs.put(`${dir(pod)}/precious`, 'yes');
    drop(h, 'pods/web');
    await h.advance(120_000);
    expect(h.fs.has(`${dir(pod)}/precious`)).toBe(true);
    h.fs.drop(`${dir(pod)}/precious`);
    await h.until('its directory goes', () => !h.fs.has(`${ROOT}/pods/${pod.metadata.uid}`), 600_000);
  });
});
