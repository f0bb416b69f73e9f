/** A storage driver beside a virtual node, and a claim that is bound to a volume of it. */
import { driversView } from '../../../src/machines/services/plugins/messages.ts';
import { post, put } from '../../integration/cluster/clusterPods.ts';
import { ROOT, type VirtualNode } from '../../integration/virtualNode.ts';

const DRIVER = 'csi.example.com';

/** Waits until the driver is registered. */
export async function provideClaim(h: VirtualNode, accessMode = 'ReadWriteOnce'): Promise<void> {
  const socket = `${ROOT}/plugins_registry/${DRIVER}-reg.sock`;
  h.drivers.add(socket, { name: DRIVER });
  h.fs.makeSocket(socket);
  put(h, '/apis/storage.k8s.io/v1/csidrivers', { metadata: { name: DRIVER }, spec: { attachRequired: false } });
  const { uid } = post(h, 'persistentvolumeclaims', {
    metadata: { name: 'data' },
    spec: { volumeName: 'pv-1' },
    status: { phase: 'Bound' },
  }).metadata;
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
