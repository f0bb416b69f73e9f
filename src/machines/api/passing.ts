/** Which changes of a status are about to be overtaken by the next one, and may wait for it: each patch costs everybody. Pure. */

import { sameData } from '../data/sameData.ts';
import type { ContainerStatus, Pod, PodStatus } from '../kube/types.ts';
import { isTerminal } from '../pod/phase.ts';
import { PROBE_FIELDS, type ProbeLedger, type ProbeResult } from '../pod/probes/probes.ts';

/** A pod that starts has a sandbox and addresses, and its containers follow. */
const OF_A_SANDBOX: ReadonlySet<string> = new Set(['podIP', 'podIPs', 'conditions', 'containerStatuses', 'initContainerStatuses']);
const SANDBOX_CONDITION = 'PodReadyToStartContainers';
/** Services send traffic by these. */
const READINESS: ReadonlySet<string> = new Set(['Ready', 'ContainersReady']);

export interface Change {
  target: Pod;
  next: PodStatus;
  patch: Readonly<Record<string, unknown>>;
  /** The worker has nothing more to do. */
  finished: boolean;
}

/** Until what follows: a start or the removal of a sandbox while many want one; or what is under way already. */
export type Wait = 'long' | 'brief';

/**
 * Two of them: a sandbox was made or a container created, and none has started since (nothing that waits for a pod can use
 * it yet); and a container of a deleted pod ended, of which the last word follows as soon as its sandbox is down. Null: said at
 * once. Endpoints follow readiness, also that of a deleted pod: while something of it runs, a change of it never waits.
 */
export function passing({ target, next, patch, finished }: Change): Wait | null {
  const { status } = target;
  if (target.metadata.deletionTimestamp) {
    if (finished || isTerminal(next.phase)) return null;
    if (!changesReadiness(status, next)) return 'long';
    return somethingRuns(next) ? null : 'brief';
  }
  // The first word about a pod never waits.
  if (status.phase !== 'Pending' || next.phase !== 'Pending' || !status.startTime) return null;
  const isNext =
    Object.keys(patch).every((field) => OF_A_SANDBOX.has(field)) &&
    conditionsOf(patch).every((c) => c.type === SANDBOX_CONDITION && c.status === 'True') &&
    sameStates(status.containerStatuses, next.containerStatuses) &&
    sameStates(status.initContainerStatuses, next.initContainerStatuses);
  return isNext ? 'long' : null;
}

function somethingRuns({ containerStatuses = [], initContainerStatuses = [] }: PodStatus): boolean {
  return [...containerStatuses, ...initContainerStatuses].some((c) => c.state.running !== undefined);
}

function changesReadiness(before: PodStatus, next: PodStatus): boolean {
  const readiness = ({ conditions = [], containerStatuses = [] }: PodStatus) => [
    conditions.filter((c) => READINESS.has(c.type) && c.status === 'True').map((c) => c.type),
    containerStatuses.filter((c) => c.ready).map((c) => c.name),
  ];
  const sorted = (status: PodStatus) => readiness(status).map((names) => names.sort());
  return !sameData(sorted(before), sorted(next));
}

function conditionsOf(patch: Readonly<Record<string, unknown>>): readonly { type?: string; status?: string }[] {
  return Array.isArray(patch.conditions) ? patch.conditions : [];
}

type Statuses = PodStatus['containerStatuses'];
function sameStates(before: Statuses, after: Statuses): boolean {
  const states = (all: Statuses) => (all ?? []).map((c) => [c.name, c.state, c.restartCount]);
  return sameData(states(before), states(after));
}

/**
 * That a container that runs on is ready, or has started, would be taken back, and not because of its probes: they found
 * otherwise, or have still to take over what the API server shows. The status that follows from them is about to come.
 */
export function isOvertaken({ pod, target, next, probes }: Pick<Change, 'target' | 'next'> & { pod: Pod; probes: ProbeLedger }): boolean {
  if (target.metadata.deletionTimestamp) return false;
  const shown = new Map((target.status.containerStatuses ?? []).map((c) => [c.containerID, c]));
  const probed = new Set(pod.spec.containers.filter(decidesReadiness).map(({ name }) => name));
  return (next.containerStatuses ?? []).some((c) => {
    const was = shown.get(c.containerID);
    const [ready, started] = [was?.ready === true && !c.ready, was?.started === true && c.started !== true];
    if (!(ready || started) || c.state.running === undefined) return false;
    const found = probes.get(c.containerID?.split('://').at(-1) ?? '');
    if (found === undefined) return probed.has(c.name);
    const passes = (result: ProbeResult | undefined) => result === undefined || result === 'success';
    return found.unheard === true || (passes(found.startup) && (started || passes(found.readiness)));
  });
}

function decidesReadiness(container: Pod['spec']['containers'][number]): boolean {
  return container[PROBE_FIELDS.startup] !== undefined || container[PROBE_FIELDS.readiness] !== undefined;
}

/** Conditions that are as they were shown keep the time since when, while the same containers run: a change that was never written is none. */
export function withTimesOf(shown: PodStatus, next: PodStatus): PodStatus {
  const ids = ({ containerStatuses = [] }: PodStatus) => containerStatuses.map((c: ContainerStatus) => c.containerID ?? '').sort();
  if (!sameData(ids(shown), ids(next))) return next;
  const before = new Map((shown.conditions ?? []).map((c) => [c.type, c]));
  const conditions = (next.conditions ?? []).map((c) => {
    const was = before.get(c.type);
    return was?.status === c.status && was.lastTransitionTime ? { ...c, lastTransitionTime: was.lastTransitionTime } : c;
  });
  return { ...next, conditions };
}
