/**
 * How a pod is stopped: with how much grace, in which order, and from what its definition is put together when only the
 * runtime remembers it (pod lifecycle 3.5, 5.14).
 */

import type { Container, ContainerPort, LifecycleHandler } from '../../kube/podTable.ts';
import type { Pod } from '../../kube/types.ts';
import { CRI_ANNOTATIONS, CRI_LABELS } from '../../wire/cri.ts';
import { sortContainers, sortSandboxes } from './runtimeStatus.ts';
import type { KillContainer, ListedPod, PodRuntimeStatus } from './seen.ts';
import { isRestartableInit } from './shouldRestart.ts';

/** Every container gets at least this long between TERM and KILL, even when its pod is deleted by force. */
export const MIN_CONTAINER_GRACE_SECONDS = 2;
/** A pod being stopped always has some grace. */
const MIN_POD_GRACE_SECONDS = 1;

/**
 * Grace of a whole pod. `current` is what an earlier stop request came to (null or 0: there was none); the answer never exceeds it.
 * `override` is the grace asked for by the node itself (eviction, preemption); it shrinks, never extends, and 0 counts.
 */
export function effectiveGraceSeconds(input: { pod: Pod; current?: number | null; override?: number | null }): number {
  let grace: number | null = input.current || null;
  for (const wish of [input.pod.metadata.deletionGracePeriodSeconds, input.override]) {
    if (wish !== undefined && wish !== null && (grace === null || wish < grace)) grace = wish;
  }
  return Math.max(MIN_POD_GRACE_SECONDS, grace ?? input.pod.spec.terminationGracePeriodSeconds ?? 0);
}

/**
 * Grace of one container before its preStop hook runs; the hook is skipped when it is 0. A probe's own grace counts only
 * while the pod is not being deleted. `override` wins over everything.
 */
export function containerGraceSeconds(input: {
  pod: Pod;
  container?: Container | undefined;
  reason?: KillContainer['reason'];
  override?: number | null;
}): number {
  if (input.override !== undefined && input.override !== null) return input.override;
  const { metadata, spec } = input.pod;
  if (metadata.deletionGracePeriodSeconds !== undefined) return metadata.deletionGracePeriodSeconds;
  const probe =
    input.reason === 'LivenessProbe'
      ? input.container?.livenessProbe
      : input.reason === 'StartupProbe'
        ? input.container?.startupProbe
        : undefined;
  return probe?.terminationGracePeriodSeconds ?? spec.terminationGracePeriodSeconds ?? MIN_CONTAINER_GRACE_SECONDS;
}

/** Timeout for StopContainer after `elapsedMs` of hook and waiting: whole elapsed seconds are deducted, at least 2 s remain. */
export function stopTimeoutSeconds(graceSeconds: number, elapsedMs: number): number {
  return Math.max(MIN_CONTAINER_GRACE_SECONDS, graceSeconds - Math.floor(Math.max(0, elapsedMs) / 1000));
}

/** The definition of a container by name: regular, init or ephemeral. */
export function findContainer(pod: Pod, name: string): Container | undefined {
  const named = (c: Container): boolean => c.name === name;
  return pod.spec.containers.find(named) ?? pod.spec.initContainers?.find(named) ?? pod.spec.ephemeralContainers?.find(named);
}

/** As {@link containerFieldPath}; of a container that is not in the definition any more, as if it were a regular one. */
export function eventFieldPath(pod: Pod, name: string): string {
  return containerFieldPath(pod, name) ?? `spec.containers{${name}}`;
}

/** `spec.containers{name}` and its siblings, as events refer to a container; undefined when it is not in the definition. */
export function containerFieldPath(pod: Pod, name: string): string | undefined {
  const named = (c: Container): boolean => c.name === name;
  if (pod.spec.containers.some(named)) return `spec.containers{${name}}`;
  if (pod.spec.initContainers?.some(named) === true) return `spec.initContainers{${name}}`;
  return pod.spec.ephemeralContainers?.some(named) === true ? `spec.ephemeralContainers{${name}}` : undefined;
}

export interface KillStep {
  id: string;
  name: string;
  /** Undefined: not in the definition any more; stop it all the same, without a hook. */
  container: Container | undefined;
  graceSeconds: number;
  /** Run this first, within the grace; undefined when there is none, no grace, or the pod is deleted by force. */
  preStop: LifecycleHandler | undefined;
  /**
   * Containers that must have stopped before this one gets its TERM. The hook does not wait for them; waiting uses up
   * this container's own grace, and when that is over it goes on with 2 s.
   */
  waitForIds: string[];
}

/**
 * Stopping all running containers of a pod: all at once, except that a sidecar waits for every running regular container
 * and for the sidecars after it. Unlike the reference, a container that the definition no longer names is stopped too
 * (trap 33 records that it is left running).
 */
export function killPlan(input: {
  pod: Pod;
  status: PodRuntimeStatus;
  /** Grace of the whole pod as {@link effectiveGraceSeconds} gave it. */
  graceSeconds?: number | null;
  /** No grace was asked for (and 1 s is given all the same): hooks are skipped (trap 31). Default: as the deletion says. */
  forced?: boolean;
}): KillStep[] {
  const { pod } = input;
  const forced = input.forced === true || pod.metadata.deletionGracePeriodSeconds === 0;
  const running = input.status.containers.filter((c) => c.state === 'running');
  const idsOf = (names: ReadonlySet<string>): string[] => running.filter((c) => names.has(c.name)).map((c) => c.id);
  const waitFor = terminationOrder(pod);
  return running.map((c) => {
    const container = findContainer(pod, c.name);
    // A pod rebuilt from a listing that showed no container of it yet: only the container itself tells its grace.
    const written = hasGrace(pod) ? undefined : writtenGrace(c.annotations);
    const graceSeconds = containerGraceSeconds({
      pod,
      container,
      override: written ?? input.graceSeconds ?? null,
    });
    const preStop = container?.lifecycle?.preStop;
    return {
      id: c.id,
      name: c.name,
      container,
      graceSeconds,
      preStop: graceSeconds > 0 && !forced ? preStop : undefined,
      waitForIds: idsOf(waitFor.get(c.name) ?? new Set()),
    };
  });
}

/** Every source gives its pods a grace; one that was put together from a listing may have none. */
function hasGrace({ metadata, spec }: Pod): boolean {
  return (metadata.deletionGracePeriodSeconds ?? spec.terminationGracePeriodSeconds) !== undefined;
}

/** The grace that a container was created with. */
function writtenGrace(annotations: Readonly<Record<string, string>>): number | undefined {
  return seconds(annotations[CRI_ANNOTATIONS.podDeletionGracePeriod]) ?? seconds(annotations[CRI_ANNOTATIONS.podTerminationGracePeriod]);
}

/** For each sidecar the names that stop before it. Empty when the pod has no sidecar. */
export function terminationOrder(pod: Pod): ReadonlyMap<string, ReadonlySet<string>> {
  const before = new Map<string, ReadonlySet<string>>();
  const earlier = new Set(pod.spec.containers.map((c) => c.name));
  for (const container of [...(pod.spec.initContainers ?? [])].reverse()) {
    if (!isRestartableInit(container)) continue;
    before.set(container.name, new Set(earlier));
    earlier.add(container.name);
  }
  return before;
}

function seconds(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

/** Undefined when the annotation is absent or is not JSON. The text was written by a node, this one or another. */
function parseJson<T>(text: string | undefined, isShape: (value: unknown) => value is T): T | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isShape(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const isPorts = (value: unknown): value is ContainerPort[] =>
  Array.isArray(value) && value.every((v) => typeof v === 'object' && v !== null && typeof (v as ContainerPort).containerPort === 'number');
const isHandler = (value: unknown): value is LifecycleHandler => typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * A pod that only the runtime knows, put together from labels and annotations: enough to stop it properly (grace, preStop,
 * named ports). It has no grace where the listing showed no container: then {@link killPlan} reads it off each one.
 */
export function podFromListed(listed: ListedPod): Pod {
  const containers: Container[] = [];
  let podGrace: number | undefined;
  let deletionGrace: number | undefined;
  for (const c of sortContainers(listed.containers)) {
    podGrace ??= seconds(c.annotations[CRI_ANNOTATIONS.podTerminationGracePeriod]);
    deletionGrace ??= seconds(c.annotations[CRI_ANNOTATIONS.podDeletionGracePeriod]);
    if (containers.some((known) => known.name === c.name)) continue;
    const preStop = parseJson(c.annotations[CRI_ANNOTATIONS.preStopHandler], isHandler);
    const ports = parseJson(c.annotations[CRI_ANNOTATIONS.ports], isPorts);
    containers.push({
      name: c.name,
      ...(preStop === undefined ? {} : { lifecycle: { preStop } }),
      ...(ports === undefined ? {} : { ports }),
    });
  }
  const sandbox = sortSandboxes(listed.sandboxes)[0];
  const own: readonly string[] = Object.values(CRI_LABELS);
  const labels = Object.entries(sandbox?.labels ?? {}).filter(([key]) => !own.includes(key));
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: listed.name,
      namespace: listed.namespace,
      uid: listed.uid,
      labels: Object.fromEntries(labels),
      annotations: { ...sandbox?.annotations },
      ...(deletionGrace === undefined ? {} : { deletionGracePeriodSeconds: deletionGrace }),
    },
    spec: { containers, ...(podGrace === undefined ? {} : { terminationGracePeriodSeconds: podGrace }) },
    status: {},
  };
}
