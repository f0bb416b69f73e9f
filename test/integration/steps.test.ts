/**
 * What the node does for each pod is bounded, so that steps cannot creep back: at most 0.7 times what it did at commit f17e430b
 * (`before`), and no more calls of the runtime and requests to the API server. `scripts/node bench/steps.ts` says what they are.
 */
import { expect, it } from 'vitest';
import { countSteps, type Kind, type Phase } from './countSteps.ts';

const before: Record<'started' | 'ended', Partial<Record<Kind, number>>> = {
  started: { transitions: 12.13, messages: 45.01, fileOperations: 26.21, runtimeCalls: 6.09, apiRequests: 6.92 },
  ended: { transitions: 11.34, messages: 45.22, fileOperations: 41.07, runtimeCalls: 6.14, apiRequests: 3.01 },
};
const SHARE: Partial<Record<Kind, number>> = { transitions: 0.7, messages: 0.7, fileOperations: 0.7, runtimeCalls: 1, apiRequests: 1 };
/** What the node does for itself meanwhile. */
const OF_THE_NODE = 0.25;
/** Of a node with 100 settled pods in a minute, with some for periods that a minute cuts. docs/architecture/memory-and-cpu/measures.md has the list. */
const TIMERS_AT_REST = 175;

it('a pod takes at most 0.7 times the transitions, messages and file operations that it took, no more calls, and few timers at rest', async () => {
  const counted = await countSteps({ pods: 100, volumes: 1 });
  const phases: [Phase, Partial<Record<Kind, number>>][] = [
    [counted.started, before.started],
    [counted.ended, before.ended],
  ];
  const life = (kind: Kind) => phases.reduce((sum, [phase]) => sum + phase[kind].total, 0);
  const limit = (kind: Kind) => phases.reduce((sum, [, was]) => sum + (was[kind] ?? 0), 0) * (SHARE[kind] ?? 1) + OF_THE_NODE;
  for (const kind of Object.keys(SHARE) as Kind[]) expect(life(kind), kind).toBeLessThanOrEqual(limit(kind));
  const { timers } = counted.atRestMinute;
  expect(timers.total * 100, JSON.stringify(timers.by)).toBeLessThanOrEqual(TIMERS_AT_REST);
});
