/** From what was granted to what is in force: which containers are told, in which order, and which start anew. Pure. */

import type { Container, ResourceRequirements } from '../../kube/podTable.ts';
import type { Pod } from '../../kube/types.ts';
import type { LinuxContainerResources } from '../../wire/cri.ts';
import { isOfApi } from '../phase.ts';
import { firstStatus } from '../runtime/runtimeStatus.ts';
import type { PodRuntimeStatus, RuntimeContainer } from '../runtime/seen.ts';
import {
  type Amounts,
  amountIn,
  amountsOf,
  limitOf,
  NONE,
  RESIZABLE,
  type Resizable,
  resizableContainers,
  sameAmounts,
  taking,
  WHOLE_POD,
  withAmounts,
} from './amounts.ts';
import { changedControls, type MemoryControlFacts } from './memoryControl.ts';
import { effectiveAmounts } from './podLevel.ts';
import { qosClass } from './qos.ts';
import { asReported, givenAmounts, type InForce, isReported, knownAmounts, saidOf } from './reported.ts';
import { containerResources, type ResourceFacts } from './resources.ts';

/** One thing to tell the runtime about one container; or to write into the cgroup of the pod. */
export interface ResizeStep {
  /** {@link WHOLE_POD}: of the pod as a whole, and so its name. */
  containerId: string;
  name: string;
  resource: Resizable;
  to: Amounts;
  was: Amounts;
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
   * With what there is nothing to tell the runtime about: a request of memory that nothing follows from, and what the runtime says itself
   * to be in force, since an earlier node agent had it set. And with what a container of another node agent has at first sight.
   */
  inForce: InForce;
}
export function inProgress({ restart, steps }: Pick<ResizePlan, 'restart' | 'steps'>): boolean {
  return restart.size + steps.length > 0;
}

export interface ResizePlanInput {
  /** With what was granted. */
  pod: Pod;
  status: PodRuntimeStatus;
  inForce: InForce;
  facts: ResourceFacts & MemoryControlFacts;
  /** What the status of a running pod says of it as a whole. Null: its cgroup is there, and nobody knows what it has. Absent: nothing is there. */
  said?: ResourceRequirements | null | undefined;
}

/** `grows`: for the order of the steps. */
type Planned = ResizeStep & { grows: boolean };

/** Pods of the API only: a static pod that changes is another pod, or keeps what it runs with until it starts anew. */
export function planResize(input: ResizePlanInput): ResizePlan {
  const { pod, status, inForce, said } = input;
  if (!isOfApi(pod)) return { restart: new Set(), steps: [], inForce };
  const whole = wholeSteps(pod, said === undefined ? null : (inForce.get(WHOLE_POD) ?? saidOf(said ?? {}, amountsOf(pod.spec))));
  const restart = new Set<string>();
  const steps: Planned[] = [...whole];
  const noted = new Map<string, Amounts>();
  for (const container of resizableContainers(pod)) {
    const from = firstStatus(status, container.name);
    if (from?.state !== 'running') continue;
    const change = changeOf(input, container, from);
    if (change.restart) restart.add(container.name);
    if (change.noted !== null) noted.set(from.id, change.noted);
    steps.push(...change.steps);
  }
  steps.sort((a, b) => rank(a) - rank(b));
  const [first] = whole;
  if (first !== undefined && !inForce.has(WHOLE_POD)) noted.set(WHOLE_POD, first.was);
  return {
    restart,
    steps: steps.map(({ grows: _, ...step }) => step),
    inForce: noted.size === 0 ? inForce : new Map([...inForce, ...noted]),
  };
}

/** What becomes of a running container. `noted`: see {@link ResizePlan.inForce}; null: nothing new. */
interface Change {
  restart: boolean;
  steps: readonly Planned[];
  noted: Amounts | null;
}
const NO_CHANGE: Change = { restart: false, steps: [], noted: null };

function changeOf({ pod, inForce, facts }: ResizePlanInput, container: Container, from: RuntimeContainer): Change {
  const written = givenAmounts(from, inForce);
  // Not written of a BestEffort pod either, which stays one.
  if (written === null && qosClass(pod) === 'BestEffort') return NO_CHANGE;
  const to = effectiveAmounts(pod, container);
  // Another node agent made it: it has what is granted at first sight, and a later change is compared with that.
  const given = written ?? to;
  const isOurs = inForce.has(from.id);
  const was = isOurs ? given : asReported(given, from);
  const startsAnew = (r: Resizable): boolean => policyOf(container, r) === 'RestartContainer';
  // Not for what the runtime says: it may not be exact, and an earlier node agent would have started it anew.
  if (RESIZABLE.some((r) => startsAnew(r) && !sameAmounts(given, to, r))) return { ...NO_CHANGE, restart: true };
  const changed = RESIZABLE.filter((r) => !startsAnew(r) && !(sameAmounts(given, to, r) && sameAmounts(was, to, r)));
  let noted = written === null ? RESIZABLE.reduce((known, r) => (startsAnew(r) ? taking(known, to, r) : known), was) : null;
  if (changed.length === 0) return { ...NO_CHANGE, noted };
  const wanted = containerResources(pod, container, facts);
  const steps: Planned[] = [];
  for (const resource of changed) {
    const controls = resource === 'memory' ? changedControls(pod, { container, was }, facts) : null;
    // Not for what this worker has set since: what the runtime said may be older than that.
    const reported = !isOurs && isReported(from, wanted, resource);
    const [before, after] = [limitOf(was, resource), limitOf(to, resource)];
    const isThere = (resource === 'memory' && before === after) || reported;
    if (sameAmounts(was, to, resource) || (isThere && controls === null)) {
      noted = taking(noted ?? was, to, resource);
      continue;
    }
    const grows =
      before === after ? amountIn(to.requests[resource], resource) > amountIn(was.requests[resource], resource) : after > before;
    // None is not a number that a runtime can be told.
    const linux = resource === 'cpu' ? cpuOf(wanted) : { ...(isThere && after === NONE ? {} : { memoryLimitInBytes: after }), ...controls };
    const lowersTo = resource === 'memory' && after < before ? after : null;
    steps.push({ containerId: from.id, name: container.name, resource, to, was, linux, lowersTo, grows });
  }
  return { restart: false, steps, noted };
}

/** The pod as a whole, after its containers: what it grows by, its cgroup has since the first step. `was` null: nobody knows. */
function wholeSteps(pod: Pod, was: Amounts | null): Planned[] {
  const to = amountsOf(pod.spec);
  if (was === null) return [];
  return RESIZABLE.filter((r) => !sameAmounts(was, to, r)).map((resource) => {
    const [before, after] = [limitOf(was, resource), limitOf(to, resource)];
    const lowersTo = resource === 'memory' && after < before ? after : null;
    return { ...{ containerId: WHOLE_POD, name: WHOLE_POD, resource, to, was, lowersTo }, linux: {}, grows: true };
  });
}

/** The pod with what it has until these steps are taken. */
export function beforeSteps(pod: Pod, steps: readonly Pick<ResizeStep, 'name' | 'resource' | 'was'>[]): Pod {
  const before = <C extends Pick<Container, 'resources'>>(of: C, name: string): C => {
    let amounts = amountsOf(of);
    for (const step of steps) if (step.name === name) amounts = taking(amounts, step.was, step.resource);
    return withAmounts(of, amounts);
  };
  const { initContainers = [], containers } = pod.spec;
  const all = { initContainers: initContainers.map((c) => before(c, c.name)), containers: containers.map((c) => before(c, c.name)) };
  return { ...pod, spec: { ...before(pod.spec, WHOLE_POD), ...all } };
}

/** The pod with what a container has, or had, of which another takes the place. */
export function beforeRestart(pod: Pod, { name }: Container, from: RuntimeContainer | null): Pod {
  const given = from === null ? null : givenAmounts(from, new Map());
  if (from === null || given === null) return pod;
  return beforeSteps(
    pod,
    RESIZABLE.map((resource) => ({ name, resource, was: asReported(given, from) })),
  );
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

function rank({ containerId, resource, grows }: { containerId: string; resource: Resizable; grows: boolean }): number {
  return (resource === 'memory' ? 0 : 3) + (containerId === WHOLE_POD ? 2 : Number(grows));
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
