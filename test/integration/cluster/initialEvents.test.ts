/** The first state of the pods of a node by a stream of initial events, from servers that send, refuse, ignore or break it off. */
import { explainNode } from '@actorlet/shown/src/why/whyNode.ts';
import { describe, expect } from 'vitest';
import { liveMoment } from '../../../src/actors/edge/answers/liveMoment.ts';
import type { Inspect } from '../../../src/actors/edge/server.ts';
import { INITIAL_SILENCE_MAX_MS } from '../../../src/machines/api/listWatchMachine.ts';
import { apiView } from '../../../src/machines/api/messages.ts';
import { itOnCluster as it } from '../onNode.ts';
import type { VirtualNode } from '../virtualNode.ts';
import { cluster, create, created, isReady } from './clusterPods.ts';

const SOURCE = 'node/pods/sources/api';
const PODS = '/api/v1/pods';
const NAMES = ['one', 'two', 'three'];

const asked = (h: VirtualNode, from: number) =>
  h.kube.calls.slice(from).flatMap(({ request: { path, query } }) => {
    if (path !== PODS) return [];
    return query?.watch !== 'true' ? ['list'] : [query.sendInitialEvents === 'true' ? 'stream' : 'watch'];
  });

async function withPods(h: VirtualNode): Promise<void> {
  for (const name of NAMES) create(h, name);
  await h.until('all are Ready', () => NAMES.every((name) => isReady(h, name)));
}
/** The source begins anew; nothing of what it showed before is left in it. */
async function again(h: VirtualNode): Promise<void> {
  const before = h.tree.registry.read(apiView.pods)?.version ?? 0;
  h.kill(SOURCE);
  await h.until('it has shown its pods again', () => (h.tree.registry.read(apiView.pods)?.version ?? 0) > before, 120_000);
}
const whyNode = (h: VirtualNode): readonly string[] => {
  const inspect: Inspect = {
    ...{ state: () => h.tree.state(), stateAt: (path) => h.tree.stateAt(path), configz: () => ({}) },
    recorder: () => ({ entries: [], overwritten: 0 }),
  };
  return explainNode(liveMoment({ registry: h.tree.registry, inspect, clock: h.time.clock, faults: null })).lines;
};
const untouched = (h: VirtualNode): void => {
  expect([...(h.tree.registry.read(apiView.pods)?.value.byUid.values() ?? [])].map((p) => p.metadata.name).sort()).toEqual(
    [...NAMES].sort(),
  );
  for (const name of NAMES) expect(created(h, name), name).toHaveLength(1);
  expect(h.calls.filter((c) => c.method === 'StopContainer' || c.method === 'StopPodSandbox')).toEqual([]);
};

describe('the first state of the pods of a node', () => {
  it('comes by one watch, which goes on', async ({ h }) => {
    await withPods(h);
    const from = h.kube.calls.length;
    await again(h);
    await h.advance(10_000);
    expect(asked(h, from)).toEqual(['stream']);
    untouched(h);
  });

  it.each(['truncate', 'close'] as const)('is not taken from half a stream (%s): two of those, and a list is asked for', async (how) => {
    await using h = await cluster();
    await withPods(h);
    const from = h.kube.calls.length;
    let lines = 0;
    h.kube.trouble.line = ({ path }) => (path === PODS && ++lines % 2 === 0 ? how : 'pass');
    await again(h);
    h.kube.trouble.line = () => 'pass';
    await h.advance(60_000);
    expect(asked(h, from).slice(0, 4)).toEqual(['stream', 'stream', 'list', 'watch']);
    untouched(h);
  });

  it('takes what comes twice once', async ({ h }) => {
    await withPods(h);
    h.kube.trouble.line = () => 'duplicate';
    await again(h);
    await h.advance(60_000);
    untouched(h);
  });

  it('comes by a list from a server that refuses a stream', async () => {
    await using h = await cluster({
      before: (v) => {
        v.kube.initialEvents = 'refuse';
      },
    });
    await withPods(h);
    expect(asked(h, 0).slice(0, 3)).toEqual(['stream', 'list', 'watch']);
    untouched(h);
  });

  it('comes by a list from a server that never ends its stream, and says meanwhile where it is stuck', async ({ h }) => {
    await withPods(h);
    h.kube.initialEvents = 'ignore';
    const from = h.kube.calls.length;
    h.kill(SOURCE);
    await h.until('it asks', () => asked(h, from).length > 0);
    await h.advance(INITIAL_SILENCE_MAX_MS - 2_000);
    expect(h.tree.actorAt(SOURCE)?.getSnapshot()).toMatchObject({ value: { watching: 'streaming initial events' } });
    expect(h.actor(SOURCE)?.reason).toBe('StreamingInitialEvents');
    expect(h.actor(SOURCE)?.message).toBe('the API server streams all pods of node n1: 3 so far, the end has not come');
    expect(whyNode(h)).toContain(`  ${SOURCE}: the API server streams all pods of node n1: 3 so far, the end has not come`);
    await h.advance(5_000);
    expect(whyNode(h)).not.toContain('Waiting for the API server');
    expect(asked(h, from)).toEqual(['stream', 'list', 'watch']);
    untouched(h);
  });

  it('comes by a list where the gate is off', async () => {
    await using h = await cluster({ config: { featureGates: { WatchListClient: false } } });
    await withPods(h);
    expect(asked(h, 0).slice(0, 2)).toEqual(['list', 'watch']);
  });
});
