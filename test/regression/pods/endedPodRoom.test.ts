/** A pod that had ended before it was said again, and the room on the node. */

import { expect, it } from 'vitest';
import { podsView } from '../../../src/machines/pods/manager/messages.ts';

import { cluster, create, inApi, isReady } from '../../integration/cluster/clusterPods.ts';

it('one that was refused for what it asks holds none of it when its source says it again', async () => {
  await using h = await cluster();
  const asking = (cpu: string) => ({ container: { resources: { requests: { cpu } } } });
  create(h, 'huge', asking(String(Number(h.node.facts.allocatable.cpu) * 16)));
  await h.until('refused', () => inApi(h, 'huge')?.status.reason === 'OutOfcpu');
  // What is left of it is looked for while the other one is judged; a runtime that is asked gives no answer for a while.
  h.faults.latencyMs.ListPodSandbox = 10_000;
  expect(h.tree.kill('node/pods/config', 'the test')).toBe(true);
  create(h, 'small', asking('100m'));
  const known = () => [...(h.tree.registry.read(podsView)?.value.records.values() ?? [])].map((r) => r.pod.metadata.name);
  await h.until('judged', () => known().includes('small'));
  h.faults.latencyMs = {};
  await h.until('Ready', () => isReady(h, 'small'), 60_000);
  expect(inApi(h, 'huge')?.status).toMatchObject({ phase: 'Failed', reason: 'OutOfcpu' });
  expect(h.violations).toEqual([]);
});
