/** Terminating: stop everything within the grace, check that it is stopped. Only a shorter grace interrupts it. */
import { assign } from 'xstate';
import type { WorkerContext } from './context.ts';
import { attempt, CLAIMS_RETRY_MS, orFail, podStop, STOP_RETRY_MS, troubleOf } from './regions/act.ts';
import { isKnown, nothingCame } from './regions/look.ts';
import { workerSetup } from './setup.ts';

const EXCEEDED = {
  type: 'Warning',
  reason: 'ExceededGracePeriod',
  message: 'Container runtime did not kill the pod within specified grace period.',
} as const;

const KILL = { reason: 'FailedKillPod', baseMs: STOP_RETRY_MS, failed: 'again' } as const;
const CLAIMS = { reason: 'FailedUnprepareDynamicResources', baseMs: CLAIMS_RETRY_MS, failed: 'claimsHeld' } as const;

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
        ...orFail(KILL),
      },
    },
    inspecting: {
      meta: { reason: 'Terminating', message: 'asking the runtime what is still up' },
      invoke: {
        src: 'inspect',
        input: ({ context }) => ({ uid: context.uid, stopping: true, partial: isKnown(context) }),
        onDone: { target: 'judging', actions: [assign(({ event }) => ({ status: event.output }))] },
        ...orFail(KILL),
      },
    },
    judging: { always: [{ guard: 'somethingUp', target: 'stopping' }, { target: 'done' }] },
    stopping: {
      meta: {
        reason: 'Terminating',
        message: ({ end }: WorkerContext) => `containers were asked to stop; waiting for them, ${end.graceSeconds ?? 0} s at most`,
      },
      invoke: {
        src: 'stopPod',
        input: ({ context }) => podStop(context, { graceSeconds: context.end.graceSeconds, forSandbox: false }),
        ...attempt(KILL, { target: 'verifying' }),
      },
      after: { killed: { actions: [{ type: 'severVolumes', params: ({ context: { pod } }) => ({ pod }) }] } },
    },
    verifying: {
      meta: { reason: 'Terminating', message: 'checking that nothing of this pod is left running' },
      invoke: {
        src: 'inspect',
        input: ({ context }) => ({ uid: context.uid, stopping: true, partial: nothingCame(context) }),
        onDone: { target: 'verified', actions: [assign(({ event }) => ({ status: event.output }))] },
        ...orFail(KILL),
      },
    },
    verified: {
      always: [
        {
          guard: 'containersUp',
          target: 'again',
          actions: { type: 'trouble', params: troubleOf(KILL.reason, 'a container is still running after it was stopped', KILL.baseMs) },
        },
        { target: 'done' },
      ],
    },
    again: {
      meta: { reason: 'FailedKillPod', message: ({ act }: WorkerContext) => act.trouble?.message ?? '' },
      entry: [
        {
          type: 'recordEvent',
          params: ({ context }) => ({
            type: 'Warning' as const,
            reason: 'FailedKillPod',
            message: `error killing pod: ${context.act.trouble?.message ?? ''}`,
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
        ...attempt(CLAIMS, { target: '#podWorker.terminated' }),
      },
    },
    claimsHeld: {
      meta: { reason: 'FailedUnprepareDynamicResources', message: ({ act }: WorkerContext) => act.trouble?.message ?? '' },
      entry: ['report'],
      after: { wait: { target: 'releasingClaims' } },
    },
  },
});
