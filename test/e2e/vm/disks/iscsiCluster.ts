/**
 * Runs in the machine, beside the daemon: the simulation's API server with pods on disks of iSCSI that ask for secrets. It attaches
 * what the node says that it uses, as the controller of a cluster does. `node iscsiCluster.ts DIR`: see `startCluster.ts`.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startKubeServer, writeKubeconfig } from '../../lab/flood/kubeServer.ts';
import { CHAP, IQN, PORTALS } from './iscsiTarget.ts';

const [, , dir = ''] = process.argv;
const NS = '/api/v1/namespaces/default';
const NODE = '/api/v1/nodes/vm';

/** Each number is on the disk before the next. */
const COUNT = 'n=0; while :; do n=$((n+1)); echo $n >/data/new && sync /data/new && mv /data/new /data/count; sleep 0.2; done';

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
function pod(name: string, secretName: string, portals: readonly string[]): void {
  const [targetPortal = '', ...more] = portals;
  const iscsi = {
    ...{ targetPortal, portals: more, iqn: IQN, lun: 1, chapAuthDiscovery: true, chapAuthSession: true },
    secretRef: { name: secretName },
  };
  const container = {
    ...{ name: 'main', image: 'localhost/busybox:1', imagePullPolicy: 'Never' },
    command: ['sh', '-c', COUNT],
    volumeMounts: [{ name: 'disk', mountPath: '/data' }],
  };
  const spec = { nodeName: 'vm', terminationGracePeriodSeconds: 1, containers: [container], volumes: [{ name: 'disk', iscsi }] };
  make(`${NS}/pods`, { metadata: { name, namespace: 'default' }, spec });
}

secret('wrong', 'not the password');
secret('right', CHAP.session.password);
pod('refused', 'wrong', PORTALS.slice(0, 1));
writeKubeconfig(dir, kube.server, join(dir, 'ca.crt'));

/** A file in the folder of the cluster is an order: the next pod, or the end of one. */
const orders: Readonly<Record<string, () => unknown>> = {
  'delete-refused': () => kube.handle({ verb: 'DELETE', path: `${NS}/pods/refused` }),
  create: () => pod('paths', 'right', PORTALS),
  'delete-paths': () => kube.handle({ verb: 'DELETE', path: `${NS}/pods/paths` }),
};
const done = new Set<string>();
for (;;) {
  for (const [name, act] of Object.entries(orders)) {
    if (done.has(name) || !existsSync(join(dir, name))) continue;
    done.add(name);
    act();
  }
  const node = kube.handle({ verb: 'GET', path: NODE }) as { body?: { status?: { volumesInUse?: string[]; volumesAttached?: object[] } } };
  const { volumesInUse = [], volumesAttached = [] } = node.body?.status ?? {};
  const attached = volumesInUse.map((name) => ({ name, devicePath: '' }));
  if (JSON.stringify(attached) !== JSON.stringify(volumesAttached)) {
    kube.handle({ verb: 'PATCH', path: `${NODE}/status`, patchType: 'merge', body: { status: { volumesAttached: attached } } });
  }
  await sleep(200);
}
