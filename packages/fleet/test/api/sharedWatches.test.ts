/** Watches that all nodes of a process share, on the simulation's API server. */

import { createClock, createYield } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import type { Logger } from '@actorlet/kubelet/ports/ports.ts';
import { simKube } from '@actorlet/world/src/kube/kubeApi.ts';
import { simRng } from '@actorlet/world/src/rng.ts';
import { afterEach, describe, expect, it } from 'vitest';
import { fleetTree } from '../../src/tree.ts';
import { watchesAddr } from '../../src/watches/messages.ts';
import { SharedWatches } from '../../src/watches/shared.ts';
import { watchesSpec } from '../../src/watches/watches.ts';

const clock = createClock();
const quiet: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => quiet };
const trees: ReturnType<typeof fleetTree>[] = [];

/** Watches of a fleet without nodes. */
function sharing(kube: KubeApi) {
  const tree = fleetTree([watchesSpec()], { clock, yield: createYield(), rng: simRng('watches'), log: quiet, stopMs: 1_000 });
  void tree.start();
  trees.push(tree);
  return { tree, shared: new SharedWatches(kube, (event) => void tree.registry.send(watchesAddr, event)) };
}

afterEach(async () => {
  await Promise.all(trees.splice(0).map((tree) => tree.stop()));
});

function lab() {
  const kube = simKube({ clock, rng: simRng('shared'), latencyMs: () => 0 });
  const admin = kube.connect({ power: { on: true }, clock });
  const { tree, shared } = sharing(admin);
  const pod = (name: string, nodeName: string) =>
    kube.handle({
      verb: 'POST',
      path: '/api/v1/namespaces/default/pods',
      body: { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { nodeName, containers: [{ name: 'c', image: 'i' }] } },
    });
  return { kube, tree, shared, pod, node: (name: string) => shared.connect(kube.connect({ power: { on: true }, clock, node: name })) };
}

const INITIAL = { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan', allowWatchBookmarks: 'true' };

/** What this node is told of its pods, until the signal. */
function told(kube: KubeApi, node: string, query: Record<string, string> = INITIAL) {
  const stop = new AbortController();
  const lines: string[] = [];
  const run = async (): Promise<void> => {
    const asked = { path: '/api/v1/pods', query: { fieldSelector: `spec.nodeName=${node}`, ...query } };
    const watch = await kube.watch(asked, { timeoutMs: 5_000, signal: stop.signal });
    if (!watch.ok) return void lines.push(watch.failure.reason);
    for await (const line of watch.lines) {
      const { type, object } = JSON.parse(line) as { type: string; object: { code?: number; metadata?: { name?: string } } };
      lines.push(`${type} ${object.metadata?.name ?? object.code ?? ''}`.trim());
    }
    lines.push('end');
  };
  return { lines, stop, over: run() };
}

/** An API server whose version can be set; it sends what it is given to each watch. */
function settable() {
  const watches: ((line: string | null) => void)[] = [];
  const server = { version: 100, asked: [] as string[] };
  const kube: KubeApi = {
    server: '',
    request: async () => ({ ok: true, code: 200, body: { items: [], metadata: { resourceVersion: String(server.version) } } }),
    async watch({ query }) {
      server.asked.push(query?.resourceVersion ?? '');
      const queue: (string | null)[] = [];
      let wake = (): void => {};
      watches.push((line) => {
        queue.push(line);
        wake();
      });
      async function* lines() {
        for (;;) {
          const line = queue.shift();
          if (line === null) return;
          if (line !== undefined) yield line;
          else await new Promise<void>((resolve) => (wake = resolve));
        }
      }
      return { ok: true, lines: lines() };
    },
    closeConnections() {},
    close() {},
  };
  const send = (line: string | null): void => watches.at(-1)?.(line);
  return { server, kube, send };
}
const changed = (name: string, version: number) =>
  JSON.stringify({ type: 'ADDED', object: { metadata: { name, resourceVersion: String(version) }, spec: { nodeName: 'a' } } });

describe('shared watches', () => {
  it('begin anew where the API server was restored from a backup, whose versions are older', async () => {
    const { server, kube, send } = settable();
    const { shared } = sharing(kube);
    const node = shared.connect(kube);
    const before = told(node, 'a');
    await expect.poll(() => before.lines).toEqual(['BOOKMARK']);
    send(changed('seen', 120));
    await expect.poll(() => before.lines).toEqual(['BOOKMARK', 'ADDED seen']);
    server.version = 50;
    send(null);
    await expect.poll(() => before.lines.slice(2)).toEqual(['ERROR 410', 'end']);
    const after = told(node, 'a');
    await expect.poll(() => after.lines).toEqual(['BOOKMARK']);
    send(changed('restored', 51));
    await expect.poll(() => after.lines).toEqual(['BOOKMARK', 'ADDED restored']);
    expect(new Set(server.asked)).toEqual(new Set(['100', '50']));
    after.stop.abort();
    await after.over;
  });

  it('pass bookmarks on, and give one when they were opened again: a node that hears nothing would list all anew', async () => {
    const { server, kube, send } = settable();
    const quiet = told(sharing(kube).shared.connect(kube), 'quiet');
    await expect.poll(() => quiet.lines).toEqual(['BOOKMARK']);
    for (const version of [100, 130])
      send(JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: String(version) } } }));
    await expect.poll(() => quiet.lines.length).toBe(3);
    server.version = 130;
    send(null);
    await expect.poll(() => quiet.lines.length).toBe(4);
    expect(new Set(quiet.lines)).toEqual(new Set(['BOOKMARK']));
    expect(server.asked).toEqual(['100', '130']);
    quiet.stop.abort();
    await quiet.over;
  });

  it('tell each node of its own pods alone, what is there first, over one watch', async () => {
    const { kube, tree, shared, pod, node } = lab();
    pod('old-a', 'a');
    pod('old-b', 'b');
    const [a, b] = [told(node('a'), 'a'), told(node('b'), 'b')];
    await expect
      .poll(() => [a.lines, b.lines])
      .toEqual([
        ['ADDED old-a', 'BOOKMARK'],
        ['ADDED old-b', 'BOOKMARK'],
      ]);
    pod('new-a', 'a');
    pod('new-b', 'b');
    kube.handle({ verb: 'DELETE', path: '/api/v1/namespaces/default/pods/old-a', query: { gracePeriodSeconds: '0' } });
    await expect.poll(() => a.lines.slice(2)).toEqual(['ADDED new-a', 'DELETED old-a']);
    await expect.poll(() => b.lines.slice(2)).toEqual(['ADDED new-b']);
    expect([shared.count, kube.openWatches()]).toEqual([1, 1]);
    expect(tree.stateAt('fleet/watches/pods?spec.nodeName!=')).toMatchObject({ lifecycle: 'running', state: 'reading' });
    a.stop.abort();
    b.stop.abort();
    await Promise.all([a.over, b.over]);
    expect(shared.count).toBe(0);
  });

  it('go on from a version that is remembered, and begin anew from one that is not', async () => {
    const { pod, node, kube } = lab();
    const first = told(node('a'), 'a');
    await expect.poll(() => first.lines).toEqual(['BOOKMARK']);
    const from = String(kube.store.resourceVersion);
    pod('later', 'a');
    await expect.poll(() => first.lines.length).toBe(2);
    const again = told(node('a'), 'a', { resourceVersion: from });
    await expect.poll(() => again.lines).toEqual(['ADDED later']);
    const older = told(node('a'), 'a', { resourceVersion: '0' });
    await expect.poll(() => older.lines).toEqual(['ERROR 410', 'end']);
    first.stop.abort();
    again.stop.abort();
  });

  it('stay one where the last reader leaves and another comes at once', async () => {
    const { kube, shared, node } = lab();
    const first = told(node('a'), 'a');
    await expect.poll(() => first.lines).toEqual(['BOOKMARK']);
    first.stop.abort();
    const second = told(node('a'), 'a');
    await first.over;
    await expect.poll(() => second.lines).toEqual(['BOOKMARK']);
    const third = told(node('b'), 'b');
    await expect.poll(() => third.lines).toEqual(['BOOKMARK']);
    await expect.poll(() => [shared.count, kube.openWatches()]).toEqual([1, 1]);
    for (const { stop, over } of [second, third]) {
      stop.abort();
      await over;
    }
    expect(shared.count).toBe(0);
  });

  it('say why there is none, as a watch of the node itself would', async () => {
    const { kube } = settable();
    const failure = { code: 403, reason: 'Forbidden', message: 'no', outcome: 'failed' } as const;
    const forbidden: KubeApi = { ...kube, request: async () => ({ ok: false, failure }) };
    const { shared, tree } = sharing(forbidden);
    const a = told(shared.connect(forbidden), 'a');
    await expect.poll(() => a.lines).toEqual(['Forbidden']);
    await a.over;
    await expect.poll(() => tree.state().children[0]?.children).toEqual([]);
    expect(shared.count).toBe(0);
  });

  it('lose nothing when their own watch is cut', async () => {
    const { pod, node, kube } = lab();
    const a = told(node('a'), 'a');
    await expect.poll(() => a.lines).toEqual(['BOOKMARK']);
    for (const [i, how] of (['close', 'truncate'] as const).entries()) {
      kube.cutWatches(how);
      pod(`after-${i}`, 'a');
      await expect.poll(() => a.lines.filter((l) => l !== 'BOOKMARK').slice(i)).toEqual([`ADDED after-${i}`]);
    }
    a.stop.abort();
  });
});

it('a node that begins anew before the shared watch does misses nothing of the time between', async () => {
  const { kube, pod, node } = lab();
  const stop = new AbortController();
  const slow = { path: '/api/v1/pods', query: { fieldSelector: 'spec.nodeName=n2', ...INITIAL } };
  // It reads nothing, so the shared watch outlives the other's first one.
  expect((await node('n2').watch(slow, { timeoutMs: 5_000, signal: stop.signal })).ok).toBe(true);
  const first = told(node('n1'), 'n1');
  await expect.poll(() => first.lines).toContain('BOOKMARK');
  let left = 1;
  kube.trouble.line = () => (left-- > 0 ? 'expire' : 'pass');
  pod('one', 'n1');
  await first.over;
  expect(first.lines.at(-2)).toBe('ERROR 410');
  // The shared watch waits a second before it begins anew. What changes now is in no list that was made before.
  const second = told(node('n1'), 'n1');
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  pod('two', 'n1');
  await expect.poll(() => second.lines).toContain('ADDED two');
  second.stop.abort();
  await second.over;
  stop.abort();
});
