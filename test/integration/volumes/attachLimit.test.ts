/** How many volumes a driver can take: told to the cluster, asked again, and what a node that is full does (KEP-4876). */
import { createHash } from 'node:crypto';
import type { SimDriver } from '@actorlet/world/src/plugins/drivers.ts';
import { describe, expect, it } from 'vitest';
import { attachmentId } from '../../../src/machines/services/volumes/csi/volume.ts';
import { cluster, create, dropped, events, get, inApi, NS, put } from '../cluster/clusterPods.ts';
import { ROOT, type VirtualNode } from '../virtualNode.ts';

const NAME = 'csi.example.com';
const SOCKET = `${ROOT}/plugins_registry/${NAME}-reg.sock`;
const STORAGE = '/apis/storage.k8s.io/v1';

const node = () => cluster({ drivers: true });
function plug(h: VirtualNode, o: Partial<SimDriver>): SimDriver {
  const driver = h.drivers.add(SOCKET, { name: NAME, ...o });
  h.fs.makeSocket(SOCKET);
  return driver;
}
const rules = (h: VirtualNode, spec: object = {}) =>
  put(h, `${STORAGE}/csidrivers`, { metadata: { name: NAME }, spec: { attachRequired: false, ...spec } });
function provide(h: VirtualNode): void {
  put(h, `${NS}/persistentvolumeclaims`, { metadata: { name: 'data' }, spec: { volumeName: 'pv-1' }, status: { phase: 'Bound' } });
  const { metadata } = get(h, `${NS}/persistentvolumeclaims/data`) as { metadata: { uid: string } };
  const spec = { accessModes: ['ReadWriteOnce'], claimRef: { uid: metadata.uid }, csi: { driver: NAME, volumeHandle: 'vol-1' } };
  put(h, '/api/v1/persistentvolumes', { metadata: { name: 'pv-1' }, spec });
}
const claiming = () => ({
  container: { volumeMounts: [{ name: 'disk', mountPath: '/data' }] },
  spec: { volumes: [{ name: 'disk', persistentVolumeClaim: { claimName: 'data' } }] },
});

describe('how many volumes a driver can take', () => {
  const limit = (h: VirtualNode) =>
    (get(h, `${STORAGE}/csinodes/n1`) as { spec: { drivers: { allocatable?: { count: number } }[] } } | undefined)?.spec.drivers[0]
      ?.allocatable?.count;
  const infos = (h: VirtualNode) => h.drivers.calls.filter((c) => c.method === 'NodeGetInfo').length;

  it('is asked again at the period that its object names, and changed in place in CSINode', async () => {
    await using h = await node();
    rules(h, { nodeAllocatableUpdatePeriodSeconds: 60 });
    const driver = plug(h, { volumesMax: 7 });
    await h.until('the cluster knows', () => limit(h) === 7);
    driver.volumesMax = 5;
    const writes = () => h.kube.calls.filter((c) => c.request.verb === 'PUT' && c.request.path.endsWith('/csinodes/n1')).length;
    const [asked, written] = [infos(h), writes()];
    await h.until('the cluster knows', () => limit(h) === 5, 61_000);
    expect([infos(h) - asked, writes() - written]).toEqual([1, 1]);
    await h.advance(600_000);
    expect(infos(h) - asked).toBeGreaterThanOrEqual(10);
    expect(infos(h) - asked).toBeLessThanOrEqual(12);
    expect(writes() - written).toBe(1);
  });

  it('is asked once where its object names none', async () => {
    await using h = await node();
    rules(h);
    plug(h, { volumesMax: 7 });
    await h.until('the cluster knows', () => limit(h) === 7);
    await h.advance(900_000);
    expect(infos(h)).toBe(1);
  });

  it('is asked at once when the cluster could not attach another, and the pod fails, so that it starts elsewhere', async () => {
    await using h = await node();
    rules(h, { attachRequired: true, nodeAllocatableUpdatePeriodSeconds: 3_600 });
    const driver = plug(h, { volumesMax: 7 });
    await h.until('the cluster knows', () => limit(h) === 7);
    driver.volumesMax = 1;
    provide(h);
    const pod = create(h, 'web', claiming());
    const name = `kubernetes.io/csi/${NAME}^vol-1`;
    await h.until('it is in use', () => {
      const status = get(h, '/api/v1/nodes/n1')?.status as { volumesInUse?: string[] } | undefined;
      return status?.volumesInUse?.includes(name) === true;
    });
    const attachError = { message: 'no room', errorCode: 8, time: '2026-01-01T00:00:00Z' };
    const id = attachmentId({
      handle: 'vol-1',
      driver: NAME,
      node: 'n1',
      sha256Hex: (text) => createHash('sha256').update(text).digest('hex'),
    });
    put(h, `${STORAGE}/volumeattachments`, { metadata: { name: id }, status: { attached: false, attachError } });
    // What could not be attached does not show in the node's status.
    await h.until('the cluster knows', () => limit(h) === 1, 60_000);
    await h.until('the pod has failed', () => inApi(h, 'web')?.status.phase === 'Failed', 200_000);
    const { reason, message, conditions } = inApi(h, 'web')?.status ?? {};
    const told = 'Node has reached its volume attachment limit, rejecting pod.';
    expect([reason, message]).toEqual(['VolumeAttachmentLimitExceeded', expect.stringContaining(`Pod was rejected: ${told}`)]);
    expect(conditions?.filter((c) => c.type === 'DisruptionTarget')).toEqual([]);
    expect(events(h, 'VolumeAttachmentLimitExceeded')).toEqual([expect.stringContaining(told)]);
    const counted = /^kubelet_admission_rejections_total\{reason="VolumeAttachmentLimitExceeded"\} 1$/m;
    expect(await h.metrics.render()).toMatch(counted);
    await dropped(h, pod);
  });
});
