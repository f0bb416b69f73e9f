/** The parts of a new node's start were not measured. */
import { expect, it } from 'vitest';
import { nodeStartup } from '../../../src/actors/api/nodeStartup.ts';
import { createMetrics } from '../../../src/boot/dependencies/metrics/metrics.ts';

it('measures a node that registers anew, part by part and once, and none that the cluster knew', async () => {
  const metrics = createMetrics();
  let nowMs = 100_000;
  const startup = nodeStartup(metrics, { nowMs: () => nowMs, bootMs: () => 40_000, startedMs: 90_000 });
  const shown = async () =>
    Object.fromEntries(
      [...(await metrics.render()).matchAll(/^kubelet_node_startup_(\w*?)_?duration_seconds (.*)$/gm)].map(([, part, value]) => [
        part,
        Number(value),
      ]),
    );
  startup.ready();
  expect(await shown()).toEqual({ '': 0, pre_kubelet: 0, pre_registration: 0, registration: 0, post_registration: 0 });
  startup.asking();
  nowMs += 2_000;
  startup.asking();
  startup.registeredNew();
  nowMs += 5_000;
  startup.ready();
  nowMs += 60_000;
  startup.ready();
  expect(await shown()).toEqual({ '': 67, pre_kubelet: 50, pre_registration: 10, registration: 2, post_registration: 5 });
});
