/** What `why` says of an actor: in each lasting state its chart names a reason. */
import { expect, it } from 'vitest';
import type { AnyStateMachine, AnyStateNode } from 'xstate';
import { nodeMachines } from '../../integration/kill/killTables.ts';

/** States of a pod in a ledger are no actor's: `why` of the pod tells them. */
const LEDGERS = ['podLife'];

/** Lasting states in which nobody says why. Of parallel regions one says it for all, if it does so in each of its states. */
function silent(node: AnyStateNode): string[] {
  const { reason } = (node.meta ?? {}) as { reason?: string };
  if (reason !== undefined || node.type === 'final' || node.type === 'history' || (node.always?.length ?? 0) > 0) return [];
  const below = Object.values(node.states);
  if (below.length === 0) return [node.id];
  const each = below.map(silent);
  return node.type === 'parallel' && each.some((one) => one.length === 0) ? [] : each.flat();
}

it('a lasting state has a reason', async () => {
  const machines = (await nodeMachines()) as unknown as AnyStateMachine[];
  expect(machines.length).toBeGreaterThan(40);
  const found = machines.filter(({ root }) => !LEDGERS.includes(root.id)).flatMap(({ root }) => silent(root));
  expect(found).toEqual([]);
});
