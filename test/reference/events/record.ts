/**
 * Makes three events happen that need odd disks, drivers and gates, and keeps their words. About two minutes, as root, after
 * `npm run e2e:setup`, with the programs of a release in one folder:
 *   KUBEBUILDER_ASSETS=PROGRAMS scripts/node test/reference/events/record.ts reference|actorlet FILE
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LONG, STAY, startCluster } from '../../cluster/cluster.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { createReferenceKubelet, REFERENCE_LOGS, whyNoReferenceKubelet } from '../../e2e/lab/cluster/referenceKubelet.ts';
import { sh } from '../../e2e/manifests.ts';
import { startDriver, type TestDriver } from '../../volumes/csiDriver.ts';

/** What is waited for, of whom. */
const AWAITED = {
  FailedMountOnFilesystemMismatch: 'PersistentVolume/disk',
  VolumeConditionAbnormal: 'Pod/abnormal',
  FailedNodeDeclaredFeaturesCheck: 'Pod/resized',
} as const;
const DRIVER = 'health.events.test';
const SPEC = { storageClassName: '', accessModes: ['ReadWriteOnce'] };
/** The first look at the volumes of a pod comes within twice this. */
const STATS_PERIOD = '10s';

const [, , by = '', file = ''] = process.argv;
if (by !== 'reference' && by !== 'actorlet') throw new Error('reference or actorlet?');
const whyNot = by === 'reference' ? whyNoReferenceKubelet() : undefined;
if (whyNot !== undefined) throw new Error(whyNot);

const run = (command: string, ...args: string[]): string => execFileSync(command, args, { encoding: 'utf8' }).trim();
const dir = mkdtempSync(join(tmpdir(), 'actorlet-events-'));
const image = join(dir, 'image');
writeFileSync(image, '');
truncateSync(image, 16 * 1024 * 1024);
run('mkswap', image);
const device = run('losetup', '-f', '--show', image);

const config = {
  ...{ syncFrequency: '10s', fileCheckFrequency: '20s', volumeStatsAggPeriod: STATS_PERIOD },
  featureGates: { CSIVolumeHealth: true, InPlacePodVerticalScalingInitContainers: false },
};
// The server refuses such an update itself, where it may.
const flags = {
  'kube-apiserver': [
    '--disable-admission-plugins=NodeDeclaredFeatureValidator',
    '--feature-gates=InPlacePodVerticalScalingInitContainers=true',
  ],
};
const cluster = await startCluster({
  ...{ start: false, plane: { flags } },
  config: by === 'reference' ? { podLogsDir: REFERENCE_LOGS.podLogs, ...config } : config,
});
const reference = by === 'reference' ? await createReferenceKubelet(cluster) : undefined;
let driver: TestDriver | undefined;

function claim(name: string, source: object): object[] {
  const capacity = { storage: '16Mi' };
  return [
    {
      ...{ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name } },
      spec: { ...SPEC, capacity, claimRef: { namespace: 'default', name }, ...source },
    },
    {
      ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name, namespace: 'default' } },
      spec: { ...SPEC, volumeName: name, resources: { requests: capacity } },
    },
  ];
}
async function eventsSeen(): Promise<{ type: string; reason: string; message: string; about: string }[]> {
  const got = await cluster.plane.request('GET', '/api/v1/events');
  type Seen = { type: string; reason: string; message: string; involvedObject: { kind: string; name: string } };
  return (got.body as { items: Seen[] }).items.map(({ type, reason, message, involvedObject: o }) => ({
    ...{ type, reason, about: `${o.kind}/${o.name}` },
    message: message
      .replaceAll(device, 'DEVICE')
      .replaceAll(cluster.daemon.rootDir, 'ROOT')
      .replace(/pods\/[0-9a-f-]{36}/g, 'pods/UID'),
  }));
}

try {
  await (reference === undefined ? cluster.daemon.start() : reference.start({ config }));
  await cluster.daemon.wait('the account', () => cluster.plane.hasAccount(), LONG);
  await cluster.daemon.wait('the node is Ready', async () => / Ready /.test(await cluster.kubectl('get', 'node', NODE_NAME)), LONG);
  driver = await startDriver({
    ...{ name: DRIVER, socket: join(cluster.daemon.rootDir, 'plugins_registry', `${DRIVER}-reg.sock`) },
    capabilities: ['GET_VOLUME_STATS', 'VOLUME_CONDITION'],
    stats: () => ({
      usage: [{ available: '1', total: '2', used: '1', unit: 'BYTES' }],
      volumeCondition: { abnormal: true, message: 'The target path of the volume does not exist.' },
    }),
  });
  await cluster.kubectl('label', 'node', NODE_NAME, 'disk=here');
  const terms = [{ matchExpressions: [{ key: 'disk', operator: 'In', values: ['here'] }] }];
  await cluster.apply(
    { apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver', metadata: { name: DRIVER }, spec: { attachRequired: false } },
    ...claim('disk', { local: { path: device, fsType: 'ext4' }, nodeAffinity: { required: { nodeSelectorTerms: terms } } }),
    ...claim('health', { csi: { driver: DRIVER, volumeHandle: 'health' } }),
  );
  const using = (claimName: string) => ({
    ...{ automountServiceAccountToken: false, volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }] },
    containers: [{ ...sh('main', STAY), volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
  });
  await cluster.create('mismatch', using('disk'));
  await cluster.create('abnormal', using('health'));
  const resources = (cpu: string) => ({ requests: { cpu }, limits: { cpu } });
  await cluster.create('resized', {
    automountServiceAccountToken: false,
    initContainers: [{ ...sh('first', 'true'), resources: resources('10m') }],
    containers: [{ ...sh('main', STAY), resources: resources('10m') }],
  });
  await cluster.ready('resized');
  const body = { spec: { initContainers: [{ name: 'first', resources: resources('20m') }] } };
  const path = '/api/v1/namespaces/default/pods/resized/resize';
  const done = await cluster.plane.request('PATCH', path, { body, contentType: 'application/strategic-merge-patch+json' });
  if (done.status !== 200) throw new Error(`PATCH ${path}: ${done.status} ${JSON.stringify(done.body)}`);
  const found: Record<string, unknown> = {};
  for (const [reason, about] of Object.entries(AWAITED)) {
    const seen = await cluster.daemon
      .wait(reason, async () => (await eventsSeen()).find((e) => e.reason === reason && e.about === about), LONG)
      .catch(() => null);
    found[reason] = seen;
  }
  found.others = (await eventsSeen()).filter((e) => e.about === 'Pod/mismatch' && e.reason === 'FailedMount').slice(0, 1);
  writeFileSync(file, `${JSON.stringify(found, null, 2)}\n`);
} finally {
  await driver?.stop();
  if (reference !== undefined) writeFileSync(`${file}.log`, reference.log());
  await reference?.end('SIGKILL');
  await cluster.stop();
  await reference?.dispose();
  run('losetup', '-d', device);
  rmSync(dir, { recursive: true, force: true });
}
