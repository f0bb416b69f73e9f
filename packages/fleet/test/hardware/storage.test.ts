/** Volumes of a fleet: what a driver does about claims, volumes and attachments, and what faults do to it. */
import { createClock } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import type { KubeObject, KubeRequest, KubeResult } from '@actorlet/kubelet/machines/kube/request.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import { describe, expect, it } from 'vitest';
import { fakePorts } from '../../../../test/supervision/fakePorts.ts';
import { decodeFleet } from '../../src/file.ts';
import { startFleet } from '../../src/index.ts';
import type { StorageSpec, VolumeFault } from '../../src/spec/hardware/storage.ts';
import { Storage } from '../../src/storage/storage.ts';
import { fleetTree } from '../../src/tree.ts';
import { refusedOf } from '../api/rights.ts';

const HEAD = 'apiVersion: actorlet.dev/v1alpha1\nkind: Fleet\nmetadata: { name: demo }\nspec:\n  groups: [{ name: a, count: 1 }]\n';
const DRIVER = 'disk.csi.actorlet.dev';
const SPEC: StorageSpec = {
  ...{ name: 'disk', driver: DRIVER, binding: 'WaitForFirstConsumer', volumesMax: 0 },
  ...{ provision: { fromMs: 2_000, toMs: 2_000 }, attach: { fromMs: 3_000, toMs: 3_000 } },
};
const fault = (o: Partial<VolumeFault> = {}): VolumeFault => ({ fault: 'attach-fails', message: 'no', ...o });

/** Objects by path, and watches that never say anything: lists begin anew when they end. */
function lab() {
  const ports = fakePorts();
  const objects = new Map<string, KubeObject>();
  const asked: KubeRequest[] = [];
  const request = async (of: KubeRequest): Promise<KubeResult> => {
    asked.push(of);
    const path = of.path.replace(/\/status$/, '');
    if (of.verb === 'POST') objects.set(`${path}/${(of.body as KubeObject).metadata.name}`, of.body as KubeObject);
    else if (of.verb === 'PATCH') objects.set(path, { ...objects.get(path), ...(of.body as object) } as KubeObject);
    else if (of.verb === 'DELETE') objects.delete(path);
    else if (objects.has(path)) return { ok: true, code: 200, body: objects.get(path) };
    const plural = path.split('/').pop() ?? '';
    const items = [...objects].filter(([at]) => at.split('/').at(-2) === plural).map(([, object]) => object);
    return { ok: true, code: 200, body: of.verb === 'GET' ? { items, metadata: { resourceVersion: '1' } } : {} };
  };
  const watch: KubeApi['watch'] = async ({ path, query }) => {
    asked.push({ verb: 'GET', path, query: { ...query, watch: 'true' } });
    return { ok: true, lines: (async function* () {})(), close() {} } as never;
  };
  const kube: KubeApi = { server: '', request, watch, closeConnections() {}, close() {} };
  const storage = new Storage({ storage: [SPEC], kube, clock: createClock(), rng: { next: () => 0 }, registry: () => tree.registry });
  const tree = fleetTree([storage.spec()], { ...ports, stopMs: 1_000 });
  void tree.start();
  const stop = async (): Promise<void> => {
    const stopped = tree.stop();
    await ports.settle();
    await stopped;
    expect(refusedOf(asked)).toEqual([]);
  };
  return { ...ports, objects, asked, storage, tree, stop };
}

const claim = (annotations: Record<string, string>): KubeObject => ({
  ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'data-0', namespace: 'shop', uid: 'u1', annotations } },
  spec: { storageClassName: 'disk', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '5Gi' } } },
});
const attachment = (node = 'n'): KubeObject => ({
  ...{ apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttachment', metadata: { name: 'va', uid: 'u2' } },
  spec: { attacher: DRIVER, nodeName: node, source: { persistentVolumeName: 'pvc-u1' } },
});
const CLAIM = '/api/v1/namespaces/shop/persistentvolumeclaims/data-0';
const ATTACHMENT = '/apis/storage.k8s.io/v1/volumeattachments/va';
const VOLUME = '/api/v1/persistentvolumes/pvc-u1';
type Attached = { attached?: boolean; attachError?: { message: string } | null };

describe('a driver that a fleet plays', () => {
  it('makes its class and the volume of a claim that has its node, and takes away what was released', async () => {
    const { objects, advance, stop } = lab();
    const provisioned = { 'volume.kubernetes.io/storage-provisioner': DRIVER };
    objects.set(CLAIM, claim(provisioned));
    await advance(10_000);
    expect(objects.get('/apis/storage.k8s.io/v1/csidrivers/disk.csi.actorlet.dev')).toMatchObject({ spec: { attachRequired: true } });
    expect(objects.get('/apis/storage.k8s.io/v1/storageclasses/disk')).toMatchObject({ provisioner: DRIVER });
    expect(objects.has(VOLUME)).toBe(false);
    objects.set(CLAIM, claim({ ...provisioned, 'volume.kubernetes.io/selected-node': 'n' }));
    await advance(5_000);
    expect(objects.get(VOLUME)).toMatchObject({
      metadata: { annotations: { 'pv.kubernetes.io/provisioned-by': DRIVER } },
      spec: {
        capacity: { storage: '5Gi' },
        claimRef: { namespace: 'shop', name: 'data-0', uid: 'u1' },
        csi: { driver: DRIVER, fsType: 'ext4' },
      },
    });
    objects.set(VOLUME, { ...(objects.get(VOLUME) as KubeObject), status: { phase: 'Released' } });
    await advance(5_000);
    expect(objects.has(VOLUME)).toBe(false);
    await stop();
  });

  it.each<[VolumeFault, boolean]>([
    [fault(), true],
    [fault({ storageClasses: ['d*'], claims: ['shop/data-*'], volumes: ['pvc-*'] }), true],
    [fault({ claims: ['other/data-*'] }), false],
    [fault({ storageClasses: ['fast'] }), false],
    [fault({ volumes: ['u1'] }), false],
  ])('attaches a volume unless a fault selects it: %j', async (of, hits) => {
    const { objects, advance, storage, stop } = lab();
    const spec = { storageClassName: 'disk', claimRef: { namespace: 'shop', name: 'data-0' } };
    objects.set(VOLUME, { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'pvc-u1', uid: 'u3' }, spec });
    objects.set(ATTACHMENT, attachment());
    storage.inject({ name: 'f', nodes: new Set(['n']), fault: of });
    storage.inject({ name: 'elsewhere', nodes: new Set(['m']), fault: fault({ message: 'not here' }) });
    const status = (): Attached | undefined => objects.get(ATTACHMENT)?.status as Attached | undefined;
    await advance(2_900);
    expect(status()).toBeUndefined();
    await advance(2_000);
    expect(status()).toMatchObject(hits ? { attached: false, attachError: { message: 'no' } } : { attached: true, attachError: null });
    storage.heal('f');
    await advance(31_000);
    expect(status()).toMatchObject({ attached: true, attachError: null });
    await stop();
  });

  it('says nothing of a volume that hangs, until that is over, and nothing of one that nobody wants any more', async () => {
    const { objects, asked, advance, storage, tree, stop } = lab();
    objects.set(ATTACHMENT, attachment());
    storage.inject({ name: 'f', nodes: null, fault: fault({ fault: 'attach-hangs' }) });
    await advance(120_000);
    expect(asked.filter((r) => r.verb === 'PATCH')).toEqual([]);
    expect(JSON.stringify(tree.stateAt('fleet/storage/tasks'))).toContain('the fault f holds it');
    objects.delete(ATTACHMENT);
    storage.heal('f');
    await advance(10_000);
    expect([asked.filter((r) => r.verb === 'PATCH'), tree.stateAt('fleet/storage/tasks')?.children]).toEqual([[], []]);
    await stop();
  });
});

it.each([
  ['storage: [{ name: A }]', 'storage[0].name: "A" must be lower-case'],
  ['storage: [{ name: a }, { name: a }]', 'storage[1].name: is the same as that of storage[0]'],
  [`storage: [{ name: ${'a'.repeat(60)} }]`, 'storage[0].name: must have at most 63 characters'],
  ['storage: [{ name: a, binding: Never }]', 'storage[0].binding: must be one of Immediate, WaitForFirstConsumer'],
  ['steps: [{ at: 0s, do: inject, volumes: { fault: attach-fails } }]', 'spec.storage has no driver'],
  ['storage: [{ name: a }]\n  steps: [{ at: 0s, do: inject, volumes: {} }]', 'volumes.fault: is missing'],
  [
    'storage: [{ name: a }]\n  steps: [{ at: 0s, do: inject, volumes: { fault: attach-hangs, message: x } }]',
    'message: belongs to attach-fails',
  ],
  [
    'storage: [{ name: a }]\n  steps: [{ at: 0s, do: inject, volumes: { fault: attach-hangs, claims: [x] } }]',
    'claims: must be NAMESPACE/NAME, is "x"',
  ],
])('a file is refused that says %s', (spec, why) => {
  const read = decodeFleet(`${HEAD}  ${spec}\n`);
  expect(read.ok ? '' : read.errors.map((e) => `${e.field}: ${e.message}`).join('\n')).toContain(why);
});

it('the embedded API server has no volumes, and the library says so', async () => {
  const file = `${HEAD}  storage: [{ name: disk }]\n`;
  await expect(startFleet({ file, api: 'embedded' })).rejects.toThrow('spec.storage needs --api local or a cluster');
});
