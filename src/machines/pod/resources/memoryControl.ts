/** What holds a container's memory besides its limit: swap, the floor and the throttle of cgroup v2, and who dies with whom (resources 1.11, 1.12). */

import type { Container } from '../../kube/podTable.ts';
import { quantityToInteger } from '../../kube/quantity.ts';
import type { Pod } from '../../kube/types.ts';
import type { NodeFacts } from '../../nodeFacts.ts';
import type { LinuxContainerResources } from '../../wire/cri.ts';
import { isCritical } from '../phase.ts';
import { type Amounts, withAmounts } from './amounts.ts';
import { effectiveLimit } from './podLevel.ts';
import { qosClass } from './qos.ts';

export type MemoryControlFacts = Pick<NodeFacts, 'memoryCapacityBytes' | 'allocatable' | 'memoryControl'>;

/** `memory.high` counts in pages of the kernel. */
const PAGE_BYTES = 4096;

/** What a container asks for and is held to, in bytes. 0: nothing. */
interface Held {
  request: number;
  limit: number;
}

/** Bytes that a container may swap out. 0 for all but containers of burstable pods that ask for less memory than they may use. */
function swapBytes(pod: Pod, { request, limit }: Held, { memoryCapacityBytes, memoryControl: control }: MemoryControlFacts): number {
  if (control?.limitedSwap !== true || control.cgroupVersion !== 2) return 0;
  if (qosClass(pod) !== 'Burstable' || isCritical(pod)) return 0;
  if (request <= 0 || request === limit || memoryCapacityBytes <= 0 || request > memoryCapacityBytes) return 0;
  return Math.floor((request / memoryCapacityBytes) * control.swapBytes);
}

/** Bytes from which a container is slowed down; undefined where that would be no more than it asked for. */
function throttledAt({ request, limit }: Held, facts: MemoryControlFacts, factor: number): number | undefined {
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
  const { requests, limits } = container.resources ?? {};
  const request = quantityToInteger(requests?.memory);
  const limit = quantityToInteger(effectiveLimit(pod, container, 'memory'));
  // There it is memory and swap together: as much as memory alone leaves no swap.
  if (control.cgroupVersion === 1) return control.swapController && limit > 0 ? { memorySwapLimitInBytes: limit } : {};
  const factor = control.throttlingFactor;
  const high = factor === null ? undefined : throttledAt({ request, limit }, facts, factor);
  const swap = control.swapController ? swapBytes(pod, { request, limit: quantityToInteger(limits?.memory) }, facts) : 0;
  const unified = {
    ...(control.groupOom ? { 'memory.oom.group': '1' } : {}),
    ...(control.swapController ? { 'memory.swap.max': String(swap) } : {}),
    ...(control.floors && request > 0 ? { [qosClass(pod) === 'Guaranteed' ? 'memory.min' : 'memory.low']: String(request) } : {}),
    ...(high === undefined ? {} : { 'memory.high': String(high) }),
  };
  return Object.keys(unified).length === 0 ? {} : { unified };
}

/** Files of a cgroup that a container may have lost with a change, and what frees it. */
const FREE: Readonly<Record<string, string>> = { 'memory.high': 'max', 'memory.min': '0', 'memory.low': '0' };

/** Swap, floor and throttle, where these differ from what was; null: all of them are as they were. */
export function changedControls(
  pod: Pod,
  { container, was }: { container: Container; was: Amounts },
  facts: MemoryControlFacts,
): LinuxContainerResources | null {
  const before = memoryControls(pod, withAmounts(container, was), facts);
  const after = memoryControls(pod, container, facts);
  const unified = { ...after.unified };
  // What is not named stays as it is, so what holds no more has to be taken back by name.
  for (const [file, free] of Object.entries(FREE)) if (before.unified?.[file] !== undefined) unified[file] ??= free;
  const files = Object.keys({ ...before.unified, ...unified });
  const same = before.memorySwapLimitInBytes === after.memorySwapLimitInBytes && files.every((f) => before.unified?.[f] === unified[f]);
  return same ? null : { ...after, ...(files.length === 0 ? {} : { unified }) };
}
