/** When the worker looks at the runtime again: what came since its last inspection began, and announced ends that it awaits. */

import { sameData } from '../../../data/sameData.ts';
import { deadlineAtMs } from '../../../pod/ends/byNode.ts';
import { hasNoNews, holdsNothingElse, listingAgrees } from '../../../pod/runtime/listed.ts';
import { joinCauses } from '../../../supervision/address.ts';
import type { Moment } from '../../../xstate/facts.ts';
import { toStart } from '../actions/podActions.ts';
import { awaitsSomething } from '../container/containerSetup.ts';
import { facts, type KeptWorker, type Look, type WorkerContext, type WorkerFacts } from '../context.ts';
import { declared, type Step } from './declared.ts';
import { decisionNow } from './plan.ts';

/** An end is announced before the runtime's ledgers show it: looked for again after each of these. */
const CHASE_DELAYS_MS = [10, 20, 40, 80, 160, 320, 640] as const;

/** Changed objects are of interest to who waits for one. */
function concerns({ starts }: WorkerContext, event: { type: string; objects?: 'only' | 'too' }): boolean {
  return event.objects !== 'only' || [...starts.failures.values()].some(awaitsSomething);
}
function hintOf(was: Look['hint'], event: { type: string; listed?: boolean }): Look['hint'] {
  return event.type === 'pod.dirty' && event.listed === true && was !== 'yes' ? 'listed' : 'yes';
}
function oneMore({ objectChanges = 0 }: Look): Pick<Look, 'objectChanges'> {
  return { objectChanges: objectChanges + 1 };
}

function seen({ status }: WorkerContext): boolean {
  const { listing, ownIds } = facts();
  return status !== null && hasNoNews(listing, status, (id) => ownIds.has(id));
}
/** What was last inspected is all that can be up: no hint waits, and no listing shows anything else. */
export function isKnown(context: WorkerContext): boolean {
  return context.look.hint === 'no' && context.look.ended.size === 0 && seen(context);
}
/** After a stop: whatever was seen before it, and nothing came to it meanwhile. */
export function nothingCame({ status }: WorkerContext): boolean {
  return status !== null && holdsNothingElse(facts().listing, status);
}

/**
 * All is as wanted and was just seen so: a look of its own would cost four calls and tell nothing. A due deadline is
 * another matter, and so is what the probes found since, if its hint was lost.
 */
function isNothingNew(context: WorkerContext, now: WorkerFacts): boolean {
  const { status, starts } = context;
  const deadline = deadlineAtMs(context.pod, context.apiStatus);
  if (status === null || starts.failures.size > 0 || (deadline !== null && deadline <= now.wallMs)) return false;
  const { plan, apiStatus } = decisionNow(context, status, now);
  if (plan.kind !== 'steady' || toStart(plan.actions).size > 0) return false;
  return sameData(apiStatus, context.apiStatus) && listingAgrees(now.listing, status, now.monoMs);
}

function resyncMs({ times, pod, apiStatus }: WorkerContext, now: Moment): number {
  const ms = times.resyncMs * (1 + 0.5 * now.random);
  const deadline = deadlineAtMs(pod, apiStatus);
  return deadline === null ? ms : Math.max(1, Math.min(ms, deadline - now.wallMs + 1));
}

/** The look of a worker that sleeps came due. Monotonic ms of the next one, if there is nothing new; null: it must look itself. */
export function lookAsleep({ context }: KeptWorker, now: WorkerFacts): number | null {
  return isNothingNew(context, now) ? now.monoMs + resyncMs(context, now) : null;
}

export const lookActions = {
  markDirty: declared.assign(({ context, event }) => {
    const { look, causes } = context;
    const isHint = event.type === 'pod.dirty';
    return {
      look: {
        ...look,
        hint: concerns(context, event) ? hintOf(look.hint, event) : look.hint,
        ...(isHint && (event.objects !== undefined || event.awaited === true) ? oneMore(look) : {}),
        ...(isHint && event.ended !== undefined ? { ended: new Set([...look.ended, ...event.ended]), chases: 0 } : {}),
      },
      causes: joinCauses(causes, 'causes' in event ? event.causes : undefined),
    };
  }),
  noteObjects: declared.assign(({ context: { look }, event }) =>
    event.type === 'pod.dirty' && event.objects !== undefined ? { look: { ...look, ...oneMore(look) } } : {},
  ),
  noteActed: declared.assign(({ context: { look } }) => ({ look: { ...look, own: true } })),
  /** A partial inspection answers for no hint; a listing that is behind it is found to be so afterwards. */
  beginInspection: declared.assign(({ context: { look } }) => {
    const reads = look.own && look.hint !== 'yes' && look.ended.size === 0 ? ('own' as const) : ('all' as const);
    return { look: { ...look, reads, own: false, hint: reads === 'own' ? look.hint : ('no' as const) } };
  }),
  /** An announced end that the inspection shows, or that was looked for long enough, is not looked for again. */
  settleEnded: declared.assign(({ context: { look, status } }) => {
    if (look.ended.size === 0) return {};
    const up = new Set(status?.containers.filter((c) => c.state === 'running').map((c) => c.id));
    const ended = look.chases < CHASE_DELAYS_MS.length ? new Set([...look.ended].filter((id) => up.has(id))) : new Set<string>();
    return { look: { ...look, ended } };
  }),
  forgetDue: declared.assign(({ context: { look } }) =>
    look.dueAtMonoMs === undefined ? {} : { look: { ...look, dueAtMonoMs: undefined } },
  ),
  countChase: declared.assign(({ context: { look } }) => ({ look: { ...look, chases: look.chases + 1 } })),
};

export const lookGuards = {
  woken: ({ context }: Step) => context.kept !== undefined,
  nothingYet: ({ context }: Step) => context.status !== null,
  isDirty: ({ context }: Step) => context.look.hint === 'yes',
  dirty: ({ context }: Step) => {
    const { own, hint } = context.look;
    return own || hint === 'yes' || (hint === 'listed' && !seen(context));
  },
  endAwaited: ({ context }: Step) => context.look.ended.size > 0,
  actKnown: ({ event }: Step) => event.type === 'container.acted' && event.known,
  itCame: ({ event }: Step) => event.type === 'pod.dirty' && event.awaited === true,
  /** What a listing found changed was already seen: it is most often the worker's own doing. Or it is of no interest here. */
  alreadySeen: ({ context, event }: Step) =>
    event.type === 'pod.dirty' && ((event.listed === true && seen(context)) || !concerns(context, event)),
  /** It is known, and no act of this worker is in flight or not looked at yet: neither a fence nor an inspection would tell anything. */
  quiet: ({ context }: Step) => facts().quiet && isKnown(context),
  nothingNew: ({ context }: Step) => isNothingNew(context, facts()),
};

export const lookDelays = {
  chase: ({ context: { look } }: Step) => CHASE_DELAYS_MS[look.chases - 1] ?? 0,
  /** 60 to 90 s by default, or the active deadline if that comes first. */
  resync: ({ context }: Step) => {
    const { dueAtMonoMs } = context.look;
    const now = facts();
    return dueAtMonoMs === undefined ? resyncMs(context, now) : Math.max(0, dueAtMonoMs - now.monoMs);
  },
};
