/** Objects of the API of wrong types, on a whole node: each is that one object's trouble, named, and read again when it changes. */
import { expect, it } from 'vitest';
import { cluster, create, drop, inApi, patch, secret } from '../cluster/clusterPods.ts';
import { fallen, runningOf, whyOf } from '../told.ts';
import { onTheWire, type Wire } from '../wire.ts';

type Fields = Record<string, unknown>;
interface Sent {
  metadata: Fields;
  spec: Fields;
}

/** The server sends `change` in place of the object of that name. */
function lies(name: string, change: (object: Sent) => unknown): Wire['sends'] {
  return (_, object) => ((object as Sent | null)?.metadata?.name === name ? change(object as Sent) : object);
}
const truth: Wire['sends'] = (_, object) => object;

it.each<[string, (pod: Sent) => unknown, string]>([
  [
    'init containers that are a mapping',
    (p) => ({ ...p, spec: { ...p.spec, initContainers: {} } }),
    'spec.initContainers: must be a list, not a mapping',
  ],
  ['containers that are null', (p) => ({ ...p, spec: { ...p.spec, containers: null } }), 'no containers'],
  ['containers of text', (p) => ({ ...p, spec: { ...p.spec, containers: ['a'] } }), 'spec.containers[0]: must be a mapping, not a string'],
  ['labels that are a list', (p) => ({ ...p, metadata: { ...p.metadata, labels: [] } }), 'metadata.labels: must be a mapping, not a list'],
  ['a status that is a list', (p) => ({ ...p, status: [] }), 'status: must be a mapping, not a list'],
  ['no specification', (p) => ({ ...p, spec: 5 }), 'spec: must be a mapping, not a number'],
])('%s: the pod is named and not run, its neighbour runs, and it runs when it is mended', async (_, change, says) => {
  const wire: Wire = { sends: lies('bad', change) };
  await using h = await cluster({ ports: onTheWire(wire) });
  create(h, 'bad');
  create(h, 'fine');
  await h.until('the neighbour runs', () => inApi(h, 'fine')?.status.phase === 'Running');
  await h.advance(120_000);
  expect(whyOf(h, 'bad')).toContain(says);
  expect(runningOf(h, 'bad')).toHaveLength(0);
  expect(inApi(h, 'bad')?.status.phase).toBe('Pending');
  wire.sends = truth;
  patch(h, 'pods/bad', { metadata: { labels: { mended: 'yes' } } });
  await h.until('it runs', () => runningOf(h, 'bad').length === 1);
  expect(whyOf(h, 'bad')).not.toContain('cannot be');
  expect(fallen(h)).toEqual([]);
});

it('a pod that runs goes on when its new version cannot be read, over a restart of the daemon too, and ends when it is deleted', async () => {
  const wire: Wire = { sends: truth };
  await using h = await cluster({ ports: onTheWire(wire) });
  create(h, 'web');
  create(h, 'fine');
  await h.until('both run', () => runningOf(h, 'web').length === 1 && runningOf(h, 'fine').length === 1);
  const [{ id = '' } = {}] = runningOf(h, 'web');
  wire.sends = lies('web', (p) => ({ ...p, spec: { ...p.spec, initContainers: {} } }));
  patch(h, 'pods/web', { metadata: { labels: { a: 'b' } } });
  await h.advance(60_000);
  expect(runningOf(h, 'web').map((c) => c.id)).toEqual([id]);
  expect(whyOf(h, 'web')).toContain('spec.initContainers: must be a list, not a mapping');
  await h.restart();
  await h.until('the other is known', () => whyOf(h, 'fine').includes('phase   Running'));
  await h.advance(300_000);
  expect(runningOf(h, 'web').map((c) => c.id)).toEqual([id]);
  expect(whyOf(h, 'web')).toContain('spec.initContainers: must be a list, not a mapping');
  drop(h, 'pods/web', 5);
  await h.until('it is stopped', () => runningOf(h, 'web').length === 0, 120_000);
  expect(runningOf(h, 'fine')).toHaveLength(1);
  expect(fallen(h)).toEqual([]);
});

it('a pod that goes on is deleted while its version cannot be read: it is stopped and gone', async () => {
  const wire: Wire = { sends: truth };
  await using h = await cluster({ ports: onTheWire(wire) });
  create(h, 'web');
  await h.until('it runs', () => runningOf(h, 'web').length === 1);
  wire.sends = lies('web', (p) => ({ ...p, spec: { ...p.spec, initContainers: {} } }));
  drop(h, 'pods/web', 5);
  await h.until('it is stopped', () => runningOf(h, 'web').length === 0, 120_000);
});

it('a secret that cannot be read keeps its pod waiting, with the path, and lets it go on when it can', async () => {
  const wire: Wire = { sends: lies('s', (o) => ({ ...o, data: 5 })) };
  await using h = await cluster({ ports: onTheWire(wire) });
  secret(h, 's', { k: 'v' });
  create(h, 'web', {
    container: { volumeMounts: [{ name: 'v', mountPath: '/v' }] },
    spec: { volumes: [{ name: 'v', secret: { secretName: 's' } }] },
  });
  await h.advance(30_000);
  expect(runningOf(h, 'web')).toHaveLength(0);
  expect(whyOf(h, 'web')).toContain('data: must be a mapping, not a number');
  wire.sends = truth;
  patch(h, 'secrets/s', { metadata: { labels: { a: 'b' } } });
  await h.until('it runs', () => runningOf(h, 'web').length === 1, 300_000);
  expect(fallen(h)).toEqual([]);
});
