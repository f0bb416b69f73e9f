/**
 * Runs in the machine, beside the daemon: the simulation's API server with pods on disks of iSCSI that ask for secrets, and on
 * disks of the node that grow. It attaches what the node says that it uses, as the controller of a cluster does.
 * `node disksCluster.ts DIR`: see `startCluster.ts`.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startKubeServer, writeKubeconfig } from '../../lab/flood/kubeServer.ts';
import { CHAP, IQN, LOCAL_DISKS, PORTALS } from './iscsiTarget.ts';

const [, , dir = ''] = process.argv;
const NS = '/api/v1/namespaces/default';
const CLAIMS = `${NS}/persistentvolumeclaims`;
const NODE = '/api/v1/nodes/vm';
const [SMALL, LARGE] = ['320Mi', '640Mi'];
const LOCAL = Object.entries(LOCAL_DISKS);

/** Each number is on the disk before the next. */
const COUNT = 'n=0; while :; do n=$((n+1)); echo $n >/data/new && sync /data/new && mv /data/new /data/count; sleep 0.2; done';
/** Its file system, as the container sees it. */
const SIZE = 'while :; do df -k /data | tail -n 1 >/data/new && mv /data/new /data/size; sleep 0.2; done';

const kube = await startKubeServer({ certFile: join(dir, 'server.crt'), keyFile: join(dir, 'server.key') });
const make = (path: string, body: object) => kube.handle({ verb: 'POST', path, body });
const base64 = (text: string) => Buffer.from(text).toString('base64');
function secret(name: string, session: string): void {
  const data = {
    'discovery.sendtargets.auth.username': base64(CHAP.discovery.user),
    'discovery.sendtargets.auth.password': base64(CHAP.discovery.password),
    'node.session.auth.username': base64(CHAP.session.user),
    'node.session.auth.password': base64(session),
  };
  make(`${NS}/secrets`, { metadata: { name }, type: 'kubernetes.io/iscsi-chap', data });
}
function pod(name: string, disk: object, script: string): void {
  const container = {
    ...{ name: 'main', image: 'localhost/busybox:1', imagePullPolicy: 'Never', command: ['sh', '-c', script] },
    volumeMounts: [{ name: 'disk', mountPath: '/data' }],
  };
  const spec = { nodeName: 'vm', terminationGracePeriodSeconds: 1, containers: [container], volumes: [{ name: 'disk', ...disk }] };
  make(`${NS}/pods`, { metadata: { name, namespace: 'default' }, spec });
}
function san(name: string, secretName: string, portals: readonly string[]): void {
  const [targetPortal = '', ...more] = portals;
  const chap = { chapAuthDiscovery: true, chapAuthSession: true, secretRef: { name: secretName } };
  pod(name, { iscsi: { targetPortal, portals: more, iqn: IQN, lun: 1, ...chap } }, COUNT);
}
function local(fsType: string, path: string): void {
  const resources = { requests: { storage: SMALL } };
  const status = { phase: 'Bound', capacity: { storage: SMALL } };
  make(CLAIMS, { metadata: { name: fsType }, spec: { volumeName: `pv-${fsType}`, resources }, status });
  const { uid } = claimNamed(fsType).metadata;
  const spec = { accessModes: ['ReadWriteOnce'], capacity: { storage: SMALL }, claimRef: { uid }, local: { path, fsType } };
  make('/api/v1/persistentvolumes', { metadata: { name: `pv-${fsType}` }, spec });
  pod(fsType, { persistentVolumeClaim: { claimName: fsType } }, SIZE);
}
interface Claim {
  metadata: { uid: string };
  status: { capacity: { storage: string } };
}
const claimNamed = (name: string): Claim => (kube.handle({ verb: 'GET', path: `${CLAIMS}/${name}` }) as { body: Claim }).body;
/** What the user, the storage system and the controller do. */
function grow(name: string): void {
  const merge = (path: string, body: object) => kube.handle({ verb: 'PATCH', path, patchType: 'merge', body });
  merge(`${CLAIMS}/${name}`, { spec: { resources: { requests: { storage: LARGE } } } });
  merge(`/api/v1/persistentvolumes/pv-${name}`, { spec: { capacity: { storage: LARGE } } });
  const conditions = [{ type: 'FileSystemResizePending', status: 'True' }];
  const allocated = { allocatedResources: { storage: LARGE }, allocatedResourceStatuses: { storage: 'NodeResizePending' } };
  merge(`${CLAIMS}/${name}/status`, { status: { conditions, ...allocated } });
}
const remove = (name: string) => kube.handle({ verb: 'DELETE', path: `${NS}/pods/${name}` });

secret('wrong', 'not the password');
secret('right', CHAP.session.password);
san('refused', 'wrong', PORTALS.slice(0, 1));
writeKubeconfig(dir, kube.server, join(dir, 'ca.crt'));

/** A file of that name in the folder of the cluster is the order. */
const orders: Readonly<Record<string, () => unknown>> = {
  'delete-refused': () => remove('refused'),
  create: () => san('paths', 'right', PORTALS),
  'delete-paths': () => remove('paths'),
  'create-local': () => LOCAL.map(([type, path]) => local(type, path)),
  grow: () => LOCAL.map(([type]) => grow(type)),
  'delete-local': () => LOCAL.map(([type]) => remove(type)),
};
const done = new Set<string>();
for (;;) {
  for (const [name, act] of Object.entries(orders)) {
    if (done.has(name) || !existsSync(join(dir, name))) continue;
    done.add(name);
    act();
  }
  if (done.has('create-local')) {
    const sizes = LOCAL.map(([name]) => claimNamed(name).status.capacity.storage);
    writeFileSync(join(dir, 'sizes'), sizes.join(' '));
  }
  const node = kube.handle({ verb: 'GET', path: NODE }) as { body?: { status?: { volumesInUse?: string[]; volumesAttached?: object[] } } };
  const { volumesInUse = [], volumesAttached = [] } = node.body?.status ?? {};
  const attached = volumesInUse.map((name) => ({ name, devicePath: '' }));
  if (JSON.stringify(attached) !== JSON.stringify(volumesAttached)) {
    kube.handle({ verb: 'PATCH', path: `${NODE}/status`, patchType: 'merge', body: { status: { volumesAttached: attached } } });
  }
  await sleep(200);
}
