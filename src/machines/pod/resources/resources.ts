/** Requests and limits as the numbers CRI takes (pod lifecycle 5.10, "Linux resources"). */

import { own } from '../../data/own.ts';
import type { Container } from '../../kube/podTable.ts';
import { addQuantities, compareQuantity, isZeroQuantity, quantityToInteger, quantityToMilli } from '../../kube/quantity.ts';
import type { Pod, Quantity } from '../../kube/types.ts';
import type { NodeFacts } from '../../nodeFacts.ts';
import type { LinuxContainerResources } from '../../wire/cri.ts';
import { isCritical } from '../phase.ts';
import { isRestartableInit } from '../runtime/shouldRestart.ts';
import { effectiveLimit, podLevel } from './podLevel.ts';
import { qosClass } from './qos.ts';

export type ResourceFacts = Pick<NodeFacts, 'cpuCFSQuota' | 'cpuCFSQuotaPeriodMs' | 'memoryCapacityBytes' | 'hugePageSizes'>;

const SHARES_MIN = 2;
const SHARES_MAX = 262_144;
const SHARES_PER_CPU = 1024;
const QUOTA_MIN_US = 1000;
const OOM_GUARANTEED = -997;
const OOM_BEST_EFFORT = 1000;
/** By its name: nobody makes a priority of it for a static pod. */
const NODE_CRITICAL_CLASS = 'system-node-critical';

/** 0 means nothing was asked for: the smallest share. */
export function cpuShares(milliCpu: number): number {
  if (milliCpu <= 0) return SHARES_MIN;
  return Math.min(SHARES_MAX, Math.max(SHARES_MIN, Math.floor((milliCpu * SHARES_PER_CPU) / 1000)));
}

/** Microseconds of cpu time per period; 0 is no limit. */
export function cpuQuotaUs(limitMilliCpu: number, periodUs: number): number {
  return limitMilliCpu <= 0 ? 0 : Math.max(QUOTA_MIN_US, Math.floor((limitMilliCpu * periodUs) / 1000));
}

function burstableScore(memoryRequestBytes: number, memoryCapacityBytes: number): number {
  if (memoryCapacityBytes <= 0) return OOM_BEST_EFFORT - 1;
  const score = 1000 - Math.floor((1000 * memoryRequestBytes) / memoryCapacityBytes);
  const least = 1000 + OOM_GUARANTEED;
  return Math.min(OOM_BEST_EFFORT - 1, Math.max(least, score));
}

/** For each container, of the memory that the pod as a whole asks for beyond what its containers do. Bytes. */
function memoryShareOf(pod: Pod): number {
  const whole = podLevel(pod, 'requests', 'memory');
  if (whole === undefined) return 0;
  const beyond = quantityToInteger(whole) - quantityToInteger(containersTotal(pod, 'requests', 'memory'));
  return Math.max(0, Math.floor(beyond / (pod.spec.containers.length + (pod.spec.initContainers?.length ?? 0))));
}

/** How soon the container is killed when memory runs out: -997 hardly ever, 1000 first. */
export function oomScoreAdj(pod: Pod, container: Container, memoryCapacityBytes: number): number {
  if (isCritical(pod) && pod.spec.priorityClassName === NODE_CRITICAL_CLASS) return OOM_GUARANTEED;
  const qos = qosClass(pod);
  if (qos === 'Guaranteed') return OOM_GUARANTEED;
  if (qos === 'BestEffort') return OOM_BEST_EFFORT;
  const share = memoryShareOf(pod);
  const scoreOf = (c: Container): number => burstableScore(quantityToInteger(c.resources?.requests?.memory) + share, memoryCapacityBytes);
  const own = scoreOf(container);
  const sidecar = isRestartableInit(container) && pod.spec.initContainers?.some((c) => c.name === container.name) === true;
  // A sidecar serves the regular containers: it must not be killed before all of them.
  return sidecar ? Math.min(own, Math.max(...pod.spec.containers.map(scoreOf))) : own;
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

/** What a pod takes in total: what it says of itself as a whole, else what its containers come to. Overhead is not in it. */
export function podTotal(pod: Pod, kind: 'requests' | 'limits', resource: string): Quantity | undefined {
  return podLevel(pod, kind, resource) ?? containersTotal(pod, kind, resource);
}

/**
 * What the containers of a pod come to: regular containers and sidecars together, or, where more, the neediest moment of the start,
 * when an init container runs beside the sidecars before it.
 */
export function containersTotal(pod: Pod, kind: 'requests' | 'limits', resource: string): Quantity | undefined {
  const of = (c: Container): Quantity | undefined => own(c.resources?.[kind], resource);
  const steady: Quantity[] = [];
  let sidecars: Quantity | undefined;
  let peak: Quantity | undefined;
  for (const container of pod.spec.initContainers ?? []) {
    const amount = of(container);
    if (isRestartableInit(container)) {
      if (amount !== undefined) sidecars = sidecars === undefined ? amount : addQuantities([sidecars, amount]);
      continue;
    }
    if (amount === undefined) continue;
    const moment = addQuantities(sidecars === undefined ? [amount] : [sidecars, amount]);
    if (peak === undefined || compareQuantity(moment, peak) > 0) peak = moment;
  }
  for (const container of pod.spec.containers) {
    const amount = of(container);
    if (amount !== undefined) steady.push(amount);
  }
  const together = [...(sidecars === undefined ? [] : [sidecars]), ...steady];
  const sum = together.length === 0 ? undefined : addQuantities(together);
  if (peak === undefined) return sum;
  return sum === undefined || compareQuantity(peak, sum) > 0 ? peak : sum;
}

/** The limit that a pod as a whole is held to: none where a container without one could go beyond it. Overhead is not in it. */
export function heldLimit(pod: Pod, resource: 'cpu' | 'memory'): Quantity | undefined {
  const containers = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
  const every = containers.every((c) => !isZeroQuantity(c.resources?.limits?.[resource] ?? 0));
  const limit = podLevel(pod, 'limits', resource) ?? (every ? containersTotal(pod, 'limits', resource) : undefined);
  return limit === undefined || isZeroQuantity(limit) ? undefined : limit;
}

/** The same with the overhead. */
export function heldInAll(pod: Pod, resource: 'cpu' | 'memory'): Quantity | undefined {
  const limit = heldLimit(pod, resource);
  return limit === undefined ? undefined : withOverhead(pod, resource, limit);
}
export function withOverhead(pod: Pod, resource: string, amount: Quantity | undefined): Quantity | undefined {
  const parts = [amount, own(pod.spec.overhead, resource)].filter((q) => q !== undefined);
  return parts.length === 0 ? undefined : addQuantities(parts);
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
