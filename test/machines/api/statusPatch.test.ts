/** Whether what a status patch says after the server answered was said before: a server drops what it does not know. */
import { expect, it } from 'vitest';
import { saysNothingNew, statusPatch } from '../../../src/machines/api/statusPatch.ts';
import type { PodStatus } from '../../../src/machines/k8s.ts';
import { applyStrategicPatch } from '../../../src/sim/world/kubePatch.ts';

const api: PodStatus = {
  phase: 'Pending',
  reason: 'Old',
  podIP: '10.0.0.1',
  podIPs: [{ ip: '10.0.0.1' }],
  conditions: [{ type: 'Ready', status: 'False', reason: 'ContainersNotReady', message: 'm' }],
};

it('says nothing new when the server left out what was sent, and something when it has other than that', () => {
  const next: PodStatus = {
    phase: 'Running',
    observedGeneration: 1,
    podIP: '10.0.0.1',
    podIPs: [{ ip: '10.0.0.1' }],
    conditions: [{ type: 'Ready', status: 'True', observedGeneration: 1 }],
  };
  const sent = statusPatch(api, next) ?? {};
  // An old server drops what it does not know; the reason of the condition, which was taken away, is gone.
  const { observedGeneration: _, ...known } = applyStrategicPatch(api, sent) as PodStatus;
  const dropped: PodStatus = { ...known, conditions: [{ type: 'Ready', status: 'True' }] };
  const again = statusPatch(dropped, next);
  expect(again).not.toBeNull();
  expect(saysNothingNew(again ?? {}, sent)).toBe(true);
  const late = statusPatch({ ...dropped, podIP: '10.0.0.9' }, next);
  expect(saysNothingNew(late ?? {}, sent)).toBe(false);
  const other = statusPatch({ ...dropped, conditions: [{ type: 'Initialized', status: 'True' }] }, next);
  expect(saysNothingNew(other ?? {}, sent)).toBe(false);
});
