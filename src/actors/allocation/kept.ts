/** What of the machine's memory pods may not use, by the configuration. */
import type { NumaNode } from '../../machines/allocation/numaNode.ts';
import type { NodeConfig } from '../../machines/config/config.ts';
import { reservedOf } from '../../machines/config/reservations.ts';

/** In bytes: kept for the system and the agent, or defended by hard eviction. */
export function keptMemory({ config, flags }: NodeConfig, nodes: readonly NumaNode[]): bigint {
  const total = nodes.reduce((sum, node) => sum + BigInt(node.memoryBytes), 0n);
  return reservedOf({ ...config, ignoreEviction: flags.experimentalAllocatableIgnoreEviction }, 'memory', total);
}
