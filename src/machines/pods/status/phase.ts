/** The phase of a pod from the statuses of its containers (pod lifecycle 6.2). */

import type { Container, PodSpec } from '../../kube/podTable.ts';
import type { ContainerState, ContainerStatus, Pod, PodPhase, PodStatus } from '../../kube/types.ts';
import type { StatusOverride } from '../../pod/ends/byNode.ts';
import { ANNOTATION_SOURCE } from '../../pod/names.ts';
import { isTerminal } from '../../pod/phase.ts';
import { RESTARTING_ALL } from '../../pod/runtime/restartAll.ts';
import type { PodRuntimeStatus } from '../../pod/runtime/seen.ts';
import { isRestartableInit, podRestartPolicy, restartsAfter } from '../../pod/runtime/shouldRestart.ts';

type Ended = NonNullable<ContainerState['terminated']>;

/** From a file or URL, not from the API server. */
export function isStaticPod(pod: Pod): boolean {
  const source = pod.metadata.annotations?.[ANNOTATION_SOURCE];
  return source !== undefined && source !== 'api';
}

/** Some regular container runs or ever ended: initialisation was complete at some time. */
export function anyRegularEverStarted(spec: PodSpec, statuses: readonly ContainerStatus[]): boolean {
  return statuses.some(
    (s) =>
      spec.containers.some((c) => c.name === s.name) &&
      (s.state.running !== undefined || s.state.terminated !== undefined || s.lastState.terminated !== undefined),
  );
}

/** How far a pod is in its present sandbox: a new one is initialised anew. */
export interface Initialization {
  /** Some regular container is of this sandbox. */
  done: boolean;
  /** Init containers that did not run in it yet. */
  ahead: ReadonlySet<string>;
  /** Containers that start again however they ended. Absent: none. */
  replaced?: ReadonlySet<string>;
}

/** Names of containers whose newest instance was stopped to be replaced, and has no successor yet. */
function beingReplaced({ containers }: PodRuntimeStatus): ReadonlySet<string> {
  const newest = new Map(containers.toReversed().map((c) => [c.name, c]));
  return new Set([...newest.values()].filter((c) => c.state === 'exited' && c.replaced === true).map((c) => c.name));
}

export function initialization({ spec }: Pod, status: PodRuntimeStatus): Initialization {
  const { sandboxes, containers } = status;
  const [sandbox] = sandboxes;
  const replaced = beingReplaced(status);
  if (sandbox?.ready !== true) return { done: false, ahead: new Set(), replaced };
  // What runs is of the sandbox that is up, whatever the runtime's clock said when it was made.
  const here = new Set(containers.filter((c) => c.state === 'running' || c.createdAtNs >= sandbox.createdAtNs).map((c) => c.name));
  const done = spec.containers.some((c) => here.has(c.name));
  const inits = done ? [] : (spec.initContainers ?? []);
  return { done, ahead: new Set(inits.map((c) => c.name).filter((name) => !here.has(name))), replaced };
}

/** Regular containers that were taken away so that all restart: the pod goes on, and says so. */
function isRestartedWhole({ containers }: PodSpec, statuses: readonly ContainerStatus[]): boolean {
  const regular = new Set(containers.map((c) => c.name));
  return statuses.some((s) => regular.has(s.name) && s.state.waiting !== undefined && s.lastState.terminated?.reason === RESTARTING_ALL);
}

/**
 * `statuses` holds regular and init containers. `podIsTerminal`: everything was stopped and nothing will start again; a
 * pod that is not static then gets its final phase whatever its restart policy.
 */
export function podPhase(
  pod: Pod,
  statuses: readonly ContainerStatus[],
  { podIsTerminal, done, ahead, replaced }: Initialization & { podIsTerminal: boolean },
): PodPhase {
  const { spec } = pod;
  const find = (name: string): ContainerStatus | undefined => statuses.find((s) => s.name === name);
  const restarts = (container: Container, ended: Ended): boolean =>
    ended.reason === RESTARTING_ALL || replaced?.has(container.name) === true || restartsAfter(container, pod, ended.exitCode);
  let pendingInit = 0;
  let pendingSidecar = 0;
  let failedInit = 0;
  let restarting = 0;
  let unknown = 0;
  let running = 0;
  let waiting = 0;
  let stopped = 0;
  let succeeded = 0;

  for (const container of spec.initContainers ?? []) {
    const status = find(container.name);
    const ended = status?.state.waiting === undefined ? status?.state.terminated : status.lastState.terminated;
    if (isRestartableInit(container)) {
      if (status?.state.running !== undefined) {
        running += 1;
        if (status.started !== true) pendingSidecar += 1;
      } else if (ended === undefined) {
        if (status?.state.waiting === undefined) unknown += 1;
        else waiting += 1;
        if (status !== undefined) pendingSidecar += 1;
      }
      continue;
    }
    // It is to run once more although it ended well: in another sandbox.
    const again = ended?.exitCode === 0 && status?.state.waiting !== undefined;
    if (ended !== undefined && ended.exitCode !== 0 && !restarts(container, ended)) failedInit += 1;
    else if (ended === undefined || again || ahead.has(container.name)) pendingInit += 1;
  }
  for (const container of spec.containers) {
    const status = find(container.name);
    const state = status?.state;
    const ended = state?.terminated ?? status?.lastState.terminated;
    if (state?.running === undefined && ended !== undefined && restarts(container, ended)) restarting += 1;
    if (state?.running !== undefined) running += 1;
    else if (state?.terminated !== undefined) {
      stopped += 1;
      if (state.terminated.exitCode === 0) succeeded += 1;
    } else if (state?.waiting !== undefined) {
      if (status?.lastState.terminated !== undefined) stopped += 1;
      else waiting += 1;
    } else unknown += 1;
  }

  if (failedInit > 0) return 'Failed';
  const initializes = pendingInit > 0 || (pendingSidecar > 0 && !done);
  if ((initializes && !isRestartedWhole(spec, statuses)) || waiting > 0) return 'Pending';
  if (running > 0 && unknown === 0) return 'Running';
  if (running > 0 || stopped === 0 || unknown > 0) return 'Pending';
  const final = stopped === succeeded ? 'Succeeded' : 'Failed';
  if (podIsTerminal && !isStaticPod(pod)) return final;
  if (restarting > 0) return 'Running';
  if (spec.containers.some((c) => c.restartPolicy !== undefined)) return final;
  const policy = podRestartPolicy(pod);
  if (policy === 'Always') return 'Running';
  if (final === 'Succeeded') return 'Succeeded';
  return policy === 'Never' ? 'Failed' : 'Running';
}

/**
 * Terminal phases, once said by the API or by this node, stay (trap 26). Reason and message live as long as the phase
 * they came with. A request from inside the node (deadline, eviction) names its own, unless the pod had ended otherwise.
 */
export function phaseVerdict(
  { status: api }: Pod,
  { old, computed, asked }: { old: PodStatus; computed: PodPhase; asked: StatusOverride | undefined },
): { phase: PodPhase; reason?: string; message?: string } {
  let phase = computed;
  if (isTerminal(api.phase)) phase = api.phase;
  else if (isTerminal(old.phase)) phase = old.phase;
  const sticky = isTerminal(api.phase) || isTerminal(old.phase);
  if (asked !== undefined && !sticky) {
    return { phase: asked.phase, reason: asked.reason, message: asked.message };
  }
  // An end that the API server tells of (what an earlier daemon said of it came late) is told with its reason.
  if (isTerminal(api.phase) && !isTerminal(old.phase))
    return { phase, ...(api.reason ? { reason: api.reason } : {}), ...(api.message ? { message: api.message } : {}) };
  if (phase !== old.phase) return { phase };
  const reason = old.reason || api.reason;
  const message = old.message || api.message;
  return { phase, ...(reason ? { reason } : {}), ...(message ? { message } : {}) };
}
