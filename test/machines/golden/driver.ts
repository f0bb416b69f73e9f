/** A storage driver beside a virtual node, and a claim that is bound to a volume of it. */
import { driversView } from '../../../src/machines/services/plugins/messages.ts';
import { NS } from '../../integration/cluster/clusterPods.ts';
import { ROOT, type VirtualNode } from '../../integration/virtualNode.ts';

const DRIVER = 'csi.example.com';

function put(h: VirtualNode, path: string, body: object): void {
  const made = h.kube.handle({ verb: 'POST', path, body });
  if (!made.ok) throw new Error(made.failure.message);
}

/** Waits until the driver is registered. */
export async function provideClaim(h: VirtualNode, accessMode = 'ReadWriteOnce'): Promise<void> {
  const socket = `${ROOT}/plugins_registry/${DRIVER}-reg.sock`;
  h.drivers.add(socket, { name: DRIVER });
  h.fs.makeSocket(socket);
  put(h, '/apis/storage.k8s.io/v1/csidrivers', { metadata: { name: DRIVER }, spec: { attachRequired: false } });
  put(h, `${NS}/persistentvolumeclaims`, { metadata: { name: 'data' }, spec: { volumeName: 'pv-1' }, status: { phase: 'Bound' } });
  const claim = h.kube.handle({ verb: 'GET', path: `${NS}/persistentvolumeclaims/data` });
  if (!claim.ok) throw new Error(claim.failure.message);
  const { uid } = (claim.body as { metadata: { uid: string } }).metadata;
  put(h, '/api/v1/persistentvolumes', {
    metadata: { name: 'pv-1' },
    spec: { accessModes: [accessMode], claimRef: { uid }, csi: { driver: DRIVER, volumeHandle: 'vol-1' } },
  });
  await h.until('the driver is registered', () => h.tree.registry.read(driversView)?.value.has(DRIVER) === true, 120_000);
}

/** A pod that mounts it. */
export const CLAIMING = {
  container: { volumeMounts: [{ name: 'disk', mountPath: '/data' }] },
  spec: { volumes: [{ name: 'disk', persistentVolumeClaim: { claimName: 'data' } }] },
};
