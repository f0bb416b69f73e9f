/** The pod is given another definition, or is to end. */

import { samePodAmounts } from '../../../pod/resources/amounts.ts';
import { usesClaims } from '../../../pod/resources/claims.ts';
import { effectiveGraceSeconds } from '../../../pod/runtime/killOrder.ts';
import { EVICTED } from '../../../reclaim/eviction/messages.ts';
import { joinCauses } from '../../../supervision/address.ts';
import { isDeleting, type WorkerContext } from '../context.ts';
import { declared, type Step } from './declared.ts';

/** The kubelet's. A runtime has this long at least, whatever the grace. */
const OVERDUE_SECONDS_MIN = 10;

/** What was given with the stop. */
function overrideOf({ end }: WorkerContext): number | null {
  return end.kill?.graceOverride ?? null;
}

export const endActions = {
  takePod: declared.assign(({ context, event }) => {
    if (event.type !== 'pod.update') return {};
    const { pod } = event;
    const isGrant = !context.runtimeOnly && !samePodAmounts(pod, context.pod);
    return {
      ...{ pod, causes: joinCauses(context.causes, event.causes) },
      ...(isGrant ? { resize: { ...context.resize, grantedGeneration: pod.metadata.generation } } : {}),
    };
  }),
  takeKill: declared.assign(({ context, event }) => {
    if (event.type !== 'pod.kill') return {};
    const { end } = context;
    const was = overrideOf(context);
    const asked = event.graceOverrideSeconds;
    const graceOverride = asked === undefined ? was : Math.min(asked, was ?? Number.POSITIVE_INFINITY);
    return {
      end: { ...end, kill: { graceOverride, status: event.status ?? end.kill?.status ?? null } },
      causes: joinCauses(context.causes, event.causes),
    };
  }),
  computeGrace: declared.assign(({ context }) => {
    const { pod, end } = context;
    const graceSeconds = effectiveGraceSeconds({ pod, current: end.graceSeconds, override: overrideOf(context) });
    return { end: { ...end, graceSeconds } };
  }),
  notePreStop: declared.assign(({ context: { end, status }, event }) => {
    if (event.type !== 'preStop.ended') return {};
    const there = new Set(status?.containers.map((c) => c.id));
    return { end: { ...end, preStopped: new Set([...end.preStopped, event.containerId].filter((id) => there.has(id))) } };
  }),
};

export const endGuards = {
  /** Not left in the mailbox by a pod manager that is no more; 0 means whichever life there is. */
  ofThisLife: ({ context, event }: Step) =>
    event.type !== 'pod.kill' || event.life === 0 || context.life === undefined || event.life === context.life,
  /** The message that started this worker: it began with that. */
  itsStart: ({ context, event }: Step) => event.type === 'pod.update' && event.kind === 'create' && event.pod === context.pod,
  deletes: ({ event }: Step) => event.type === 'pod.update' && isDeleting(event.pod),
  terminating: ({ context }: Step) => context.end.kill !== null || context.runtimeOnly || isDeleting(context.pod),
  usesClaims: ({ context }: Step) => usesClaims(context.pod),
  /** The node evicted or preempted it, or ends it for a shutdown, and waits for its end. Eviction over its own limits is no disruption. */
  endedByNode: ({ context: { end } }: Step) => end.kill?.status?.disruption !== undefined || end.kill?.status?.reason === EVICTED,
  graceShrank: ({ context, event }: Step) => {
    const { graceSeconds } = context.end;
    const pod = event.type === 'pod.update' ? event.pod : context.pod;
    const override = event.type === 'pod.kill' ? (event.graceOverrideSeconds ?? overrideOf(context)) : overrideOf(context);
    const next = effectiveGraceSeconds({ pod, current: graceSeconds, override });
    return graceSeconds !== null && next < graceSeconds;
  },
};

export const endDelays = {
  overdue: ({ context: { end } }: Step) => Math.max(OVERDUE_SECONDS_MIN, Math.floor(1.5 * (end.graceSeconds ?? 0))) * 1000,
};
