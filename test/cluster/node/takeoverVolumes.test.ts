/**
 * Volumes of claims on a node that goes from the reference kubelet to actorlet and back: directories, records and devices of
 * a CSI driver, and a local directory. Each agent finds what the other made, mounts nothing a second time, and takes it down.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { PublishRequest } from '../../../src/machines/wire/csi.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import type { ReferenceKubelet } from '../../e2e/lab/cluster/referenceKubelet.ts';
import { sh } from '../../e2e/manifests.ts';
import { loopDevices } from '../../reference/csi/loops.ts';
import { startDriver, type TestDriver } from '../../volumes/csiDriver.ts';
import { type Cluster, LONG, lifeOf, STAY } from '../cluster.ts';
import { besideReference } from '../hooks.ts';

const NAME = 'csi.example.com';
const KINDS = ['files', 'device', 'local'] as const;

let c: Cluster;
let reference: ReferenceKubelet;
let driver: TestDriver;
let loops: ReturnType<typeof loopDevices>;

function publish({ targetPath, volumeCapability, volumeId }: PublishRequest): void {
  if (volumeCapability.mount === undefined || volumeCapability.mount === null) loops.make(volumeId, targetPath);
  else execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1M', volumeId, targetPath]);
}
function unpublish(path: string): void {
  if (!loops.remove(path)) execFileSync('umount', [path]);
}

afterAll(async () => {
  await driver?.stop();
  loops?.dispose();
});
const whyNot = besideReference(async (made) => {
  ({ cluster: c, reference } = made);
  loops = loopDevices(join(c.daemon.rootDir, '..', 'loops'));
  await c.apply({ apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver', metadata: { name: NAME }, spec: { attachRequired: false } });
  const socket = join(c.daemon.rootDir, 'plugins_registry', `${NAME}-reg.sock`);
  driver = await startDriver({ name: NAME, socket, capabilities: ['STAGE_UNSTAGE_VOLUME'], publish, unpublish });
  const path = join(c.daemon.rootDir, '..', 'local');
  mkdirSync(path, { recursive: true });
  for (const kind of KINDS) await provide(kind, path);
});

async function provide(kind: (typeof KINDS)[number], path: string): Promise<void> {
  const terms = [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [NODE_NAME] }] }];
  const source =
    kind === 'local'
      ? { local: { path }, nodeAffinity: { required: { nodeSelectorTerms: terms } } }
      : { csi: { driver: NAME, volumeHandle: `vol-${kind}` } };
  const common = { storageClassName: '', accessModes: ['ReadWriteOnce'], volumeMode: kind === 'device' ? 'Block' : 'Filesystem' };
  const claimRef = { namespace: 'default', name: kind };
  await c.apply(
    {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: `pv-of-${kind}` },
      spec: { capacity: { storage: '1Mi' }, claimRef, persistentVolumeReclaimPolicy: 'Retain', ...common, ...source },
    },
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: kind, namespace: 'default' },
      spec: { volumeName: `pv-of-${kind}`, resources: { requests: { storage: '1Mi' } }, ...common },
    },
  );
}
async function makePods(): Promise<void> {
  for (const kind of KINDS) {
    const use =
      kind === 'device'
        ? { volumeDevices: [{ name: 'disk', devicePath: '/dev/x' }] }
        : { volumeMounts: [{ name: 'disk', mountPath: '/data' }] };
    await c.create(kind, {
      containers: [sh('main', STAY, use)],
      volumes: [{ name: 'disk', persistentVolumeClaim: { claimName: kind } }],
    });
  }
  for (const kind of KINDS) await c.ready(kind);
}
const lives = async () =>
  Object.fromEntries(await Promise.all(KINDS.map(async (kind) => [kind, { ...lifeOf(await c.ready(kind)), readySince: '' }])));
const uidOf = async (kind: string) => (await c.ready(kind)).metadata.uid;
const named = (path: string) => (existsSync(path) ? readdirSync(path) : []);
const json = (path: string): object => JSON.parse(readFileSync(path, 'utf8')) as object;
/** Keys of our own begin with our name. What is in the folder of a staged volume is of more words here. */
const theirKeys = (data: object, keys?: readonly string[]) =>
  Object.fromEntries(
    Object.entries(data)
      .filter(([key]) => !key.includes('actorlet') && (keys?.includes(key) ?? true))
      .sort(),
  );

/** What lies on disk of these volumes. */
async function layout(): Promise<object> {
  const { rootDir } = c.daemon;
  const found: Record<string, unknown> = {};
  for (const kind of KINDS) {
    const uid = await uidOf(kind);
    const pod = join(rootDir, 'pods', uid);
    const plain = (text: string) => text.replaceAll(uid, 'UID').replaceAll(rootDir, 'ROOT');
    for (const folder of ['volumes', 'volumeDevices']) {
      for (const plugin of named(join(pod, folder)).filter((p) => !p.endsWith('projected'))) {
        for (const name of named(join(pod, folder, plugin))) {
          const path = join(pod, folder, plugin, name);
          const own = folder === 'volumeDevices' ? [] : readdirSync(path).sort();
          found[`${kind} ${folder}/${plugin}/${name}`] = own.includes('vol_data.json')
            ? [own, theirKeys(json(join(path, 'vol_data.json')))]
            : own;
        }
      }
    }
    const link = join(pod, 'volumeDevices/kubernetes.io~csi/pv-of-device');
    if (kind === 'device') found['device leads to'] = plain(readlinkSync(link)).replace(/^\/dev\/loop\d+$/, 'a loop device');
  }
  const staged = join(rootDir, 'plugins/kubernetes.io/csi');
  found.device = theirKeys(json(join(staged, 'volumeDevices/pv-of-device/data/vol_data.json')), [
    ...['attachmentID', 'driverName', 'nodeName', 'specVolID', 'volumeHandle'],
  ]);
  found.staged = named(join(staged, NAME)).map((hash) => [
    hash,
    theirKeys(json(join(staged, NAME, hash, 'vol_data.json')), ['driverName', 'volumeHandle']),
  ]);
  return found;
}
const mounts = () =>
  readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((path) => path.startsWith(c.daemon.rootDir) && path.includes('pv-of-') && !path.includes('/dev/'))
    .sort();
const targets = () => driver.calls.filter(({ method }) => method === 'NodePublishVolume').map(({ request }) => String(request.targetPath));
const undone = () =>
  driver.calls.filter(({ method }) => method.startsWith('NodeUn')).map(({ method, request }) => `${method} ${request.volumeId}`);
const version = async () => (await c.kubectl('get', 'node', NODE_NAME, '-o', 'jsonpath={.status.nodeInfo.kubeletVersion}')).trim();
const nodeReady = () => c.daemon.wait('the node is Ready', async () => / Ready /.test(await c.kubectl('get', 'node', NODE_NAME)), LONG);
async function deletePods(): Promise<void> {
  const uids = await Promise.all(KINDS.map(uidOf));
  await c.kubectl('delete', 'pod', ...KINDS, '--wait=true');
  const left = () => uids.filter((uid) => existsSync(join(c.daemon.rootDir, 'pods', uid)));
  await c.daemon.wait('their directories are gone', async () => left().length === 0, { ...LONG, timeoutMs: 150_000 });
  expect(mounts()).toEqual([]);
  expect([driver.published.size, driver.staged.size]).toEqual([0, 0]);
}
const ALL_UNDONE = ['device', 'files'].flatMap((kind) => [`NodeUnpublishVolume vol-${kind}`, `NodeUnstageVolume vol-${kind}`]).sort();

describe.skipIf(whyNot !== undefined)('volumes of claims', () => {
  let theirs = '';
  let layoutOfTheirs: object;

  it('are set up by the reference kubelet', async () => {
    await reference.start();
    await c.daemon.wait('the account', () => c.plane.hasAccount(), LONG);
    await nodeReady();
    await makePods();
    theirs = await version();
    layoutOfTheirs = await layout();
  }, 240_000);

  it('are taken over where they stand, and taken down', async () => {
    const [mounted, published, living] = [mounts(), new Set(targets()), await lives()];
    await reference.end('SIGKILL');
    await c.daemon.start();
    await c.daemon.wait('another agent', async () => (await version()) !== theirs, LONG);
    await nodeReady();
    for (const kind of KINDS) await c.ready(kind);
    expect([mounts(), new Set(targets()), await lives()]).toEqual([mounted, published, living]);
    const before = undone().length;
    await deletePods();
    expect(undone().slice(before).sort()).toEqual(ALL_UNDONE);
  }, 240_000);

  it('look the same when actorlet has set them up', async () => {
    await makePods();
    expect(await layout()).toEqual(layoutOfTheirs);
  }, 120_000);

  it('are taken over by the reference kubelet, which takes them down', async () => {
    const [mounted, published, living] = [mounts(), new Set(targets()), await lives()];
    await c.daemon.end('SIGTERM');
    await reference.start();
    await c.daemon.wait('the old agent', async () => (await version()) === theirs, LONG);
    await nodeReady();
    for (const kind of KINDS) await c.ready(kind);
    expect([mounts(), new Set(targets()), await lives()]).toEqual([mounted, published, living]);
    const before = undone().length;
    await deletePods();
    expect([...new Set(undone().slice(before))].sort()).toEqual(ALL_UNDONE);
  }, 240_000);
});
