/** `reservedMemory`: what of each NUMA node is the system's, and whether that is what the other reservations come to. Pure. */
import type { KubeletConfiguration } from '../../config/config.ts';
import { bytesQuantity, quantityToInteger } from '../../kube/quantity.ts';
import { type Built, built, refused } from '../../result.ts';
import type { NumaNode } from '../numaNode.ts';

/**
 * By NUMA node and resource, in bytes. `kept`: bytes of memory that pods may not use by the other reservations. In the reference's
 * words where it cannot be.
 */
export function reservedMemory(
  nodes: readonly NumaNode[],
  { reservedMemory: list, kept }: Pick<KubeletConfiguration, 'reservedMemory'> & { kept: bigint },
): Built<ReadonlyMap<number, ReadonlyMap<string, number>>> {
  const byNode = new Map(nodes.map((node): [number, Map<string, number>] => [node.id, new Map()]));
  const totals = new Map<string, bigint>([['memory', 0n]]);
  for (const { numaNode, limits } of list) {
    const of = byNode.get(numaNode);
    if (of === undefined)
      return refused(`the reserved memory configuration references a NUMA node ${numaNode} that does not exist on this machine`);
    for (const [resource, amount] of Object.entries(limits)) {
      const bytes = quantityToInteger(amount);
      of.set(resource, bytes);
      totals.set(resource, (totals.get(resource) ?? 0n) + BigInt(bytes));
    }
  }
  for (const [resource, total] of totals) {
    // Huge pages cannot be reserved otherwise.
    const other = resource === 'memory' ? kept : 0n;
    if (total === other) continue;
    const [what, than] = [bytesQuantity(total), bytesQuantity(other)];
    return refused(
      `the total amount "${what}" of type "${resource}" is not equal to the value "${than}" determined by Node Allocatable feature`,
    );
  }
  return totals.get('memory') === 0n ? refused('[memorymanager] you should specify the system reserved memory') : built(byNode);
}
