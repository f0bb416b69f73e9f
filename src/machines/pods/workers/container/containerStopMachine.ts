/**
 * The stop of one container: its preStop hook within the grace, then the wait for those that are to stop before it, then
 * TERM with what is left of the grace, 2 s at least (pod lifecycle 5.14).
 */

import { assign, sendParent } from 'xstate';
import type { Container } from '../../../kube/podTable.ts';
import type { Pod } from '../../../kube/types.ts';
import { type KillStep, stopTimeoutSeconds } from '../../../pod/runtime/killOrder.ts';
import type { StartFailure } from '../../../pod/runtime/seen.ts';
import { messageOf } from '../../../text/errors.ts';
import { names, podName, projecting } from '../../../xstate/projection.ts';
import { unprovided, unprovidedAction } from '../../../xstate/provide.ts';
import { setupWith } from '../../../xstate/setup.ts';
import { type HookIo, hookMachine } from './hookMachine.ts';

/** What an effect without a result came to. */
export type EffectOutcome = { kind: 'done' } | { kind: 'failed'; failure: StartFailure } | { kind: 'unknown'; details: string };

export interface StopRequest {
  pod: Pod;
  id: string;
  timeoutSeconds: number;
}
export interface StopIo extends HookIo {
  /** Asks the runtime to stop it: TERM now, KILL after `timeoutSeconds`. Settles when it has ended. */
  stopContainer(input: StopRequest, signal: AbortSignal): Promise<EffectOutcome>;
  event(pod: Pod, type: 'Normal' | 'Warning', reason: string, message: string, container?: Pick<Container, 'name'>): void;
  /** The sleep of a preStop hook was longer than the grace. */
  sleepCut(): void;
}

export interface ContainerStopInput {
  pod: Pod;
  podIPs: readonly string[];
  step: KillStep;
  /** Text of the event `Killing`. */
  message: string;
}

/** To the actor that started it. */
export interface PreStopEnded {
  type: 'preStop.ended';
  containerId: string;
}
/** What it came to. `failure` null: it has ended. */
export interface Stopped {
  containerId: string;
  failure: string | null;
}

/** From the actor that started it: a container that it waits for has ended, or could not be stopped. */
export interface EarlierEnded {
  type: 'earlier.ended';
  containerId: string;
}

interface Context extends ContainerStopInput {
  beganMonoMs: number;
  waitFor: ReadonlySet<string>;
  failure: string | null;
}

/** The container that an event is about. */
interface Said {
  pod: Pod;
  container: Pick<Container, 'name'>;
}
const saidOf = ({ pod, step }: Context): Said => ({ pod, container: { name: step.name } });

const { setup, facts } = setupWith();

export const containerStopMachine = setup({
  types: {
    context: {} as Context,
    events: {} as EarlierEnded,
    input: {} as ContainerStopInput,
    output: {} as Stopped,
  },
  actors: {
    hook: hookMachine,
    stopContainer: unprovided<EffectOutcome, StopRequest>(),
  },
  actions: {
    sayKilling: unprovidedAction<Said & { message: string }>(),
    sayHookFailed: unprovidedAction<Said & { why: string; sleeps: boolean }>(),
    hookEnded: sendParent(({ context }): PreStopEnded => ({ type: 'preStop.ended', containerId: context.step.id })),
    noteEarlier: assign(({ context, event }) => ({
      waitFor: new Set([...context.waitFor].filter((id) => id !== event.containerId)),
    })),
  },
  delays: {
    graceLeft: ({ context }) => Math.max(0, context.step.graceSeconds * 1000 - (facts().monoMs - context.beganMonoMs)),
  },
  guards: {
    hasHook: ({ context }) => context.step.preStop !== undefined,
    nobodyAhead: ({ context }) => context.waitFor.size === 0,
  },
}).createMachine({
  id: 'containerStop',
  meta: projecting<Context>(({ pod, step, message, beganMonoMs, waitFor, failure }) => ({
    ...{ pod: podName(pod), container: step.name, id: step.id, graceSeconds: step.graceSeconds, hasHook: step.preStop !== undefined },
    waitFor: names(waitFor),
    ...{ message, beganMonoMs, failure },
  })),
  context: ({ input }) => ({ ...input, beganMonoMs: facts().monoMs, waitFor: new Set(input.step.waitForIds), failure: null }),
  initial: 'choosing',
  entry: [{ type: 'sayKilling', params: ({ context }) => ({ ...saidOf(context), message: context.message }) }],
  output: ({ context }) => ({ containerId: context.step.id, failure: context.failure }),
  on: { 'earlier.ended': { actions: ['noteEarlier'] } },
  states: {
    choosing: { always: [{ guard: 'hasHook', target: 'hooking' }, { target: 'waiting' }] },
    hooking: {
      meta: { reason: 'PreStopHook', message: 'its preStop hook runs, within the grace' },
      invoke: {
        src: 'hook',
        input: ({ context: { pod, podIPs, step } }) => ({
          job: {
            which: 'preStop' as const,
            handler: step.preStop ?? {},
            pod,
            container: step.container ?? { name: step.name },
            containerId: step.id,
            podIPs,
          },
          limitMs: step.graceSeconds * 1000,
        }),
        onDone: [
          {
            guard: ({ event }) => event.output.kind === 'failed',
            target: 'waiting',
            actions: [
              {
                type: 'sayHookFailed',
                params: ({ context, event }) => ({
                  ...saidOf(context),
                  why: event.output.kind === 'failed' ? event.output.why : '',
                  sleeps: context.step.preStop?.sleep !== undefined,
                }),
              },
              'hookEnded',
            ],
          },
          { target: 'waiting', actions: ['hookEnded'] },
        ],
      },
    },
    waiting: {
      meta: { reason: 'Waiting', message: 'containers that stop before it have not ended' },
      always: { guard: 'nobodyAhead', target: 'stopping' },
      after: { graceLeft: { target: 'stopping' } },
    },
    stopping: {
      meta: { reason: 'Stopping', message: 'it was asked to stop; waiting for it or for the end of its grace' },
      invoke: {
        src: 'stopContainer',
        input: ({ context: { pod, step, beganMonoMs } }) => ({
          pod,
          id: step.id,
          timeoutSeconds: stopTimeoutSeconds(step.graceSeconds, facts().monoMs - beganMonoMs),
        }),
        onDone: { target: 'ended', actions: [assign(({ event }) => ({ failure: failureOf(event.output) }))] },
        onError: {
          target: 'ended',
          actions: [assign(({ event }) => ({ failure: messageOf(event.error) }))],
        },
      },
    },
    ended: { type: 'final' },
  },
});

function failureOf(settled: EffectOutcome): string | null {
  if (settled.kind === 'done') return null;
  return settled.kind === 'failed' ? settled.failure.message : settled.details;
}
