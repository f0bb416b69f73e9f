/** What the worker's steps hang on: its guards, by name. */

import { sameData } from '../../data/sameData.ts';
import { usesClaims } from '../../pod/resources/claims.ts';
import { effectiveGraceSeconds } from '../../pod/runtime/killOrder.ts';
import { hasNoNews, holdsNothingElse, listingAgrees } from '../../pod/runtime/listed.ts';
import { EVICTED } from '../../reclaim/eviction/messages.ts';
import { awaitsSomething } from './container/containerSetup.ts';
import type { PreStopEnded } from './container/containerStopMachine.ts';
import type { ContainerReport } from './container/startJob.ts';
import { ACTS_IN_ROW_MAX, CALM_AFTER_MS, decisionNow, facts, isDeleting, planActions, type WorkerContext } from './context.ts';
import { type Decision, deadlineAtMs } from './decide.ts';
import type { WorkerEvent } from './messages.ts';
import type { ResizeReport } from './resizeMachine.ts';

export type WorkerMachineEvent = WorkerEvent | ContainerReport | PreStopEnded | ResizeReport | { type: 'worker.resync' };
interface Step {
  context: WorkerContext;
  event: WorkerMachineEvent;
}

/** Changed objects are of interest to who waits for one. */
export function concerns({ failures }: WorkerContext, event: { type: string; objects?: 'only' | 'too' }): boolean {
  return event.objects !== 'only' || [...failures.values()].some(awaitsSomething);
}

function seen({ status }: WorkerContext): boolean {
  const { listing, ownIds } = facts();
  return status !== null && hasNoNews(listing, status, (id) => ownIds.has(id));
}

/** What was last inspected is all that can be up: no hint waits, and no listing shows anything else. */
export function isKnown(context: WorkerContext): boolean {
  return context.dirty === 'no' && context.ended.size === 0 && seen(context);
}

/** It is known, and no act of this worker is in flight or not looked at yet: neither a fence nor an inspection would tell anything. */
function isQuiet(context: WorkerContext): boolean {
  return facts().quiet && isKnown(context);
}

/** After a stop: whatever was seen before it, and nothing came to it meanwhile. */
export function nothingCame({ status }: WorkerContext): boolean {
  return status !== null && holdsNothingElse(facts().listing, status);
}

export const guards = {
  actKnown: ({ event }: Step) => event.type === 'container.acted' && event.known,
  /** Not left in the mailbox by a pod manager that is no more; 0 means whichever life there is. */
  ofThisLife: ({ context, event }: Step) =>
    event.type !== 'pod.kill' || event.life === 0 || context.life === undefined || event.life === context.life,
  nothingYet: ({ context }: Step) => context.status !== null,
  isDirty: ({ context }: Step) => context.dirty === 'yes',
  itCame: ({ event }: Step) => event.type === 'pod.dirty' && event.awaited === true,
  usesClaims: ({ context }: Step) => usesClaims(context.pod),
  terminating: ({ context }: Step) => context.killAsked || context.runtimeOnly || isDeleting(context.pod),
  /** The node evicted or preempted it, or ends it for a shutdown, and waits for its end. Eviction over its own limits is no disruption. */
  endedByNode: ({ context: { killStatus } }: Step) => killStatus?.disruption !== undefined || killStatus?.reason === EVICTED,
  quiet: ({ context }: Step) => isQuiet(context),
  graceShrank: ({ context, event }: Step) => {
    const pod = event.type === 'pod.update' ? event.pod : context.pod;
    const override = event.type === 'pod.kill' ? (event.graceOverrideSeconds ?? context.graceOverride) : context.graceOverride;
    const next = effectiveGraceSeconds({ pod, current: context.graceSeconds, override });
    return context.graceSeconds !== null && next < context.graceSeconds;
  },
  /** The message that started this worker: it began with that. */
  itsStart: ({ context, event }: Step) => event.type === 'pod.update' && event.kind === 'create' && event.pod === context.pod,
  deletes: ({ event }: Step) => event.type === 'pod.update' && isDeleting(event.pod),
  dirty: ({ context }: Step) => context.acted || context.dirty === 'yes' || (context.dirty === 'listed' && !seen(context)),
  /** What a listing found changed was already seen: it is most often the worker's own doing. Or it is of no interest here. */
  alreadySeen: ({ context, event }: Step) =>
    event.type === 'pod.dirty' && ((event.listed === true && seen(context)) || !concerns(context, event)),
  /**
   * All is as wanted and was just seen so: a look of its own would cost four calls and tell nothing. A due deadline is
   * another matter, and so is what the probes found since, if its hint was lost.
   */
  nothingNew: ({ context }: Step) => {
    const { status, failures } = context;
    const now = facts();
    const deadline = deadlineAtMs(context.pod, context.apiStatus);
    if (status === null || failures.size > 0 || (deadline !== null && deadline <= now.wallMs)) return false;
    const { plan, apiStatus } = decisionNow(context, status, now);
    if (plan.kind !== 'steady') return false;
    const { initToStart, containersToStart, ephemeralToStart } = plan.actions;
    if (initToStart.length + containersToStart.length + ephemeralToStart.length > 0) return false;
    return sameData(apiStatus, context.apiStatus) && listingAgrees(now.listing, status, now.monoMs);
  },
  endAwaited: ({ context }: Step) => context.ended.size > 0,
  noProgress: ({ context }: Step) => {
    const kind = context.decision?.plan.kind;
    const acts = kind === 'killPod' || kind === 'createSandbox' || kind === 'killContainers' || kind === 'resetContainers';
    const rested = facts().monoMs - context.lastActMonoMs > CALM_AFTER_MS;
    return acts && !rested && !context.calmed && context.actsInRow >= ACTS_IN_ROW_MAX;
  },
  heldBack: ({ context, event }: Step) =>
    context.heldBack === 'hook' || (context.heldBack === 'place' && event.type === 'container.report' && event.failure !== null),
  planIs: ({ context }: Step, params: { kind: Decision['plan']['kind'] }) => context.decision?.plan.kind === params.kind,
  mustCreate: ({ context }: Step) => planActions(context)?.createSandbox === true,
  somethingUp: ({ context }: Step) =>
    context.status === null ||
    context.status.containers.some((c) => c.state === 'running') ||
    context.status.sandboxes.some((s) => s.ready),
  containersUp: ({ context }: Step) => context.status?.containers.some((c) => c.state === 'running') === true,
};
