/** A fleet whose process ended: the next one has its nodes, and pods go on as if nothing had been. */

import { createClock } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import { simKube } from '@actorlet/world/src/kube/kubeApi.ts';
import { simRng } from '@actorlet/world/src/rng.ts';
import { describe, expect, it } from 'vitest';
import { adopt, removeNodes } from '../../src/boot/adopt.ts';
import { embeddedWorld, quietLog } from '../../src/boot/world.ts';
import { plainFleet } from '../../src/file.ts';
import { Fleet } from '../../src/fleet.ts';

/** Of nodes that are asked for at once. */
const PAGE = 500;

interface Status {
  phase?: string;
  podIP?: string;
  conditions?: { type: string; status: string; lastTransitionTime: string }[];
  containerStatuses?: { containerID?: string; restartCount: number; state: { running?: object; terminated?: object; waiting?: object } }[];
  initContainerStatuses?: object[];
}

function lab() {
  const clock = createClock();
  const kube = simKube({ clock, rng: simRng('adopt'), latencyMs: () => 0 });
  kube.handle({ verb: 'POST', path: '/api/v1/namespaces/default/serviceaccounts', body: { metadata: { name: 'default' } } });
  const connect = (node: string) => kube.connect({ power: { on: true }, clock, node });
  const world = embeddedWorld({ connect, admin: connect('') }, { clock, socket: '', log: quietLog });
  const fleet = (name = 'mine') => new Fleet(plainFleet({ name, nodes: 2, prefix: 'n', seed: 1 }), world);
  const taken = (of: Fleet, name = 'mine') => adopt(of, name, { kube: world.admin, signal: AbortSignal.timeout(10_000) });
  const removed = (of: Fleet) =>
    removeNodes(
      of.members.map((m) => m.name),
      { kube: world.admin, signal: AbortSignal.timeout(10_000) },
    );
  const node = (name: string) => void kube.handle({ verb: 'POST', path: '/api/v1/nodes', body: { metadata: { name } } });
  const nodes = () => kube.store.list('nodes');
  const pod = (name: string, node: string, o: { hollow?: string; spec?: object } = {}) => {
    const annotations = o.hollow === undefined ? {} : { 'actorlet.dev/hollow': o.hollow };
    const spec = { nodeName: node, serviceAccountName: 'default', containers: [{ name: 'c', image: 'i' }], ...o.spec };
    const { ok } = kube.handle({ verb: 'POST', path: '/api/v1/namespaces/default/pods', body: { metadata: { name, annotations }, spec } });
    expect(ok).toBe(true);
  };
  const statuses = () => Object.fromEntries(kube.store.list('pods').map((p) => [p.metadata.name, p.status as Status]));
  return { world, fleet, taken, removed, node, nodes, pod, statuses };
}

describe('the next process of a fleet', { timeout: 90_000 }, () => {
  it('finds containers under their ids, and lets them live what is left of their lives', async () => {
    const { fleet, taken, pod, statuses } = lab();
    const first = fleet();
    await taken(first);
    pod('web', 'n-0', {
      spec: { initContainers: [{ name: 'first', image: 'i' }], containers: [{ name: 'c', image: 'i', ports: [{ containerPort: 80 }] }] },
    });
    pod('host', 'n-1', { spec: { hostNetwork: true } });
    pod('crashes', 'n-0', { hollow: 'run=10ms,exit=3' });
    pod('done', 'n-1', { hollow: 'run=10ms', spec: { restartPolicy: 'Never' } });
    pod('job', 'n-1', { hollow: 'run=25s', spec: { restartPolicy: 'Never' } });
    await first.start();
    const looks = () => {
      const { web, host, crashes, done, job } = statuses();
      const waits =
        (crashes?.containerStatuses?.[0]?.restartCount ?? 0) > 0 && crashes?.containerStatuses?.[0]?.state.waiting !== undefined;
      return [web?.phase, host?.phase, waits, done?.phase, job?.phase];
    };
    await expect.poll(looks).toEqual(['Running', 'Running', true, 'Succeeded', 'Running']);
    // It knows nothing of what this process holds.
    await first.stop();
    const before = statuses();

    await using second = fleet();
    await taken(second);
    expect(await second.start()).toEqual([]);
    await expect.poll(() => second.overview().pods).toMatchObject({ total: 5, ready: 3 });
    await expect.poll(() => statuses().job?.phase).toBe('Succeeded');
    const { job: _, crashes: __, ...others } = statuses();
    const { job: ___, crashes, ...same } = before;
    expect(others).toEqual(same);
    const again = statuses().crashes?.containerStatuses?.[0];
    expect(again?.restartCount).toBeLessThanOrEqual((crashes?.containerStatuses?.[0]?.restartCount ?? 0) + 2);
    // New containers get ids of their own.
    pod('new', 'n-0');
    await expect.poll(() => statuses().new?.phase).toBe('Running');
    // Ids are of one node; these have the same.
    const onOne = [statuses().web, statuses().crashes, statuses().new];
    const ids = onOne.flatMap((pod) => pod?.containerStatuses?.map((c) => c.containerID) ?? []);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('is refused where the nodes are another fleet’s', async () => {
    const { fleet, taken } = lab();
    const first = fleet();
    await first.start();
    await expect.poll(() => first.overview().nodes.ready).toBe(2);
    await expect(taken(fleet('other'), 'other')).rejects.toThrow(
      '2 nodes are there that the fleet other did not make: n-0, n-1; choose other names of nodes',
    );
    await first.stop();
  });

  it('is refused where nodes have no label of a fleet, on whatever page of the list, and changes nothing', async () => {
    const { fleet, taken, node, nodes } = lab();
    // More than a page of them, of which the last one has a name of the fleet.
    for (let i = 0; i < PAGE; i++) node(`a-${i}`);
    node('n-1');
    const before = nodes();
    await expect(taken(fleet())).rejects.toThrow('1 node is there that the fleet mine did not make: n-1');
    expect(nodes()).toEqual(before);
  });

  it('removes its own nodes at its end, and says how many there were', async () => {
    const { fleet, removed, node, nodes } = lab();
    for (const name of ['a-0', 'n-1', 'n-10']) node(name);
    expect(await removed(fleet())).toBe(1);
    expect(nodes().map((n) => n.metadata.name)).toEqual(['a-0', 'n-10']);
  });

  it('says how many nodes are left where the API server does not answer', async () => {
    const names = Array.from({ length: 40 }, (_, i) => `n-${i}`);
    let asked = 0;
    const kube = {
      ...lab().world.admin,
      request: async () =>
        ++asked < 5
          ? ({ ok: true, code: 200, body: {} } as const)
          : ({ ok: false, failure: { code: 0, reason: 'Timeout', message: 'no answer', outcome: 'unknown' } } as const),
    };
    await expect(removeNodes(names, { kube, signal: AbortSignal.timeout(10_000) })).rejects.toThrow(
      /^36 of 40 nodes were not removed from the API: DELETE \/api\/v1\/nodes\/n-\d+: Timeout: no answer \(it may have taken effect\)$/,
    );
    expect(asked).toBeLessThan(40);
  });
});
