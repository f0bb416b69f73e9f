/** New pods come to a node as there is room, on a watch that does not fall silent meanwhile. */

import { decodeWatchLine } from '@actorlet/kubelet/machines/kube/request.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import { expect, it } from 'vitest';
import { pacedPods } from '../../src/pace/pods.ts';

const line = (type: string, version: number, annotations = {}) =>
  JSON.stringify({ type, object: { metadata: { name: `pod-${version}`, resourceVersion: `${version}`, annotations } } });

/** A watch with these lines, room that is given by hand, and timers that go off at once or never. */
function watching(lines: readonly string[], o: { path?: string; query?: Record<string, string>; late?: boolean } = {}) {
  const rooms: (() => void)[] = [];
  const kube: KubeApi = {
    server: 'https://api',
    request: () => Promise.reject(new Error('nothing is asked')),
    watch: () =>
      Promise.resolve({
        ok: true,
        lines: (async function* () {
          yield* lines;
        })(),
      }),
    closeConnections() {},
    close() {},
  };
  const room = () => new Promise<void>((resolve) => rooms.push(resolve));
  const clock = { setTimeout: (fn: () => void) => (o.late === true ? setImmediate(fn) : null), clearTimeout() {} };
  const paced = pacedPods(kube, { turns: { room, asking: (request) => request() }, clock });
  const request = { path: o.path ?? '/api/v1/pods', query: o.query ?? { resourceVersion: '3' } };
  const stop = new AbortController();
  const opened = paced.watch(request, { timeoutMs: null, signal: stop.signal });
  return { rooms, opened, stop };
}

async function taken(opened: ReturnType<typeof watching>['opened'], count: number): Promise<string[]> {
  const watch = await opened;
  if (!watch.ok) throw new Error('no watch');
  const seen: string[] = [];
  for await (const it of watch.lines) if (seen.push(it) === count) break;
  return seen;
}

it('a new pod waits for room, what changes does not', async () => {
  const lines = [line('MODIFIED', 4), line('ADDED', 5), line('DELETED', 6), line('ADDED', 7)];
  const { rooms, opened } = watching(lines);
  const all = taken(opened, 4);
  for (const count of [1, 2]) {
    while (rooms.length < count) await new Promise(setImmediate);
    rooms[count - 1]?.();
  }
  expect(await all).toEqual(lines);
  expect(rooms).toHaveLength(2);
});

it('what is there at the beginning does not wait', async () => {
  const lines = [line('ADDED', 1), line('ADDED', 2), line('BOOKMARK', 2, { 'k8s.io/initial-events-end': 'true' }), line('ADDED', 9)];
  const { rooms, opened } = watching(lines, { query: { sendInitialEvents: 'true' } });
  const all = taken(opened, 4);
  while (rooms.length === 0) await new Promise(setImmediate);
  expect(rooms).toHaveLength(1);
  rooms[0]?.();
  expect(await all).toEqual(lines);
});

it('while a pod waits, bookmarks say what was seen before it', async () => {
  for (const [lines, version] of [
    [[line('ADDED', 5)], '3'],
    [[line('MODIFIED', 4), line('ADDED', 5)], '4'],
  ] as const) {
    const { opened } = watching(lines, { late: true });
    const seen = await taken(opened, lines.length + 1);
    const event = { type: 'BOOKMARK', object: { metadata: { name: '', resourceVersion: version } } };
    for (const bookmark of seen.slice(-2)) expect(decodeWatchLine(bookmark)).toEqual({ ok: true, event });
  }
});

it('watches of other objects do not wait', async () => {
  const { rooms, opened } = watching([line('ADDED', 5)], { path: '/api/v1/services' });
  await taken(opened, 1);
  expect(rooms).toHaveLength(0);
});

it('a watch that is given up does not wait for room', async () => {
  const { rooms, opened, stop } = watching([line('ADDED', 5)]);
  const all = taken(opened, 1);
  while (rooms.length === 0) await new Promise(setImmediate);
  stop.abort();
  expect(await all).toHaveLength(1);
});
