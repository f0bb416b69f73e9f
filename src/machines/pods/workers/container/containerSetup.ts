/** Names of the container's machine: its context and events, its actors, actions, guards and delays. Actions are total. */

import { assertEvent, assign, sendParent } from 'xstate';
import { podDescription } from '../../../pod/podDescription.ts';
import type { CrashBackoffEntry, RuntimeContainer, StartFailure } from '../../../pod/runtime/seen.ts';
import type { ImageResult } from '../../../runtime/imagePuller/messages.ts';
import { retryDelayMs } from '../../../supervision/restartPolicy.ts';
import { unprovided, unprovidedAction } from '../../../xstate/provide.ts';
import { setupWith } from '../../../xstate/setup.ts';
import { containerStopMachine, type PreStopEnded } from './containerStopMachine.ts';
import { checkBackoff } from './crashBackoff.ts';
import { type HookOutcome, hookMachine } from './hookMachine.ts';
import type {
  ActOutcome,
  ContainerKind,
  ContainerReport,
  ContainerTimes,
  Created,
  CreateRequest,
  ImageUser,
  KeptContainer,
  KeptWait,
  StartJob,
  StartRequest,
} from './startJob.ts';

interface ContainerInput {
  name: string;
  kind: ContainerKind;
  times: ContainerTimes;
  /** Wall ms since which this worker has kept back-off in memory; earlier starts are judged by their restart count. */
  sinceWallMs: number;
  /** Of the worker that slept before this one. */
  kept?: KeptContainer;
}

export interface Context extends Omit<ContainerInput, 'kept'> {
  job: StartJob | null;
  observed: RuntimeContainer | null;
  imageRef: string;
  imageUser: ImageUser | null;
  containerId: string;
  restartCount: number;
  /** See {@link StartJob}; until the new instance is there. */
  clearedCount: number | null;
  /** Monotonic ms of the last act: only an inspection that began later shows its effect. */
  actedAtMonoMs: number;
  /** Its postStart hook has not ended yet (it may not have begun): it does not count as running. */
  hookAhead: boolean;
  failure: StartFailure | null;
  waitMs: number;
  /** Monotonic ms; of a back-off. */
  waitsUntilMonoMs: number;
  /** The back-off in which its worker slept, until it goes on in it. */
  slept: KeptWait | null;
  nextStartAtMs: number | null;
  backoff: CrashBackoffEntry | undefined;
  /** What it was before the present attempt: one that was told to come later counts for none. */
  backoffBefore: CrashBackoffEntry | undefined;
  backoffKey: string;
  /** Acts in a row that ended with an unknown outcome; null: the last one did not. */
  unknown: { inRow: number; failure: StartFailure; untilMonoMs: number } | null;
}

type ContainerEvent =
  | { type: 'container.observed'; current: RuntimeContainer | null; observedAtMonoMs: number }
  | { type: 'container.start'; job: StartJob }
  | { type: 'container.cancel' }
  /** The sandbox that it was to start in is given up. */
  | { type: 'container.sandboxGone' }
  /** To itself: the worker is to hear that a hook is ahead, or no more. */
  | { type: 'hook.told' }
  /** To itself: the inspection after its act has not shown it. */
  | { type: 'look.again' }
  | PreStopEnded;

/** Reason of a start for which something that the container's definition names is not there. */
const CONFIG_ERROR = 'CreateContainerConfigError';
/** It begins anew when it is told that something may be there now. */
export function awaitsSomething(failure: StartFailure | null): boolean {
  return failure?.later === true || failure?.reason === CONFIG_ERROR;
}

/** Reason of a container whose pod waits for something of the node. */
export const CREATING = 'ContainerCreating';
/**
 * Reason of a start that must wait for an earlier one of the same container, which the runtime has not ended with yet
 * (this node was killed in the middle of it): no failure, so it is looked at again soon.
 */
export const EARLIER_START = CREATING;
const EARLIER_START_RETRY_MS = 250;
/**
 * The first act of an unknown outcome is followed up at once: the runtime restarted under it, say. Each one after that waits,
 * at first this long, then twice as long each time up to the longest crash back-off.
 */
const UNKNOWN_RETRY_MS = 1_000;
/** Reason of a container that waits for its crash back-off. */
const CRASH_LOOP = 'CrashLoopBackOff';
/** Reason of a start whose postStart hook failed. */
export const POST_START_ERROR = 'PostStartHookError';
/** A container whose postStart hook failed and that could not be stopped is asked to stop again after this. */
export const STOP_RETRY_MS = 1_000;
/** An inspection that began in the very instant of the act may not show it; then another is asked for. */
export const OBSERVE_AGAIN_MS = 100;

const { setup, facts } = setupWith();

const effects = setup({
  types: {
    context: {} as Context,
    events: {} as ContainerEvent,
    input: {} as ContainerInput,
  },
  actors: {
    ensureImage: unprovided<ImageResult, { job: StartJob }>(),
    createContainer: unprovided<Created, CreateRequest>(),
    startContainer: unprovided<ActOutcome<null>, StartRequest>(),
    hook: hookMachine,
    containerStop: containerStopMachine,
  },
  actions: {
    recordBackOff: unprovidedAction<{ job: StartJob; failure: StartFailure }>(),
    sayHookFailed: unprovidedAction<{ job: StartJob; why: string }>(),
  },
});

export const containerSetup = effects.extend({
  actions: {
    report: sendParent(
      ({ context }): ContainerReport => ({
        type: 'container.report',
        name: context.name,
        failure: context.failure,
        nextStartAtMs: context.nextStartAtMs,
        hookAhead: context.hookAhead,
      }),
    ),
    expectHook: effects.enqueueActions(({ context, enqueue }) => {
      if (context.job?.container.lifecycle?.postStart === undefined) return;
      enqueue.assign({ hookAhead: true, containerId: '' });
      enqueue.raise({ type: 'hook.told' });
    }),
    /** It ran, or there will be none: what the runtime shows counts again. */
    hookOver: effects.enqueueActions(({ context, enqueue }) => {
      if (!context.hookAhead) return;
      enqueue.assign({ hookAhead: false });
      enqueue.raise({ type: 'hook.told' });
    }),
    noteHookFailure: assign((_, params: StartFailure) => ({ failure: params })),
    acted: sendParent(
      ({ context: { name } }, { why, known = false }: { why: string; known?: boolean }): ContainerReport => ({
        type: 'container.acted',
        name,
        why,
        known,
      }),
    ),
    unseen: sendParent(({ context: { name } }): ContainerReport => ({ type: 'container.unseen', name })),
    takeJob: assign(({ context, event }) => {
      assertEvent(event, 'container.start');
      return { job: context.clearedCount === null ? event.job : { ...event.job, clearedCount: context.clearedCount } };
    }),
    loseSandbox: assign(({ context }) => (context.job === null ? {} : { job: { ...context.job, sandboxId: '' } })),
    noteCleared: assign(({ context }) => ({ clearedCount: Math.max(context.clearedCount ?? 0, context.job?.restartCount ?? 0) })),
    observe: assign(({ event }) => {
      assertEvent(event, 'container.observed');
      return { observed: event.current };
    }),
    clearFailure: assign({ failure: null, nextStartAtMs: null }),
    waitOver: assign({ waitMs: 0 }),
    beginWait: assign(({ context: { waitMs } }) => ({ waitsUntilMonoMs: facts().monoMs + waitMs })),
    goOnWaiting: assign(({ context: { slept } }) => {
      if (slept === null) return {};
      const { untilMonoMs, ...wait } = slept;
      return { ...wait, slept: null, waitsUntilMonoMs: untilMonoMs, waitMs: Math.max(0, untilMonoMs - facts().monoMs) };
    }),
    stampAct: assign(() => ({ actedAtMonoMs: facts().monoMs })),
    fail: assign(({ context }, params: StartFailure) => {
      const moment = facts();
      const baseMs = params.reason === EARLIER_START && params.later !== true ? EARLIER_START_RETRY_MS : context.times.retryMs;
      const waitMs = baseMs * (1 + 0.5 * moment.random);
      return {
        ...{ failure: params, waitMs, nextStartAtMs: moment.wallMs + waitMs },
        ...(params.later === true ? { backoff: context.backoffBefore } : {}),
      };
    }),
    /** What may have had its effect is looked at; where it had none, the next attempt waits. */
    noteUnknown: assign(({ context }, { reason, message }: StartFailure) => {
      const { times, unknown } = context;
      const moment = facts();
      const inRow = (unknown?.inRow ?? 0) + 1;
      const waitMs = inRow === 1 ? 0 : retryDelayMs({ minMs: UNKNOWN_RETRY_MS, maxMs: times.backoffMaxMs }, inRow - 2);
      const failure = { reason, message: `${message} (outcome unknown ${inRow === 1 ? 'once' : `${inRow} times in a row`})` };
      return { unknown: { inRow, failure, untilMonoMs: moment.monoMs + waitMs * (1 + 0.5 * moment.random) } };
    }),
    known: assign({ unknown: null }),
    checkUnknown: assign(({ context }) => {
      const { unknown, failure } = context;
      const now = facts();
      if (failure !== null || unknown === null || unknown.untilMonoMs <= now.monoMs) return {};
      const waitMs = unknown.untilMonoMs - now.monoMs;
      return { failure: unknown.failure, waitMs, nextStartAtMs: now.wallMs + waitMs };
    }),
    checkBackoff: assign(({ context }) => {
      const { job, times } = context;
      if (job === null) return {};
      const now = facts();
      const entry = context.backoffKey === job.specKey ? context.backoff : undefined;
      const verdict = checkBackoff({
        entry,
        newestExited: job.newestExited,
        restartCount: job.newest?.restartCount ?? 0,
        nowWallMs: now.wallMs,
        nowMonoMs: now.monoMs,
        baseMs: Math.min(times.backoffBaseMs, times.backoffMaxMs),
        maxMs: times.backoffMaxMs,
        container: job.container,
        rememberedSinceWallMs: context.sinceWallMs,
      });
      if (verdict.allowed) {
        return {
          ...{ backoff: verdict.next, backoffBefore: entry, backoffKey: job.specKey },
          ...{ failure: null, waitMs: 0, nextStartAtMs: null },
        };
      }
      const waitMs = Math.max(1, verdict.retryAtWallMs - now.wallMs);
      const back = { backoff: verdict.entry, backoffKey: job.specKey, nextStartAtMs: verdict.retryAtWallMs };
      // Why it did not start is shown for a while before its back-off is.
      if (context.failure !== null && context.waitMs > 0) return { ...back, waitMs: Math.min(waitMs, context.waitMs) };
      return {
        ...{ ...back, waitMs },
        failure: {
          reason: CRASH_LOOP,
          message: `back-off ${goSeconds(verdict.delayMs)} restarting failed container=${context.name} pod=${podDescription(job.pod)}`,
        },
      };
    }),
  },
  delays: { wait: ({ context }) => context.waitMs },
  guards: {
    backingOff: ({ context }) => context.failure !== null,
    sleptInBackOff: ({ context }) => context.slept !== null,
    failedBefore: ({ context }) => context.failure !== null && context.failure.reason !== CRASH_LOOP,
    unknownBefore: ({ context }) => context.failure !== null && context.failure === context.unknown?.failure,
    /** It was not asked to start in another sandbox yet: containers before it may have to run there first. */
    sandboxGone: ({ context }) => context.job?.sandboxId === '',
    startedWithHook: ({ context }, { kind }: { kind: string }) => context.hookAhead && kind === 'done',
    /** Its start had an unknown outcome, or was given up, and it did start: its hook has not run to its end. */
    startedUnheard: ({ context, event }) =>
      context.hookAhead &&
      event.type === 'container.observed' &&
      event.current?.state === 'running' &&
      event.current.id === context.containerId,
    endedMeanwhile: ({ context, event }) =>
      event.type === 'container.observed' && event.current?.id === context.containerId && event.current.state === 'exited',
    observedRunning: ({ event }) => event.type === 'container.observed' && event.current?.state === 'running',
    observedExited: ({ event }) =>
      event.type === 'container.observed' && (event.current?.state === 'exited' || event.current?.state === 'unknown'),
    stale: ({ context, event }) => event.type === 'container.observed' && event.observedAtMonoMs <= context.actedAtMonoMs,
    /** The last start failed, and its wait is not over. */
    waitAhead: ({ context }) => context.failure !== null && context.waitMs > 0,
    specChanged: ({ context, event }) => event.type === 'container.start' && event.job.specKey !== context.job?.specKey,
    /** Its back-off is that of another definition, or a person asked for its start. */
    startsAnew: ({ context, event }) => event.type === 'container.start' && isAnew(event.job, context.job),
    /** What failed in another sandbox, with another definition, or for want of what has changed since, says nothing about this one. */
    freshGround: ({ context, event }) =>
      event.type === 'container.start' &&
      (isAnew(event.job, context.job) ||
        event.job.sandboxId !== context.job?.sandboxId ||
        (awaitsSomething(context.failure) && event.job.objectChanges !== context.job.objectChanges) ||
        (event.job.pod !== context.job.pod && JSON.stringify(event.job.pod.spec) !== JSON.stringify(context.job.pod.spec))),
  },
});

function isAnew(job: StartJob, before: StartJob | null): boolean {
  return job.specKey !== before?.specKey || job.timesAsked !== before.timesAsked;
}

export function hookStartFailure(outcome: HookOutcome): StartFailure {
  if (outcome.kind === 'done') return { reason: POST_START_ERROR, message: '' };
  return {
    reason: POST_START_ERROR,
    message: `${outcome.why}${outcome.output === '' ? '' : `, message: ${JSON.stringify(outcome.output)}`}`,
  };
}

export function required<T>(value: T | null): T {
  if (value === null) throw new Error('container machine: a start without a job');
  return value;
}

/** Go's duration text for whole seconds: `10s`, `1m20s`, `5m0s`. */
function goSeconds(ms: number): string {
  const s = Math.round(ms / 1000);
  return s < 60 ? `${s}s` : `${Math.floor(s / 60)}m${s % 60}s`;
}
