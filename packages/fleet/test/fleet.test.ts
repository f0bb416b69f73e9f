/** Nodes of one process on the simulation's API server, in real time. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { adminClient } from '@actorlet/admin/src/client.ts';
import { decodeScenario } from '@actorlet/faults/src/read/decode.ts';
import { createClock, createEntropy, createYield } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import { createNet } from '@actorlet/kubelet/boot/dependencies/net/net.ts';
import { type ActorView, findActor } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import type { Logger } from '@actorlet/kubelet/ports/ports.ts';
import { simKube } from '@actorlet/world/src/kube/kubeApi.ts';
import { simRng } from '@actorlet/world/src/rng.ts';
import { describe, expect, it } from 'vitest';
import { limited } from '../src/boot/api/limited.ts';
import { withDiscovery } from '../src/boot/embedded/discovery.ts';
import { resourceOf } from '../src/calls.ts';
import { type FleetSpec, plainFleet } from '../src/file.ts';
import { Fleet } from '../src/fleet.ts';
import { Cluster } from '../src/run/cluster.ts';
import { FleetRun, type RunOptions } from '../src/run.ts';
import type { FleetWorld } from '../src/types.ts';

const quiet: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => quiet };
const nowhere = () => Promise.reject(new Error('no network here'));

function world() {
  const clock = createClock();
  const kube = simKube({ clock, rng: simRng('fleet'), latencyMs: () => 0 });
  const given: FleetWorld = {
    clock,
    entropy: createEntropy(),
    yield: createYield(),
    net: { httpGet: nowhere, serveHttp: nowhere },
    log: quiet,
    nodeLog: () => quiet,
    build: { major: '1', minor: '36', gitVersion: 'v1.36.2', gitCommit: '', buildDate: '', platform: '' },
    address: '192.0.2.1',
    serving: null,
    socketPath: '',
    connect: (node) => kube.connect({ power: { on: true }, clock, node }),
  };
  return { kube, given };
}

const spec = (o: Partial<FleetSpec> = {}): FleetSpec => ({ ...plainFleet({ name: 'demo', nodes: 6, prefix: 'n', seed: 3 }), ...o });
const within = (withinMs: number) => ({ name: 'expected', afterMs: 0, withinMs, holds: 'once' }) as const;
const optionsOf = (
  fleet: Fleet,
  { kube, given }: ReturnType<typeof world>,
  of: FleetSpec,
  signal = AbortSignal.timeout(60_000),
): RunOptions => ({
  ...{ fleet, spec: of, scenarios: new Map(), manifests: new Map(), clock: given.clock, signal },
  cluster: new Cluster(withDiscovery(kube.connect({ power: { on: true }, clock: given.clock, node: '' })), {
    limited,
    clock: given.clock,
    signal,
  }),
  onLook: () => {},
  onStep: () => {},
  onTrouble: (why) => expect.fail(why),
});
const runOf = (fleet: Fleet, of: FleetSpec, in_: ReturnType<typeof world>, o: Partial<RunOptions> = {}) =>
  new FleetRun({ ...optionsOf(fleet, in_, of), ...o }).toTheEnd();
const pod = (name: string, nodeName: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default' },
  spec: { nodeName, serviceAccountName: 'default', containers: [{ name: 'main', image: 'fleet/web:1' }], terminationGracePeriodSeconds: 1 },
});

describe('a fleet', { timeout: 60_000 }, () => {
  it('registers its nodes with their labels, runs pods, and is known again after a restart', async () => {
    const around = world();
    const { kube, given } = around;
    const of = spec({
      expect: [{ ...within(50_000), measure: { what: 'podsReady' }, atLeast: 6 }],
      steps: [{ atMs: 10, do: 'restart', nodes: { share: 0.5 } }],
    });
    await using fleet = new Fleet(of, given);
    for (const m of fleet.members) {
      const { ok } = kube.handle({ verb: 'POST', path: '/api/v1/namespaces/default/pods', body: pod(`web-${m.name}`, m.name) });
      expect(ok).toBe(true);
    }
    const report = await runOf(fleet, of, around);
    expect(report).toMatchObject({
      troubles: [],
      steps: [{ what: 'restart', count: 3, of: 'nodes', troubles: [] }],
      overview: { nodes: { total: 6, running: 6 } },
    });
    expect(report.expect[0]?.is).toBe(6);
    const { body } = kube.handle({ verb: 'GET', path: '/api/v1/nodes' }) as { body: { items: { metadata: { labels: object } }[] } };
    expect(body.items.map((n) => n.metadata.labels)).toEqual(
      Array.from({ length: 6 }, () => expect.objectContaining({ 'actorlet.dev/fleet': 'demo' })),
    );
    const boots = () => fleet.members.reduce((sum, m) => sum + m.boots, 0);
    const before = boots();
    expect(await fleet.restart(fleet.members)).toEqual([]);
    expect(boots() - before).toBe(6);
  });

  it('applies manifests, switches nodes off, and judges objects, calls and seconds', async () => {
    const around = world();
    const hold = { name: 'x', afterMs: 0, holds: 'once' } as const;
    const pods = ['n-0', 'n-1'].map((node) => pod(`web-${node}`, node));
    const named = (name: string) => ({ apiVersion: 'v1', kind: 'Pod', namespace: 'default', name });
    const of = spec({
      steps: [
        { atMs: 10, do: 'apply', manifests: ['pods.yaml'], objects: [] },
        { atMs: 20, do: 'stop', nodes: { share: 1, groups: ['nobody'] } },
        { atMs: 30, do: 'start', nodes: { share: 1 } },
      ],
      expect: [
        {
          ...hold,
          measure: { what: 'objects', of: named('web-n-0'), condition: { type: 'Ready', status: 'True' } },
          atLeast: 1,
          withinMs: 50_000,
        },
        { ...hold, measure: { what: 'objects', of: { apiVersion: 'v1', kind: 'Pod' } }, atLeast: 3, withinMs: 50 },
        { ...hold, measure: { what: 'seconds', of: 'podStart', percentile: 99 }, atMost: 40, withinMs: null },
        { ...hold, measure: { what: 'calls', pattern: 'POST nodes' }, atMost: 5, withinMs: null },
      ],
    });
    await using fleet = new Fleet(of, around.given);
    const report = await runOf(fleet, of, around, { manifests: new Map([['pods.yaml', pods]]) });
    expect(report.steps).toMatchObject([
      { what: 'apply', count: 2, of: 'objects', troubles: [] },
      { what: 'stop', count: 0, of: 'nodes' },
      { what: 'start', count: 0, of: 'nodes' },
    ]);
    expect(report.expect.map(({ metMs, is }) => [metMs !== null, is])).toEqual([
      [true, 1],
      [false, expect.anything()],
      [true, expect.any(Number)],
      [false, 6],
    ]);
    expect(report.seconds.podStart?.count).toBe(2);
  });

  it('loses the containers of a node whose power fails, and starts them again once it is back', async () => {
    const { kube, given } = world();
    await using fleet = new Fleet(spec({ groups: spec().groups.map((g) => ({ ...g, count: 2 })) }), given);
    for (const { name } of fleet.members)
      kube.handle({ verb: 'POST', path: '/api/v1/namespaces/default/pods', body: pod(`web-${name}`, name) });
    type Status = { phase?: string; containerStatuses?: { restartCount: number; state: { running?: object } }[] };
    const restarts = () =>
      kube.store.list('pods').map((p) => {
        const status = (p.status as Status).containerStatuses?.[0];
        return status?.state.running === undefined ? null : status.restartCount;
      });
    const boots = () => kube.store.list('nodes').map((n) => (n.status as { nodeInfo: { bootID: string } }).nodeInfo.bootID);
    await fleet.start();
    await expect.poll(restarts).toEqual([0, 0]);
    const [before] = boots();
    const off = fleet.members.slice(0, 1);
    expect(await fleet.switchOff(off)).toEqual([]);
    expect(fleet.nodes().map((n) => n.state === 'off')).toEqual([true, false]);
    expect(await fleet.switchOn(off)).toEqual([]);
    await expect.poll(restarts).toEqual([1, 0]);
    expect(boots()[0]).not.toEqual(before);
  });

  it('has one daemon on each node, also where a step comes while it is being made', async () => {
    const { kube, given } = world();
    const fleet = new Fleet(spec({ groups: spec().groups.map((g) => ({ ...g, count: 2 })) }), given);
    const [first] = fleet.members;
    // Switched off and on, and restarted.
    const starting = fleet.start();
    await fleet.switchOff(fleet.members.slice(0, 1));
    await Promise.all([fleet.switchOn(fleet.members.slice(0, 1)), fleet.restart(fleet.members)]);
    expect(await starting).toEqual([]);
    await expect.poll(() => fleet.overview().nodes.ready).toBe(2);
    expect(first?.node).toBeDefined();
    expect(await fleet.stop()).toEqual([]);
    // A daemon that nobody knows any more would go on.
    await expect.poll(() => kube.openWatches()).toBe(0);
  });

  it('passes a request about a pod to the node that has it now, while another still ends one of the same name', async () => {
    const { kube, given } = world();
    await using fleet = new Fleet(spec({ groups: spec().groups.map((g) => ({ ...g, count: 2 })) }), given);
    await fleet.start();
    const path = '/api/v1/namespaces/default/pods';
    const stubborn = (node: string) => {
      const made = pod('web', node);
      const metadata = { ...made.metadata, annotations: { 'actorlet.dev/hollow': 'run=forever,term=20s' } };
      return { ...made, metadata, spec: { ...made.spec, terminationGracePeriodSeconds: 30 } };
    };
    const isReady = (name: string) => fleet.member(name)?.pods().ready;
    kube.handle({ verb: 'POST', path, body: stubborn('n-0') });
    await expect.poll(() => isReady('n-0')).toBe(1);
    kube.handle({ verb: 'DELETE', path: `${path}/web`, query: { gracePeriodSeconds: '0' } });
    kube.handle({ verb: 'POST', path, body: stubborn('n-1') });
    await expect.poll(() => isReady('n-1')).toBe(1);
    await expect.poll(() => fleet.member('n-0')?.podNamed('default', 'web')).toBe('leaving');
    const asked = {
      method: 'GET',
      path: '/containerLogs/default/web/main',
      headers: {},
      query: new URLSearchParams(),
      body: new Uint8Array(),
    };
    const { body } = await fleet.front.handle({ ...asked, signal: AbortSignal.timeout(50_000) });
    // No node of this world has a port, and the answer names the one that was asked.
    expect(body).toContain('the node n-1 ');
  });

  it('measures a pod once, however often the daemon of its node restarts', async () => {
    const { kube, given } = world();
    await using fleet = new Fleet(spec({ groups: spec().groups.map((g) => ({ ...g, count: 1 })) }), given);
    await fleet.start();
    kube.handle({ verb: 'POST', path: '/api/v1/namespaces/default/pods', body: pod('web', 'n-0') });
    const ready = () => fleet.overview().pods.ready;
    await expect.poll(() => fleet.podSeconds().podReady.length).toBe(1);
    const before = fleet.podSeconds();
    expect(await fleet.restart(fleet.members)).toEqual([]);
    await expect.poll(ready).toBe(1);
    expect(fleet.podSeconds()).toEqual(before);
  });

  it('that is interrupted while it starts stops what has begun, and begins nothing more', async () => {
    const around = world();
    const of = spec({ groups: spec().groups.map((g) => ({ ...g, count: 200 })) });
    const fleet = new Fleet(of, around.given);
    const interrupt = new AbortController();
    const run = new FleetRun({
      ...optionsOf(fleet, around, of, interrupt.signal),
      onLook: ({ nodes }) => nodes.running > 0 && interrupt.abort(),
    });
    const { troubles, overview } = await run.toTheEnd();
    // The report tells how it was before it was stopped.
    expect([troubles, overview.nodes.running > 0, fleet.overview().nodes.running]).toEqual([[], true, 0]);
    expect(fleet.members.filter((m) => m.boots > 0).length).toBeLessThan(200);
  });

  it('starts no daemon any more once it stops, and says which did not end in time', async () => {
    const { given } = world();
    const { clock } = given;
    const hurried = { ...clock, setTimeout: (fn: () => void, ms: number) => clock.setTimeout(fn, ms === 20_000 ? 2_000 : ms) };
    const fleet = new Fleet(spec({ groups: spec().groups.map((g) => ({ ...g, count: 200 })) }), { ...given, clock: hurried });
    const boots = () => fleet.members.reduce((sum, m) => sum + m.boots, 0);
    const starting = fleet.start();
    await expect.poll(() => fleet.overview().nodes.running, { interval: 5 }).toBeGreaterThan(0);
    const stuck = fleet.members[199];
    if (stuck === undefined) throw new Error('there is no such node');
    stuck.end = () => new Promise(() => {});
    Object.defineProperty(stuck, 'busy', { value: true });
    expect(boots()).toBeLessThan(200);
    const troubles = await fleet.stop();
    await starting;
    const before = boots();
    expect(troubles).toContainEqual({ node: 'n-199', why: 'it did not end within 20 s' });
    await fleet.switchOn(fleet.members);
    expect(boots()).toBe(before);
  });

  it('is asked about one of its nodes through its socket, and counts what they ask', async () => {
    const { given } = world();
    const dir = mkdtempSync(join(tmpdir(), 'fleet-'));
    const socketPath = join(dir, 'fleet.sock');
    const of = spec({ groups: spec().groups.map((g) => ({ ...g, count: 3 })) });
    await using fleet = new Fleet(of, { ...given, socketPath, net: createNet(), kubeconfig: '/fleet.kubeconfig' }, { index: 1, count: 2 });
    expect(fleet.members.map((m) => m.name)).toEqual(['n-1']);
    await fleet.start();
    await expect.poll(() => fleet.nodes()[0]?.state).toBe('ready');
    const ask = (node: string) => adminClient(socketPath, AbortSignal.timeout(10_000), node);
    expect(await ask('n-1').json('/node')).toMatchObject({ name: 'n-1', kubeconfig: '/fleet.kubeconfig' });
    await expect(ask('n-0').json('/node')).rejects.toThrow('the node n-0 is not of this fleet, or its daemon does not run');
    const tree = (await ask('').json('/statez')) as ActorView;
    expect([tree.path, tree.lifecycle, tree.children.map((c) => c.path)]).toEqual(['fleet', 'running', ['fleet/starts', 'fleet/nodes']]);
    expect(findActor(tree, 'fleet/nodes/n-1')).toMatchObject({ lifecycle: 'running', state: 'running', reason: 'Running', restarts: 0 });
    expect((await ask('').get('/statez', { text: '' })).body).toMatch(
      /^ACTOR .*\nfleet .*\n(?:.*\n)*.*n-1 +running .* Running: the daemon runs\n$/,
    );
    await expect(ask('').json('/node')).rejects.toThrow('say which one with --node NAME');
    expect(fleet.calls.byKind.get('POST nodes')).toBe(1);
    await expect.poll(() => fleet.calls.byKind.get('POST leases')).toBe(1);
    expect(fleet.nodes()).toEqual([{ name: 'n-1', group: 'n', state: 'ready', pods: 0, readyAfterMs: expect.any(Number) }]);
    rmSync(dir, { recursive: true, force: true });
  });

  it.each([
    ['/api/v1/namespaces/default/pods/web/status', 'pods/status'],
    ['/api/v1/nodes/n', 'nodes'],
    ['/api/v1/namespaces/default', 'namespaces'],
    ['/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases', 'leases'],
    ['/version', '/version'],
  ])('counts %s as %s', (path, resource) => {
    expect(resourceOf(path)).toBe(resource);
  });

  it('draws the same nodes for the same seed, and tells of nodes that take no fault', async () => {
    const { given } = world();
    const names = () => new Fleet(spec(), given).select({ share: 0.5 }).map((m) => m.name);
    expect(names()).toEqual(names());
    const drawn = (seed: number) =>
      new Fleet(spec({ seed, groups: spec().groups.map((g) => ({ ...g, count: 40 })) }), given).select({ share: 0.5 });
    expect(drawn(3).map((m) => m.name)).not.toEqual(drawn(4).map((m) => m.name));
    expect(new Set(drawn(3)).size).toBe(20);
    await using fleet = new Fleet(spec({ groups: spec().groups.map((g) => ({ ...g, count: 2 })) }), given);
    await fleet.start();
    const decoded = decodeScenario(
      'apiVersion: actorlet.dev/v1alpha1\nkind: FaultScenario\nmetadata: { name: deaf }\nspec:\n  faults:\n    - { name: a, at: 0s, for: 1m, kind: api.partition, nodes: [n-0] }\n',
      'live',
    );
    if (!decoded.ok) throw new Error(JSON.stringify(decoded.errors));
    expect(await fleet.inject(fleet.members, decoded.scenario)).toEqual([
      { node: 'n-1', why: expect.stringContaining('is aimed at other nodes only') },
    ]);
  });
});
