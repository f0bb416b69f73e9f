/**
 * Runs in the machine, beside the daemon: the simulation's API server and a driver of CSI that mounts with the options that
 * it is given. `node selinuxCluster.ts DIR PLUGINS`: DIR has the key pair, and gets the kubeconfig when the cluster is there.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startDriver } from '../../../volumes/csiDriver.ts';
import { startKubeServer, writeKubeconfig } from '../../lab/flood/kubeServer.ts';
import { until } from '../../lab/ports.ts';

const [, , dir = '', plugins = ''] = process.argv;
const NAME = 'csi.example.com';
const NS = '/api/v1/namespaces/default';
const FOR_LONG = { timeoutMs: 600_000, everyMs: 200 };

const kube = await startKubeServer({ certFile: join(dir, 'server.crt'), keyFile: join(dir, 'server.key') });
const make = (path: string, body: object) => kube.handle({ verb: 'POST', path, body });
function claim(name: string, accessMode: string): void {
  const spec = { volumeName: `pv-${name}`, accessModes: [accessMode] };
  make(`${NS}/persistentvolumeclaims`, { metadata: { name }, spec, status: { phase: 'Bound' } });
  const made = kube.handle({ verb: 'GET', path: `${NS}/persistentvolumeclaims/${name}` }) as { body: { metadata: { uid: string } } };
  const claimRef = { uid: made.body.metadata.uid, name, namespace: 'default' };
  const csi = { driver: NAME, volumeHandle: name, fsType: 'ext4' };
  make('/api/v1/persistentvolumes', { metadata: { name: `pv-${name}` }, spec: { accessModes: [accessMode], claimRef, csi } });
}
function pod(name: string, claimName: string, securityContext: object): void {
  const container = {
    ...{ name: 'main', image: 'localhost/busybox:1', command: ['sleep', '3600'], imagePullPolicy: 'Never' },
    volumeMounts: [{ name: 'disk', mountPath: '/data' }],
  };
  const volumes = [{ name: 'disk', persistentVolumeClaim: { claimName } }];
  const spec = { nodeName: 'vm', terminationGracePeriodSeconds: 1, containers: [container], volumes, securityContext };
  make(`${NS}/pods`, { metadata: { name, namespace: 'default' }, spec });
}
const phase = (name: string) =>
  (kube.handle({ verb: 'GET', path: `${NS}/pods/${name}` }) as { body?: { status?: { phase?: string } } }).body?.status?.phase;

make('/apis/storage.k8s.io/v1/csidrivers', { metadata: { name: NAME }, spec: { attachRequired: false, seLinuxMount: true } });
claim('once', 'ReadWriteOncePod');
claim('shared', 'ReadWriteMany');
claim('old', 'ReadWriteOncePod');
mkdirSync(plugins, { recursive: true });
await startDriver({
  ...{ name: NAME, socket: join(plugins, `${NAME}-reg.sock`) },
  publish({ volumeId, targetPath, volumeCapability }) {
    const flags = volumeCapability.mount?.mountFlags ?? [];
    execFileSync('mount', ['-t', 'tmpfs', ...(flags.length === 0 ? [] : ['-o', flags.join(',')]), volumeId, targetPath]);
  },
  unpublish: (path) => void execFileSync('umount', [path]),
});
const level = (categories: string) => ({ seLinuxOptions: { level: `s0:${categories}` } });
pod('once', 'once', level('c1,c2'));
pod('old', 'old', { ...level('c1,c2'), seLinuxChangePolicy: 'Recursive' });
pod('first', 'shared', level('c1,c2'));
writeKubeconfig(dir, kube.server, join(dir, 'ca.crt'));
await until('the first pod to run', async () => phase('first') === 'Running', FOR_LONG);
pod('second', 'shared', level('c7,c8'));
