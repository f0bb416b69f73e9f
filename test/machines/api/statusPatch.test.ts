/** Whether what a status patch says after the server answered was said before: a server drops what it does not know. */
import { applyStrategicPatch } from '@actorlet/world/src/kube/kubePatch.ts';
import { expect, it } from 'vitest';
import { leftOutOf, saysNothingNew, statusPatch, withoutUnknown } from '../../../src/machines/api/statusPatch.ts';
import type { PodStatus } from '../../../src/machines/kube/types.ts';

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

it('takes back what was said of the resources of a pod as a whole', () => {
  const said: PodStatus = { ...api, resources: { requests: { cpu: '200m' }, limits: { cpu: '1' } }, allocatedResources: { cpu: '200m' } };
  const less: PodStatus = { ...api, resources: { requests: { cpu: '100m' } } };
  for (const next of [api, less]) {
    const patched = applyStrategicPatch(said, statusPatch(said, next) ?? {}) as PodStatus;
    expect([patched.resources, patched.allocatedResources]).toEqual([next.resources, undefined]);
    expect(statusPatch(patched, next)).toBeNull();
  }
});

it('does not repeat a condition of which the server says only that it was never probed', () => {
  const condition = { type: 'Ready', status: 'False', reason: 'ContainersNotReady' } as const;
  expect(statusPatch({ conditions: [{ ...condition, lastProbeTime: null }] }, { conditions: [condition] })).toBeNull();
  const ready = { type: 'Ready', status: 'True' } as const;
  expect(statusPatch({ conditions: [{ ...condition, lastProbeTime: null }] }, { conditions: [ready] })).toEqual({
    conditions: [{ ...ready, reason: null }],
  });
});

it('does not send a field again that the server does not know, but sends another value of it, and what somebody took away', () => {
  const given: PodStatus = { ...api, hostIPs: [{ ip: '192.0.2.1' }], hostIP: '192.0.2.1' };
  const sent = statusPatch(api, given) ?? {};
  expect(Object.keys(sent)).toEqual(['hostIP', 'hostIPs']);
  const answer: PodStatus = { ...api, hostIP: '192.0.2.1' };
  const leftOut = leftOutOf(answer, sent, {});
  expect(Object.keys(leftOut)).toEqual(['hostIPs']);
  const next: PodStatus = { ...given, phase: 'Running' };
  expect(withoutUnknown(statusPatch(answer, next), answer, leftOut)).toEqual({ phase: 'Running' });
  expect(withoutUnknown(statusPatch(answer, given), answer, leftOut)).toBeNull();
  // Still left out after a patch that did not name it.
  expect(leftOutOf({ ...answer, phase: 'Running' }, { phase: 'Running' }, leftOut)).toEqual(leftOut);
  const moved: PodStatus = { ...given, hostIPs: [{ ip: '192.0.2.2' }] };
  expect(withoutUnknown(statusPatch(answer, moved), answer, leftOut)).toHaveProperty('hostIPs');
  // A server that has the field and loses it knows it.
  expect(withoutUnknown(statusPatch(api, given), api, leftOut)).toHaveProperty('hostIP');
});
