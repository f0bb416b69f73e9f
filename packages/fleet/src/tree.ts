/** The tree of a fleet: the nodes, what gives them their turn to start, and the watches that they share. */
import { createTree, type SupervisionTree } from '@actorlet/kubelet/actors/supervision/tree.ts';
import type { AnySpec, SupervisorSpec } from '@actorlet/kubelet/actors/supervision/types.ts';
import type { Logger, Ports } from '@actorlet/kubelet/ports/ports.ts';
import { countingMetrics } from '@actorlet/world/src/node/instruments.ts';

/** What its actors use of the outside. */
export type FleetPorts = Pick<Ports, 'clock' | 'rng' | 'yield'> & { log: Logger };

/** `stopMs`: an orderly stop of all children takes no longer. */
export function fleetTree(children: readonly AnySpec[], { stopMs, ...ports }: FleetPorts & { stopMs: number }): SupervisionTree {
  const root: SupervisorSpec = {
    type: 'supervisor',
    id: 'fleet',
    strategy: 'one_for_one',
    // Its children are few, and a crash of one of them is a mistake of this program.
    intensity: { max: 5, periodMs: 60_000 },
    shutdownMs: 2 * stopMs,
    escalate: 'parent',
    children,
  };
  return createTree(root, { ...ports, metrics: countingMetrics() } as unknown as Ports);
}
