/** Pod conditions: all of them come from here, so that they cannot contradict each other (pod lifecycle 6.5). */
import type { Container } from '../../kube/podTable.ts';
import type { ContainerStatus, Pod, PodCondition, PodPhase, PodStatus } from '../../kube/types.ts';
import { SANDBOX_READY } from '../../pod/phase.ts';
import { resizeInProgress } from '../../pod/resources/resizeEvents.ts';
import { ALL_RESTARTING, mayRestartAll } from '../../pod/runtime/restartAll.ts';
import { isRestartableInit } from '../../pod/runtime/shouldRestart.ts';
import { rfc3339 } from '../../text/go/goTime.ts';
import { anyRegularEverStarted } from './phase.ts';

const OWNED: ReadonlySet<string> = new Set([
  'PodScheduled',
  'Ready',
  'Initialized',
  'ContainersReady',
  SANDBOX_READY,
  'PodResizePending',
  'PodResizeInProgress',
  ALL_RESTARTING,
]);

/** Conditions of other types are other writers': they are passed on untouched. */
export function isOwnedCondition(type: string): boolean {
  return OWNED.has(type);
}

/** Conditions of other writers as the API last showed them. That this node ends the pod stays once it was said. */
export function foreignConditions(pod: Pod, old: PodStatus, disruption: string | undefined): PodCondition[] {
  const shown = (pod.status.conditions ?? []).filter((c) => !isOwnedCondition(c.type));
  const target: PodCondition | undefined =
    disruption !== undefined
      ? { type: 'DisruptionTarget', status: 'True', reason: ENDED_HERE, message: disruption }
      : old.conditions?.find((c) => c.type === 'DisruptionTarget' && c.reason === ENDED_HERE);
  return target === undefined ? shown : [...shown.filter((c) => c.type !== 'DisruptionTarget'), target];
}
const ENDED_HERE = 'TerminationByKubelet';

type Verdict = Pick<PodCondition, 'status' | 'reason' | 'message'>;

function listed(label: string, names: readonly string[]): string[] {
  return names.length === 0 ? [] : [`containers with ${label} status: [${names.join(' ')}]`];
}

/** Sorts the containers that are not as they should be into unknown (no status at all) and the rest. */
function sortOut(
  containers: readonly Container[],
  statuses: readonly ContainerStatus[],
  good: (container: Container, status: ContainerStatus) => boolean,
): { unknown: string[]; bad: string[] } {
  const unknown: string[] = [];
  const bad: string[] = [];
  const byName = new Map(statuses.map((s) => [s.name, s]));
  for (const container of containers) {
    const status = byName.get(container.name);
    if (status === undefined) unknown.push(container.name);
    else if (!good(container, status)) bad.push(container.name);
  }
  return { unknown, bad };
}

/** `statuses` holds regular and init containers. */
function initialized(pod: Pod, statuses: readonly ContainerStatus[], phase: PodPhase): Verdict {
  const inits = pod.spec.initContainers ?? [];
  const { unknown, bad } = sortOut(inits, statuses, (c, s) => (isRestartableInit(c) ? s.started === true : s.ready));
  if (phase === 'Succeeded' && unknown.length === 0) return { status: 'True', reason: 'PodCompleted' };
  if (anyRegularEverStarted(pod.spec, statuses) || unknown.length + bad.length === 0) return { status: 'True' };
  return {
    status: 'False',
    reason: 'ContainersNotInitialized',
    message: [...listed('unknown', unknown), ...listed('incomplete', bad)].join(', '),
  };
}

function containersReady(pod: Pod, statuses: readonly ContainerStatus[], phase: PodPhase): Verdict {
  const counted = [...(pod.spec.initContainers ?? []).filter(isRestartableInit), ...pod.spec.containers];
  const { unknown, bad } = sortOut(counted, statuses, (_, s) => s.ready);
  if (phase === 'Succeeded' && unknown.length === 0) return { status: 'False', reason: 'PodCompleted' };
  if (phase === 'Failed') return { status: 'False', reason: 'PodFailed' };
  if (unknown.length + bad.length === 0) return { status: 'True' };
  return {
    status: 'False',
    reason: 'ContainersNotReady',
    message: [...listed('unknown', unknown), ...listed('unready', bad)].join(', '),
  };
}

/** Ready is ContainersReady and every readiness gate; `conditions` are those of other writers. */
function readyVerdict(pod: Pod, containers: Verdict, conditions: readonly PodCondition[]): Verdict {
  if (containers.status !== 'True') return containers;
  const problems: string[] = [];
  const byType = new Map(conditions.map((c) => [c.type, c]));
  for (const { conditionType } of pod.spec.readinessGates ?? []) {
    const found = byType.get(conditionType);
    if (found === undefined) problems.push(`corresponding condition of pod readiness gate "${conditionType}" does not exist.`);
    else if (found.status !== 'True')
      problems.push(`the status of pod readiness gate "${conditionType}" is not "True", but ${found.status}`);
  }
  return problems.length === 0 ? { status: 'True' } : { status: 'False', reason: 'ReadinessGatesNotReady', message: problems.join(', ') };
}

/** The node's own conditions, in the order the reference writes them, without times. */
export function ownConditions(input: {
  pod: Pod;
  statuses: readonly ContainerStatus[];
  phase: PodPhase;
  /** The pod has a sandbox that can be used. */
  sandboxReady: boolean;
  foreign: readonly PodCondition[];
  resizing?: ResizeProgress | undefined;
  /** All containers restart, and some are still to be taken away. */
  restartingAll: boolean;
  /** What was said of the pod before. */
  old: PodStatus;
}): PodCondition[] {
  const { pod, statuses, phase, old } = input;
  const containers = containersReady(pod, statuses, phase);
  return [
    { type: SANDBOX_READY, status: input.sandboxReady ? 'True' : 'False' },
    { type: 'Initialized', ...stillInitialized(old, initialized(pod, statuses, phase)) },
    { type: 'Ready', ...readyVerdict(pod, containers, input.foreign) },
    { type: 'ContainersReady', ...containers },
    { type: 'PodScheduled', status: 'True' },
    ...(mayRestartAll(pod) ? [{ type: ALL_RESTARTING, ...allRestarting(phase, input.restartingAll) }] : []),
    ...resizeConditions(pod, { phase, progress: input.resizing, old }),
  ];
}

/** Init containers that run once more do not take it back. */
function stillInitialized(old: PodStatus, verdict: Verdict): Verdict {
  return wasInitialized(old) && verdict.status !== 'True' ? { status: 'True' } : verdict;
}

export function wasInitialized({ conditions }: PodStatus): boolean {
  return conditions?.some((c) => c.type === 'Initialized' && c.status === 'True') === true;
}

/** In the words of the reference. */
function allRestarting(phase: PodPhase, restarting: boolean): Verdict {
  if (phase === 'Succeeded') return { status: 'False', reason: 'PodCompleted' };
  if (phase === 'Failed') return { status: 'False', reason: 'PodFailed' };
  if (!restarting) return { status: 'False' };
  return { status: 'True', reason: 'RestartAllContainersStarted', message: 'container exited with restart policy rule' };
}

/** Granted, and not in force everywhere. */
export interface ResizeProgress {
  /** Why it could not be set, or null. */
  error: string | null;
  /** Of the pod's definition that was granted. Absent: as it was said, else of the present one. */
  generation?: number | undefined;
  /** Of the pod, before it. Absent: nobody knows. */
  was?: PodStatus['resources'] | undefined;
}

/** There while they hold; nothing is said of a pod that has ended (pod lifecycle 6.6). */
function resizeConditions(
  { resize }: Pod,
  { phase, progress, old }: { phase: PodPhase; progress: ResizeProgress | undefined; old: PodStatus },
): PodCondition[] {
  if (phase === 'Succeeded' || phase === 'Failed') return [];
  const pending: PodCondition[] = resize === undefined ? [] : [{ type: 'PodResizePending', status: 'True', ...resize }];
  if (progress === undefined) return pending;
  const { error, generation: observedGeneration = resizeInProgress(old)?.observedGeneration } = progress;
  const inProgress: PodCondition = {
    ...{ type: 'PodResizeInProgress', status: 'True' },
    ...(error === null ? {} : { reason: 'Error', message: error }),
    ...(observedGeneration === undefined ? {} : { observedGeneration }),
  };
  return [...pending, inProgress];
}

/** They are only there while they are true: their time is that of their reason, as in the reference. */
const BY_REASON: ReadonlySet<string> = new Set(['PodResizePending', 'PodResizeInProgress']);

/** Gives each owned condition its time of change: the old one while its status stays, else now. */
export function stampTransitions(conditions: readonly PodCondition[], old: PodStatus | undefined, nowWallMs: number): PodCondition[] {
  const byType = new Map(old?.conditions?.map((c) => [c.type, c]));
  return conditions.map((condition) => {
    if (!isOwnedCondition(condition.type) && condition.lastTransitionTime) return condition;
    const before = byType.get(condition.type);
    const isSame = before?.status === condition.status && (!BY_REASON.has(condition.type) || before.reason === condition.reason);
    const lastTransitionTime = isSame && before.lastTransitionTime ? before.lastTransitionTime : rfc3339(nowWallMs);
    return { ...condition, lastTransitionTime };
  });
}
