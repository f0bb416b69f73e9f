/**
 * Every field of every kind of object with every wrong type, sent to a whole node: nothing falls, the pods beside run on, and all is
 * well when the server tells the truth again.
 */
import { expect, it } from 'vitest';
import { KINDS, kindAt } from '../../../src/machines/kube/read/kinds.ts';
import { isRecord } from '../../../src/machines/shape/conform.ts';
import { everyWrong, sample, shapeOf } from '../../machines/api/shapes.ts';
import { rotating } from '../../rotation.ts';
import { cluster, configMap, create, drop, inApi, patch, secret, service } from '../cluster/clusterPods.ts';
import { fallen, runningOf } from '../told.ts';
import type { VirtualNode } from '../virtualNode.ts';
import { onTheWire, type Wire } from '../wire.ts';

/** All 8,000 pods take 20 s of processor time: each commit takes one part. `test/machines/api/reading.test.ts` reads each. */
const PARTS = 17;

/** The node asks for an object of these kinds, or is sent one, each time that this is done. */
const ASKED: Readonly<Record<string, (h: VirtualNode, turn: number) => void>> = {
  nodes: (h, turn) => void h.kube.handle({ verb: 'PATCH', path: '/api/v1/nodes/n1', patchType: 'merge', body: labelled(turn) }),
  secrets: (h, turn) => patch(h, 'secrets/s', labelled(turn)),
  configmaps: (h, turn) => patch(h, 'configmaps/c', labelled(turn)),
  services: (h, turn) => patch(h, 'services/web', labelled(turn)),
};
const labelled = (turn: number) => ({ metadata: { labels: { turn: String(turn) } } });

async function node(wire: Wire): Promise<VirtualNode> {
  const h = await cluster({ ports: onTheWire(wire) });
  secret(h, 's', { k: 'v' });
  configMap(h, 'c', { k: 'v' });
  service(h, 'web', '10.0.0.7');
  create(h, 'user', {
    container: { env: [{ name: 'A', valueFrom: { configMapKeyRef: { name: 'c', key: 'k' } } }] },
    spec: { volumes: [{ name: 'v', secret: { secretName: 's' } }] },
  });
  create(h, 'fine');
  await h.until('both run', () => ['user', 'fine'].every((name) => runningOf(h, name).length === 1));
  return h;
}
const ids = (h: VirtualNode) => ['user', 'fine'].flatMap((name) => runningOf(h, name).map((c) => c.id));

/** The object, with what names it, and one of its fields wrong. `nulls`: also those that null makes absent. */
function* wrongOnes(plural: string, { nulls }: { nulls: boolean } = { nulls: true }): Generator<(object: unknown) => unknown> {
  const shape = shapeOf(plural);
  for (const { path, value, given } of everyWrong(sample(shape), shape)) {
    if (given === null && !nulls) continue;
    if (/^metadata(\.(name|namespace|uid|resourceVersion))?$/.test(path)) continue;
    yield (object) => {
      const { name, namespace, uid, resourceVersion } = (object as { metadata: Record<string, unknown> }).metadata;
      const metadata = (value as { metadata?: unknown }).metadata;
      return {
        ...(value as object),
        metadata: { ...(isRecord(metadata) ? metadata : {}), ...{ name, namespace, uid, resourceVersion } },
      };
    };
  }
}

it('of a pod: each is left alone, and its neighbours run on', async () => {
  // With a null they are pods like any other, which take room.
  const all = [...wrongOnes('pods', { nulls: false })];
  const wrong = rotating('wrong pods', all, PARTS);
  const wire: Wire = {
    sends(path, object) {
      const { name = '' } = (object as { metadata?: { name?: string } } | null)?.metadata ?? {};
      const at = /^wrong-(\d+)$/.exec(name)?.[1];
      return kindAt(path)?.kind === 'Pod' && at !== undefined ? wrong[Number(at)]?.(object) : object;
    },
  };
  await using h = await node(wire);
  const before = ids(h);
  expect(all.length).toBeGreaterThan(6_000);
  for (const i of wrong.keys()) create(h, `wrong-${i}`);
  await h.advance(10_000);
  expect(fallen(h)).toEqual([]);
  expect(ids(h)).toEqual(before);
  expect(h.lines.filter((l) => l.msg.includes('failed over a pod'))).toEqual([]);
  for (const i of wrong.keys()) if (i % 2 === 0) drop(h, `pods/wrong-${i}`, 0);
  create(h, 'later');
  await h.until('a new pod runs', () => inApi(h, 'later')?.status.phase === 'Running', 300_000);
  expect(fallen(h)).toEqual([]);
  expect(ids(h)).toEqual(before);
});

it.each(rotating('kinds that it watches', Object.keys(ASKED), 2))('of %s that it watches: what runs goes on', async (plural) => {
  const wrong = rotating(`wrong ${plural}`, [...wrongOnes(plural)], PARTS);
  let turn = -1;
  const wire: Wire = {
    sends: (path, object) => (turn >= 0 && kindAt(path)?.kind === KINDS[plural]?.kind ? wrong[turn]?.(object) : object),
  };
  await using h = await node(wire);
  const before = ids(h);
  for (turn = 0; turn < wrong.length; turn += 1) {
    ASKED[plural]?.(h, turn);
    await h.advance(500);
  }
  turn = -1;
  ASKED[plural]?.(h, wrong.length);
  create(h, 'later', { spec: { volumes: [{ name: 'v', secret: { secretName: 's' } }] } });
  await h.until('a new pod runs', () => inApi(h, 'later')?.status.phase === 'Running', 300_000);
  expect(fallen(h)).toEqual([]);
  expect(ids(h)).toEqual(before);
});

/** Those that are read again and again while they are wrong. */
const READ = ['leases', 'csinodes', 'persistentvolumeclaims', 'persistentvolumes', 'csidrivers', 'volumeattachments', 'runtimeclasses'];
it.each(rotating('kinds that it reads', [...READ, 'serviceaccounts', 'serviceaccounts/token'], 3))(
  'of %s that it reads when it needs one: what runs goes on',
  async (plural) => {
    const wrong = rotating(`wrong ${plural}`, [...wrongOnes(plural)], PARTS);
    let turn = 0;
    let lies = false;
    const kind = KINDS[plural]?.kind;
    const wire: Wire = {
      sends(path, object) {
        if (!lies || kindAt(path)?.kind !== kind) return object;
        turn += 1;
        const named = { metadata: { name: 'n', namespace: 'default', uid: 'u', resourceVersion: '5' } };
        return wrong[turn % wrong.length]?.(isRecord(object) && isRecord(object.metadata) ? object : named);
      },
    };
    await using h = await node(wire);
    const before = ids(h);
    lies = true;
    for (let i = 0; i < 20; i += 1) {
      create(h, `asks-${i}`, {
        spec: {
          ...(plural === 'runtimeclasses' ? { runtimeClassName: 'r' } : {}),
          volumes: [
            { name: 'claim', persistentVolumeClaim: { claimName: 'c' } },
            { name: 'inline', csi: { driver: 'd.example.com' } },
            { name: 'token', projected: { sources: [{ serviceAccountToken: { path: 't' } }] } },
          ],
        },
      });
    }
    await h.advance(1_800_000);
    lies = false;
    create(h, 'later');
    await h.until('a new pod runs', () => inApi(h, 'later')?.status.phase === 'Running', 300_000);
    expect(fallen(h)).toEqual([]);
    expect(ids(h)).toEqual(before);
  },
);
