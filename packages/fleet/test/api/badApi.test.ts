/** A fleet whose API server has bad days: it goes away, has no time (429), and forgets its history (410). */

import { createClock } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import type { KubeRequest } from '@actorlet/kubelet/machines/kube/request.ts';
import { simKube } from '@actorlet/world/src/kube/kubeApi.ts';
import type { SimKube } from '@actorlet/world/src/kube/types.ts';
import { simRng } from '@actorlet/world/src/rng.ts';
import { describe, type ExpectStatic, it } from 'vitest';
import { embeddedWorld, quietLog } from '../../src/boot/world.ts';
import { plainFleet } from '../../src/file.ts';
import { Fleet } from '../../src/fleet.ts';

const NODES = 4;

const BAD_DAYS: readonly [string, (kube: SimKube, expect: ExpectStatic) => Promise<void>][] = [
  [
    'goes away and comes back',
    async ({ trouble }, expect) => {
      let refused = 0;
      const get = () => {
        refused += 1;
        return true;
      };
      Object.defineProperty(trouble, 'down', { configurable: true, get });
      await expect.poll(() => refused).toBeGreaterThan(NODES);
      Object.defineProperty(trouble, 'down', { configurable: true, writable: true, value: false });
    },
  ],
  [
    'has no time for every second request',
    async (kube) => {
      // Counted for each object: counted together, one that asks alone could be refused at every turn while the others ask in pairs.
      const refused = new Set<string>();
      const { verdict } = kube.trouble;
      kube.trouble.verdict = (request: KubeRequest) => {
        const asked = `${request.verb} ${request.path}`;
        if (refused.delete(asked)) return verdict(request);
        refused.add(asked);
        return { delayMs: 0, refuse: { status: 429, reason: 'TooManyRequests', retryAfterMs: 1_000 } };
      };
    },
  ],
  [
    'forgets its history',
    async (kube) => {
      let left = 3 * NODES;
      kube.store.compact();
      kube.trouble.line = () => (left-- > 0 ? 'expire' : 'pass');
    },
  ],
];

// Each with an API server and nodes of its own: they wait side by side.
describe.concurrent.each([['own'], ['shared']])('a fleet with %s watches', { timeout: 300_000 }, (watches) => {
  const lab = () => {
    const clock = createClock();
    const kube = simKube({ clock, rng: simRng('bad'), latencyMs: () => 0 });
    kube.handle({ verb: 'POST', path: '/api/v1/namespaces/default/serviceaccounts', body: { metadata: { name: 'default' } } });
    const connect = (node: string) => kube.connect({ power: { on: true }, clock, node });
    const own = embeddedWorld({ connect, admin: connect('') }, { clock, socket: '', log: quietLog });
    const world = watches === 'shared' ? { ...own, sharedWatches: connect('') } : own;
    return { kube, fleet: new Fleet(plainFleet({ name: 'bad', nodes: NODES, prefix: 'n', seed: 1 }), world) };
  };

  it.for(BAD_DAYS)('goes on when its API server %s', async ([, begin], { expect }) => {
    const { kube, fleet: started } = lab();
    await using fleet = started;
    const pod = (name: string, node: number) => {
      const spec = { nodeName: `n-${node}`, serviceAccountName: 'default', containers: [{ name: 'c', image: 'i' }] };
      const { ok } = kube.handle({ verb: 'POST', path: '/api/v1/namespaces/default/pods', body: { metadata: { name }, spec } });
      expect(ok).toBe(true);
    };
    for (let i = 0; i < NODES; i++) pod(`before-${i}`, i);
    expect(await fleet.start()).toEqual([]);
    const ready = () => [fleet.overview().nodes.ready, fleet.overview().pods.ready];
    await expect.poll(ready).toEqual([NODES, NODES]);
    await begin(kube, expect);
    for (let i = 0; i < NODES; i++) pod(`during-${i}`, i);
    await expect.poll(ready).toEqual([NODES, 2 * NODES]);
    for (let i = 0; i < NODES; i++)
      kube.handle({ verb: 'DELETE', path: `/api/v1/namespaces/default/pods/before-${i}`, query: { gracePeriodSeconds: '1' } });
    await expect
      .poll(() =>
        kube.store
          .list('pods')
          .map((p) => p.metadata.name)
          .sort(),
      )
      .toEqual(Array.from({ length: NODES }, (_, i) => `during-${i}`));
    // A node is ahead of what the API server has taken of it.
    const restarts = () =>
      kube.store
        .list('pods')
        .flatMap((p) => (p.status as { containerStatuses?: { restartCount: number }[] }).containerStatuses ?? [])
        .map((c) => c.restartCount);
    await expect.poll(restarts).toEqual(Array.from({ length: NODES }, () => 0));
  });

  it('has its nodes again after a restore from a backup that lacks them', async ({ expect }) => {
    const { kube, fleet: started } = lab();
    await using fleet = started;
    const restore = kube.store.backup();
    const leases = () => kube.store.list('leases').length;
    expect(await fleet.start()).toEqual([]);
    await expect.poll(() => [fleet.overview().nodes.ready, leases()]).toEqual([NODES, NODES]);
    kube.trouble.down = true;
    kube.cutWatches('truncate');
    restore();
    // Shared watches see that the nodes are gone before the nodes' leases are due.
    kube.trouble.down = false;
    await expect.poll(() => [kube.store.list('nodes').length, leases()]).toEqual([NODES, NODES]);
  });

  it('counts the watches that its API server has', async ({ expect }) => {
    const { kube, fleet: started } = lab();
    await using fleet = started;
    expect(await fleet.start()).toEqual([]);
    await expect.poll(() => fleet.overview().nodes.ready).toBe(NODES);
    // A node is Ready before its watches are all there.
    await expect.poll(() => fleet.calls.byKind.get('WATCH pods')).toBe(watches === 'shared' ? 1 : NODES);
    const asked = kube.calls.filter(({ request }) => request.query?.watch === 'true');
    const counted = [...fleet.calls.byKind].filter(([kind]) => kind.startsWith('WATCH '));
    expect(counted.reduce((sum, [, count]) => sum + count, 0)).toBe(asked.length);
  });
});
