/** What a pod worker knows, what it is given, and small questions about both. */

import type { Pod, PodStatus } from '../../kube/types.ts';
import type { NodeFacts } from '../../nodeFacts.ts';
import type { ProbeLedger } from '../../pod/probes/probes.ts';
import type { InForce } from '../../pod/resources/reported.ts';
import type { AskedRestarts } from '../../pod/restart/asked.ts';
import type { ReplacedInstances } from '../../pod/runtime/runtimeStatus.ts';
import type { PodActions, PodRuntimeStatus, RuntimePodsView, StartFailure } from '../../pod/runtime/seen.ts';
import type { Cause } from '../../supervision/address.ts';
import { onePerFamily } from '../../text/addresses.ts';
import type { Moment } from '../../xstate/facts.ts';
import { setupWith } from '../../xstate/setup.ts';
import { dottedState, reasonOf } from '../../xstate/words.ts';
import type { DeviceHealthOf } from '../status/messages.ts';
import type { ContainerKind, ContainerTimes, KeptContainer } from './container/startJob.ts';
import type { Decision } from './decide.ts';
import type { ContainerSummary, WorkerPhase, WorkerSummary } from './messages.ts';

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
  /** Restarts that were asked of a worker before this one. Absent: none. */
  asked?: WorkerSummary['asked'];
  causes: readonly Cause[];
  times: WorkerTimes;
  /** What the worker kept that slept before this one. */
  woken?: WokenWorker;
  /** What shows that the runtime holds nothing of it, where that is known and no act can be in flight; null or absent: it is asked. */
  nothing?: PodRuntimeStatus | null;
}
/** What a worker keeps while it sleeps. */
export interface KeptWorker {
  /** The next worker's, but for what it decides anew. */
  readonly context: WorkerContext;
  /** By name; those with nothing to keep are left out. */
  readonly containers: ReadonlyMap<string, KeptContainer>;
}
export interface WokenWorker {
  kept: KeptWorker;
  /** Monotonic ms of its next look. */
  dueAtMonoMs: number | null;
}
type KillStatus = { phase: 'Failed'; reason: string; message: string; disruption?: string };
/** What came since the last inspection began, and what it showed of announced ends. */
export interface Look {
  /** A hint arrived while something was under way: look again after it; `listed`: unless the listing shows the same. */
  hint: 'no' | 'listed' | 'yes';
  /** Acts of this worker had their effect. */
  own: boolean;
  /** What the inspection under way reads: all, or only what those acts touched. */
  reads: 'all' | 'own';
  /** Containers whose end was announced and not yet seen, and how often it was looked for. */
  ended: ReadonlySet<string>;
  chases: number;
  /** Monotonic ms of the next look, of a worker that has just woken. Absent: it is drawn. */
  dueAtMonoMs?: number | undefined;
  /** Times that something may have come which the pod lacked: a secret or config map changed, a plugin registered. Absent: none. */
  objectChanges?: number;
}
/** Acts on the pod as a whole: how fast they may follow one another, what went wrong, what they did. */
export interface Act {
  /** Acts that followed one another without {@link CALM_AFTER_MS} of rest; from `restAt` on the next one waits. */
  pace: { inRow: number; restAt: number; lastMonoMs: number };
  trouble: Trouble | null;
  /** Consecutive failed attempts of the present act, for its back-off. */
  failuresInRow: number;
  /** Instances this worker stopped in order to replace them. What the crash back-off looks at instead (trap 17). */
  replaced: ReplacedInstances;
  /** Containers of unknown state that this worker stopped with success; only those still there. */
  stoppedUnknown: ReadonlySet<string>;
  /** The sandbox whose replacement was last announced, or passed over because the pod moved to or from the host's network. */
  changedSandboxId: string;
}
/** Containers: each has a child once it is known. */
export interface Starts {
  children: ReadonlySet<string>;
  failures: ReadonlyMap<string, StartFailure>;
  nextStarts: ReadonlyMap<string, number>;
  /** Containers on their way whose postStart hook has not ended: they do not count as running. */
  hookAhead: ReadonlySet<string>;
  /**
   * A container that is to start waits: for a place among those that are on their way at once (a start that failed leaves one
   * too), or for the postStart hook of one before it. `hook` where some wait for either.
   */
  heldBack: 'no' | 'place' | 'hook';
  /** Since when this worker remembers starts. */
  sinceWallMs: number;
}
/** Restarts that a person asked for. */
export interface Restarting {
  /** The instances that they are about, until their successors are there. */
  asked: AskedRestarts;
  /** How often each container was asked for: what made it wait then makes it wait no longer. Absent: never. */
  times: ReadonlyMap<string, number>;
}
/** Resources that are changed in place. */
interface Resizing {
  /** Those that this worker changed, by container id. */
  inForce: InForce;
  /** There is a child that changes them: once something is to be changed. */
  child: boolean;
  /** Why that failed at last, or null. */
  error: string | null;
  /** Of the definition whose change of resources was granted last; absent: none since this worker began. */
  grantedGeneration?: number | undefined;
}
/** The pod's end. */
interface Ending {
  /** A stop was asked for; null: none was. */
  kill: { graceOverride: number | null; status: KillStatus | null } | null;
  graceSeconds: number | null;
  /** Ids of containers whose preStop hook has ended: it is not run again. */
  preStopped: ReadonlySet<string>;
  /** Nothing of the pod runs, and nothing starts again. */
  stopped: boolean;
}

export interface WorkerContext extends Pick<WorkerInput, 'uid' | 'pod' | 'runtimeOnly' | 'times' | 'causes'> {
  /** What its containers kept while it slept: until their children are there. Absent: it did not sleep. */
  kept?: KeptWorker['containers'] | undefined;
  newLife: boolean;
  life: number | undefined;
  /** What was seen last; null: nothing yet. What is to be done of it, and what is said of the pod. */
  status: PodRuntimeStatus | null;
  decision: Decision | null;
  apiStatus: PodStatus | undefined;
  look: Look;
  act: Act;
  starts: Starts;
  restart: Restarting;
  resize: Resizing;
  end: Ending;
}

/** What went wrong with a pod-level act, and the first wait before it is tried again (doubling to ACT_RETRY_MS). */
export interface Trouble {
  reason: string;
  message: string;
  baseMs: number;
}

export function isDeleting(pod: Pod): boolean {
  const t = pod.metadata.deletionTimestamp;
  return t !== undefined && t !== null;
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

/** Where hooks of this pod go that name no host. */
export function podIPsOf({ pod, status, apiStatus }: WorkerContext): readonly string[] {
  if (pod.spec.hostNetwork === true) return onePerFamily(facts().node.hostIPs);
  return status !== null && status.ips.length > 0 ? status.ips : (apiStatus?.podIPs ?? []).map(({ ip }) => ip);
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
    const next = context.starts.nextStarts.get(name);
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
  const asked = context.restart.asked.size === 0 ? {} : { asked: Object.fromEntries(context.restart.asked) };
  return { phase, state: dottedState(snapshot.value), ...reasonOf(snapshot), containers, causes: context.causes, ...asked };
}
