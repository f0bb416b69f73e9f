/**
 * What was granted to a pod, and whether a change of it can be (pod lifecycle 6.6). Three views of a container's resources:
 * what is asked for, what was granted (the allocation, which is kept over restarts), what is in force. Pure.
 */

import { own } from '../../data/own.ts';
import type { Container, ResourceRequirements } from '../../kube/podTable.ts';
import { quantityToInteger, quantityToMilli } from '../../kube/quantity.ts';
import type { Pod, PodStatus, ResizePending } from '../../kube/types.ts';
import {
  type Amounts,
  amountsFrom,
  amountsOf,
  asksForNothing,
  NO_AMOUNTS,
  RESIZABLE,
  type Resizable,
  resizableContainers,
  sameAmounts,
  WHOLE_POD,
  withAmounts,
} from '../../pod/resources/amounts.ts';
import { askedClass, qosClass } from '../../pod/resources/qos.ts';
import { saidOf } from '../../pod/resources/reported.ts';
import { type RequestOf, requestOf, shortages } from '../../pod/resources/requests.ts';
import { isRecord } from '../../shape/conform.ts';
import { partOf } from '../../shape/lenient.ts';

/** By name of container; one that is not in it was granted what it asks for. {@link WHOLE_POD}: absent where the pod as a whole was granted nothing. */
export type Allocation = Readonly<Record<string, Amounts>>;

export function allocationOf(pod: Pod): Allocation {
  return Object.fromEntries(asked(pod).filter(([name, amounts]) => name !== WHOLE_POD || !asksForNothing(amounts)));
}
/** What each container asks for, and the pod as a whole. */
function asked(pod: Pod): (readonly [string, Amounts])[] {
  return [...resizableContainers(pod).map((c) => [c.name, amountsOf(c)] as const), [WHOLE_POD, amountsOf(pod.spec)]];
}
function granted(allocation: Allocation, name: string): Amounts | undefined {
  return own(allocation, name) ?? (name === WHOLE_POD ? NO_AMOUNTS : undefined);
}
/** Nobody gets more or less of nothing: it would be another class of pod. */
export function isWorthKeeping(allocation: Allocation): boolean {
  return Object.values(allocation).some((a) => !asksForNothing(a));
}

/**
 * What was granted by the status of the pod: of a pod that another node agent has run, and where our own record is lost.
 * Undefined: what is asked for. A limit alone is always granted, so only the request of a container tells a difference.
 */
export function shownAllocation(pod: Pod): Allocation | undefined {
  const { initContainerStatuses = [], containerStatuses = [] } = pod.status;
  const statuses = new Map([...initContainerStatuses, ...containerStatuses].map((s) => [s.name, s]));
  const requested = resizableContainers(pod).map((c): readonly [string, Amounts] => {
    const { allocatedResources: requests, resources } = statuses.get(c.name) ?? {};
    const now = amountsOf(c);
    if (requests === undefined) return [c.name, now];
    const said = saidOf({ requests, limits: resources?.limits ?? {} }, now);
    return [c.name, sameAmounts({ ...said, limits: now.limits }, now) ? now : said];
  });
  const allocation = { ...allocationOf(pod), ...Object.fromEntries(requested) };
  return isGranted(pod, allocation) ? undefined : allocation;
}

/** The pod with what it was granted in place of what it asks for. The same object where that is the same. */
export function allocatedPod(pod: Pod, allocation: Allocation): Pod {
  if (isGranted(pod, allocation)) return pod;
  const given = <C extends Pick<Container, 'resources'>>(c: C, name: string): C => {
    const amounts = granted(allocation, name);
    return amounts === undefined || sameAmounts(amountsOf(c), amounts) ? c : withAmounts(c, amounts);
  };
  const each = <C extends Container>(c: C): C => given(c, c.name);
  const { initContainers } = pod.spec;
  return {
    ...pod,
    spec: {
      ...given(pod.spec, WHOLE_POD),
      ...(initContainers === undefined ? {} : { initContainers: initContainers.map(each) }),
      containers: pod.spec.containers.map(each),
    },
  };
}

export function isGranted(pod: Pod, allocation: Allocation): boolean {
  return asked(pod).every(([name, amounts]) => sameAmounts(amounts, granted(allocation, name) ?? amounts));
}

/** Every container that runs has what was granted, and so has the pod as a whole, by what its status says. */
export function isInForce(status: PodStatus, allocation: Allocation): boolean {
  const whole = own(allocation, WHOLE_POD);
  if (whole !== undefined && status.resources !== undefined && !sameAmounts(saidOf(status.resources, whole), whole)) return false;
  return [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])].every(({ name, resources }) => {
    const amounts = own(allocation, name);
    return resources === undefined || amounts === undefined || sameAmounts(amountsOf({ resources }), amounts);
  });
}

/** The larger request of each container and of the pod as a whole: what the pod holds until a granted change is in force. */
export function largerOf(pod: Pod, before: Allocation): Pod {
  const milli = (resource: string, q: Parameters<typeof quantityToMilli>[0]): number =>
    resource === 'cpu' ? quantityToMilli(q) : quantityToInteger(q);
  const larger: Allocation = Object.fromEntries(
    asked(pod).map(([name, now]) => {
      const was = granted(before, name) ?? now;
      const requests = Object.fromEntries(
        RESIZABLE.flatMap((r) => {
          const most = milli(r, was.requests[r]) > milli(r, now.requests[r]) ? was.requests[r] : now.requests[r];
          return most === undefined ? [] : [[r, most]];
        }),
      );
      return [name, { requests, limits: now.limits }];
    }),
  );
  return allocatedPod(pod, larger);
}

export type ResizeVerdict = { kind: 'granted' } | { kind: 'refused'; pending: ResizePending };

export interface ResizeInput {
  /** What is asked for. */
  pod: Pod;
  allocation: Allocation;
  /** Pods that hold room, as they are to be counted, this one left out. */
  others: readonly Pod[];
  allocatable: Readonly<Record<string, string>>;
  /** Default: worked out anew. */
  requests?: RequestOf | undefined;
  /** Resources that a manager allocates to Guaranteed pods alone: their containers keep what they have. */
  fixed?: readonly string[];
}

/** In the order of the reference: what can never be, then what does not fit now. */
export function judgeResize(input: ResizeInput): ResizeVerdict {
  const { pod, allocation } = input;
  if (isGranted(pod, allocation)) return { kind: 'granted' };
  const never = impossible(input);
  if (never !== null) return { kind: 'refused', pending: { reason: 'Infeasible', message: never } };
  const now = allocatedPod(pod, allocation);
  // A pod that asks for no more than it has takes nothing from others, however full the node is.
  const grows = RESIZABLE.filter((r) => requestOf(pod, r) > requestOf(now, r));
  const room = { others: input.others, podsMax: Number.POSITIVE_INFINITY, allocatable: input.allocatable, requests: input.requests };
  const short = shortages(pod, room).find(({ resource }) => grows.some((r) => r === resource));
  if (short === undefined) return { kind: 'granted' };
  const { resource, requested, used, capacity } = short;
  const message = `Node didn't have enough resource: ${resource}, requested: ${requested}, used: ${used}, capacity: ${capacity}`;
  return { kind: 'refused', pending: { reason: 'Deferred', message } };
}

/** Of resources that Guaranteed pods have alone. */
export const MANAGERS = { cpu: 'CPU Manager policy "static"', memory: 'Memory Manager policy "Static"' } as const;

function impossible({ pod, allocation, allocatable, fixed = [] }: ResizeInput): string | null {
  for (const [name, now] of asked(pod)) {
    const was = own(allocation, name);
    if (was === undefined || sameAmounts(was, now)) continue;
    for (const kind of ['requests', 'limits'] as const) {
      const gone = RESIZABLE.find((r) => was[kind][r] !== undefined && now[kind][r] === undefined);
      if (gone !== undefined)
        return `resource ${kind} cannot be removed (${gone} of ${name === WHOLE_POD ? 'the pod' : `container ${name}`})`;
    }
  }
  if (askedClass(pod) !== askedClass(allocatedPod(pod, allocation))) return 'Pod QOS Class may not change as a result of resizing';
  const changes = (r: Resizable) =>
    resizableContainers(pod).some((c) => !sameAmounts(own(allocation, c.name) ?? amountsOf(c), amountsOf(c), r));
  const held = qosClass(pod) === 'Guaranteed' ? RESIZABLE.find((r) => fixed.includes(r) && changes(r)) : undefined;
  if (held !== undefined) return `Resize is infeasible for Guaranteed Pods alongside ${MANAGERS[held]}`;
  for (const resource of RESIZABLE) {
    const requested = requestOf(pod, resource);
    const capacity = resource === 'cpu' ? quantityToMilli(allocatable.cpu) : quantityToInteger(allocatable.memory);
    if (requested > capacity && requested > requestOf(allocatedPod(pod, allocation), resource))
      return `Node didn't have enough capacity: ${resource}, requested: ${requested}, capacity: ${capacity}`;
  }
  return null;
}

/** Which of several waiting changes is tried first: higher priority, then the better class, then the longest wait. */
export function resizeOrder(a: { pod: Pod; sinceMonoMs: number }, b: { pod: Pod; sinceMonoMs: number }): number {
  const classes = { Guaranteed: 0, Burstable: 1, BestEffort: 2 } as const;
  return (
    (b.pod.spec.priority ?? 0) - (a.pod.spec.priority ?? 0) ||
    classes[qosClass(a.pod)] - classes[qosClass(b.pod)] ||
    a.sinceMonoMs - b.sinceMonoMs
  );
}

/** What the pod manager knows of granted resources, each by UID. */
export interface Resizes {
  /** What pods were granted that ask for cpu or memory. They survive a restart of the daemon (checkpoint `allocated_pods_state`). */
  readonly allocations: ReadonlyMap<string, Allocation>;
  /** They have changed since they were last written down. */
  readonly unsaved: boolean;
  /** Changes that are not granted. */
  readonly waiting: ReadonlyMap<string, WaitingResize>;
  /** Of pods of which what they were granted is not in force. */
  readonly held: ReadonlyMap<string, Held>;
}
export interface Held {
  /** What was granted before, and is in force. */
  before: Allocation;
  /** What it holds until then: the larger of both. */
  pod: Pod;
}
export interface WaitingResize {
  /** What is asked for. */
  pod: Pod;
  pending: ResizePending;
  /** What the last event about it said; '' for none. */
  said: string;
  sinceMonoMs: number;
}
export const NO_RESIZES: Resizes = { allocations: new Map(), unsaved: false, waiting: new Map(), held: new Map() };

/** One pod in the kubelet's checkpoints: resources in full, since it takes them in place of what the pod says. */
export interface WrittenPod {
  ContainerResources: Record<string, ResourceRequirements>;
  PodLevelResources: ResourceRequirements | null;
}
export function writtenPod(pod: Pod, allocation: Allocation): WrittenPod {
  const { spec } = allocatedPod(pod, allocation);
  return {
    ContainerResources: Object.fromEntries(resizableContainers({ ...pod, spec }).map((c) => [c.name, c.resources ?? {}])),
    PodLevelResources: spec.resources ?? null,
  };
}

/** By UID. What cannot be read is left out, and so is what kubelets before 1.35 wrote, which say nothing of a pod as a whole: its status does. */
export function readPods(document: unknown): Map<string, Allocation> {
  const found = new Map<string, Allocation>();
  for (const [uid, entry] of Object.entries(partOf(document, 'entries'))) {
    if (!isRecord(entry) || !isRecord(entry.ContainerResources) || entry.PodLevelResources === undefined) continue;
    take(found, uid, { ...entry.ContainerResources, [WHOLE_POD]: entry.PodLevelResources ?? {} });
  }
  return found;
}

/** The checkpoint before that of the kubelet was kept. */
export const OLDER_ALLOCATIONS = 'allocations';
/** The same of it. */
export function readOlderPods(document: unknown): Map<string, Allocation> {
  const found = new Map<string, Allocation>();
  for (const [uid, entry] of Object.entries(partOf(document, 'pods'))) if (isRecord(entry)) take(found, uid, entry);
  return found;
}

function take(found: Map<string, Allocation>, uid: string, amounts: Record<string, unknown>): void {
  const read = Object.entries(amounts).map(([name, a]) => [name, amountsFrom(a)] as const);
  if (read.some(([, a]) => a === null)) return;
  const allocation = Object.fromEntries(read.filter(([name, a]) => a !== null && (name !== WHOLE_POD || !asksForNothing(a)))) as Allocation;
  if (isWorthKeeping(allocation)) found.set(uid, allocation);
}
