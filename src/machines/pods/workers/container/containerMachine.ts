/**
 * One container of one pod, as a statechart inside its pod's worker: waiting, backing off, pulling, creating,
 * starting, running, exited. It never looks at the runtime; the worker feeds it what was observed and asks it to
 * start. Every state names its reason. Side effects (pull, create, start) are provided by `actors/pods/workers`.
 */
import { assign, cancel, raise } from 'xstate';
import { containerGraceSeconds } from '../../../pod/runtime/killOrder.ts';
import { messageOf } from '../../../text/errors.ts';
import { projecting } from '../../../xstate/projection.ts';
import { type Context, containerSetup, hookStartFailure, OBSERVE_AGAIN_MS, required, STOP_RETRY_MS } from './containerSetup.ts';

const recordBackOff = {
  type: 'recordBackOff',
  params: ({ context: { job, failure } }: { context: Context }) => ({ job: required(job), failure: required(failure) }),
} as const;

export const containerMachine = containerSetup.createMachine({
  id: 'container',
  meta: projecting<Context>((c) => ({
    ...{ name: c.name, kind: c.kind, image: c.job?.container.image ?? null, imageRef: c.imageRef, containerId: c.containerId },
    observed: c.observed === null ? null : { id: c.observed.id, state: c.observed.state },
    ...{ restartCount: c.restartCount, hookAhead: c.hookAhead, nextStartAtMs: c.nextStartAtMs, waitMs: c.waitMs },
    failure: c.failure === null ? null : { reason: c.failure.reason, message: c.failure.message },
    unknownInRow: c.unknown?.inRow ?? 0,
  })),
  options: { maxIterations: 1000 },
  context: ({ input: { kept, ...input } }) => ({
    ...input,
    job: null,
    observed: null,
    imageRef: '',
    imageUser: null,
    containerId: '',
    restartCount: 0,
    clearedCount: kept?.clearedCount ?? null,
    actedAtMonoMs: Number.NEGATIVE_INFINITY,
    hookAhead: false,
    failure: null,
    waitMs: 0,
    waitsUntilMonoMs: 0,
    slept: kept?.waits ?? null,
    nextStartAtMs: null,
    backoff: kept?.backoff,
    backoffBefore: kept?.backoffBefore,
    backoffKey: kept?.backoffKey ?? '',
    unknown: null,
  }),
  initial: 'waiting',
  on: {
    'container.cancel': { target: '.waiting', actions: ['clearFailure'] },
    'container.observed': { actions: ['observe'] },
    'hook.told': { actions: ['report'] },
  },
  states: {
    waiting: {
      meta: { reason: 'Waiting', message: 'not started yet: an earlier container, the sandbox or a decision is ahead' },
      on: {
        'container.start': { target: 'deciding', actions: ['takeJob'] },
        'container.observed': [
          { guard: 'sleptInBackOff', target: 'backingOff', actions: ['observe', 'goOnWaiting'] },
          { guard: 'startedUnheard', target: 'hooking', actions: ['observe'] },
          { guard: 'observedRunning', target: 'running', actions: ['observe', 'hookOver'] },
          { guard: 'observedExited', target: 'exited', actions: ['observe', 'hookOver'] },
          { actions: ['observe', 'hookOver'] },
        ],
      },
    },
    running: {
      meta: { reason: 'Running', message: 'the runtime shows it running' },
      entry: ['known'],
      // Nothing asks for its start: each is asked for after what the same look found, and that would have led out of here.
      on: {
        'container.observed': [
          { guard: 'observedRunning', actions: ['observe'] },
          { guard: 'observedExited', target: 'exited', actions: ['observe'] },
          { target: 'waiting', actions: ['observe'] },
        ],
      },
    },
    exited: {
      meta: { reason: 'Exited', message: 'the runtime shows its newest instance exited' },
      on: {
        'container.start': { target: 'deciding', actions: ['takeJob'] },
        'container.observed': [
          { guard: 'observedRunning', target: 'running', actions: ['observe'] },
          { guard: 'observedExited', actions: ['observe'] },
          { target: 'waiting', actions: ['observe'] },
        ],
      },
    },
    deciding: {
      meta: { reason: 'CheckingBackOff', message: 'whether its crash back-off is over' },
      entry: ['checkBackoff', 'checkUnknown'],
      always: [
        { guard: 'unknownBefore', target: 'failed' },
        { guard: 'failedBefore', target: 'failed', actions: [recordBackOff] },
        { guard: 'backingOff', target: 'backingOff', actions: ['beginWait', 'report', recordBackOff] },
        { target: 'pulling' },
      ],
    },
    backingOff: {
      meta: { reason: 'CrashLoopBackOff', message: 'crashed before; waiting until its back-off is over' },
      after: { wait: { target: 'exited', actions: [{ type: 'acted', params: { why: 'back-off is over' } }] } },
      on: {
        'container.start': [{ guard: 'startsAnew', target: 'deciding', actions: ['takeJob'] }, { actions: ['takeJob'] }],
        'container.observed': [
          { guard: 'observedRunning', target: 'running', actions: ['observe', 'clearFailure', 'report'] },
          { actions: ['observe'] },
        ],
      },
    },
    pulling: {
      meta: { reason: 'Pulling', message: 'its image is being checked or pulled' },
      // The newest job: its sandbox may be another by the time the image is there.
      on: {
        'container.start': [{ guard: 'specChanged', target: 'deciding', actions: ['takeJob'] }, { actions: ['takeJob'] }],
        'container.sandboxGone': { actions: ['loseSandbox'] },
      },
      invoke: {
        src: 'ensureImage',
        input: ({ context }) => ({ job: required(context.job) }),
        onDone: [
          { guard: 'sandboxGone', target: 'waiting' },
          {
            guard: ({ event }) => event.output.ok,
            target: 'creating',
            actions: assign(({ event }) => {
              if (!event.output.ok) return {};
              const image = event.output.image;
              return {
                imageRef: event.output.imageRef,
                imageUser: image === null ? null : { uid: image.uid === null ? null : Number(image.uid.value), username: image.username },
              };
            }),
          },
          {
            target: 'failed',
            actions: {
              type: 'fail',
              params: ({ event }) => (event.output.ok ? { reason: 'ErrImagePull', message: '' } : event.output.failure),
            },
          },
        ],
        onError: {
          target: 'failed',
          actions: { type: 'fail', params: ({ event }) => ({ reason: 'ErrImagePull', message: messageOf(event.error) }) },
        },
      },
    },
    creating: {
      meta: { reason: 'ContainerCreating', message: 'the runtime is creating it' },
      entry: ['expectHook'],
      invoke: {
        src: 'createContainer',
        input: ({ context }) => ({ job: required(context.job), imageRef: context.imageRef, imageUser: context.imageUser }),
        onDone: [
          {
            guard: ({ event }) => event.output.kind === 'done',
            target: 'starting',
            actions: assign(({ event }) =>
              event.output.kind === 'done'
                ? { containerId: event.output.value.id, restartCount: event.output.value.restartCount, clearedCount: null }
                : {},
            ),
          },
          {
            guard: ({ event }) => event.output.kind === 'cleared',
            target: 'observing',
            actions: ['noteCleared', 'stampAct', { type: 'acted', params: { why: 'what was not seen to start was removed' } }],
          },
          {
            guard: ({ event }) => event.output.kind === 'failed',
            target: 'failed',
            actions: [
              'known',
              {
                type: 'fail',
                params: ({ event }) =>
                  event.output.kind === 'failed' ? event.output.failure : { reason: 'CreateContainerError', message: '' },
              },
            ],
          },
          {
            target: 'observing',
            actions: [
              {
                type: 'noteUnknown',
                params: ({ event }) => ({
                  reason: 'CreateContainerError',
                  message: event.output.kind === 'unknown' ? event.output.details : '',
                }),
              },
              'stampAct',
              { type: 'acted', params: { why: 'create has an unknown outcome' } },
            ],
          },
        ],
        onError: {
          target: 'failed',
          actions: { type: 'fail', params: ({ event }) => ({ reason: 'CreateContainerError', message: messageOf(event.error) }) },
        },
      },
    },
    starting: {
      meta: { reason: 'ContainerCreating', message: 'the runtime is starting it' },
      invoke: {
        src: 'startContainer',
        input: ({ context }) => ({
          job: required(context.job),
          id: context.containerId,
          restartCount: context.restartCount,
        }),
        onDone: [
          {
            guard: ({ event }) => event.output.kind === 'failed',
            target: 'observing',
            actions: [
              'known',
              {
                type: 'fail',
                params: ({ event }) =>
                  event.output.kind === 'failed' ? event.output.failure : { reason: 'RunContainerError', message: '' },
              },
              'stampAct',
              'report',
              { type: 'acted', params: { why: 'it did not start' } },
            ],
          },
          {
            guard: ({ event }) => event.output.kind === 'unknown',
            target: 'observing',
            actions: [
              {
                type: 'noteUnknown',
                params: ({ event }) => ({
                  reason: 'RunContainerError',
                  message: event.output.kind === 'unknown' ? event.output.details : '',
                }),
              },
              'clearFailure',
              'stampAct',
              'report',
              { type: 'acted', params: { why: 'start has an unknown outcome' } },
            ],
          },
          {
            guard: { type: 'startedWithHook', params: ({ event }) => ({ kind: event.output.kind }) },
            target: 'hooking',
            actions: ['known', 'clearFailure', 'report'],
          },
          {
            target: 'observing',
            actions: [
              'known',
              'clearFailure',
              'stampAct',
              'report',
              { type: 'acted', params: { why: 'container was started', known: true } },
            ],
          },
        ],
        onError: {
          target: 'failed',
          actions: { type: 'fail', params: ({ event }) => ({ reason: 'RunContainerError', message: messageOf(event.error) }) },
        },
      },
    },
    /** The runtime shows it running; it counts as started when this has ended (pod lifecycle 5.7 step 12). */
    hooking: {
      meta: { reason: 'PostStartHook', message: 'its postStart hook runs; it counts as started when that has ended' },
      invoke: {
        src: 'hook',
        input: ({ context }) => {
          const { pod, container, podIPs } = required(context.job);
          const handler = container.lifecycle?.postStart ?? {};
          return {
            job: { which: 'postStart' as const, handler, pod, container, containerId: context.containerId, podIPs },
            limitMs: null,
          };
        },
        onDone: [
          {
            guard: ({ event }) => event.output.kind === 'failed',
            target: 'stoppingFailed',
            actions: [
              {
                type: 'sayHookFailed',
                params: ({ context, event }) => ({
                  job: required(context.job),
                  why: event.output.kind === 'failed' ? event.output.why : '',
                }),
              },
              { type: 'noteHookFailure', params: ({ event }) => hookStartFailure(event.output) },
            ],
          },
          { target: 'observing', actions: ['stampAct', 'hookOver', { type: 'acted', params: { why: 'its postStart hook has ended' } }] },
        ],
      },
      on: {
        // The hook of what has ended is not waited for.
        'container.observed': [{ guard: 'endedMeanwhile', target: 'exited', actions: ['observe', 'hookOver'] }, { actions: ['observe'] }],
      },
    },
    stoppingFailed: {
      meta: { reason: 'PostStartHookError', message: 'its postStart hook failed: it is being stopped' },
      invoke: {
        src: 'containerStop',
        input: ({ context }) => {
          const { pod, container, podIPs } = required(context.job);
          const graceSeconds = containerGraceSeconds({ pod, container, reason: 'FailedPostStartHook' });
          const preStop = graceSeconds > 0 ? container.lifecycle?.preStop : undefined;
          return {
            pod,
            podIPs,
            step: { id: context.containerId, name: container.name, container, graceSeconds, preStop, waitForIds: [] },
            message: 'FailedPostStartHook',
          };
        },
        onDone: [
          { guard: ({ event }) => event.output.failure !== null, target: 'stoppingAgain' },
          {
            target: 'observing',
            actions: [
              assign({ hookAhead: false }),
              { type: 'fail', params: ({ context }) => required(context.failure) },
              'stampAct',
              'report',
              { type: 'acted', params: { why: 'it was stopped after its postStart hook failed' } },
            ],
          },
        ],
      },
    },
    stoppingAgain: {
      meta: { reason: 'PostStartHookError', message: 'its postStart hook failed and it could not be stopped; that is tried again' },
      after: { [STOP_RETRY_MS]: { target: 'stoppingFailed' } },
      on: {
        'container.observed': [{ guard: 'endedMeanwhile', target: 'exited', actions: ['observe', 'hookOver'] }, { actions: ['observe'] }],
      },
    },
    observing: {
      meta: { reason: 'Observing', message: 'acted; waiting for an inspection that began after the act' },
      exit: [cancel('lookAgain')],
      on: {
        'look.again': { actions: ['unseen'] },
        'container.observed': [
          // The worker looks after each act. It is reminded only where that look shows nothing: in a burst, looks take long.
          {
            guard: 'stale',
            actions: [cancel('lookAgain'), raise({ type: 'look.again' }, { id: 'lookAgain', delay: OBSERVE_AGAIN_MS })],
          },
          { guard: 'startedUnheard', target: 'hooking', actions: ['observe'] },
          { guard: 'observedRunning', target: 'running', actions: ['observe', 'hookOver'] },
          // The instance that a failed start left counts as a crash: the first is followed by a start at once.
          { guard: 'observedExited', target: 'exited', actions: ['observe', 'hookOver'] },
          { guard: 'waitAhead', target: 'failed', actions: ['observe', 'hookOver'] },
          { target: 'waiting', actions: ['observe', 'hookOver'] },
        ],
      },
    },
    failed: {
      meta: { reason: 'StartFailed', message: 'the last attempt to start it failed; it is tried again after a wait' },
      entry: [assign({ hookAhead: false }), 'report'],
      // Not at once `waiting`: a look that began before the act would start it as if it had never been.
      after: { wait: { target: 'observing', actions: ['waitOver', { type: 'acted', params: { why: 'retry after a failed start' } }] } },
      on: {
        'container.start': [{ guard: 'freshGround', target: 'deciding', actions: ['takeJob', 'known'] }, {}],
        'container.observed': [
          { guard: 'stale' },
          { guard: 'observedRunning', target: 'running', actions: ['observe', 'clearFailure', 'report'] },
          { actions: ['observe'] },
        ],
      },
    },
  },
});
