/** What holds a container's memory besides its limit: swap, the floor and the throttle of cgroup v2, and who dies with whom (resources 1.11, 1.12). */

import type { Container } from '../../kube/podTable.ts';
import { quantityToInteger } from '../../kube/quantity.ts';
import type { Pod } from '../../kube/types.ts';
import type { NodeFacts } from '../../nodeFacts.ts';
import type { LinuxContainerResources } from '../../wire/cri.ts';
import { isCritical } from '../phase.ts';
import { effectiveLimit } from './podLevel.ts';
import { qosClass } from './qos.ts';

export type MemoryControlFacts = Pick<NodeFacts, 'memoryCapacityBytes' | 'allocatable' | 'memoryControl'>;

/** `memory.high` counts in pages of the kernel. */
const PAGE_BYTES = 4096;

/** Bytes that a container may swap out. 0 for all but containers of burstable pods that ask for less memory than they may use. */
function swapBytes(pod: Pod, container: Container, { memoryCapacityBytes, memoryControl: control }: MemoryControlFacts): number {
  if (control?.limitedSwap !== true || control.cgroupVersion !== 2) return 0;
  if (qosClass(pod) !== 'Burstable' || isCritical(pod)) return 0;
  const request = quantityToInteger(container.resources?.requests?.memory);
  const equal = request === quantityToInteger(container.resources?.limits?.memory);
  if (request <= 0 || equal || memoryCapacityBytes <= 0 || request > memoryCapacityBytes) return 0;
  return Math.floor((request / memoryCapacityBytes) * control.swapBytes);
}

/** Bytes from which a container is slowed down; undefined where that would be no more than it asked for. */
function throttledAt(pod: Pod, container: Container, facts: MemoryControlFacts, factor: number): number | undefined {
  const request = quantityToInteger(container.resources?.requests?.memory);
  const limit = quantityToInteger(effectiveLimit(pod, container, 'memory'));
  if (request === limit) return undefined;
  const ceiling = limit > 0 ? limit : quantityToInteger(facts.allocatable.memory);
  const at = Math.floor((request + factor * (ceiling - request)) / PAGE_BYTES) * PAGE_BYTES;
  return at > request ? at : undefined;
}

/** Nothing where the world does not tell what there is. */
export function memoryControls(
  pod: Pod,
  container: Container,
  facts: MemoryControlFacts,
): Pick<LinuxContainerResources, 'memorySwapLimitInBytes' | 'unified'> {
  const { memoryControl: control } = facts;
  if (control === undefined) return {};
  if (control.cgroupVersion === 1) {
    const limit = quantityToInteger(effectiveLimit(pod, container, 'memory'));
    // There it is memory and swap together: as much as memory alone leaves no swap.
    return control.swapController && limit > 0 ? { memorySwapLimitInBytes: limit } : {};
  }
  const factor = control.throttlingFactor;
  const request = quantityToInteger(container.resources?.requests?.memory);
  const high = factor === null ? undefined : throttledAt(pod, container, facts, factor);
  const unified = {
    ...(control.groupOom ? { 'memory.oom.group': '1' } : {}),
    ...(control.swapController ? { 'memory.swap.max': String(swapBytes(pod, container, facts)) } : {}),
    ...(control.floors && request > 0 ? { [qosClass(pod) === 'Guaranteed' ? 'memory.min' : 'memory.low']: String(request) } : {}),
    ...(high === undefined ? {} : { 'memory.high': String(high) }),
  };
  return Object.keys(unified).length === 0 ? {} : { unified };
}
