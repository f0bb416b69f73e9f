/** From what was granted to what is in force: which containers are told, in which order, and which start anew. Pure. */

import { own } from '../../data/own.ts';
import type { Container, ResourceRequirements } from '../../kube/podTable.ts';
import { quantityToInteger, quantityToMilli } from '../../kube/quantity.ts';
import type { Pod, Quantity } from '../../kube/types.ts';
import { CRI_ANNOTATIONS, type LinuxContainerResources } from '../../wire/cri.ts';
import { isOfApi } from '../phase.ts';
import { firstStatus } from '../runtime/runtimeStatus.ts';
import type { PodRuntimeStatus, RuntimeContainer } from '../runtime/seen.ts';
import {
  type Amounts,
  amountsOf,
  RESIZABLE,
  type Resizable,
  readAmounts,
  resizableContainers,
  sameAmounts,
  taking,
  WHOLE_POD,
  withAmounts,
} from './amounts.ts';
import { type MemoryControlFacts, memoryControls } from './memoryControl.ts';
import { effectiveLimit } from './podLevel.ts';
import { qosClass } from './qos.ts';
import { containerResources, cpuQuotaUs, cpuShares, type ResourceFacts } from './resources.ts';

/** What this worker has changed, by id of the container; {@link WHOLE_POD}: of the pod as a whole. */
export type InForce = ReadonlyMap<string, Amounts>;

/** One thing to tell the runtime about one container; or to write into the cgroup of the pod. */
export interface ResizeStep {
  /** {@link WHOLE_POD}: of the pod as a whole, and so its name. */
  containerId: string;
  name: string;
  resource: Resizable;
  to: Amounts;
  linux: LinuxContainerResources;
  /** Bytes; the new limit of memory where it is lower than the present one: it is not set below what is in use. */
  lowersTo: number | null;
}
export interface ResizePlan {
  /** Names of running containers that start anew with what was granted. */
  restart: ReadonlySet<string>;
  /** Memory first, then cpu; of each what shrinks before what grows. */
  steps: readonly ResizeStep[];
  /**
   * With what there is nothing to tell the runtime about: a request of memory that nothing follows from, and what the
   * runtime says itself to be in force, since an earlier node agent had it set. And with what a container of another node
   * agent has at first sight.
   */
  inForce: InForce;
}
export function inProgress({ restart, steps }: Pick<ResizePlan, 'restart' | 'steps'>): boolean {
  return restart.size + steps.length > 0;
}

/** What it was made with, or was given since by this worker. Null: it is not written down. */
function givenAmounts(from: RuntimeContainer, inForce: InForce): Amounts | null {
  return inForce.get(from.id) ?? readAmounts(from.annotations[CRI_ANNOTATIONS.resources]);
}
/** With what an earlier node agent gave it since, where the runtime says so. */
function knownAmounts(from: RuntimeContainer, inForce: InForce): Amounts | null {
  const given = givenAmounts(from, inForce);
  return given === null || inForce.has(from.id) ? given : asReported(given, from);
}

export interface ResizePlanInput {
  /** With what was granted. */
  pod: Pod;
  status: PodRuntimeStatus;
  inForce: InForce;
  facts: ResourceFacts & MemoryControlFacts;
  /** What the status of a running pod says of it as a whole. Absent: nothing. */
  said?: ResourceRequirements | undefined;
}

/** Pods of the API only: a static pod that changes is another pod, or keeps what it runs with until it starts anew. */
export function planResize({ pod, status, inForce, facts, said }: ResizePlanInput): ResizePlan {
  const restart = new Set<string>();
  const steps: (ResizeStep & { grows: boolean })[] = [];
  const noted = new Map<string, Amounts>();
  const whole = isOfApi(pod)
    ? wholeSteps(pod, inForce.get(WHOLE_POD) ?? (said === undefined ? null : saidOf(said, amountsOf(pod.spec))))
    : [];
  const containers = isOfApi(pod) ? resizableContainers(pod) : [];
  for (const container of containers) {
    const from = firstStatus(status, container.name);
    if (from?.state !== 'running') continue;
    const to = effectiveAmounts(pod, container);
    const written = givenAmounts(from, inForce);
    // Not written of a BestEffort pod either, which stays one.
    if (written === null && qosClass(pod) === 'BestEffort') continue;
    // Another node agent made it: it has what is granted at first sight, and a later change is compared with that.
    const given = written ?? to;
    const was = inForce.has(from.id) ? given : asReported(given, from);
    const startsAnew = (r: Resizable): boolean => policyOf(container, r) === 'RestartContainer';
    // Not for what the runtime says: it may not be exact, and an earlier node agent would have started it anew.
    if (RESIZABLE.some((r) => startsAnew(r) && !sameAmounts(given, to, r))) {
      restart.add(container.name);
      continue;
    }
    if (written === null)
      noted.set(
        from.id,
        RESIZABLE.reduce((known, r) => (startsAnew(r) ? taking(known, to, r) : known), was),
      );
    const changed = RESIZABLE.filter((r) => !startsAnew(r) && !(sameAmounts(given, to, r) && sameAmounts(was, to, r)));
    const wanted = containerResources(pod, container, facts);
    for (const resource of changed) {
      const [before, after] = [limitOf(was, resource), limitOf(to, resource)];
      const controls = resource === 'memory' ? changedControls(pod, container, was, facts) : null;
      // Not for what this worker has set since: what the runtime said may be older than that.
      const reported = !inForce.has(from.id) && isReported(from, wanted, resource);
      const isThere = (resource === 'memory' && before === after) || reported;
      if (sameAmounts(was, to, resource) || (isThere && controls === null)) {
        noted.set(from.id, taking(noted.get(from.id) ?? was, to, resource));
        continue;
      }
      steps.push({
        containerId: from.id,
        name: container.name,
        resource,
        to,
        // None is not a number that a runtime can be told.
        linux: resource === 'cpu' ? cpuOf(wanted) : { ...(isThere && after === NONE ? {} : { memoryLimitInBytes: after }), ...controls },
        lowersTo: resource === 'memory' && after < before ? after : null,
        grows: before === after ? amount(to.requests[resource], resource) > amount(was.requests[resource], resource) : after > before,
      });
    }
  }
  const order = [...steps, ...whole].sort((a, b) => rank(a) - rank(b));
  const [first] = whole;
  if (first !== undefined && !inForce.has(WHOLE_POD)) noted.set(WHOLE_POD, first.was);
  return {
    restart,
    steps: order.map(({ containerId, name, resource, to, linux, lowersTo }) => ({ containerId, name, resource, to, linux, lowersTo })),
    inForce: noted.size === 0 ? inForce : new Map([...inForce, ...noted]),
  };
}

/** The pod as a whole, after its containers: what it grows by, its cgroup has since the first step. `was` null: nobody knows. */
function wholeSteps(pod: Pod, was: Amounts | null): (ResizeStep & { grows: boolean; was: Amounts })[] {
  const to = amountsOf(pod.spec);
  if (was === null) return [];
  return RESIZABLE.filter((r) => !sameAmounts(was, to, r)).map((resource) => {
    const [before, after] = [limitOf(was, resource), limitOf(to, resource)];
    const lowersTo = resource === 'memory' && after < before ? after : null;
    return { ...{ containerId: WHOLE_POD, name: WHOLE_POD, resource, to, was, lowersTo }, linux: {}, grows: true };
  });
}
/** Of what a status says, that which the pod asks for as a whole. */
export function saidOf(said: ResourceRequirements, asked: Amounts): Amounts {
  const kind = (of: 'requests' | 'limits') =>
    Object.fromEntries(RESIZABLE.flatMap((r) => (asked[of][r] === undefined || said[of]?.[r] === undefined ? [] : [[r, said[of][r]]])));
  return { requests: kind('requests'), limits: kind('limits') };
}
/** What a container is made with: where it has no limit of its own, that of its pod. */
export function effectiveAmounts(pod: Pod, container: Container): Amounts {
  const { requests } = amountsOf(container);
  const limits = Object.fromEntries(
    RESIZABLE.flatMap((r) => {
      const limit = effectiveLimit(pod, container, r);
      return limit === undefined ? [] : [[r, limit]];
    }),
  );
  return { requests, limits };
}

/** With what a step has set. `from` undefined: of the pod as a whole. */
export function withStep(inForce: InForce, step: ResizeStep, from: RuntimeContainer | undefined): InForce {
  const known = from === undefined ? inForce.get(step.containerId) : knownAmounts(from, inForce);
  return new Map([...inForce, [step.containerId, taking(known ?? step.to, step.to, step.resource)]]);
}
/** Resources in force of containers that are still there. */
export function ofPresent(inForce: InForce, status: PodRuntimeStatus): InForce {
  if (inForce.size === 0) return inForce;
  const there = new Set([WHOLE_POD, ...status.containers.map((c) => c.id)]);
  return new Map([...inForce].filter(([id]) => there.has(id)));
}

const NONE = Number.POSITIVE_INFINITY;
/** Files of a cgroup that a container may have lost with a change, and what frees it. */
const FREE: Readonly<Record<string, string>> = { 'memory.high': 'max', 'memory.min': '0', 'memory.low': '0' };

function rank({ containerId, resource, grows }: { containerId: string; resource: Resizable; grows: boolean }): number {
  return (resource === 'memory' ? 0 : 3) + (containerId === WHOLE_POD ? 2 : Number(grows));
}
function amount(quantity: Quantity | undefined, resource: Resizable): number {
  return resource === 'cpu' ? quantityToMilli(quantity) : quantityToInteger(quantity);
}
/** None is more than any. */
function limitOf({ limits }: Amounts, resource: Resizable): number {
  return amount(limits[resource], resource) || NONE;
}
/** Swap, floor and throttle, where these differ from what was; null: all of them are as they were. */
function changedControls(pod: Pod, container: Container, was: Amounts, facts: MemoryControlFacts): LinuxContainerResources | null {
  const before = memoryControls(pod, withAmounts(container, was), facts);
  const after = memoryControls(pod, container, facts);
  const unified = { ...after.unified };
  // What is not named stays as it is, so what holds no more has to be taken back by name.
  for (const [file, free] of Object.entries(FREE)) if (before.unified?.[file] !== undefined) unified[file] ??= free;
  const files = Object.keys({ ...before.unified, ...unified });
  const same = before.memorySwapLimitInBytes === after.memorySwapLimitInBytes && files.every((f) => before.unified?.[f] === unified[f]);
  return same ? null : { ...after, ...(files.length === 0 ? {} : { unified }) };
}
function cpuOf({ cpuShares: shares, cpuPeriod, cpuQuota }: LinuxContainerResources): LinuxContainerResources {
  return {
    ...(shares === undefined ? {} : { cpuShares: shares }),
    ...(cpuPeriod === undefined ? {} : { cpuPeriod }),
    ...(cpuQuota === undefined ? {} : { cpuQuota }),
  };
}
function policyOf(container: Container, resource: Resizable): string {
  return container.resizePolicy?.find((p) => p.resourceName === resource)?.restartPolicy ?? 'NotRequired';
}

/** The runtime says itself that this is in force: an earlier node agent had it set. */
function isReported({ resources }: RuntimeContainer, wanted: LinuxContainerResources, resource: Resizable): boolean {
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
function asReported({ requests, limits }: Amounts, { resources: said }: RuntimeContainer): Amounts {
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
