/** NFS on a disk in memory and a mount table: what is mounted, kept and taken down, named by a pod or behind a claim. */
import { expect, it } from 'vitest';
import { serverOf, severable, unmountSteps } from '../../../src/machines/host/unmounting.ts';
import { mountProblem } from '../../../src/machines/pod/volumes/kinds/nfs.ts';
import { mountedVolumes } from '../../../src/machines/services/volumes/reconcile.ts';
import { FACTS } from '../../machines/pods/fixtures.ts';
import { machine } from './pluginBench.ts';

const PV = {
  spec: {
    claimRef: { uid: 'c' },
    nfs: { server: 'fd00::1', path: '/data' },
    mountOptions: ['soft', 'nfsvers=4.2'],
  },
};
function bench(volume: object, pv = PV) {
  const m = machine();
  return { ...m, ...m.volumeOf(volume, { pv }), nowMs: () => m.time.clock.monoMs() };
}

it('of a pod is mounted once, given read-only, found again and unmounted', async () => {
  const b = bench({ nfs: { server: 'files', path: '/exports', readOnly: true } });
  await b.setUp();
  await b.setUp();
  expect(b.requests.map(({ type, source, options }) => [type, source, options])).toEqual([['nfs', 'files:/exports', ['ro']]]);
  expect(mountedVolumes(b.owner, new Map(), FACTS.rootDir).get('v')).toMatchObject({ readOnly: true });
  expect(await b.found()).toEqual(['kubernetes.io~nfs v']);
  await b.tearDown();
  expect([b.mounts.table, await b.found()]).toEqual([[], []]);
});

it('behind a claim is mounted with the options of its PersistentVolume, and goes by the name of claims', async () => {
  const b = bench({ persistentVolumeClaim: { claimName: 'data' } });
  await b.setUp();
  await b.setUp();
  expect(b.requests.map(({ type, source, options }) => [type, source, options])).toEqual([
    ['nfs', '[fd00::1]:/data', ['nfsvers=4.2', 'soft']],
  ]);
  expect(mountedVolumes(b.owner, new Map(), FACTS.rootDir).get('v')).toMatchObject({ readOnly: false });
  expect(await b.found()).toEqual(['kubernetes.io~local-volume v']);
  await b.tearDown();
  expect([b.mounts.table, await b.found()]).toEqual([[], []]);
});

it('behind a claim takes the annotation of mount options before the list, and is read-only where the claim is', async () => {
  const metadata = { annotations: { 'volume.beta.kubernetes.io/mount-options': 'hard,nolock' } };
  const b = bench({ persistentVolumeClaim: { claimName: 'data', readOnly: true } }, { ...PV, metadata } as typeof PV);
  expect(await b.setUp()).toMatchObject({ readOnly: true, labelled: false });
  expect(b.requests.map(({ options }) => options)).toEqual([['hard', 'nolock', 'ro']]);
});

it('whose server is dead goes within 25 s, parts of it too, and nothing is left; other volumes are not held up', async () => {
  const b = bench({ nfs: { server: 'files', path: '/exports' } });
  await b.setUp();
  await b.bind('logs');
  b.mounts.dead.add('files');
  const began = b.nowMs();
  await b.tearDown();
  // A part and the volume itself: 10 s of waiting and the end of the lazy call for each.
  expect(b.nowMs() - began).toBeLessThanOrEqual(30_000);
  expect([b.mounts.table, await b.found()]).toEqual([[], []]);
});

it('that is busy is unmounted lazily, and one that stays says which server it is of', async () => {
  const b = bench({ nfs: { server: 'files', path: '/exports' } });
  await b.setUp();
  b.mounts.trouble.failing = (op) => (op === 'unmount' ? 'EBUSY' : undefined);
  await b.tearDown();
  expect(b.mounts.table).toEqual([]);
  await b.setUp();
  b.mounts.trouble.failing = (op) => (['unmount', 'lazy', 'forced'].includes(op) ? 'EBUSY' : undefined);
  await expect(b.tearDown()).rejects.toThrow(/v is still mounted \(nfs of files:\/exports\)/);
});

it('is mounted again after a mount that half happened, and asks nobody when it stands', async () => {
  const b = bench({ nfs: { server: 'files', path: '/exports' } });
  b.mounts.trouble.hanging = (op) => op === 'mount';
  await expect(b.setUp()).rejects.toThrow('the NFS server of files:/exports does not answer; the mount is tried again');
  b.mounts.trouble.hanging = () => false;
  b.mounts.dead.add('files');
  await b.setUp();
  await b.setUp();
  expect([b.requests.length, b.mounts.table.length]).toEqual([1, 1]);
});

it('says in words what a node without mount.nfs lacks', () => {
  const volume = { kind: 'nfs' as const, server: 'files', path: '/e', options: [] };
  const said = {
    code: 'EIO',
    message: 'mount: /m: bad option; for several filesystems (e.g. nfs, cifs) you might need a /sbin/mount.<type> helper program.',
  };
  expect(mountProblem(volume, said)).toMatch(/^this node cannot mount files:\/e: it has no mount\.nfs \(package nfs-common or nfs-utils\)/);
  const newer = "mount: /m: fsconfig() failed: NFS: mount program didn't pass remote address.";
  expect(mountProblem(volume, { code: 'EIO', message: newer })).toContain('it has no mount.nfs');
  expect(mountProblem(volume, { code: 'EPERM', message: 'mount.nfs: access denied by server' })).toBe(
    'mount of files:/e failed: mount.nfs: access denied by server',
  );
});

it('is told apart by its server, which alone its calls wait for', () => {
  const at = (path: string, type: string, source: string) => ({ path, root: '/', type, source, device: source });
  const table = [
    at('/', 'ext4', '/dev/sda1'),
    at('/m/a', 'nfs4', 'files:/a'),
    at('/m/b', 'nfs', '[fd00::1]:/b'),
    at('/m/c', 'cifs', '//smb/share'),
  ];
  expect(['/m/a/deep', '/m/b', '/m/c/x', '/m/ab', '/'].map((path) => serverOf(table, path))).toEqual(['files', '[fd00::1]', 'smb', '', '']);
  expect(unmountSteps('nfs4').map((s) => s.way)).toEqual(['plain', 'lazy', 'forced']);
  expect(unmountSteps('nfs4').reduce((sum, s) => sum + s.timeoutMs, 0)).toBeLessThan(30_000);
  expect(unmountSteps('ext4').map((s) => s.way)).toEqual(['plain']);
});

it('may be given up for good where pods that are to go alone have it mounted, under whatever name', () => {
  const at = (path: string, device: string, type = 'nfs4') => ({ path, root: '/', type, source: 'files:/e', device });
  const below = [
    at('/r/pods/a/v', '0:5'),
    at('/r/pods/a/part', '0:5'),
    at('/r/pods/b/v', '0:5'),
    at('/r/pods/c/v', '0:6'),
    at('/r/pods/c/t', '0:7', 'tmpfs'),
  ];
  const ask = (uids: string, more: readonly object[] = []) =>
    severable({ dirs: [...uids].map((uid) => `/r/pods/${uid}`), below, all: [...below, ...(more as typeof below)] }).map((s) => s.device);
  expect([ask('a'), ask('ab'), ask('c'), ask('abc')]).toEqual([[], ['0:5'], ['0:6'], ['0:5', '0:6']]);
  // The administrator has it, too.
  expect(ask('abc', [at('/mnt', '0:5')])).toEqual(['0:6']);
});
