/** API status of each container, from the runtime, the last status and failed starts (pod lifecycle 6.1, 8.5). */
import type { Container, VolumeMount } from '../../kube/podTable.ts';
import type { ContainerState, ContainerStatus, Pod, PodStatus, VolumeMountStatus } from '../../kube/types.ts';
import { OWN_ENDS } from '../../pod/ends/ownEnds.ts';
import { actualResources, type InForce } from '../../pod/resources/reported.ts';
import { TAKEN_AWAY } from '../../pod/runtime/restartAll.ts';
import { firstStatus } from '../../pod/runtime/runtimeStatus.ts';
import type { PodRuntimeStatus, RuntimeContainer, StartFailures } from '../../pod/runtime/seen.ts';
import { isRestartableInit, shouldRestart } from '../../pod/runtime/shouldRestart.ts';
import { recursively } from '../../pod/volumes/containerMounts.ts';
import { rfc3339 } from '../../text/go/goTime.ts';
import type { DeviceHealthOf } from './messages.ts';

/** Exit code for an instance whose end nobody saw. */
export const UNKNOWN_EXIT_CODE = 137;
export const STATUS_UNKNOWN_REASON = 'ContainerStatusUnknown';

export interface ContainersInput {
  pod: Pod;
  status: PodRuntimeStatus;
  old: PodStatus | undefined;
  /** All containers of the pod restart: what the runtime does not hold was taken away for it. */
  restarting: boolean;
  failures: StartFailures;
  runtimeName: string;
  /** Handlers of the runtime that can make mounts below a mount read-only, too. Absent: none. */
  recursiveReadOnly?: readonly string[] | undefined;
  /** By container id; an id that is not in it has no startup probe and counts as started while it runs. */
  startedContainers?: ReadonlyMap<string, boolean> | undefined;
  /** By container id; an id that is not in it has no readiness probe and counts as ready once started. */
  readyContainers?: ReadonlyMap<string, boolean> | undefined;
  /** Names of containers whose postStart hook has not ended. */
  hookAhead?: ReadonlySet<string> | undefined;
  /** Resources that were changed in place. */
  inForce?: InForce | undefined;
  deviceHealth?: DeviceHealthOf | undefined;
}

type Kind = 'init' | 'regular' | 'ephemeral';

export interface ContainerStatuses {
  init: ContainerStatus[];
  regular: ContainerStatus[];
  ephemeral: ContainerStatus[];
}

/** Init containers in the order of the definition, the others sorted by name. Containers not in the definition are left out. */
export function containerStatuses(input: ContainersInput): ContainerStatuses {
  const { spec } = input.pod;
  const sorted = (list: ContainerStatus[]): ContainerStatus[] => list.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  return {
    init: listStatuses(input, spec.initContainers ?? [], 'init'),
    regular: sorted(listStatuses(input, spec.containers, 'regular')),
    ephemeral: sorted(listStatuses(input, spec.ephemeralContainers ?? [], 'ephemeral')),
  };
}

function listStatuses(input: ContainersInput, containers: readonly Container[], kind: Kind): ContainerStatus[] {
  const oldList =
    kind === 'init'
      ? input.old?.initContainerStatuses
      : kind === 'regular'
        ? input.old?.containerStatuses
        : input.old?.ephemeralContainerStatuses;
  return containers.map((container) => {
    const old = oldList?.find((s) => s.name === container.name);
    const status = withFailure(
      input,
      container,
      kind,
      withHook(input, container, withPassage(input, container, kind, observedStatus(input, container, old))),
    );
    return withHealth(input, container, kind, withReadiness(input, container, kind, status));
  });
}

/** Only regular containers have it, as in the reference. */
function withHealth({ pod, deviceHealth }: ContainersInput, container: Container, kind: Kind, status: ContainerStatus): ContainerStatus {
  const { allocatedResourcesStatus: _, ...plain } = status;
  const health = kind === 'regular' ? (deviceHealth?.(pod, container) ?? []) : [];
  return health.length === 0 ? plain : { ...plain, allocatedResourcesStatus: [...health] };
}

function unknownEnd(message: string): NonNullable<ContainerState['terminated']> {
  return { exitCode: UNKNOWN_EXIT_CODE, reason: STATUS_UNKNOWN_REASON, message };
}

function waitingReason(pod: Pod): string {
  return (pod.spec.initContainers?.length ?? 0) > 0 ? 'PodInitializing' : 'ContainerCreating';
}

/** What can be said without the runtime: waiting, or what was last said. */
function defaultStatus(input: ContainersInput, container: Container, old: ContainerStatus | undefined): ContainerStatus {
  const { pod } = input;
  const taken = input.restarting && old !== undefined && old.state.waiting === undefined;
  if (old?.state.terminated !== undefined) return taken ? { ...old, ...TAKEN_AWAY, restartCount: old.restartCount + 1 } : { ...old };
  const status: ContainerStatus = {
    name: container.name,
    state: { waiting: { reason: waitingReason(pod) } },
    lastState: old?.lastState ?? {},
    ready: false,
    restartCount: old?.restartCount ?? 0,
    image: container.image ?? '',
    imageID: '',
    ...mountStatuses(container, promised(input)),
  };
  if (taken) return { ...status, ...TAKEN_AWAY, restartCount: status.restartCount + 1 };
  // Gone from the runtime although it ran: say that it ended, or the pod would fall back to Pending (trap 25).
  if (old?.state.running !== undefined && status.lastState.terminated === undefined) {
    status.lastState = {
      terminated: unknownEnd(OWN_ENDS.holdsNone),
    };
    if (!pod.metadata.deletionTimestamp) status.restartCount += 1;
  }
  return status;
}

function observedStatus(input: ContainersInput, container: Container, old: ContainerStatus | undefined): ContainerStatus {
  const instances = input.status.containers.filter((c) => c.name === container.name);
  const [newest, ...earlier] = instances;
  if (newest === undefined) return defaultStatus(input, container, old);
  const status = convert(input, container, newest, old);
  // An instance that was created and never ran may be taken away: what was shown of it does not go back. One that runs has its own count.
  if (newest.state !== 'running' || old?.containerID !== status.containerID)
    status.restartCount = Math.max(status.restartCount, old?.restartCount ?? 0);
  // Its successor is on its way. An end that is shown as the present state might be one that the API server lets nobody leave.
  if (newest.replaced === true && status.state.terminated !== undefined)
    return { ...status, state: { waiting: { reason: waitingReason(input.pod) } }, lastState: status.state };
  // The newest earlier instance that ended; one that was created and never ran ended nothing.
  for (const instance of earlier) {
    const { state } = convert(input, container, instance, old);
    if (state.terminated === undefined) continue;
    status.lastState = state;
    break;
  }
  // The earlier instance may have been collected since it was last reported, or taken away so that all containers start again.
  if (status.lastState.terminated === undefined && old !== undefined) status.lastState = endShownBefore(old, status);
  return status;
}

function endShownBefore(old: ContainerStatus, { containerID }: ContainerStatus): ContainerState {
  return old.containerID !== containerID && old.state.terminated !== undefined ? { terminated: old.state.terminated } : old.lastState;
}

/** Mounts that the runtime made read-only with all that is mounted below. */
function made({ recursiveReadOnly = [] }: RuntimeContainer): (m: VolumeMount) => boolean {
  return ({ mountPath }) => recursiveReadOnly.includes(mountPath.startsWith('/') ? mountPath : `/${mountPath}`);
}

/** Those that it will make so. Which handler a RuntimeClass names is not known before there is a sandbox. */
function promised({ pod, status, recursiveReadOnly = [] }: ContainersInput): (m: VolumeMount) => boolean {
  const named = pod.spec.runtimeClassName ?? '';
  const handler = named === '' ? '' : status.sandboxes[0]?.handler;
  const supported = handler !== undefined && recursiveReadOnly.includes(handler);
  return (m) => {
    const recursive = recursively(m, supported);
    return recursive.ok && recursive.value;
  };
}

function mountStatuses(container: Container, isRecursive: (m: VolumeMount) => boolean): { volumeMounts?: VolumeMountStatus[] } {
  const mounts = container.volumeMounts ?? [];
  if (mounts.length === 0) return {};
  const volumeMounts = mounts.map((m): VolumeMountStatus => {
    const { name, mountPath, readOnly = false } = m;
    if (!readOnly) return { name, mountPath };
    return { name, mountPath, readOnly, recursiveReadOnly: isRecursive(m) ? 'Enabled' : 'Disabled' };
  });
  return { volumeMounts };
}

function convert(input: ContainersInput, container: Container, from: RuntimeContainer, old: ContainerStatus | undefined): ContainerStatus {
  const containerID = `${input.runtimeName}://${from.id}`;
  const requests = container.resources?.requests;
  const status: ContainerStatus = {
    name: from.name,
    state: {},
    lastState: {},
    ready: false,
    restartCount: from.restartCount,
    image: from.image,
    imageID: from.imageRef,
    containerID,
    ...(from.stopSignal === undefined ? {} : { stopSignal: from.stopSignal }),
    ...(from.user === undefined ? {} : { user: { linux: from.user } }),
    // A container that does not run has no resources but those granted.
    resources: container.resources ?? {},
    ...(requests === undefined ? {} : { allocatedResources: requests }),
    ...mountStatuses(container, made(from)),
  };
  switch (from.state) {
    case 'running':
      status.state = { running: { startedAt: rfc3339(from.startedAtMs ?? Number(from.createdAtNs / 1_000_000n)) } };
      status.resources = actualResources(container, from, input.inForce ?? new Map());
      break;
    case 'exited':
      status.state = { terminated: terminatedState(from, containerID) };
      break;
    case 'unknown':
      if (old?.state.running !== undefined) {
        status.state = { terminated: unknownEnd(OWN_ENDS.inUnknownState) };
        status.restartCount = old.restartCount + 1;
      } else if (old?.containerID === containerID && old.state.terminated?.reason === STATUS_UNKNOWN_REASON) {
        // The status said so before, and nothing new is known.
        status.state = old.state;
        status.restartCount = old.restartCount;
      } else {
        status.state = { waiting: {} };
      }
      break;
    case 'created':
      status.state = { waiting: { reason: 'ContainerCreating' } };
      break;
  }
  return status;
}

function terminatedState(from: RuntimeContainer, containerID: string): NonNullable<ContainerState['terminated']> {
  return {
    exitCode: from.exitCode,
    // The runtime names special ends (OOMKilled); where it names nothing the exit code does.
    reason: from.reason || (from.exitCode === 0 ? 'Completed' : 'Error'),
    ...(from.message === '' ? {} : { message: from.message }),
    startedAt: from.startedAtMs === null ? null : rfc3339(from.startedAtMs),
    finishedAt: from.finishedAtMs === null ? null : rfc3339(from.finishedAtMs),
    containerID,
  };
}

/** What runs is not said to run before its postStart hook has ended: the reference looks at it no earlier. */
function withHook(input: ContainersInput, container: Container, status: ContainerStatus): ContainerStatus {
  if (status.state.running === undefined || input.hookAhead?.has(container.name) !== true) return status;
  const { resources: _, allocatedResources: __, ...rest } = status;
  return { ...rest, state: { waiting: { reason: waitingReason(input.pod) } } };
}

/** An init container that the runtime and the status before do not know has passed where regular ones are there. */
function withPassage(input: ContainersInput, container: Container, kind: Kind, status: ContainerStatus): ContainerStatus {
  if (kind !== 'init' || isRestartableInit(container) || status.state.waiting === undefined || input.restarting) return status;
  const has = (name: string): boolean => input.status.containers.some((c) => c.name === name);
  if (has(container.name) || !input.pod.spec.containers.some((c) => has(c.name))) return status;
  return { ...status, state: { terminated: { exitCode: 0, reason: 'Completed', message: OWN_ENDS.passed } } };
}

/** A container that is to be started and whose start did not succeed is waiting, with the reason of that failure. */
function withFailure(input: ContainersInput, container: Container, kind: Kind, status: ContainerStatus): ContainerStatus {
  const failure = input.failures.get(container.name);
  if (failure === undefined) return status;
  const newest = firstStatus(input.status, container.name);
  const ended = newest?.state === 'exited' && newest.exitCode === 0 && newest.replaced !== true;
  const done = kind === 'init' && !isRestartableInit(container) && ended;
  if (done || !shouldRestart({ container, pod: input.pod, newest })) return status;
  return {
    ...status,
    lastState: status.state.terminated === undefined ? status.lastState : { terminated: status.state.terminated },
    state: { waiting: { reason: failure.reason, ...(failure.message === '' ? {} : { message: failure.message }) } },
  };
}

function withReadiness(input: ContainersInput, container: Container, kind: Kind, status: ContainerStatus): ContainerStatus {
  if (kind === 'ephemeral') return { ...status, ready: false };
  const id = firstStatus(input.status, container.name)?.id ?? '';
  const running = status.state.running !== undefined;
  const started = running && input.startedContainers?.get(id) !== false;
  if (kind === 'init' && !isRestartableInit(container)) {
    return { ...status, started, ready: status.state.terminated?.exitCode === 0 };
  }
  return { ...status, started, ready: started && input.readyContainers?.get(id) !== false };
}
