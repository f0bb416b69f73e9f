/** A node whose API server was restored from a backup, in virtual time: it goes by the older state, and by nothing that it knew since. */
import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../src/machines/kube/request.ts';
import { podsView } from '../../../src/machines/pods/manager/messages.ts';
import { cluster, configMap, create, drop, inApi, isReady } from '../cluster/clusterPods.ts';
import type { VirtualNode } from '../virtualNode.ts';

const NODE = '/api/v1/nodes/n1';
const LEASE = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1';
const get = (h: VirtualNode, path: string) => {
  const got = h.kube.handle({ verb: 'GET', path });
  return got.ok ? (got.body as KubeObject) : undefined;
};
const uidOf = (h: VirtualNode, path: string) => get(h, path)?.metadata.uid;
const ownerOf = (h: VirtualNode) => (get(h, LEASE)?.metadata.ownerReferences as { uid: string }[] | undefined)?.[0]?.uid;
const remove = (h: VirtualNode, path: string) => h.kube.handle({ verb: 'DELETE', path });
const running = (h: VirtualNode) =>
  [...(h.tree.registry.read(podsView)?.value.records.values() ?? [])].map(({ pod }) => pod.metadata.name).sort();
const idOf = (h: VirtualNode, name: string) => inApi(h, name)?.status.containerStatuses?.[0]?.containerID;

async function ready(h: VirtualNode, ...names: string[]): Promise<void> {
  await h.until(`${names.join()} Ready`, () => names.every((name) => isReady(h, name)));
}
/** Changes that are no business of this node. */
function others(h: VirtualNode, count: number): void {
  for (let i = 0; i < count; i++) configMap(h, `other-${i}`, {});
}
/** As when the API server and etcd are stopped meanwhile. */
async function restored(h: VirtualNode, restore: () => void): Promise<void> {
  h.kube.trouble.down = true;
  h.kube.cutWatches('truncate');
  await h.advance(5_000);
  restore();
  h.kube.trouble.down = false;
}

describe('a node whose API server was restored from a backup', () => {
  it.each([
    ['soon', 0],
    ['after it has come to the same version again', 100],
  ])('runs what that has, %s', async (_, writes) => {
    await using h = await cluster();
    for (const name of ['stays', 'goes']) create(h, name);
    await ready(h, 'stays', 'goes');
    const [stays, goes] = [idOf(h, 'stays'), idOf(h, 'goes')];
    await h.advance(15_000);
    const restore = h.kube.store.backup();
    create(h, 'later');
    await ready(h, 'later');
    drop(h, 'pods/goes', 1);
    await h.until('one is gone', () => inApi(h, 'goes') === undefined && running(h).join() === 'later,stays');

    // Its lease is written every 10 s.
    await h.advance(15_000);
    await restored(h, () => {
      restore();
      others(h, writes);
    });
    await h.until('the pods of the backup', () => running(h).join() === 'goes,stays');
    await h.until('another container of the one that had ended', () => idOf(h, 'goes') !== goes && isReady(h, 'goes'));
    expect(idOf(h, 'stays')).toBe(stays);
    create(h, 'new');
    await ready(h, 'new');
    drop(h, 'pods/goes', 1);
    await h.until('it goes', () => inApi(h, 'goes') === undefined);
    expect(h.violations).toEqual([]);
  });

  it.each([
    ['soon', 0],
    ['after it has come to the same version again', 100],
  ])('is made again where the backup is from before it, %s', async (_, writes) => {
    let restore = () => {};
    await using h = await cluster({
      before: (v) => {
        restore = v.kube.store.backup();
      },
    });
    await h.until('registered', () => uidOf(h, NODE) !== undefined && uidOf(h, LEASE) !== undefined);
    create(h, 'later');
    await ready(h, 'later');
    await restored(h, () => {
      restore();
      others(h, writes);
    });
    await h.until('registered again', () => uidOf(h, NODE) !== undefined && uidOf(h, LEASE) !== undefined);
    await h.until('the lease is its own', () => ownerOf(h) === uidOf(h, NODE));
    await h.until('the pod ends', () => running(h).length === 0);
  });

  it('stays away where somebody removed it, as of a kubelet', async () => {
    await using h = await cluster();
    await h.until('registered', () => uidOf(h, NODE) !== undefined && uidOf(h, LEASE) !== undefined);
    for (const path of [NODE, LEASE]) remove(h, path);
    await h.advance(120_000);
    expect(uidOf(h, NODE)).toBeUndefined();
  });
});
