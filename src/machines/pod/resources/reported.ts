/** What is in force of the resources of a container: by what was written on it, by what this worker set, by what the runtime says. Pure. */

import { own } from '../../data/own.ts';
import type { Container, ResourceRequirements } from '../../kube/podTable.ts';
import { quantityToInteger, quantityToMilli } from '../../kube/quantity.ts';
import type { Quantity } from '../../kube/types.ts';
import { CRI_ANNOTATIONS, type LinuxContainerResources } from '../../wire/cri.ts';
import type { RuntimeContainer } from '../runtime/seen.ts';
import { type Amounts, amountsOf, RESIZABLE, type Resizable, readAmounts, sameAmounts, withAmounts } from './amounts.ts';
import { cpuQuotaUs, cpuShares } from './resources.ts';

/** What this worker has changed, by id of the container; {@link WHOLE_POD}: of the pod as a whole. */
export type InForce = ReadonlyMap<string, Amounts>;

/** What it was made with, or was given since by this worker. Null: it is not written down. */
export function givenAmounts(from: RuntimeContainer, inForce: InForce): Amounts | null {
  return inForce.get(from.id) ?? readAmounts(from.annotations[CRI_ANNOTATIONS.resources]);
}
/** With what an earlier node agent gave it since, where the runtime says so. */
export function knownAmounts(from: RuntimeContainer, inForce: InForce): Amounts | null {
  const given = givenAmounts(from, inForce);
  return given === null || inForce.has(from.id) ? given : asReported(given, from);
}

/** Of what a status says, that which the pod asks for as a whole. */
export function saidOf(said: ResourceRequirements, asked: Amounts): Amounts {
  const kind = (of: 'requests' | 'limits') =>
    Object.fromEntries(RESIZABLE.flatMap((r) => (asked[of][r] === undefined || said[of]?.[r] === undefined ? [] : [[r, said[of][r]]])));
  return { requests: kind('requests'), limits: kind('limits') };
}
/** The runtime says itself that this is in force: an earlier node agent had it set. */
export function isReported({ resources }: RuntimeContainer, wanted: LinuxContainerResources, resource: Resizable): boolean {
  if (resources === undefined) return false;
  if (resource === 'memory') return wanted.memoryLimitInBytes !== undefined && resources.memoryLimitInBytes === wanted.memoryLimitInBytes;
  return resources.cpuShares === wanted.cpuShares && (resources.cpuQuota ?? 0) === (Number(wanted.cpuQuota ?? 0) || 0);
}

const SHARES_MIN = 2;
const SHARES_PER_CPU = 1024;

/**
 * `resources` of a running container's status: what is in force, in the words in which it was asked for; where the runtime
 * says otherwise, the runtime's numbers (the conversions of resources and volumes 1.3, backwards).
 */
export function actualResources(container: Container, from: RuntimeContainer, inForce: InForce): ResourceRequirements {
  const given = givenAmounts(from, inForce);
  const actual = withOwnLimits(container, asReported(given ?? amountsOf(container), from));
  return sameAmounts(actual, amountsOf(container)) ? (container.resources ?? {}) : (withAmounts(container, actual).resources ?? {});
}
/** A limit that is its pod's is shown of the pod. */
function withOwnLimits({ resources }: Container, { requests, limits }: Amounts): Amounts {
  return { requests, limits: Object.fromEntries(Object.entries(limits).filter(([r]) => own(resources?.limits, r) !== undefined)) };
}

/** With the runtime's numbers where it says otherwise. */
export function asReported({ requests, limits }: Amounts, { resources: said }: RuntimeContainer): Amounts {
  if (said === undefined) return { requests, limits };
  const actual: { requests: Record<string, Quantity>; limits: Record<string, Quantity> } = {
    requests: { ...requests },
    limits: { ...limits },
  };
  const { cpuShares: shares = 0, cpuQuota: quota = 0, cpuPeriod: period = 0, memoryLimitInBytes: bytes = 0 } = said;
  const milliLimit = quantityToMilli(limits.cpu);
  if (quota > 0 && period > 0 && cpuQuotaUs(milliLimit, period) !== quota) actual.limits.cpu = `${Math.round((quota * 1000) / period)}m`;
  if (bytes > 0 && quantityToInteger(limits.memory) !== bytes) actual.limits.memory = String(bytes);
  const milliRequest = quantityToMilli(requests.cpu ?? limits.cpu);
  if (shares > SHARES_MIN && cpuShares(milliRequest) !== shares && requests.cpu !== undefined)
    actual.requests.cpu = `${Math.ceil((shares * 1000) / SHARES_PER_CPU)}m`;
  return actual;
}
