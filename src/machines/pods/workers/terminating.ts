/** Terminating: stop everything within the grace, check that it is stopped. Only a shorter grace interrupts it. */
import { assign } from 'xstate';
import { CLAIMS_RETRY_MS, podStop, stopTrouble, troubleOf, type WorkerContext } from './context.ts';
import { isKnown, nothingCame } from './guards.ts';
import { workerSetup } from './setup.ts';

const EXCEEDED = {
  type: 'Warning',
  reason: 'ExceededGracePeriod',
  message: 'Container runtime did not kill the pod within specified grace period.',
} as const;

export const terminating = workerSetup.createStateConfig({
  meta: { phase: 'terminating' },
  initial: 'choosing',
  entry: [
    'dropChildren',
    'computeGrace',
    { type: 'terminalStatus', params: { podIsTerminal: false } },
    { type: 'publish', params: { finished: false } },
    'report',
  ],
  on: {
    'pod.kill': [
      { guard: 'graceShrank', target: '.fencing', reenter: false, actions: ['takeKill', 'computeGrace'] },
      { actions: ['takeKill', 'computeGrace'] },
    ],
    'pod.update': [
      { guard: 'graceShrank', target: '.fencing', reenter: false, actions: ['takePod', 'computeGrace'] },
      { actions: ['takePod', 'computeGrace'] },
    ],
    // Readiness is probed to the end (trap 40): what a hint brings may be a probe's result.
    'pod.dirty': {
      actions: [
        'markDirty',
        { type: 'terminalStatus', params: { podIsTerminal: false } },
        { type: 'publish', params: { finished: false } },
      ],
    },
  },
  after: { overdue: { guard: 'endedByNode', actions: { type: 'recordEvent', params: EXCEEDED } } },
  states: {
    choosing: { always: [{ guard: 'quiet', target: 'judging' }, { target: 'fencing' }] },
    fencing: {
      meta: { reason: 'Terminating', message: 'waiting for the act in flight to settle or be cancelled' },
      invoke: {
        src: 'fence',
        input: ({ context }) => ({ uid: context.uid }),
        onDone: { target: 'inspecting' },
        onError: { target: 'again', actions: { type: 'trouble', params: ({ event }) => stopTrouble(event.error) } },
      },
    },
    inspecting: {
      meta: { reason: 'Terminating', message: 'asking the runtime what is still up' },
      invoke: {
        src: 'inspect',
        input: ({ context }) => ({ uid: context.uid, stopping: true, partial: isKnown(context) }),
        onDone: { target: 'judging', actions: [assign(({ event }) => ({ status: event.output }))] },
        onError: { target: 'again', actions: { type: 'trouble', params: ({ event }) => stopTrouble(event.error) } },
      },
    },
    judging: { always: [{ guard: 'somethingUp', target: 'stopping' }, { target: 'done' }] },
    stopping: {
      meta: {
        reason: 'Terminating',
        message: ({ graceSeconds }: WorkerContext) => `containers were asked to stop; waiting for them, ${graceSeconds ?? 0} s at most`,
      },
      invoke: {
        src: 'stopPod',
        input: ({ context }) => podStop(context, { graceSeconds: context.graceSeconds, forSandbox: false }),
        onDone: [
          {
            guard: ({ event }) => event.output.kind === 'failed',
            target: 'again',
            actions: { type: 'trouble', params: ({ event }) => stopTrouble(event.output) },
          },
          { target: 'verifying' },
        ],
        onError: { target: 'again', actions: { type: 'trouble', params: ({ event }) => stopTrouble(event.error) } },
      },
      after: { killed: { actions: [{ type: 'severVolumes', params: ({ context: { pod } }) => ({ pod }) }] } },
    },
    verifying: {
      meta: { reason: 'Terminating', message: 'checking that nothing of this pod is left running' },
      invoke: {
        src: 'inspect',
        input: ({ context }) => ({ uid: context.uid, stopping: true, partial: nothingCame(context) }),
        onDone: { target: 'verified', actions: [assign(({ event }) => ({ status: event.output }))] },
        onError: { target: 'again', actions: { type: 'trouble', params: ({ event }) => stopTrouble(event.error) } },
      },
    },
    verified: {
      always: [
        {
          guard: 'containersUp',
          target: 'again',
          actions: { type: 'trouble', params: stopTrouble('a container is still running after it was stopped') },
        },
        { target: 'done' },
      ],
    },
    again: {
      meta: { reason: 'FailedKillPod', message: ({ trouble }: WorkerContext) => trouble?.message ?? '' },
      entry: [
        {
          type: 'recordEvent',
          params: ({ context }) => ({
            type: 'Warning' as const,
            reason: 'FailedKillPod',
            message: `error killing pod: ${context.trouble?.message ?? ''}`,
          }),
        },
        'report',
      ],
      after: { wait: { target: 'fencing' } },
    },
    done: { always: [{ guard: 'usesClaims', target: 'releasingClaims' }, { target: '#podWorker.terminated' }] },
    /** After its containers, and before the API hears that the pod has ended and lets others have the claims. */
    releasingClaims: {
      meta: {
        reason: 'ReleasingResourceClaims',
        message: 'waiting until drivers have unprepared the ResourceClaims that only this pod used',
      },
      entry: ['report'],
      invoke: {
        src: 'releaseClaims',
        input: ({ context }) => ({ pod: context.pod }),
        onDone: [
          {
            guard: ({ event }) => event.output.kind === 'failed',
            target: 'claimsHeld',
            actions: {
              type: 'trouble',
              params: ({ event }) => troubleOf('FailedUnprepareDynamicResources', event.output, CLAIMS_RETRY_MS),
            },
          },
          { target: '#podWorker.terminated' },
        ],
        onError: {
          target: 'claimsHeld',
          actions: { type: 'trouble', params: ({ event }) => troubleOf('FailedUnprepareDynamicResources', event.error, CLAIMS_RETRY_MS) },
        },
      },
    },
    claimsHeld: {
      meta: { reason: 'FailedUnprepareDynamicResources', message: ({ trouble }: WorkerContext) => trouble?.message ?? '' },
      entry: ['report'],
      after: { wait: { target: 'releasingClaims' } },
    },
  },
});
