/** A watch that brings very many events at once: batches, and turns of the event loop between them. */
import { describe, expect, it } from 'vitest';
import { createActor, SimulatedClock } from 'xstate';
import { EVENTS_AT_ONCE_MAX, listWatch } from '../../src/actors/api/client.ts';

const object = (name: string, resourceVersion: string) => ({ metadata: { name, namespace: 'd', uid: `uid-${name}`, resourceVersion } });
const added = (i: number): string => JSON.stringify({ type: 'ADDED', object: object(`p${i}`, String(i + 2)) });
const changed = (i: number, version: number, uid = `uid-p${i}`): string =>
  JSON.stringify({ type: 'MODIFIED', object: { metadata: { ...object(`p${i}`, String(version)).metadata, uid } } });
const bookmark = (version: number): string =>
  JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: String(version) } } });
const end = (version: number): string =>
  JSON.stringify({
    type: 'BOOKMARK',
    object: { metadata: { resourceVersion: String(version), annotations: { 'k8s.io/initial-events-end': 'true' } } },
  });

interface Delivery {
  items: number;
  changed: number;
  turn: number;
  version: string;
}

/** Everything the watch brings is there at once; `costMs` passes on the clock with each delivery. */
async function delivered(lines: readonly string[], costMs = 0, { streams = false } = {}) {
  const clock = new SimulatedClock();
  let nowMs = 0;
  let turn = 0;
  const deliveries: Delivery[] = [];
  const waits: number[] = [];
  const seen: string[][] = [];
  const abort = new AbortController();
  async function* stream() {
    yield* lines;
    await new Promise((resolve) => abort.signal.addEventListener('abort', resolve));
  }
  const list = { ok: true, code: 200, body: { metadata: { resourceVersion: '1' }, items: [] } };
  const ctx = {
    ports: {
      clock: {
        monoMs: () => nowMs,
        wallMs: () => nowMs,
        setTimeout: (fn: () => void, ms: number) => {
          waits.push(ms);
          return setImmediate(fn);
        },
        clearTimeout: (id: NodeJS.Immediate) => clearImmediate(id),
      },
      rng: { next: () => 0 },
      yield: { defer: (fn: () => void) => void setImmediate(fn) },
      kube: { request: async () => list, watch: async () => ({ ok: true, lines: stream() }) },
    },
    registry: { read: () => undefined, send: () => 'delivered' },
    signal: abort.signal,
  };
  const { logic, input } = listWatch(ctx as never, {
    what: 'pods',
    path: '/api/v1/pods',
    streams,
    deliver: (context) => {
      if (context.changed.length === 0 && !context.heard) return;
      nowMs += costMs;
      seen.push(context.changed.map(({ metadata: { uid, resourceVersion } }) => `${uid} ${resourceVersion}`));
      deliveries.push({ items: context.items.size, changed: context.changed.length, turn, version: context.resourceVersion });
    },
  });
  const actor = createActor(logic, { clock, input: input as never });
  actor.start();
  const wanted = lines.filter((l) => l.includes('ADDED')).length;
  while ((deliveries.at(-1)?.items ?? 0) < wanted && turn < 10_000) {
    await new Promise((resolve) => setImmediate(resolve));
    turn += 1;
  }
  await new Promise((resolve) => setImmediate(resolve));
  actor.stop();
  abort.abort();
  return { deliveries, waits, seen };
}

describe('a watch', () => {
  it('takes a burst of events in batches, with a turn of the event loop after each', async () => {
    const { deliveries } = await delivered(Array.from({ length: 1_000 }, (_, i) => added(i)));
    expect(deliveries.at(-1)?.items).toBe(1_000);
    expect(deliveries.reduce((sum, d) => sum + d.changed, 0)).toBe(1_000);
    expect(deliveries.length).toBeLessThanOrEqual(2 + 1_000 / EVENTS_AT_ONCE_MAX);
    for (const d of deliveries) expect(d.changed).toBeLessThanOrEqual(EVENTS_AT_ONCE_MAX + 1);
    expect(new Set(deliveries.map((d) => d.turn)).size).toBe(deliveries.length);
  });

  it('brings the first event of a quiet watch at once, by itself', async () => {
    const { deliveries, waits } = await delivered([added(0)]);
    expect(deliveries).toEqual([{ items: 1, changed: 1, turn: 0, version: '2' }]);
    expect(waits).toEqual([]);
  });

  it('rests after a batch for as long as the batch was work, within a bound', async () => {
    const { waits } = await delivered(
      Array.from({ length: 300 }, (_, i) => added(i)),
      2,
    );
    expect(waits.slice(0, 3)).toEqual([50, 50, 50]);
    const long = await delivered([added(0), added(1)], 10_000);
    expect(long.waits).toContain(250);
  });

  it('delivers a bookmark by itself, in its place', async () => {
    const { deliveries } = await delivered([added(0), added(1), added(2), bookmark(90), added(3)]);
    expect(deliveries.map((d) => d.changed)).toEqual([1, 2, 0, 1]);
  });

  it('takes 20,000 changes of one object as a few: a pod that comes after them waits for two batches', async () => {
    const changes = Array.from({ length: 20_000 }, (_, i) => changed(0, i + 10));
    const { deliveries, waits } = await delivered([added(0), ...changes, added(1)], 10);
    expect(deliveries.map((d) => [d.items, d.changed])).toEqual([
      [1, 1],
      [2, 2],
    ]);
    expect(waits.length).toBeLessThanOrEqual(2);
  });

  it('takes 50,000 bookmarks as one, the last', async () => {
    const { deliveries } = await delivered([added(0), ...Array.from({ length: 50_000 }, (_, i) => bookmark(i + 10)), added(70_000)], 10);
    expect(deliveries.map((d) => [d.items, d.version])).toEqual([
      [1, '2'],
      [1, '50009'],
      [2, '70002'],
    ]);
  });

  it('shows that an object was made anew while others of its changes waited', async () => {
    const gone = JSON.stringify({ type: 'DELETED', object: object('p1', '12') });
    const { seen } = await delivered([added(0), added(1), changed(1, 11), gone, changed(1, 13, 'new'), changed(1, 14, 'new'), added(2)]);
    expect(seen.at(-1)).toEqual(['uid-p1 12', 'new 14', 'uid-p2 4']);
  });

  it('has in the initial state what changes, or goes, while their end waits', async () => {
    const gone = JSON.stringify({ type: 'DELETED', object: object('p2', '21') });
    const { seen } = await delivered([added(0), added(1), added(2), end(9), changed(1, 20), gone, added(3), bookmark(30)], 0, {
      streams: true,
    });
    expect(seen).toEqual([['uid-p0 2', 'uid-p1 20', 'uid-p3 5']]);
    const { deliveries } = await delivered([added(0), added(1), end(9), changed(1, 20), added(2)], 0, { streams: true });
    expect(deliveries.map((d) => [d.items, d.version])).toEqual([
      [2, '9'],
      [3, '4'],
    ]);
  });
});
