/**
 * Sets other resources of running containers, one step after the other. It stands beside the worker's loop, so that what
 * cannot be set holds up no start and no stop; the worker feeds it what is to be done, and looks again when it reports.
 */

import { assign, sendParent } from 'xstate';
import { quantityToInteger } from '../../kube/quantity.ts';
import type { Pod } from '../../kube/types.ts';
import { beforeSteps, type ResizeStep } from '../../pod/resources/actuation.ts';
import { WHOLE_POD } from '../../pod/resources/amounts.ts';
import { heldInAll } from '../../pod/resources/podLevel.ts';
import { retryDelayMs } from '../../supervision/restartPolicy.ts';
import { messageOf } from '../../text/errors.ts';
import { podName, projecting, some } from '../../xstate/projection.ts';
import { unprovided } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';

export interface ResizeIo {
  /** Bytes of memory that each of them uses now. Of which the runtime does not say it, it is not in there. */
  memoryUsage(of: UsageOf, signal: AbortSignal): Promise<MemoryUsage>;
  /** Null: it is set; else why it is not, or perhaps not. May be repeated. */
  updateResources(input: Update, signal: AbortSignal): Promise<string | null>;
}
export interface UsageOf {
  pod: Pod;
  sandboxId: string;
  /** {@link WHOLE_POD}: of all containers. */
  containerIds: readonly string[];
}
/** By container id, and {@link WHOLE_POD}. */
export type MemoryUsage = ReadonlyMap<string, number>;
export interface Update {
  pod: Pod;
  /** The pod's sandbox; '' where it has none. */
  sandboxId: string;
  /** With what is in force yet. */
  before: Pod;
  step: ResizeStep;
  /** No other is to follow. */
  last: boolean;
}
export type ResizeReport =
  | { type: 'resize.set'; step: ResizeStep }
  /** Null: what had failed is wanted no longer. */
  | { type: 'resize.trouble'; message: string | null }
  | { type: 'resize.acted'; why: string };
type ResizeEvent = { type: 'resize.wanted' } & Input;

/** First wait after a failure; doubles to {@link RESIZE_RETRY_MS_MAX}, lengthened by up to half. */
const RESIZE_RETRY_MS = 1_000;
const RESIZE_RETRY_MS_MAX = 60_000;

interface Context {
  pod: Pod;
  sandboxId: string;
  steps: readonly ResizeStep[];
  /** What the steps were when one of them failed. */
  failedKey: string;
  failuresInRow: number;
  message: string;
  waitMs: number;
}
type Input = Pick<Context, 'pod' | 'sandboxId' | 'steps'>;

function keyOf(steps: readonly ResizeStep[]): string {
  return JSON.stringify(steps.map(({ containerId, resource, to }) => [containerId, resource, to]));
}
function firstOf({ steps }: Context): ResizeStep {
  const step = steps[0];
  if (step === undefined) throw new Error('resize: no step to take');
  return step;
}

const { setup, facts } = setupWith();

export const resizeMachine = setup({
  types: { context: {} as Context, events: {} as ResizeEvent, input: {} as Input },
  actors: {
    memoryUsage: unprovided<MemoryUsage, UsageOf>(),
    updateResources: unprovided<string | null, Update>(),
  },
  actions: {
    take: assign(({ event: { pod, sandboxId, steps } }) => ({ pod, sandboxId, steps })),
    forgetFailures: assign({ failuresInRow: 0, failedKey: '' }),
    sayStep: sendParent(({ context }): ResizeReport => ({ type: 'resize.set', step: firstOf(context) })),
    dropStep: assign(({ context }) => ({ steps: context.steps.slice(1), failuresInRow: 0, failedKey: '' })),
    fail: assign(({ context }, { message }: { message: string }) => ({
      message,
      failedKey: keyOf(context.steps),
      failuresInRow: context.failuresInRow + 1,
      waitMs: retryDelayMs({ minMs: RESIZE_RETRY_MS, maxMs: RESIZE_RETRY_MS_MAX, jitter: 0.5 }, context.failuresInRow, facts().random),
    })),
    sayTrouble: sendParent(({ context }): ResizeReport => ({ type: 'resize.trouble', message: context.message })),
    sayRecovered: sendParent((): ResizeReport => ({ type: 'resize.trouble', message: null })),
    acted: sendParent((_, { why }: { why: string }): ResizeReport => ({ type: 'resize.acted', why })),
  },
  guards: {
    nothingLeft: ({ context }) => context.steps.length === 0,
    lowersMemory: ({ context }) => lowering(context).length > 0,
    asksForSome: ({ event }) => event.steps.length > 0,
    isAnother: ({ context, event }) => keyOf(event.steps) !== context.failedKey,
    isOutdated: ({ context, event }) => keyOf(event.steps) !== keyOf(context.steps),
  },
  delays: { wait: ({ context }) => context.waitMs },
}).createMachine({
  id: 'resize',
  meta: projecting<Context>(({ pod, steps, failuresInRow, message, waitMs }) => ({
    pod: podName(pod),
    steps: some(steps, ({ name, resource }) => `${name === WHOLE_POD ? 'the pod' : name}: ${resource}`),
    ...{ failuresInRow, message, waitMs },
  })),
  context: ({ input }) => ({ ...input, failedKey: '', failuresInRow: 0, message: '', waitMs: 0 }),
  initial: 'choosing',
  states: {
    idle: {
      meta: { reason: 'InForce', message: 'what was granted is in force' },
      on: { 'resize.wanted': { guard: 'asksForSome', target: 'choosing', actions: ['take'] } },
    },
    choosing: {
      always: [
        { guard: 'nothingLeft', target: 'idle', actions: [{ type: 'acted', params: { why: 'resources of a container were changed' } }] },
        { guard: 'lowersMemory', target: 'measuring' },
        { target: 'updating' },
      ],
    },
    measuring: {
      meta: { reason: 'MeasuringMemory', message: 'asking how much memory is in use before its limit is lowered' },
      invoke: {
        src: 'memoryUsage',
        input: ({ context }) => ({
          pod: context.pod,
          sandboxId: context.sandboxId,
          containerIds: limits(context).map(({ containerId }) => containerId),
        }),
        onDone: [
          {
            guard: ({ context, event }) => tooLow(context, event.output).length > 0,
            target: 'failed',
            actions: { type: 'fail', params: ({ context, event }) => ({ message: tooLowText(tooLow(context, event.output)) }) },
          },
          { target: 'updating' },
        ],
        onError: { target: 'failed', actions: { type: 'fail', params: ({ event }) => ({ message: messageOf(event.error) }) } },
      },
      // A limit is not lowered that was raised again meanwhile.
      on: { 'resize.wanted': { guard: 'isOutdated', target: 'choosing', actions: ['take'] } },
    },
    updating: {
      meta: { reason: 'UpdatingResources', message: 'the runtime is setting what was granted' },
      invoke: {
        src: 'updateResources',
        input: ({ context }) => ({
          pod: context.pod,
          sandboxId: context.sandboxId,
          before: beforeSteps(context.pod, context.steps),
          step: firstOf(context),
          last: context.steps.length === 1,
        }),
        onDone: [
          {
            guard: ({ event }) => event.output !== null,
            target: 'failed',
            actions: { type: 'fail', params: ({ event }) => ({ message: event.output ?? '' }) },
          },
          { target: 'choosing', actions: ['sayStep', 'dropStep'] },
        ],
        onError: { target: 'failed', actions: { type: 'fail', params: ({ event }) => ({ message: messageOf(event.error) }) } },
      },
    },
    failed: {
      meta: { reason: 'ResizeFailed', message: ({ message }: Context) => message },
      entry: ['sayTrouble'],
      after: { wait: { target: 'choosing' } },
      on: { 'resize.wanted': { guard: 'isAnother', target: 'choosing', actions: ['take', 'forgetFailures', 'sayRecovered'] } },
    },
  },
});

/** All of them are looked at before the first is taken: a change is not carried out by half. */
function lowering({ steps }: Pick<Context, 'steps'>): (ResizeStep & { lowersTo: number })[] {
  return steps.flatMap((step) => (step.lowersTo === null ? [] : { ...step, lowersTo: step.lowersTo }));
}
interface Limit {
  /** {@link WHOLE_POD}: of the pod. */
  containerId: string;
  name: string;
  bytes: number;
}
/** That of the pod first: its cgroup is lowered with its containers. */
function limits(context: Pick<Context, 'steps' | 'pod'>): Limit[] {
  const steps = lowering(context).map(({ containerId, name, lowersTo }) => ({ containerId, name, bytes: lowersTo }));
  const whole = quantityToInteger(heldInAll(context.pod, 'memory'));
  const containers = steps.filter(({ containerId }) => containerId !== WHOLE_POD);
  return [...(whole > 0 ? [{ containerId: WHOLE_POD, name: WHOLE_POD, bytes: whole }] : []), ...containers];
}

/** What is in the way, in the words of the kubelet. */
function tooLow(context: Pick<Context, 'steps' | 'pod'>, usage: MemoryUsage): string[] {
  return limits(context).flatMap(({ containerId, name, bytes }) => {
    const what = containerId === WHOLE_POD ? 'pod' : `container ${JSON.stringify(name)}`;
    const used = usage.get(containerId);
    if (used === undefined) return [`missing ${what} memory usage`];
    return used < bytes ? [] : [`attempting to set ${what} memory limit (${bytes}) below current usage (${used})`];
  });
}
function tooLowText(errors: readonly string[]): string {
  return `cannot decrease memory limits: ${errors.length === 1 ? errors[0] : `[${errors.join(', ')}]`}`;
}
