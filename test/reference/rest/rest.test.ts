/** What a node at rest asks of its API server, in virtual time, beside what the reference kubelet asked (`record.ts`). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { route } from '@actorlet/world/src/kube/kubeRoutes.ts';
import { expect, it } from 'vitest';
import type { KubeRequest } from '../../../src/machines/kube/request.ts';
import { driversView } from '../../../src/machines/services/plugins/messages.ts';
import { cluster, create, isReady, NS } from '../../integration/cluster/clusterPods.ts';
import { ROOT, type VirtualNode } from '../../integration/virtualNode.ts';
import { CLAIMS, COUNTED_MS, type Counts, clusterObjects, counted, DRIVERS, ENV, SETTLE_MS, VOLUMES } from './objects.ts';

const RECORDED = JSON.parse(readFileSync(join(import.meta.dirname, '../recorded/rest136.json'), 'utf8')) as { counts: Counts };
const PATHS: Readonly<Record<string, string>> = {
  Secret: `${NS}/secrets`,
  ConfigMap: `${NS}/configmaps`,
  CSIDriver: '/apis/storage.k8s.io/v1/csidrivers',
  PersistentVolume: '/api/v1/persistentvolumes',
  PersistentVolumeClaim: `${NS}/persistentvolumeclaims`,
};
/** What comes once in a while may come once more in a window than in another of the same length. */
const PHASE = 1;

function make(h: VirtualNode): void {
  h.kube.handle({ verb: 'POST', path: `${NS}/serviceaccounts`, body: { metadata: { name: 'default' } } });
  const uids = new Map<string, string>();
  // Claims first: a volume names the UID of its claim.
  const objects = clusterObjects() as { kind: string; metadata: { name: string }; spec?: { claimRef?: { name: string } } }[];
  for (const object of objects.toSorted((a, b) => Number(a.kind === 'PersistentVolume') - Number(b.kind === 'PersistentVolume'))) {
    const isClaim = object.kind === 'PersistentVolumeClaim';
    const { claimRef } = object.spec ?? {};
    const body = {
      ...object,
      ...(isClaim ? { status: { phase: 'Bound', capacity: { storage: '16Mi' } } } : {}),
      ...(claimRef === undefined ? {} : { spec: { ...object.spec, claimRef: { ...claimRef, uid: uids.get(claimRef.name) } } }),
    };
    const made = h.kube.handle({ verb: 'POST', path: PATHS[object.kind] ?? '', body });
    if (!made.ok) throw new Error(made.failure.message);
    if (isClaim) uids.set(object.metadata.name, (made.body as { metadata: { uid: string } }).metadata.uid);
  }
}

function asked({ verb, path, query = {} }: KubeRequest): { verb: string; resource: string; name: string } {
  const { resource, name, sub } = route(path);
  const one = name ?? /metadata\.name=([^,]*)/.exec(query.fieldSelector ?? '')?.[1] ?? '';
  const reads = query.watch === 'true' ? 'watch' : name === null ? 'list' : 'get';
  const verbs: Record<string, string> = { GET: reads, POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' };
  return {
    verb: verbs[verb] ?? verb,
    resource: sub === null ? resource.name : `${resource.name}/${sub}`,
    name: one.replaceAll('n1', 'NODE'),
  };
}

/** Reads of a kind are one sum: a list may stand for a watch. Of claims and volumes each object counts apart. */
function byKind(counts: Counts): Counts {
  const sums: Counts = {};
  for (const [key, n] of Object.entries(counts)) {
    const [verb = '', resource = '', name = ''] = key.split(' ');
    const isRead = ['get', 'list', 'watch'].includes(verb);
    const kind = isRead ? `read ${resource}${resource.startsWith('persistent') ? ` ${name}` : ''}` : `${verb} ${resource}`;
    sums[kind] = (sums[kind] ?? 0) + n;
  }
  return sums;
}

it.each([
  ['that sends bookmarks each minute', true],
  ['that sends none of a kind in which nothing changes', false],
])('is never more than what the reference kubelet asks, for each kind of object that pods use, of a server %s', async (_, progress) => {
  await using h = await cluster({ drivers: true });
  h.kube.progress = progress;
  for (const name of Object.keys(DRIVERS)) {
    const socket = `${ROOT}/plugins_registry/${name}-reg.sock`;
    h.drivers.add(socket, { name, capabilities: new Set(['STAGE_UNSTAGE_VOLUME', 'EXPAND_VOLUME']) });
    h.fs.makeSocket(socket);
  }
  h.special.set('/srv', 'dir');
  await h.until('registered', () => h.tree.registry.read(driversView)?.value.size === Object.keys(DRIVERS).length);
  // Before the objects of the drivers are there, as in `record.ts`.
  await h.until('objects of drivers were listed', () => h.kube.calls.some((c) => c.request.path === PATHS.CSIDriver));
  make(h);
  for (const [name, volumes] of Object.entries(VOLUMES)) {
    const volumeMounts = volumes.map((v) => ({ name: v.name, mountPath: `/${v.name}` }));
    create(h, name, { container: { volumeMounts, ...(name === 'files' ? { env: ENV } : {}) }, spec: { volumes: [...volumes] } });
  }
  await h.until('all are Ready', () => Object.keys(VOLUMES).every((name) => isReady(h, name)));
  await h.advance(SETTLE_MS);
  const from = h.kube.calls.length;
  await h.advance(COUNTED_MS);
  const counts = byKind(counted(h.kube.calls.slice(from).map((c) => asked(c.request))));
  const kubelet = byKind(RECORDED.counts);
  const most = (kind: string) => (kubelet[kind] ?? 0) + PHASE;
  expect(Object.entries(counts).filter(([kind, n]) => n > most(kind))).toEqual([]);
  // Watches of Secrets and ConfigMaps last longer than the recording: of those alone it may have seen none.
  const unknown = Object.keys(counts).filter((kind) => kubelet[kind] === undefined);
  expect(unknown.filter((kind) => kind !== 'read secrets' && kind !== 'read configmaps')).toEqual([]);
  // It is no node that has stopped.
  expect(counts['update leases']).toBeGreaterThan(COUNTED_MS / 12_000);
  expect(counts['read persistentvolumeclaims data']).toBeGreaterThan(COUNTED_MS / 100_000);
  expect(Object.keys(CLAIMS).length).toBe(3);
});
