/** What a pod worker knows, what it is given, and small questions about both. */

import type { Pod, PodStatus } from '../../kube/types.ts';
import type { NodeFacts } from '../../nodeFacts.ts';
import type { ProbeLedger } from '../../pod/probes/probes.ts';
import type { InForce } from '../../pod/resources/actuation.ts';
import type { ReplacedInstances } from '../../pod/runtime/runtimeStatus.ts';
import type { KillContainer, PodActions, PodRuntimeStatus, ResetGroup, RuntimePodsView, StartFailure } from '../../pod/runtime/seen.ts';
import type { Cause } from '../../supervision/address.ts';
import { onePerFamily } from '../../text/addresses.ts';
import { messageOf } from '../../text/errors.ts';
import type { Moment } from '../../xstate/facts.ts';
import { setupWith } from '../../xstate/setup.ts';
import { dottedState, reasonOf } from '../../xstate/words.ts';
import type { DeviceHealthOf } from '../status/messages.ts';
import type { EffectOutcome } from './container/containerStopMachine.ts';
import type { ActOutcome, ContainerIo, ContainerKind, ContainerTimes } from './container/startJob.ts';
import { type Decision, decide } from './decide.ts';
import type { ContainerSummary, WorkerPhase, WorkerSummary } from './messages.ts';
import type { ResizeIo } from './resizeMachine.ts';
import { killTasks, podTasks, type SandboxesInput, type StopInput } from './stopMachine.ts';

export type { EffectOutcome } from './container/containerStopMachine.ts';

/** What a step may ask for. */
export interface WorkerFacts extends Moment {
  readonly node: NodeFacts;
  readonly network: { ready: boolean; reason: string };
  /** The status last accepted for this UID, for a worker that was restarted. */
  readonly lastStatus: PodStatus | undefined;
  /** The newest listing of the runtime. */
  readonly listing: RuntimePodsView | undefined;
  /** Ids that this worker's own acts made or started since its last inspection began. */
  readonly ownIds: ReadonlySet<string>;
  /** Every act of this worker has ended, and its last inspection answers for all of them. */
  readonly quiet: boolean;
  /** Probe results by container id. */
  readonly probes: ProbeLedger;
  /** State of each child for a container, by its name; absent: it has only begun. */
  readonly children: ReadonlyMap<string, string>;
  /** Health of the devices that a container has. */
  readonly deviceHealth: DeviceHealthOf;
}
/** {@link WorkerFacts.children}, in the snapshot that a step begins with. */
export function childStates(before: object | undefined): ReadonlyMap<string, string> {
  const { children = {} } = (before ?? {}) as { children?: Readonly<Record<string, { getSnapshot(): { value?: unknown } } | undefined>> };
  const found = Object.entries(children).filter(([id]) => id.startsWith(CONTAINER_CHILD));
  return new Map(found.map(([id, child]) => [id.slice(CONTAINER_CHILD.length), String(child?.getSnapshot().value)]));
}
const CONTAINER_CHILD = 'container:';
/** Id of the child for a container. */
export const childId = (name: string): string => `${CONTAINER_CHILD}${name}`;

/** Milliseconds. */
export interface WorkerTimes extends ContainerTimes {
  /** `syncFrequency`; the next look lies between it and 1.5 times it. */
  resyncMs: number;
}
export const { setup, facts } = setupWith<WorkerFacts>();
export interface WorkerInput {
  uid: string;
  pod: Pod;
  /** Known to the runtime only: never started, only wound down; no status is written. */
  runtimeOnly: boolean;
  /** A stop was asked before this incarnation began. */
  terminating: boolean;
  /** The UID was wound down and wanted again since the pod manager began. Default false. */
  newLife?: boolean;
  /** Which life of the UID this is: a stop that was meant for another is not acted on. Absent: any will do. */
  life?: number;
  /** What that stop gave as the pod's final status. */
  killStatus?: KillStatus | null;
  /** And what grace, in seconds. */
  graceOverride?: number | null;
  causes: readonly Cause[];
  times: WorkerTimes;
  /** What shows that the runtime holds nothing of it, where that is known and no act can be in flight; null or absent: it is asked. */
  nothing?: PodRuntimeStatus | null;
}
type KillStatus = { phase: 'Failed'; reason: string; message: string; disruption?: string };
export interface WorkerContext {
  uid: string;
  pod: Pod;
  runtimeOnly: boolean;
  newLife: boolean;
  life: number | undefined;
  times: WorkerTimes;
  causes: readonly Cause[];
  status: PodRuntimeStatus | null;
  decision: Decision | null;
  apiStatus: PodStatus | undefined;
  failures: ReadonlyMap<string, StartFailure>;
  /** Times that something may have come which the pod lacked: a secret or config map changed, a plugin registered. Absent: none. */
  objectChanges?: number;
  nextStarts: ReadonlyMap<string, number>;
  /** Instances this worker stopped in order to replace them. What the crash back-off looks at instead (trap 17). */
  replaced: ReplacedInstances;
  /** Containers on their way whose postStart hook has not ended: they do not count as running. */
  hookAhead: ReadonlySet<string>;
  /** Ids of containers whose preStop hook has ended: it is not run again. */
  preStopped: ReadonlySet<string>;
  /**
   * A container that is to start waits: for a place among those that are on their way at once (a start that failed leaves one
   * too), or for the postStart hook of one before it. `hook` where some wait for either.
   */
  heldBack: 'no' | 'place' | 'hook';
  /** Containers of unknown state that this worker stopped with success; only those still there. */
  stoppedUnknown: ReadonlySet<string>;
  sinceWallMs: number;
  /** Containers that have a child. */
  children: ReadonlySet<string>;
  /** A hint arrived while something was under way: look again after it; `listed`: unless the listing shows the same. */
  dirty: 'no' | 'listed' | 'yes';
  /** Acts of this worker had their effect since the last inspection began. */
  acted: boolean;
  /** The inspection under way reads only what those acts touched. */
  partial: boolean;
  killAsked: boolean;
  /** Nothing of the pod runs, and nothing starts again. */
  stopped: boolean;
  graceSeconds: number | null;
  graceOverride: number | null;
  killStatus: KillStatus | null;
  trouble: Trouble | null;
  /** Consecutive failed attempts of the present act, for its back-off. */
  failuresInRow: number;
  /** Acts on the pod as a whole that followed one another without {@link CALM_AFTER_MS} of rest. */
  actsInRow: number;
  lastActMonoMs: number;
  /** Containers whose end was announced and not yet seen, and how often it was looked for. */
  ended: ReadonlySet<string>;
  chases: number;
  /** The sandbox whose replacement was last announced, or passed over because the pod moved to or from the host's network. */
  changedSandboxId: string;
  /** The back-off before the next act is over. */
  calmed: boolean;
  /** Resources that this worker changed in place, by container id. */
  inForce: InForce;
  /** There is a child that changes them: once something is to be changed. */
  resizes: boolean;
  /** Why that failed at last, or null. */
  resizeError: string | null;
  /** Of the definition whose change of resources was granted last; absent: none since this worker began. */
  grantedGeneration?: number | undefined;
}

export interface InspectionOf {
  uid: string;
  /** What the worker's own acts touched since the last inspection, where that is known; else everything. */
  partial: boolean;
  /** The pod goes: what is ready or running is not read again for what a listing does not show. */
  stopping: boolean;
}
export interface ResetInput {
  pod: Pod;
  groups: readonly ResetGroup[];
}
export interface SandboxInput {
  pod: Pod;
  status: PodRuntimeStatus;
  actions: PodActions;
}
/** What a worker's statechart asks of the outside; given by `actors/pods/workers`, or by a test. Promises honour the signal. */
export interface WorkerIo extends ContainerIo, ResizeIo {
  /** Settles when no act of an earlier incarnation is in flight. */
  fence(uid: string): Promise<unknown>;
  inspect(of: InspectionOf, signal: AbortSignal): Promise<PodRuntimeStatus>;
  /** Makes the pod's directories, and settles when every volume that a container mounts is set up. Rejects for want of a directory. */
  prepare(pod: Pod, signal: AbortSignal): Promise<EffectOutcome>;
  /** Settles when every ResourceClaim of the pod is prepared. */
  prepareClaims(pod: Pod, signal: AbortSignal): Promise<EffectOutcome>;
  /** Settles when what this pod alone used is unprepared. */
  releaseClaims(pod: Pod, signal: AbortSignal): Promise<EffectOutcome>;
  /**
   * Stops earlier sandboxes that this worker has not stopped yet (their network goes with that), removes what is left of
   * init containers, then makes the sandbox: a new one is initialised anew.
   */
  runSandbox(input: SandboxInput, signal: AbortSignal): Promise<ActOutcome<{ id: string }>>;
  /** Stops every sandbox; removes init containers where a new sandbox is to come. */
  stopSandboxes(input: SandboxesInput, signal: AbortSignal): Promise<EffectOutcome>;
  /** Stops and removes containers, group after group; what could not be taken away holds back the groups after it. */
  resetContainers(input: ResetInput, signal: AbortSignal): Promise<EffectOutcome>;
  /** Its containers do not end although they were killed: a dead server may hold them. */
  severVolumes(pod: Pod): void;
  /** Fences, then waits until the pod's volumes are taken down. */
  cleanup(pod: Pod): Promise<void>;
  /** The API status in context goes to the status manager. */
  publish(context: WorkerContext, finished: boolean): void;
  /** A summary of the worker goes to the pod manager. */
  report(state: WorkerReport): void;
}

/** Back-off of a failed pod-level act: 10 s, lengthened by up to half (pod lifecycle 3.1). */
export const ACT_RETRY_MS = 10_000;
/**
 * Containers that were killed end within milliseconds, unless the kernel waits for a server. The server is then asked, for
 * 5 s: together well below the 30 s after its grace in which a pod of a dead server has to be gone.
 */
export const SEVER_AFTER_MS = 5_000;
/** Network not ready (pod lifecycle 2.1). */
export const NETWORK_RETRY_MS = 1_000;
/** First retry of a failed stop; doubles to ACT_RETRY_MS, so that a stop is never slower than the reference. */
export const STOP_RETRY_MS = 500;
export const RUNTIME_RETRY_MS = 1_000;
/** First retry after a wait for volumes that was in vain: the volume manager goes on meanwhile. Doubles to ACT_RETRY_MS. */
export const VOLUMES_RETRY_MS = 1_000;
/** First retry of claims that could not be prepared or unprepared. Doubles to ACT_RETRY_MS. */
export const CLAIMS_RETRY_MS = 1_000;
/** First retry of what was refused because it is not there yet, if nobody wakes the worker. Doubles to ACT_RETRY_MS. */
export const LATER_RETRY_MS = 1_000;
/** So many acts in a row are ordinary (kill, create, kill a container); more look like a pod that cannot come to rest. */
export const ACTS_IN_ROW_MAX = 6;
export const CALM_AFTER_MS = 60_000;
/** First wait of the back-off; doubles to ACT_RETRY_MS. */
export const CALM_BASE_MS = 1_000;
/** An end is announced before the runtime's ledgers show it: looked for again after each of these. */
export const CHASE_DELAYS_MS = [10, 20, 40, 80, 160, 320, 640] as const;
/** Old ones are garbage collected long before this many. */
export const REPLACED_MAX = 32;

/** What went wrong with a pod-level act, and the first wait before it is tried again (doubling to ACT_RETRY_MS). */
export interface Trouble {
  reason: string;
  message: string;
  baseMs: number;
}
/** From an error or from a failed outcome; an outcome's own reason wins. */
export function troubleOf(reason: string, what: unknown, baseMs: number): Trouble {
  if (isFailed(what)) return { reason: what.failure.reason, message: what.failure.message, baseMs };
  return { reason, message: messageOf(what), baseMs };
}
/** Refused because something is not there yet: who refused says when it is. */
export function isLater(what: unknown): boolean {
  return isFailed(what) && what.failure.later === true;
}
export function stopTrouble(what: unknown): Trouble {
  return troubleOf('FailedKillPod', what, STOP_RETRY_MS);
}
function isFailed(what: unknown): what is { kind: 'failed'; failure: StartFailure } {
  return typeof what === 'object' && what !== null && 'kind' in what && what.kind === 'failed';
}

export function isDeleting(pod: Pod): boolean {
  const t = pod.metadata.deletionTimestamp;
  return t !== undefined && t !== null;
}

/** What is to be done, and said, of what was seen last, by what is known at this moment. */
export function decisionNow(context: WorkerContext, status: NonNullable<WorkerContext['status']>, now: WorkerFacts): Decision {
  return decide({
    pod: context.pod,
    status,
    old: context.apiStatus ?? now.lastStatus,
    failures: context.failures,
    facts: now.node,
    networkReady: now.network.ready,
    networkReason: now.network.reason,
    nowWallMs: now.wallMs,
    stoppedUnknown: context.stoppedUnknown,
    replaced: context.replaced,
    probes: now.probes,
    deviceHealth: now.deviceHealth,
    hookAhead: context.hookAhead,
    newLife: context.newLife,
    inForce: context.inForce,
    resizeError: context.resizeError,
    grantedGeneration: context.grantedGeneration,
  });
}
export function planActions(context: WorkerContext): PodActions | null {
  const plan = context.decision?.plan;
  return plan !== undefined && 'actions' in plan ? plan.actions : null;
}
export function requiredActions(context: WorkerContext): PodActions {
  const actions = planActions(context);
  if (actions === null) throw new Error('pod worker: an act without a plan');
  return actions;
}
export function requiredStatus(context: WorkerContext): PodRuntimeStatus {
  if (context.status === null) throw new Error('pod worker: an act without an inspection');
  return context.status;
}

/**
 * What the plan stops to start it anew: single containers, or all that run in a sandbox which is replaced. The kubelet stops and
 * starts in one go, so it does not ask how they ended.
 */
export function toReplace(context: WorkerContext): readonly Pick<KillContainer, 'id' | 'name'>[] {
  const actions = planActions(context);
  if (actions?.createSandbox === true) return requiredStatus(context).containers.filter((c) => c.state === 'running');
  const again = new Set([...(actions?.initToStart ?? []), ...(actions?.containersToStart ?? [])]);
  return (actions?.containersToKill ?? []).filter(({ name }) => again.has(name));
}

/** Where hooks of this pod go that name no host. */
export function podIPsOf({ pod, status, apiStatus }: WorkerContext): readonly string[] {
  if (pod.spec.hostNetwork === true) return onePerFamily(facts().node.hostIPs);
  return status !== null && status.ips.length > 0 ? status.ips : (apiStatus?.podIPs ?? []).map(({ ip }) => ip);
}
/** Everything of the pod is to stop. `graceSeconds` null: each container's own grace. */
export function podStop(context: WorkerContext, o: { graceSeconds: number | null; forSandbox: boolean }): StopInput {
  const status = requiredStatus(context);
  const { pod, preStopped } = context;
  return {
    ...stopBasis(context),
    tasks: podTasks({ pod, status, graceSeconds: o.graceSeconds, preStopped, forced: context.graceOverride === 0 }),
    sandboxes: { pod, status, forSandbox: o.forSandbox },
    failedReason: 'FailedKillPod',
  };
}
/** Single containers are to stop: those that the plan names. */
export function plannedStop(context: WorkerContext): StopInput {
  const { pod, preStopped } = context;
  const kills = planActions(context)?.containersToKill ?? [];
  return {
    ...stopBasis(context),
    tasks: killTasks({ pod, kills, preStopped }),
    sandboxes: null,
    failedReason: 'KillContainerError',
  };
}
function stopBasis(context: WorkerContext): Pick<StopInput, 'pod' | 'podIPs'> {
  return { pod: context.pod, podIPs: podIPsOf(context) };
}

/** Containers of a pod in start order, by name. */
export function containersOf(pod: Pod): [string, ContainerKind][] {
  return [
    ...(pod.spec.initContainers ?? []).map((c): [string, ContainerKind] => [c.name, 'init']),
    ...pod.spec.containers.map((c): [string, ContainerKind] => [c.name, 'regular']),
    ...(pod.spec.ephemeralContainers ?? []).map((c): [string, ContainerKind] => [c.name, 'ephemeral']),
  ];
}
export function specOf(pod: Pod, name: string) {
  return (
    pod.spec.initContainers?.find((c) => c.name === name) ??
    pod.spec.containers.find((c) => c.name === name) ??
    pod.spec.ephemeralContainers?.find((c) => c.name === name)
  );
}

/** A snapshot of the worker's machine, as far as a summary needs it. */
interface Summarized {
  readonly value: unknown;
  readonly context: WorkerContext;
  getMeta(): Readonly<Record<string, { phase?: WorkerPhase } | undefined>>;
}
/** What the worker tells of itself; its actor adds the time. */
export type WorkerReport = Omit<WorkerSummary, 'sinceMs'>;

/** For `why` and `actorctl pods`. The words are those of the state's `meta`, as in the tree. */
export function summarize(snapshot: Summarized): WorkerReport {
  const { context } = snapshot;
  const phase = Object.values(snapshot.getMeta()).find((meta) => meta?.phase !== undefined)?.phase ?? 'waiting';
  const statuses = new Map(
    [...(context.apiStatus?.initContainerStatuses ?? []), ...(context.apiStatus?.containerStatuses ?? [])].map((s) => [s.name, s]),
  );
  const containers = containersOf(context.pod).map(([name, kind]): ContainerSummary => {
    const s = statuses.get(name);
    const state = s?.state.running !== undefined ? 'running' : s?.state.terminated !== undefined ? 'terminated' : 'waiting';
    const next = context.nextStarts.get(name);
    return {
      name,
      init: kind === 'init',
      state,
      reason: s?.state.waiting?.reason ?? s?.state.terminated?.reason ?? '',
      message: s?.state.waiting?.message ?? s?.state.terminated?.message ?? '',
      restartCount: s?.restartCount ?? 0,
      ...(next === undefined ? {} : { nextStartAtMs: next }),
    };
  });
  return { phase, state: dottedState(snapshot.value), ...reasonOf(snapshot), containers, causes: context.causes };
}
