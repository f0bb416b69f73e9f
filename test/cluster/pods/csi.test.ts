/** Volumes of a CSI driver in a real cluster: a driver of our own beside a real daemon, a real attach controller, real containers. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CsiRequest, PublishRequest } from '../../../src/machines/wire/csi.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { sh } from '../../e2e/manifests.ts';
import { startDriver, type TestDriver } from '../../volumes/csiDriver.ts';
import { type Cluster, LONG, STAY, startCluster } from '../cluster.ts';

const NAME = 'csi.example.com';
let c: Cluster;
let driver: TestDriver | undefined;
let backing: string;

const DISK = 'disk-1';
/** A bind of a directory that stands for the volume: what a driver of files on the node does. One volume has a size of its own. */
function publish(request: PublishRequest): void {
  if (request.volumeId === DISK) {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16M', DISK, request.targetPath]);
    return;
  }
  const content = join(backing, request.volumeId);
  mkdirSync(content, { recursive: true });
  if (request.volumeContext.greeting !== undefined) writeFileSync(join(content, 'greeting'), request.volumeContext.greeting);
  execFileSync('mount', ['--bind', content, request.targetPath]);
}
function expand({ volumePath, capacityRange }: CsiRequest<'NodeExpandVolume'>): void {
  execFileSync('mount', ['-o', `remount,size=${capacityRange.requiredBytes}`, volumePath]);
}
const unpublish = (path: string) => void execFileSync('umount', [path]);
const startOurs = async () => {
  const socket = join(c.daemon.rootDir, 'plugins_registry', `${NAME}-reg.sock`);
  driver = await startDriver({ name: NAME, socket, capabilities: ['STAGE_UNSTAGE_VOLUME', 'EXPAND_VOLUME'], publish, unpublish, expand });
};
const disposable = async (starting: Promise<TestDriver>) => {
  const started = await starting;
  return { driver: started, [Symbol.asyncDispose]: () => started.stop() };
};
const mounts = () =>
  readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes('kubernetes.io~csi') && line.includes(c.daemon.rootDir));
const methods = () => driver?.calls.map((call) => call.method).filter((m) => !m.startsWith('NodeGet') && m.startsWith('Node')) ?? [];
beforeAll(async () => {
  c = await startCluster();
  backing = join(c.daemon.rootDir, '..', 'csi-backing');
  const rules = (name: string, spec: object) => ({ apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver', metadata: { name }, spec });
  await c.apply(rules(NAME, { attachRequired: false, podInfoOnMount: true, volumeLifecycleModes: ['Persistent', 'Ephemeral'] }));
});
afterAll(async () => {
  await driver?.stop();
  await c?.stop();
});

describe('a CSI driver beside a real node', () => {
  it('that is not there yet keeps its pod waiting; when it comes the volume is published and the cluster told', async () => {
    await c.create('inline', {
      containers: [sh('main', `cat /data/greeting; echo; ${STAY}`, { volumeMounts: [{ name: 'disk', mountPath: '/data' }] })],
      volumes: [{ name: 'disk', csi: { driver: NAME, volumeAttributes: { greeting: 'hello from the driver' } } }],
    });
    await c.daemon.wait(
      'the event',
      async () =>
        (await c.kubectl('get', 'events', '--field-selector', 'reason=FailedMount', '-o', 'jsonpath={.items[*].message}')).includes(
          `driver name ${NAME} not found in the list of registered CSI drivers`,
        ),
      LONG,
    );
    await startOurs();
    const pod = await c.ready('inline');
    await c.daemon.wait('it reads the volume', () => c.said(pod).includes('hello from the driver'), LONG);
    expect(driver?.told).toEqual(['']);
    expect(driver?.calls.find((call) => call.method === 'NodePublishVolume')?.request).toMatchObject({
      volumeContext: { 'csi.storage.k8s.io/pod.name': 'inline', 'csi.storage.k8s.io/ephemeral': 'true' },
    });
    const csiNode = JSON.parse(await c.kubectl('get', 'csinode', NODE_NAME, '-o', 'json')) as { spec: { drivers: object[] } };
    expect(csiNode.spec.drivers).toEqual([
      { name: NAME, nodeID: 'test-node', topologyKeys: ['topology.example.com/rack'], allocatable: { count: 11 } },
    ]);
    const node = JSON.parse(await c.kubectl('get', 'node', NODE_NAME, '-o', 'json')) as {
      metadata: { annotations: object; labels: object };
    };
    expect(node.metadata.annotations).toMatchObject({ 'csi.volume.kubernetes.io/nodeid': JSON.stringify({ [NAME]: 'test-node' }) });
    expect(node.metadata.labels).toMatchObject({ 'topology.example.com/rack': 'r1' });
    await c.kubectl('delete', 'pod', 'inline', '--wait=true');
    await c.daemon.wait('nothing is mounted', () => mounts().length === 0 && driver?.published.size === 0, LONG);
  });

  it('serves a claim that outlives its pods, over a restart of the daemon', async () => {
    const before = methods().length;
    const pv = {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'csi-pv' },
      spec: {
        capacity: { storage: '1Mi' },
        accessModes: ['ReadWriteOnce'],
        persistentVolumeReclaimPolicy: 'Retain',
        storageClassName: '',
        claimRef: { namespace: 'default', name: 'csi-claim' },
        csi: { driver: NAME, volumeHandle: 'vol-1' },
      },
    };
    const pvc = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'csi-claim', namespace: 'default' },
      spec: { storageClassName: '', volumeName: 'csi-pv', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
    };
    await c.apply(pv, pvc);
    const user = (name: string, script: string) =>
      c.create(name, {
        containers: [sh('main', `${script}; ${STAY}`, { volumeMounts: [{ name: 'disk', mountPath: '/data' }] })],
        volumes: [{ name: 'disk', persistentVolumeClaim: { claimName: 'csi-claim' } }],
      });
    await user('writer', 'echo kept > /data/file; echo written');
    const writer = await c.ready('writer');
    await c.daemon.wait('it wrote', () => c.said(writer).includes('written'), LONG);
    expect(methods().slice(before)).toEqual(['NodeStageVolume', 'NodePublishVolume']);
    await c.daemon.end('SIGKILL');
    await c.daemon.start();
    await c.ready('writer');
    await c.kubectl('delete', 'pod', 'writer', '--wait=true');
    await c.daemon.wait('nothing is mounted', () => mounts().length === 0, LONG);
    expect(methods().slice(before)).toEqual(['NodeStageVolume', 'NodePublishVolume', 'NodeUnpublishVolume', 'NodeUnstageVolume']);
    await user('reader', 'cat /data/file');
    const reader = await c.ready('reader');
    await c.daemon.wait('it reads what was kept', () => c.said(reader).includes('kept'), LONG);
    await c.kubectl('delete', 'pod', 'reader', '--wait=true');
    await c.daemon.wait('nothing is mounted', () => mounts().length === 0 && driver?.published.size === 0, LONG);
  });

  it('serves volumes of the old plugin that it took the place of, by PersistentVolume and in a pod, over a restart', async () => {
    const name = 'ebs.csi.aws.com';
    await c.apply({ apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver', metadata: { name }, spec: { attachRequired: false } });
    const socket = join(c.daemon.rootDir, 'plugins_registry', `${name}-reg.sock`);
    const capabilities = ['STAGE_UNSTAGE_VOLUME'];
    await using ebs = await disposable(startDriver({ name, socket, capabilities, publish, unpublish }));
    const zone = { key: 'topology.kubernetes.io/zone', operator: 'In', values: ['r1'] };
    await c.apply(
      {
        apiVersion: 'v1',
        kind: 'PersistentVolume',
        metadata: { name: 'ebs-pv' },
        spec: {
          ...{ capacity: { storage: '1Mi' }, accessModes: ['ReadWriteOnce'], storageClassName: '', mountOptions: ['noatime'] },
          persistentVolumeReclaimPolicy: 'Retain',
          claimRef: { namespace: 'default', name: 'ebs-claim' },
          awsElasticBlockStore: { volumeID: 'aws://r1/vol-1', fsType: 'ext4', partition: 2 },
          nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [zone] }] } },
        },
      },
      {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: 'ebs-claim', namespace: 'default' },
        spec: { storageClassName: '', volumeName: 'ebs-pv', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
      },
    );
    // The driver would say where the node is; the scheduler knows the old label alone.
    await c.kubectl('label', 'node', NODE_NAME, 'topology.ebs.csi.aws.com/zone=r1', 'topology.kubernetes.io/zone=r1');
    await c.create('old', {
      containers: [
        sh('main', `echo a > /claimed/file; echo b > /named/file; echo written; ${STAY}`, {
          volumeMounts: [
            { name: 'claimed', mountPath: '/claimed' },
            { name: 'named', mountPath: '/named' },
          ],
        }),
      ],
      volumes: [
        { name: 'claimed', persistentVolumeClaim: { claimName: 'ebs-claim' } },
        { name: 'named', awsElasticBlockStore: { volumeID: 'aws:///vol-2' } },
      ],
    });
    const pod = await c.ready('old');
    await c.daemon.wait('it wrote', () => c.said(pod).includes('written'), LONG);
    const staged = ebs.driver.calls.filter((call) => call.method === 'NodeStageVolume').map((call) => call.request);
    const byId = [...staged].sort((a, b) => String(a.volumeId).localeCompare(String(b.volumeId)));
    expect(byId).toMatchObject([
      {
        volumeId: 'vol-1',
        volumeContext: { partition: '2' },
        volumeCapability: { mount: { fsType: 'ext4', mountFlags: ['noatime'] } },
      },
      { volumeId: 'vol-2', volumeContext: { partition: '0' } },
    ]);
    const csiNode = JSON.parse(await c.kubectl('get', 'csinode', NODE_NAME, '-o', 'json')) as { metadata: { annotations: object } };
    expect(Object.values(csiNode.metadata.annotations).join()).toContain('kubernetes.io/aws-ebs');
    await c.daemon.end('SIGKILL');
    await c.daemon.start();
    await c.ready('old');
    await c.kubectl('delete', 'pod', 'old', '--wait=true');
    await c.daemon.wait('nothing is mounted', () => mounts().length === 0 && ebs.driver.published.size === 0, LONG);
    expect(ebs.driver.calls.filter((call) => call.method === 'NodeUnstageVolume')).toHaveLength(2);
  });

  it('has a claim grown while its pod writes to it, within 2 s after the controller is done', async () => {
    const common = { storageClassName: 'grows', accessModes: ['ReadWriteOnce'] };
    const claimRef = { namespace: 'default', name: 'growing' };
    await c.apply(
      { apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', metadata: { name: 'grows' }, provisioner: NAME, allowVolumeExpansion: true },
      {
        apiVersion: 'v1',
        kind: 'PersistentVolume',
        metadata: { name: 'growing-pv' },
        spec: {
          ...common,
          capacity: { storage: '16Mi' },
          persistentVolumeReclaimPolicy: 'Retain',
          claimRef,
          csi: { driver: NAME, volumeHandle: DISK, fsType: 'ext4' },
        },
      },
      {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: claimRef,
        spec: { ...common, volumeName: 'growing-pv', resources: { requests: { storage: '16Mi' } } },
      },
    );
    const script = 'while :; do set -- $(df -k /data | tail -n 1); [ "$2" -gt 20000 ] && echo "it has $2 KiB"; sleep 0.1; done';
    await c.create('grower', {
      containers: [sh('main', script, { volumeMounts: [{ name: 'disk', mountPath: '/data' }] })],
      volumes: [{ name: 'disk', persistentVolumeClaim: { claimName: 'growing' } }],
    });
    const pod = await c.ready('grower');
    await c.merge('persistentvolumeclaims/growing', { spec: { resources: { requests: { storage: '32Mi' } } } });
    const capacity = JSON.stringify({ spec: { capacity: { storage: '32Mi' } } });
    await c.kubectl('patch', 'pv', 'growing-pv', '--type=merge', '-p', capacity);
    const steps = { allocatedResources: { storage: '32Mi' }, allocatedResourceStatuses: { storage: 'NodeResizePending' } };
    const conditions = [
      { type: 'FileSystemResizePending', status: 'True', lastProbeTime: null, lastTransitionTime: new Date().toISOString() },
    ];
    await c.merge('persistentvolumeclaims/growing/status', { status: { conditions, ...steps } });
    const doneMs = performance.now();
    await c.daemon.wait('its container sees it', () => c.said(pod).includes('it has'), LONG);
    expect(performance.now() - doneMs).toBeLessThan(2_500);
    const claim = async () => JSON.parse(await c.kubectl('get', 'pvc', 'growing', '-o', 'json')) as { status: Record<string, unknown> };
    await c.daemon.wait('its claim says so', async () => JSON.stringify((await claim()).status.capacity) === '{"storage":"32Mi"}', LONG);
    const { status } = await claim();
    expect([status.conditions ?? [], status.allocatedResourceStatuses]).toEqual([[], undefined]);
    await c.kubectl('delete', 'pod', 'grower', '--wait=true');
    await c.daemon.wait('nothing is mounted', () => mounts().length === 0, LONG);
  });

  it('or a local volume that is a device gives its container the device itself', async () => {
    const file = join(c.daemon.dir, 'disk.img');
    writeFileSync(file, Buffer.alloc(1 << 20, 'x'));
    const device = execFileSync('losetup', ['--find', '--show', file], { encoding: 'utf8' }).trim();
    try {
      const here = { key: 'kubernetes.io/hostname', operator: 'In', values: [NODE_NAME] };
      const common = { storageClassName: '', accessModes: ['ReadWriteOnce'], volumeMode: 'Block' };
      await c.apply(
        {
          apiVersion: 'v1',
          kind: 'PersistentVolume',
          metadata: { name: 'block-pv' },
          spec: {
            ...common,
            capacity: { storage: '1Mi' },
            persistentVolumeReclaimPolicy: 'Retain',
            claimRef: { namespace: 'default', name: 'block-claim' },
            local: { path: device },
            nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [here] }] } },
          },
        },
        {
          apiVersion: 'v1',
          kind: 'PersistentVolumeClaim',
          metadata: { name: 'block-claim', namespace: 'default' },
          spec: { ...common, volumeName: 'block-pv', resources: { requests: { storage: '1Mi' } } },
        },
      );
      const script = `[ -b /dev/data ] && head -c 4 /dev/data && printf hello | dd of=/dev/data conv=notrunc 2>/dev/null && echo done; ${STAY}`;
      await c.create('block', {
        containers: [sh('main', script, { volumeDevices: [{ name: 'disk', devicePath: '/dev/data' }] })],
        volumes: [{ name: 'disk', persistentVolumeClaim: { claimName: 'block-claim' } }],
      });
      const pod = await c.ready('block');
      await c.daemon.wait('it has used the device', () => c.said(pod).includes('done'), LONG);
      expect(c.said(pod)).toContain('xxxx');
      execFileSync('sync', [device]);
      expect(execFileSync('head', ['-c', '5', device], { encoding: 'utf8' })).toBe('hello');
      await c.kubectl('delete', 'pod', 'block', '--wait=true');
      await c.gone('block');
    } finally {
      execFileSync('losetup', ['--detach', device]);
    }
  });
});
