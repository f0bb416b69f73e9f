/** What is written into cgroups of the node's own (resources 1.5 to 1.7). Pure. */
import type { KubeletConfiguration } from '../../config/config.ts';
import { HUGE_PAGES_PREFIX } from '../../kube/names.ts';
import { parseQuantity, quantityToInteger, quantityToMilli } from '../../kube/quantity.ts';
import type { Pod, Quantity } from '../../kube/types.ts';
import { heldInAll, podTotal, withOverhead } from '../../pod/resources/podLevel.ts';
import { type QosClass, qosClass } from '../../pod/resources/qos.ts';
import { cpuQuotaUs, cpuShares } from '../../pod/resources/resources.ts';
import { wantsExclusive } from '../cpus/policy.ts';
import type { Tier } from './names.ts';

/** What is absent is left as it is. */
export interface GroupValues {
  cpuShares?: number;
  /** Microseconds per {@link cpuPeriodUs}; -1: no limit. */
  cpuQuotaUs?: number;
  cpuPeriodUs?: number;
  /** -1: no limit. */
  memoryBytes?: number;
  /** What the kernel leaves to the group when memory is short; only the second version knows it. 0: nothing. */
  memoryMinBytes?: number;
  /** As {@link memoryMinBytes}, until nothing else is left to take. */
  memoryLowBytes?: number;
  /** Processes and threads; -1: no limit. */
  pids?: number;
  /** Bytes by page size, as the kernel writes it (`2MB`). */
  hugePages?: Readonly<Record<string, bigint>>;
}

export const NO_LIMIT = -1;
/** The least weight: what asks for nothing gets hardly more than nothing beside what does. */
export const LEAST_SHARES = 2;
/** More pages than there are: the kernel takes no word for "no limit" here in its first version. */
const EVERY_PAGE = 1n << 62n;

export interface PodGroupRules {
  cpuCFSQuota: boolean;
  cpuCFSQuotaPeriodMs: number;
  /** podPidsLimit; 0 or less: none. */
  podPidsLimit: number;
  /** Page sizes that the kernel limits, as it writes them. */
  pageSizes: readonly string[];
  /** `memoryReservationPolicy: TieredReservation`: what pods ask for is kept for them. False writes zeros; undefined (no gate MemoryQoS), nothing. */
  memoryFloors?: boolean;
  /** Pods with CPUs of their own run on them as long as they want. Default false. */
  quotaLifted?: boolean;
}

/**
 * A pod as a whole: what it asks for and may have, its overhead in it. A limit is there only where every container has
 * one, or the pod itself (trap 13): one without would otherwise be held to what the others may have. Page sizes that nobody
 * asked for are limited to none (trap 16).
 */
export function podValues(pod: Pod, rules: PodGroupRules): GroupValues {
  const least = qosClass(pod) === 'BestEffort';
  const milli = quantityToMilli(heldInAll(pod, 'cpu'));
  const bytes = quantityToInteger(heldInAll(pod, 'memory'));
  const periodUs = rules.cpuCFSQuotaPeriodMs * 1000;
  const held = rules.cpuCFSQuota && !(rules.quotaLifted === true && wantsExclusive(pod));
  return {
    cpuShares: least ? LEAST_SHARES : cpuShares(quantityToMilli(requestOf(pod, 'cpu'))),
    ...(milli > 0 ? { cpuQuotaUs: held ? cpuQuotaUs(milli, periodUs) : NO_LIMIT, cpuPeriodUs: periodUs } : {}),
    ...(bytes > 0 ? { memoryBytes: bytes } : {}),
    ...podFloors(pod, rules.memoryFloors),
    ...(rules.podPidsLimit > 0 ? { pids: rules.podPidsLimit } : {}),
    hugePages: Object.fromEntries(rules.pageSizes.map((size) => [size, pagesOf(pod, size)])),
  };
}

function floors(on: boolean | undefined, min: number, low: number): GroupValues {
  return on === undefined ? {} : { memoryMinBytes: on ? min : 0, memoryLowBytes: on ? low : 0 };
}
/** Nothing takes the memory of a Guaranteed pod; a Burstable one's is taken last. */
function podFloors(pod: Pod, on: boolean | undefined): GroupValues {
  const [qos, bytes] = [qosClass(pod), quantityToInteger(requestOf(pod, 'memory'))];
  return floors(on, qos === 'Guaranteed' ? bytes : 0, qos === 'Burstable' ? bytes : 0);
}

/** With everything that a resize may have taken away said to be without limit. */
export function inFull(values: GroupValues, rules: PodGroupRules): GroupValues {
  return { cpuQuotaUs: NO_LIMIT, cpuPeriodUs: rules.cpuCFSQuotaPeriodMs * 1000, memoryBytes: NO_LIMIT, ...values };
}

/** What a group may have while its containers are changed one after the other: the larger of both, so that none is in the way. */
export function atLeast(wanted: GroupValues, present: GroupValues): GroupValues {
  const more = (a: number | undefined, b: number | undefined): number =>
    a === undefined || b === undefined || a < 0 || b < 0 ? NO_LIMIT : Math.max(a, b);
  return {
    ...wanted,
    cpuShares: Math.max(wanted.cpuShares ?? LEAST_SHARES, present.cpuShares ?? LEAST_SHARES),
    cpuQuotaUs: more(wanted.cpuQuotaUs, present.cpuQuotaUs),
    memoryBytes: more(wanted.memoryBytes, present.memoryBytes),
  };
}

export interface TierRules {
  pageSizes: readonly string[];
  /** As {@link PodGroupRules.memoryFloors}. */
  memoryFloors?: boolean;
  /** `qosReserved.memory`: how much of what better classes ask for is kept from the lesser ones. */
  reserve?: { percent: number; allocatableBytes: number };
}
/** `kubepods` is the group of Guaranteed pods; of it only the floor depends on pods. */
export type TierValues = Record<'kubepods' | Tier, GroupValues>;

/** Sums over the pods that are at work now. */
export function tierValues(pods: readonly Pod[], { pageSizes, memoryFloors, reserve }: TierRules): TierValues {
  const of = (qos: QosClass): readonly Pod[] => pods.filter((pod) => qosClass(pod) === qos);
  const memory = (qos: QosClass): number => of(qos).reduce((sum, pod) => sum + quantityToInteger(requestOf(pod, 'memory')), 0);
  const milli = of('Burstable').reduce((sum, pod) => sum + quantityToMilli(requestOf(pod, 'cpu')), 0);
  // Not for the classes (trap 16): a pod with pages of its own must find them below.
  const hugePages = Object.fromEntries(pageSizes.map((size) => [size, EVERY_PAGE]));
  const [guaranteed, burstable] = [memory('Guaranteed'), memory('Burstable')];
  const limit = reserve === undefined ? null : reservedLimits({ guaranteed, burstable }, reserve);
  return {
    // A group is kept no more than its parent: `kubepods` has the floors of both classes.
    kubepods: floors(memoryFloors, guaranteed, burstable),
    burstable: {
      cpuShares: cpuShares(milli),
      ...(limit === null ? {} : { memoryBytes: limit.burstable }),
      ...floors(memoryFloors, 0, burstable),
      hugePages,
    },
    besteffort: { cpuShares: LEAST_SHARES, ...(limit === null ? {} : { memoryBytes: limit.besteffort }), hugePages },
  };
}

/** Nothing is left for a class: it is held at what it has, since less than a page would end all that runs in it. */
export const LEAST_BYTES = 4096;

function reservedLimits(
  asked: { guaranteed: number; burstable: number },
  { percent, allocatableBytes }: NonNullable<TierRules['reserve']>,
): Record<Tier, number> {
  const burstable = allocatableBytes - Math.floor((asked.guaranteed * percent) / 100);
  const besteffort = burstable - Math.floor((asked.burstable * percent) / 100);
  return { burstable: Math.max(LEAST_BYTES, burstable), besteffort: Math.max(LEAST_BYTES, besteffort) };
}

export interface MachineCapacity {
  cpus: number;
  memoryBytes: number;
  /** Processes and threads that there may be; null: the machine does not say. */
  pids: number | null;
  /** Bytes, by page size as Kubernetes writes it (`2Mi`). */
  hugePages: Readonly<Record<string, number>>;
}
export type Reservations = Pick<KubeletConfiguration, 'kubeReserved' | 'systemReserved' | 'enforceNodeAllocatable'>;

/** What pods may ask for, what eviction defends included. */
export function reservableBytes(machine: Pick<MachineCapacity, 'memoryBytes'>, c: Reservations): number {
  return Math.max(0, machine.memoryBytes - quantityToInteger(c.kubeReserved.memory) - quantityToInteger(c.systemReserved.memory));
}

/**
 * Values of `kubepods`: the machine without what is reserved, or all of it where pods are not held to that. What hard eviction
 * defends is not taken off (trap 17): pods must be able to get there, or nothing would ever be evicted.
 */
export function kubepodsValues(machine: MachineCapacity, c: Reservations, pageSizes: readonly string[]): GroupValues {
  const held = c.enforceNodeAllocatable.includes('pods');
  const kept = (resource: string, amount: (q: Quantity | undefined) => number): number =>
    held ? amount(c.kubeReserved[resource]) + amount(c.systemReserved[resource]) : 0;
  const rest = (whole: number, reserved: number): number => Math.max(0, whole - reserved);
  const memory = rest(machine.memoryBytes, kept('memory', quantityToInteger));
  const pids = machine.pids === null ? 0 : rest(machine.pids, kept('pid', quantityToInteger));
  const sizes = Object.entries(machine.hugePages).map(([size, bytes]) => [bytesOf(size), bytes] as const);
  const pages = (size: string): bigint => BigInt(sizes.find(([bytes]) => bytes === bytesOf(size))?.[1] ?? 0);
  return {
    cpuShares: cpuShares(rest(machine.cpus * 1000, kept('cpu', quantityToMilli))),
    ...(memory > 0 ? { memoryBytes: memory } : {}),
    ...(pids > 0 ? { pids } : {}),
    hugePages: Object.fromEntries(pageSizes.map((size) => [size, pages(size)])),
  };
}

export interface ReservedRules {
  /** As in enforceNodeAllocatable. */
  enforce: readonly string[];
  /** `system-reserved`, `kube-reserved`. */
  key: string;
  memoryFloors?: boolean;
}

/** Limits of a group that is not ours, by what is reserved for it; null: it is not held to that. */
export function reservedValues(
  reserved: Readonly<Record<string, string>>,
  { enforce, key, memoryFloors = false }: ReservedRules,
): GroupValues | null {
  const milli = quantityToMilli(reserved.cpu);
  const cpu = milli > 0 ? { cpuShares: cpuShares(milli) } : {};
  if (enforce.includes(key)) {
    const [bytes, pids] = [quantityToInteger(reserved.memory), quantityToInteger(reserved.pid)];
    const memory = bytes > 0 ? { memoryBytes: bytes, ...(memoryFloors ? { memoryMinBytes: bytes } : {}) } : {};
    return { ...cpu, ...memory, ...(pids > 0 ? { pids } : {}) };
  }
  return enforce.includes(`${key}-compressible`) ? cpu : null;
}

function requestOf(pod: Pod, resource: 'cpu' | 'memory'): Quantity | undefined {
  return withOverhead(pod, resource, podTotal(pod, 'requests', resource));
}

/** Limits of pages are what is asked for, at the neediest moment: init containers and sidecars need theirs too. */
function pagesOf(pod: Pod, size: string): bigint {
  const containers = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
  const lists = [...[pod.spec, ...containers].map((c) => c.resources?.limits), pod.spec.overhead];
  const names = new Set(lists.flatMap((list) => Object.keys(list ?? {})));
  const isOfSize = (name: string): boolean =>
    name.startsWith(HUGE_PAGES_PREFIX) && bytesOf(name.slice(HUGE_PAGES_PREFIX.length)) === bytesOf(size);
  const amounts = [...names].filter(isOfSize).map((name) => withOverhead(pod, name, podTotal(pod, 'limits', name)));
  return amounts.reduce((sum, amount) => sum + BigInt(quantityToInteger(amount)), 0n);
}

/** `2MB` of the kernel is `2Mi` of Kubernetes. */
function bytesOf(size: string): number {
  const text = size.replace(/B$/, 'i');
  return parseQuantity(text) === undefined ? 0 : quantityToInteger(text);
}
