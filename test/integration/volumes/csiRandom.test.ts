/** Drivers that fail at random, die and come back, under a daemon that is killed at random: nothing is left, nothing is done out of order. */
import { describe, expect, it } from 'vitest';
import type { CsiMethod } from '../../../src/machines/wire/csi.ts';
import { rotating } from '../../rotation.ts';
import { seededRng } from '../../supervision/fakePorts.ts';
import { cluster, create, drop, inApi, NS } from '../cluster/clusterPods.ts';
import { ROOT, type VirtualNode } from '../virtualNode.ts';

const NAME = 'csi.example.com';
const SOCKET = `${ROOT}/plugins_registry/${NAME}-reg.sock`;
const METHODS: readonly CsiMethod[] = [
  'NodeStageVolume',
  'NodePublishVolume',
  'NodeUnpublishVolume',
  'NodeUnstageVolume',
  'NodeGetCapabilities',
];
/** InvalidArgument and Internal are final; DeadlineExceeded, Aborted and Unavailable are not. */
const CODES: readonly number[] = [3, 4, 10, 13, 14];
const STEPS = 25;
const NAMES: readonly string[] = ['p0', 'p1', 'p2', 'p3'];

const MOUNT = { container: { volumeMounts: [{ name: 'disk', mountPath: '/data' }] } };
const claiming = { ...MOUNT, spec: { volumes: [{ name: 'disk', persistentVolumeClaim: { claimName: 'data' } }] } };
const inline = { ...MOUNT, spec: { volumes: [{ name: 'disk', csi: { driver: NAME } }] } };

function put(h: VirtualNode, path: string, body: object): { metadata: { uid: string } } {
  const made = h.kube.handle({ verb: 'POST', path, body });
  if (!made.ok) throw new Error(made.failure.message);
  return made.body as { metadata: { uid: string } };
}
function provide(h: VirtualNode): void {
  const modes = ['Persistent', 'Ephemeral'];
  put(h, '/apis/storage.k8s.io/v1/csidrivers', { metadata: { name: NAME }, spec: { attachRequired: false, volumeLifecycleModes: modes } });
  const claim = { metadata: { name: 'data' }, spec: { volumeName: 'pv-1' }, status: { phase: 'Bound' } };
  const { uid } = put(h, `${NS}/persistentvolumeclaims`, claim).metadata;
  const csi = { driver: NAME, volumeHandle: 'vol-1' };
  put(h, '/api/v1/persistentvolumes', { metadata: { name: 'pv-1' }, spec: { accessModes: ['ReadWriteMany'], claimRef: { uid }, csi } });
}

async function play(h: VirtualNode, seed: number): Promise<void> {
  const rng = seededRng(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(rng.next() * list.length)] as T;
  const driver = h.drivers.add(SOCKET, { name: NAME });
  h.fs.makeSocket(SOCKET);
  provide(h);
  for (let step = 0; step < STEPS; step++) {
    const name = pick(NAMES);
    switch (Math.floor(rng.next() * 7)) {
      case 0:
      case 1:
        if (inApi(h, name) === undefined) create(h, name, pick([claiming, inline]));
        break;
      case 2:
        if (inApi(h, name) !== undefined) drop(h, `pods/${name}`);
        break;
      case 3: {
        const fault = { code: pick(CODES), details: 'played', effect: rng.next() < 0.5 };
        const method = pick(METHODS);
        // An answer that is final is true: there was no effect.
        const told = [3, 13].includes(fault.code) ? { ...fault, effect: false } : fault;
        h.drivers.fault = (_, m) => (m === method ? told : undefined);
        break;
      }
      case 4:
        h.drivers.fault = () => undefined;
        driver.down = !driver.down;
        break;
      case 5:
        h.fs.drop(SOCKET);
        h.fs.makeSocket(SOCKET);
        break;
      default:
        await h.restart();
    }
    await h.advance(Math.floor(rng.next() * 8_000));
  }
  h.drivers.fault = () => undefined;
  driver.down = false;
  for (const name of NAMES) if (inApi(h, name) !== undefined) drop(h, `pods/${name}`);
  await h.until('every pod is gone', () => NAMES.every((name) => inApi(h, name) === undefined), 900_000);
  const left = () => h.fs.below(`${ROOT}/pods`).filter((path) => path.slice(`${ROOT}/pods/`.length).length > 0);
  await h.until('every directory is gone', () => left().length === 0, 900_000);
  expect(h.drivers.violations).toEqual([]);
  expect(h.mounts.table).toEqual([]);
  expect([...driver.published, ...driver.staged]).toEqual([]);
  expect(h.fs.below(`${ROOT}/plugins`).filter((path) => path.endsWith('.json') || path.endsWith('globalmount'))).toEqual([]);
}

describe('volumes of drivers', () => {
  it.each(
    rotating(
      'random drivers',
      Array.from({ length: 12 }, (_, i) => 730_000 + i),
      6,
    ),
  )('come and go without a trace, whatever fails (seed %i)', async (seed) => {
    await using h = await cluster({ drivers: true, seed });
    await play(h, seed);
  });
});
