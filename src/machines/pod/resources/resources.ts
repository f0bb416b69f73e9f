/** Requests and limits as the numbers CRI takes (pod lifecycle 5.10, "Linux resources"). */

import type { Container } from '../../kube/podTable.ts';
import { compareQuantity, quantityToInteger, quantityToMilli } from '../../kube/quantity.ts';
import type { Pod, Quantity } from '../../kube/types.ts';
import type { NodeFacts } from '../../nodeFacts.ts';
import type { LinuxContainerResources } from '../../wire/cri.ts';
import { oomScoreAdj } from './oomScore.ts';
import { effectiveLimit, heldLimit, podTotal } from './podLevel.ts';

export type ResourceFacts = Pick<NodeFacts, 'cpuCFSQuota' | 'cpuCFSQuotaPeriodMs' | 'memoryCapacityBytes' | 'hugePageSizes'>;

const SHARES_MIN = 2;
const SHARES_MAX = 262_144;
const SHARES_PER_CPU = 1024;
const QUOTA_MIN_US = 1000;
/** 0 means nothing was asked for: the smallest share. */
export function cpuShares(milliCpu: number): number {
  if (milliCpu <= 0) return SHARES_MIN;
  return Math.min(SHARES_MAX, Math.max(SHARES_MIN, Math.floor((milliCpu * SHARES_PER_CPU) / 1000)));
}

/** Microseconds of cpu time per period; 0 is no limit. */
export function cpuQuotaUs(limitMilliCpu: number, periodUs: number): number {
  return limitMilliCpu <= 0 ? 0 : Math.max(QUOTA_MIN_US, Math.floor((limitMilliCpu * periodUs) / 1000));
}

function linuxResources(
  amounts: { cpuRequest: Quantity | undefined; cpuLimit: Quantity | undefined; memoryLimit: Quantity | undefined },
  facts: ResourceFacts,
): LinuxContainerResources {
  const limitMilli = quantityToMilli(amounts.cpuLimit);
  const memory = quantityToInteger(amounts.memoryLimit);
  const periodUs = facts.cpuCFSQuotaPeriodMs * 1000;
  return {
    // Nothing said takes the limit, as the API does it; a request of 0 is one.
    cpuShares: cpuShares(quantityToMilli(amounts.cpuRequest ?? amounts.cpuLimit)),
    ...(facts.cpuCFSQuota ? { cpuPeriod: periodUs, cpuQuota: cpuQuotaUs(limitMilli, periodUs) } : {}),
    ...(memory > 0 ? { memoryLimitInBytes: memory } : {}),
  };
}

export function containerResources(pod: Pod, container: Container, facts: ResourceFacts): LinuxContainerResources {
  const limitOf = (resource: string) => effectiveLimit(pod, container, resource);
  // What the pod asks for as a whole is the weight of its own cgroup, where it has one, and of no container, as in the reference.
  const amounts = { cpuRequest: container.resources?.requests?.cpu, cpuLimit: limitOf('cpu'), memoryLimit: limitOf('memory') };
  const resources = linuxResources(amounts, facts);
  const hugepages = hugepageLimits({ ...pod.spec.resources?.limits, ...container.resources?.limits }, facts.hugePageSizes);
  return {
    ...resources,
    oomScoreAdj: oomScoreAdj(pod, container, facts.memoryCapacityBytes),
    ...(hugepages.length === 0 ? {} : { hugepageLimits: hugepages }),
  };
}

/** One entry per page size of the host. Sizes are taken as `2Mi` or `2MB`; CRI and the kernel say `2MB` for both. */
function hugepageLimits(limits: Record<string, Quantity> | undefined, sizes: readonly string[]): { pageSize: string; limit: number }[] {
  return sizes.flatMap((size) => {
    const match = /^(\d+)\s*([KMG])(?:i|B|iB)?$/i.exec(size);
    if (match === null) return [];
    const unit = (match[2] ?? '').toUpperCase();
    const limit = Object.entries(limits ?? {}).find(
      ([name]) => name.startsWith('hugepages-') && compareQuantity(name.slice('hugepages-'.length), `${match[1]}${unit}i`) === 0,
    );
    return [{ pageSize: `${match[1]}${unit}B`, limit: quantityToInteger(limit?.[1]) }];
  });
}

/** What the sandbox may have in all after a change of resources. Overhead is not in it. */
export function resizedSandbox(pod: Pod, facts: ResourceFacts): LinuxContainerResources {
  return linuxResources(
    { cpuRequest: podTotal(pod, 'requests', 'cpu'), cpuLimit: heldLimit(pod, 'cpu'), memoryLimit: heldLimit(pod, 'memory') },
    facts,
  );
}

/** Totals for the sandbox, so that a runtime with a machine per sandbox can size it. */
export function sandboxResources(pod: Pod, facts: ResourceFacts): LinuxContainerResources {
  return linuxResources(
    {
      cpuRequest: podTotal(pod, 'requests', 'cpu'),
      cpuLimit: podTotal(pod, 'limits', 'cpu'),
      memoryLimit: podTotal(pod, 'limits', 'memory'),
    },
    facts,
  );
}

/** `spec.overhead` in the same form; undefined when the pod has none. */
export function overheadResources(pod: Pod, facts: ResourceFacts): LinuxContainerResources | undefined {
  const { overhead } = pod.spec;
  if (overhead === undefined || Object.keys(overhead).length === 0) return undefined;
  return linuxResources({ cpuRequest: overhead.cpu, cpuLimit: overhead.cpu, memoryLimit: overhead.memory }, facts);
}
