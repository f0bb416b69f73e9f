/**
 * The status manager's rules: which updates are accepted, what a terminated pod's status says in the end, and what is
 * sent to the API (pod lifecycle 7.3, 7.4, 7.5 step 3, 7.6).
 */
import { shareData } from '../../data/sharedData.ts';
import type { ContainerStatus, Pod, PodCondition, PodStatus } from '../../kube/types.ts';
import { OWN_ENDS } from '../../pod/ends/ownEnds.ts';
import { isTerminal } from '../../pod/phase.ts';
import { mayRestartAll } from '../../pod/runtime/restartAll.ts';
import { mayRestart } from '../../pod/runtime/shouldRestart.ts';
import { rfc3339 } from '../../text/go/goTime.ts';
import { isOwnedCondition, stampTransitions, wasInitialized } from './conditions.ts';
import { STATUS_UNKNOWN_REASON, UNKNOWN_EXIT_CODE } from './containers.ts';
import { normalizeStatus, sameStatus } from './normalize.ts';
import { anyRegularEverStarted, isStaticPod } from './phase.ts';

export interface TransitionInput {
  old: PodStatus;
  next: PodStatus;
  restartPolicy: string;
  /** Names of containers that may start again under any policy of the pod. */
  restartable?: ReadonlySet<string> | undefined;
}

/** Names of sidecars, of containers that start again by a policy or a rule of their own, and of all where one may restart all. */
export function restartableNames(pod: Pod): ReadonlySet<string> {
  const all = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
  const may = all.filter((c) => mayRestartAll(pod) || (c.restartPolicy !== undefined && mayRestart(c, pod)));
  return new Set(may.map((c) => c.name));
}

/**
 * Null when the update may be stored; else why not. An ended container of a pod that must not restart it cannot run or
 * wait again, and a pod that ended stays ended (trap 26): such an update is a mistake, and is better lost than shown.
 */
export function guardTransition(input: TransitionInput): string | null {
  const { old, next, restartPolicy } = input;
  if (isTerminal(old.phase) && next.phase !== old.phase)
    return `pod: phase ${old.phase} is final and cannot become ${next.phase ?? 'unset'}`;
  if (restartPolicy === 'Always') return null;
  const lists: [readonly ContainerStatus[], readonly ContainerStatus[]][] = [
    [old.containerStatuses ?? [], next.containerStatuses ?? []],
    [old.initContainerStatuses ?? [], next.initContainerStatuses ?? []],
  ];
  for (const [before, after] of lists) {
    for (const { name, state } of before) {
      if (state.terminated === undefined || input.restartable?.has(name) === true) continue;
      if (state.terminated.exitCode !== 0 && restartPolicy === 'OnFailure') continue;
      const now = after.find((s) => s.name === name);
      if (now !== undefined && now.state.terminated === undefined) {
        return `container "${name}": it ended with exit code ${state.terminated.exitCode} and restart policy ${restartPolicy} does not start it again`;
      }
    }
  }
  return null;
}

export type StoreVerdict =
  /** Refused by the guard: log `why`. */
  | { kind: 'refused'; why: string }
  /** Says nothing new. */
  | { kind: 'unchanged' }
  | { kind: 'changed'; status: PodStatus };

/**
 * One update of the stored status. `old`: what is stored, else what the API last showed (then `cached` is false and the
 * update is always new). `force`: the pod is being deleted or has finished; it counts even if it says nothing new.
 */
export function storeStatus(
  input: Omit<TransitionInput, 'old'> & { old: PodStatus | undefined; cached: boolean; nowWallMs: number; force: boolean },
): StoreVerdict {
  const { old, next, nowWallMs } = input;
  if (old !== undefined) {
    const why = guardTransition({ ...input, old });
    if (why !== null) return { kind: 'refused', why };
  }
  const made = normalizeStatus({
    ...next,
    conditions: stampTransitions(next.conditions ?? [], old, nowWallMs),
    // Once set it stays: active deadlines count from it, across restarts (trap 56).
    startTime: old?.startTime ?? next.startTime ?? rfc3339(nowWallMs),
  });
  if (input.cached && !input.force && old !== undefined && sameStatus(normalizeStatus(old), made)) return { kind: 'unchanged' };
  // The pod's worker keeps what it said.
  return { kind: 'changed', status: shareData(next, made) };
}

/** The accepted one, where the two differ in no more than times: those of its conditions are the ones that others see. */
export function acceptedAs(said: PodStatus | undefined, accepted: PodStatus | undefined): PodStatus | undefined {
  return said !== undefined && accepted !== undefined && sameStatus(normalizeStatus(said), accepted) ? accepted : said;
}

function ended(status: ContainerStatus): ContainerStatus {
  if (status.state.terminated !== undefined) return status;
  return {
    ...status,
    state: {
      terminated: {
        exitCode: UNKNOWN_EXIT_CODE,
        reason: STATUS_UNKNOWN_REASON,
        message: OWN_ENDS.podEnded,
      },
    },
    ready: false,
    started: false,
  };
}

function everStarted(status: ContainerStatus): boolean {
  return status.state.running !== undefined || status.state.terminated !== undefined || status.lastState.terminated !== undefined;
}

/**
 * The last word about a pod of which everything is gone: what had begun and of which no end is known ended unknown. Init
 * containers after the last that ever started stay waiting: they never ran.
 */
export function terminateStatus(pod: Pod, status: PodStatus): PodStatus {
  const regular = status.containerStatuses ?? [];
  const inits = status.initContainerStatuses ?? [];
  const initialized = (pod.spec.initContainers?.length ?? 0) === 0 || anyRegularEverStarted(pod.spec, regular) || wasInitialized(status);
  // At least the first, once the pod had a status: it may have run unseen.
  const lastStarted = Math.max(0, initialized ? inits.length - 1 : inits.findLastIndex(everStarted));
  const phase = !isStaticPod(pod) && !isTerminal(status.phase) ? 'Failed' : status.phase;
  return {
    ...status,
    ...(phase === undefined ? {} : { phase }),
    ...(status.containerStatuses === undefined ? {} : { containerStatuses: initialized ? regular.map(ended) : regular }),
    ...(status.initContainerStatuses === undefined
      ? {}
      : { initContainerStatuses: inits.map((s, i) => (i <= lastStarted ? ended(s) : s)) }),
  };
}

/** `status`, but for the phase, and why it is so, which are those of `api`. */
function withPhaseOf(api: PodStatus, status: PodStatus): PodStatus {
  const { phase: _phase, reason: _reason, message: _message, ...rest } = status;
  return {
    ...rest,
    ...(api.phase === undefined ? {} : { phase: api.phase }),
    ...(api.reason === undefined ? {} : { reason: api.reason }),
    ...(api.message === undefined ? {} : { message: api.message }),
  };
}

/**
 * What is written to the API: its own conditions of other writers and its class, ours for the rest. A terminal phase is held back while
 * something may still run (trap 27), and comes with Ready and ContainersReady False. One that the API server shows is never taken back, no
 * matter which actor said it (trap 26); `mayBeginAnew`: the object outlives what it tells of, as a mirror pod does.
 */
export function mergeStatus(
  api: PodStatus,
  ours: PodStatus,
  options: { couldHaveRunning: boolean; nowWallMs: number; mayBeginAnew?: boolean },
): PodStatus {
  const ending = isTerminal(ours.phase) && !isTerminal(api.phase);
  const final = isTerminal(api.phase) && ours.phase !== api.phase && options.mayBeginAnew !== true;
  const heldBack = ending && options.couldHaveRunning;
  // Others take back what they said of a disruption, or say it anew: ours comes with the end of the pod, and at no other time.
  const keep = (c: PodCondition): boolean => isOwnedCondition(c.type) || (c.type === 'DisruptionTarget' && ending && !heldBack);
  const own = (ours.conditions ?? []).filter(keep);
  const foreign = (api.conditions ?? []).filter((c) => !isOwnedCondition(c.type) && !own.some((o) => o.type === c.type));
  // The class of a mirror pod may be another than that of its static pod: a LimitRange gives it limits.
  const qos = api.qosClass ? { qosClass: api.qosClass } : {};
  const all: PodStatus = { ...ours, ...qos, conditions: [...foreign, ...own] };
  if (heldBack) return withPhaseOf(api, all);
  const merged = final ? withPhaseOf(api, all) : all;
  if (!isTerminal(merged.phase)) return merged;
  const reason = merged.phase === 'Succeeded' ? 'PodCompleted' : 'PodFailed';
  return {
    ...merged,
    conditions: (merged.conditions ?? []).map((c) =>
      (c.type === 'Ready' || c.type === 'ContainersReady') && c.status === 'True'
        ? { type: c.type, status: 'False', reason, lastTransitionTime: rfc3339(options.nowWallMs) }
        : c,
    ),
  };
}
