/** Steps that add and remove nodes, give notice of an end, and let daemons flap. */
import { describe, expect, it } from 'vitest';
import { decodeFleet } from '../../src/file.ts';
import { startFleet } from '../../src/index.ts';
import { apiServer, runnable } from './rig.ts';

const HEAD = 'apiVersion: actorlet.dev/v1alpha1\nkind: Fleet\nmetadata: { name: demo }\nspec:\n  groups: [{ name: a, count: 3 }]\n';

describe('steps of nodes that come and go', { timeout: 60_000 }, () => {
  it('give notice by a taint and a condition, and remove the nodes that were drawn then', async () => {
    const run = runnable(`${HEAD}  steps:
    - { at: 0s, do: interrupt, nodes: { share: 0.4 }, notice: 1500ms, taint: 'spot=yes:NoSchedule' }
    - { at: 1s, do: add, group: a, count: 2 }
    - { at: 2s, do: flap, nodes: { groups: [a] }, down: 200ms, up: 100ms, times: 2 }
  expect:
    - { nodesReady: 4, after: 2500ms, within: 30s }
`);
    const report = await run.toTheEnd();
    const nodes = run.nodes();
    await run.stop();
    expect(report.steps.map(({ what, count, troubles }) => [what, count, troubles])).toEqual([
      ['notice', 1, []],
      ['add to a', 2, []],
      ['remove', 1, []],
      ...[1, 2].flatMap(() => [
        ['away', 4, []],
        ['back', 4, []],
      ]),
    ]);
    expect(report.expect.every((e) => e.metMs !== null)).toBe(true);
    expect(nodes.map((n) => n.metadata.name)).toHaveLength(4);
    expect(nodes.map((n) => n.metadata.name)).toEqual(expect.arrayContaining(['a-3', 'a-4']));
    const [told] = run.seen((n) => JSON.stringify(n.spec ?? {}).includes('spot'));
    expect(told).toMatchObject({ spec: { taints: [{ key: 'spot', value: 'yes', effect: 'NoSchedule' }] } });
    expect(JSON.stringify(run.seen((n) => JSON.stringify(n.status ?? {}).includes('SpotInterruption')))).toContain(
      'the machine ends at 20',
    );
  });

  it('are known to the next process, with their pods', async () => {
    const adopting = (registration: string) =>
      `${HEAD}  adopt: [{ name: cloud, nodes: { names: 'x-*' }, registration: ${registration}, refuse: [{ order: 2, as: dead }] }]\n`;
    const api = apiServer();
    const containers = [{ name: 'main', image: 'web' }];
    const first = runnable(adopting('0s'), api);
    await first.start();
    api.kube.handle({ verb: 'POST', path: '/api/v1/nodes', body: { apiVersion: 'v1', kind: 'Node', metadata: { name: 'x-1' } } });
    const body = { metadata: { name: 'p' }, spec: { nodeName: 'x-1', serviceAccountName: 'default', containers } };
    api.kube.handle({ verb: 'POST', path: '/api/v1/namespaces/default/pods', body });
    type Status = { containerStatuses?: { restartCount: number; containerID?: string; state: { running?: object } }[] };
    const container = () => (api.kube.store.list('pods')[0]?.status as Status | undefined)?.containerStatuses?.[0];
    await expect.poll(() => container()?.state.running).toBeDefined();
    const before = container()?.containerID;
    await first.stop();
    // A delay that no test would outlast.
    const second = runnable(adopting('1h'), api);
    await second.start();
    await expect.poll(() => second.members()).toContain('x-1');
    await expect.poll(() => second.ready()).toBe(4);
    expect(container()).toMatchObject({ restartCount: 0, containerID: before });
    await second.stop();
  });

  it('are there for tests, too', async () => {
    const fleet = await startFleet({ nodes: 1, api: 'embedded' });
    try {
      expect(await fleet.addNodes('fleet', 2)).toEqual(['fleet-1', 'fleet-2']);
      await fleet.expect({ nodesReady: 3 });
      await fleet.removeNodes(['fleet-0', 'fleet-2']);
      expect((await fleet.objects({ kind: 'Node' })).map((n) => n.metadata.name)).toEqual(['fleet-1']);
      expect(fleet.nodes().map(({ name, state }) => [name, state])).toEqual([['fleet-1', 'ready']]);
      await fleet.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'fleet-3' } });
      await expect(fleet.addNodes('fleet')).rejects.toThrow('fleet-3 could not be added: a node of that name is there');
      await expect(fleet.addNodes('none')).rejects.toThrow('this fleet has no group none');
    } finally {
      await fleet.stop();
    }
  });

  it.each([
    ['{ at: 0s, do: add }', 'group: is missing'],
    ['{ at: 0s, do: add, group: b }', 'there is no group "b"; known: a'],
    ['{ at: 0s, do: restart, count: 2 }', 'count: belongs to add'],
    ['{ at: 0s, do: interrupt, taint: nonsense }', 'taint: "nonsense" must be KEY=VALUE:EFFECT'],
    ['{ at: 0s, do: flap, times: 0 }', 'times: must be a whole number from 1 to 100'],
    ['{ at: 0s, do: remove, notice: 1s }', 'notice: belongs to interrupt'],
  ])('are refused where the file says %s', (step, why) => {
    const read = decodeFleet(`${HEAD}  steps: [${step}]\n`);
    expect(read.ok ? '' : read.errors.map((e) => `${e.field}: ${e.message}`).join('\n')).toContain(why);
  });
});
