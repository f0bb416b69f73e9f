/**
 * Network disks that hang, die and come back, and disks that pods share, under a daemon and a volume manager that are killed at
 * random: nothing stays mounted, nothing is formatted twice, and nothing is removed while it is mounted.
 */
import { describe, expect, it } from 'vitest';
import { rotating } from '../../rotation.ts';
import { seededRng } from '../../supervision/fakePorts.ts';
import { cluster, create, drop, inApi, NS } from '../cluster/clusterPods.ts';
import { ROOT, type VirtualNode } from '../virtualNode.ts';

const STEPS = 30;
const NAMES: readonly string[] = ['p0', 'p1', 'p2', 'p3', 'p4'];
const DEVICE = '/dev/sdx';
const SERVERS: readonly string[] = ['files', 'more'];

const mounts = (...more: object[]) => ({ container: { volumeMounts: [{ name: 'v', mountPath: '/v' }, ...more] } });
const files = (server: string) => ({ ...mounts(), spec: { volumes: [{ name: 'v', nfs: { server, path: '/e' } }] } });
const part = (server: string) => ({
  ...mounts({ name: 'v', mountPath: '/part', subPath: 'a/b' }),
  spec: { volumes: [{ name: 'v', nfs: { server, path: '/e' } }] },
});
const disk = { ...mounts(), spec: { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }] } };

function put(h: VirtualNode, path: string, body: object): { metadata: { uid: string } } {
  const made = h.kube.handle({ verb: 'POST', path, body });
  if (!made.ok) throw new Error(made.failure.message);
  return made.body as { metadata: { uid: string } };
}
function provide(h: VirtualNode): void {
  h.special.set(DEVICE, 'block');
  const claim = { metadata: { name: 'data' }, spec: { volumeName: 'pv-1' }, status: { phase: 'Bound' } };
  const { uid } = put(h, `${NS}/persistentvolumeclaims`, claim).metadata;
  const spec = { claimRef: { uid }, local: { path: DEVICE }, mountOptions: ['noatime'] };
  put(h, '/api/v1/persistentvolumes', { metadata: { name: 'pv-1' }, spec });
}

/** Removals below something that is mounted, which would take what is somebody else's. */
function watchRemovals(h: VirtualNode): string[] {
  const wrong: string[] = [];
  const { unlink, rmdir } = h.fs;
  const isBelow = (path: string) =>
    h.mounts.table.some((m) => m.type.startsWith('nfs') && (path === m.path || path.startsWith(`${m.path}/`)));
  h.fs.unlink = async (path) => {
    if (isBelow(path)) wrong.push(path);
    return unlink(path);
  };
  h.fs.rmdir = async (path) => {
    if (isBelow(path)) wrong.push(path);
    return rmdir(path);
  };
  return wrong;
}

async function play(h: VirtualNode, seed: number): Promise<void> {
  const rng = seededRng(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(rng.next() * list.length)] as T;
  for (let step = 0; step < STEPS; step++) {
    const name = pick(NAMES);
    switch (Math.floor(rng.next() * 8)) {
      case 0:
      case 1:
      case 2:
        if (inApi(h, name) === undefined) create(h, name, pick([files(pick(SERVERS)), part(pick(SERVERS)), disk]));
        break;
      case 3:
        if (inApi(h, name) !== undefined) drop(h, `pods/${name}`);
        break;
      case 4: {
        const server = pick(SERVERS);
        if (!h.mounts.dead.delete(server)) h.mounts.dead.add(server);
        break;
      }
      case 5: {
        const op = pick(['mount', 'unmount', 'lazy', 'blkid', 'mkfs.ext4', 'none']);
        h.mounts.trouble.failing = (what) => (what === op ? 'EIO' : undefined);
        break;
      }
      case 6:
        h.kill('node/services/volumes');
        break;
      default:
        await h.restart();
    }
    await h.advance(Math.floor(rng.next() * 12_000));
  }
  h.mounts.dead.clear();
  h.mounts.trouble.failing = () => undefined;
  for (const name of NAMES) if (inApi(h, name) !== undefined) drop(h, `pods/${name}`);
}

describe('servers and disks that fail at random', () => {
  it.each(rotating('random servers', [1, 2, 3, 4, 5, 6, 7, 8], 4))('seed %i leaves nothing mounted and nothing lost', async (seed) => {
    await using h = await cluster({ seed });
    provide(h);
    // On every second disk there is something.
    if (seed % 2 === 1) h.mounts.formatted.set(DEVICE, 'ext4');
    const wrong = watchRemovals(h);
    await play(h, seed);
    const left = () => [...h.mounts.table.map((m) => m.path), ...h.fs.below(`${ROOT}/pods`).filter((p) => p.includes('/volumes/'))];
    await h.until('nothing to be left', () => NAMES.every((name) => inApi(h, name) === undefined) && left().length === 0, 600_000);
    expect([
      wrong,
      h.mounts.overwritten,
      h.fs.below(`${ROOT}/plugins/kubernetes.io/local-volume`).filter((p) => p.endsWith('/pv-1')),
    ]).toEqual([[], [], []]);
  });
});
