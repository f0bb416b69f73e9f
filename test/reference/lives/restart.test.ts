/** What the reference kubelet told of the pod of `restart.ts` (restart136.json, written by record.ts), asked of a virtual node. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { cluster, create, inApi } from '../../integration/cluster/clusterPods.ts';
import { again, RECORDED_RESTART, RESTARTED, restarting, type Told, told } from './restart.ts';

const recorded = JSON.parse(readFileSync(RECORDED_RESTART, 'utf8')) as Record<'restarting' | 'after', Told>;
/** Without the condition that the scheduler sets, and without what cgroups of the recording machine told of the whole pod. */
function ofNode({
  conditions,
  resources: _,
  allocatedResources: __,
  ...more
}: Told & { resources?: unknown; allocatedResources?: unknown }) {
  return JSON.parse(JSON.stringify({ ...more, conditions: conditions.filter((c) => !c.startsWith('PodScheduled')) }));
}

it('tells of a pod whose containers all restart as the reference does', async () => {
  await using h = await cluster();
  create(h, 'restarts', { spec: RESTARTED, lives: { first: 'run=100ms', main: 'run=2s,exit=88;' } });
  const seen = () => inApi(h, 'restarts') as Pod;
  h.faults.latencyMs.StopContainer = 2_000;
  await h.until('it restarts', () => restarting(seen()), 60_000);
  expect(ofNode(told(seen()))).toEqual(ofNode(recorded.restarting));
  await h.until('it runs again', () => again(seen()), 60_000);
  expect(ofNode(told(seen()))).toEqual(ofNode(recorded.after));
});
