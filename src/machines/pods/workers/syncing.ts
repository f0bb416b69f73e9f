/** Syncing: make the runtime hold what the pod asks for. Decide, one act, observe, decide. */

import { assign, cancel, raise } from 'xstate';
import { containersToReset } from '../../pod/runtime/restartAll.ts';
import { messageOf } from '../../text/errors.ts';
import { DEADLINE_OVERRIDE } from '../status/generate.ts';
import {
  ACT_RETRY_MS,
  CLAIMS_RETRY_MS,
  facts,
  isLater,
  LATER_RETRY_MS,
  planActions,
  plannedStop,
  podStop,
  RUNTIME_RETRY_MS,
  requiredActions,
  requiredStatus,
  STOP_RETRY_MS,
  troubleOf,
  VOLUMES_RETRY_MS,
  type WorkerContext,
} from './context.ts';
import { workerSetup } from './setup.ts';

/** A new definition ends every wait: nothing of what was waited for may still hold. */
const updated = [
  { guard: 'itsStart' as const },
  { guard: 'deletes' as const, target: '#podWorker.terminating', actions: ['takePod' as const] },
  {
    target: '#podWorker.syncing.inspecting',
    actions: ['takePod' as const, 'dropRemoved' as const, 'ensureChildren' as const, 'beginAnew' as const],
  },
];

/** What the pod lacked may be there: a wait that follows from the want of it is over. */
const itCame = [
  { guard: 'itCame' as const, target: '#podWorker.syncing.inspecting', actions: ['markDirty' as const, 'forgetActs' as const] },
  { actions: ['markDirty' as const] },
];

export const syncing = workerSetup.createStateConfig({
  meta: { phase: 'syncing' },
  initial: 'inspecting',
  entry: ['ensureChildren'],
  on: {
    'pod.kill': { guard: 'ofThisLife', target: 'terminating', actions: ['takeKill'] },
    'pod.update': [
      { guard: 'itsStart' },
      { guard: 'deletes', target: 'terminating', actions: ['takePod'] },
      { actions: ['takePod', 'dropRemoved', 'ensureChildren', 'markDirty'] },
    ],
    'container.acted': [{ guard: 'actKnown', actions: ['noteActed'] }, { actions: ['markDirty'] }],
    'resize.acted': { actions: ['markDirty'] },
  },
  states: {
    inspecting: {
      meta: { reason: 'Inspecting', message: 'asking the runtime what it holds of this pod' },
      entry: ['beginInspection'],
      invoke: {
        src: 'inspect',
        input: ({ context }) => ({ uid: context.uid, partial: context.partial }),
        onDone: { target: 'deciding', actions: [assign(({ event }) => ({ status: event.output }))] },
        onError: {
          target: 'runtimeAway',
          actions: { type: 'trouble', params: ({ event }) => troubleOf('RuntimeUnavailable', event.error, RUNTIME_RETRY_MS) },
        },
      },
    },
    deciding: {
      meta: { reason: 'Deciding', message: 'comparing the pod with what the runtime holds' },
      entry: ['settleEnded', 'decide', { type: 'publish', params: { finished: false } }, 'feed', 'feedResize'],
      always: [
        {
          guard: { type: 'planIs', params: { kind: 'deadline' } },
          target: '#podWorker.terminating',
          actions: {
            type: 'recordEvent',
            params: { type: 'Normal', reason: DEADLINE_OVERRIDE.reason, message: DEADLINE_OVERRIDE.message },
          },
        },
        { guard: { type: 'planIs', params: { kind: 'terminal' } }, target: '#podWorker.terminating' },
        { guard: { type: 'planIs', params: { kind: 'network' } }, target: 'networkAway' },
        { guard: 'noProgress', target: 'backingOff' },
        { guard: { type: 'planIs', params: { kind: 'killPod' } }, target: 'killing', actions: ['countAct', 'saySandboxChanged'] },
        {
          guard: { type: 'planIs', params: { kind: 'createSandbox' } },
          target: 'mountingVolumes',
          actions: ['countAct', 'saySandboxChanged', 'reportSandboxGone'],
        },
        { guard: { type: 'planIs', params: { kind: 'killContainers' } }, target: 'killingContainers', actions: ['countAct'] },
        { guard: { type: 'planIs', params: { kind: 'resetContainers' } }, target: 'resetting', actions: ['countAct'] },
        { guard: 'dirty', target: 'inspecting' },
        { guard: 'endAwaited', target: 'awaitingEnd' },
        { target: 'settled' },
      ],
    },
    mountingVolumes: {
      meta: {
        reason: 'MountingVolumes',
        message: 'making the directories of this pod; waiting until every volume that a container mounts is set up',
      },
      entry: ['report'],
      invoke: {
        src: 'prepare',
        input: ({ context }) => ({ pod: context.pod }),
        onDone: [
          {
            guard: ({ event }) => event.output.kind === 'failed',
            target: 'actFailed',
            actions: [
              { type: 'trouble', params: ({ event }) => troubleOf('FailedMount', event.output, VOLUMES_RETRY_MS) },
              {
                type: 'recordEvent',
                params: ({ event }) => ({
                  type: 'Warning' as const,
                  reason: 'FailedMount',
                  message: troubleOf('FailedMount', event.output, VOLUMES_RETRY_MS).message,
                }),
              },
            ],
          },
          { guard: 'usesClaims', target: 'preparingClaims' },
          { target: 'creatingSandbox' },
        ],
        onError: {
          target: 'actFailed',
          actions: [
            { type: 'trouble', params: ({ event }) => troubleOf('FailedToMakePodDataDirectories', event.error, ACT_RETRY_MS) },
            {
              type: 'recordEvent',
              params: ({ event }) => ({
                type: 'Warning' as const,
                reason: 'Failed',
                message: `error making pod data directories: ${messageOf(event.error)}`,
              }),
            },
          ],
        },
      },
      on: { 'pod.update': updated },
    },
    preparingClaims: {
      meta: { reason: 'PreparingResourceClaims', message: 'waiting until drivers have prepared every ResourceClaim of this pod' },
      entry: ['report'],
      invoke: {
        src: 'prepareClaims',
        input: ({ context }) => ({ pod: context.pod }),
        onDone: [
          {
            guard: ({ event }) => event.output.kind === 'failed',
            target: 'actFailed',
            actions: [
              { type: 'trouble', params: ({ event }) => troubleOf('FailedPrepareDynamicResources', event.output, CLAIMS_RETRY_MS) },
              {
                type: 'recordEvent',
                params: ({ event }) => ({
                  type: 'Warning' as const,
                  reason: 'FailedPrepareDynamicResources',
                  message: `Failed to prepare dynamic resources: ${troubleOf('', event.output, CLAIMS_RETRY_MS).message}`,
                }),
              },
            ],
          },
          { target: 'creatingSandbox' },
        ],
        onError: {
          target: 'actFailed',
          actions: { type: 'trouble', params: ({ event }) => troubleOf('FailedPrepareDynamicResources', event.error, CLAIMS_RETRY_MS) },
        },
      },
      on: { 'pod.update': updated },
    },
    creatingSandbox: {
      meta: { reason: 'CreatingSandbox', message: 'the runtime is creating the pod sandbox' },
      invoke: {
        src: 'runSandbox',
        input: ({ context }) => ({
          pod: context.pod,
          status: requiredStatus(context),
          actions: requiredActions(context),
        }),
        onDone: [
          {
            guard: ({ event }) => isLater(event.output),
            target: 'notYet',
            actions: { type: 'trouble', params: ({ event }) => troubleOf('CreatePodSandboxError', event.output, LATER_RETRY_MS) },
          },
          {
            guard: ({ event }) => event.output.kind === 'failed',
            target: 'actFailed',
            actions: { type: 'trouble', params: ({ event }) => troubleOf('CreatePodSandboxError', event.output, ACT_RETRY_MS) },
          },
          { target: 'inspecting', actions: ['clearTrouble', 'noteActed'] },
        ],
        onError: {
          target: 'actFailed',
          actions: { type: 'trouble', params: ({ event }) => troubleOf('CreatePodSandboxError', event.error, ACT_RETRY_MS) },
        },
      },
    },
    killing: {
      meta: { reason: 'KillingPod', message: 'stopping everything of this pod: its sandbox must be replaced, or nothing is left to run' },
      entry: ['cancelChildren', 'report'],
      initial: 'fencing',
      states: {
        fencing: {
          invoke: {
            src: 'fence',
            input: ({ context }) => ({ uid: context.uid }),
            onDone: { target: 'inspecting' },
            onError: { target: '#podWorker.syncing.inspecting' },
          },
        },
        /** An act that the fence waited for may have started a container: it is to be stopped with its grace like the others. */
        inspecting: {
          invoke: {
            src: 'inspect',
            input: ({ context }) => ({ uid: context.uid }),
            onDone: { target: 'stopping', actions: [assign(({ event }) => ({ status: event.output }))] },
            onError: { target: '#podWorker.syncing.inspecting' },
          },
        },
        stopping: {
          entry: ['noteReplaced'],
          invoke: {
            src: 'stopPod',
            input: ({ context }) => podStop(context, { graceSeconds: null, forSandbox: planActions(context)?.createSandbox === true }),
            onDone: [
              {
                guard: ({ event }) => event.output.kind === 'failed',
                target: '#podWorker.syncing.actFailed',
                actions: { type: 'trouble', params: ({ event }) => troubleOf('FailedKillPod', event.output, STOP_RETRY_MS) },
              },
              { target: '#podWorker.syncing.inspecting', actions: ['clearTrouble'] },
            ],
            onError: {
              target: '#podWorker.syncing.actFailed',
              actions: { type: 'trouble', params: ({ event }) => troubleOf('FailedKillPod', event.error, STOP_RETRY_MS) },
            },
          },
        },
      },
    },
    killingContainers: {
      meta: { reason: 'KillingContainers', message: 'stopping containers whose definition changed or that must be replaced' },
      entry: ['cancelKilled', 'noteReplaced'],
      invoke: {
        src: 'killContainers',
        input: ({ context }) => plannedStop(context),
        onDone: [
          {
            guard: ({ event }) => event.output.kind === 'failed',
            target: 'actFailed',
            actions: { type: 'trouble', params: ({ event }) => troubleOf('KillContainerError', event.output, STOP_RETRY_MS) },
          },
          { target: 'inspecting', actions: ['clearTrouble', 'noteStopped'] },
        ],
        onError: {
          target: 'actFailed',
          actions: { type: 'trouble', params: ({ event }) => troubleOf('KillContainerError', event.error, STOP_RETRY_MS) },
        },
      },
    },
    resetting: {
      meta: {
        reason: 'RestartingAllContainers',
        message: 'a container ended so that all containers of the pod restart: they are taken away',
      },
      entry: ['cancelChildren', 'report'],
      initial: 'fencing',
      states: {
        fencing: {
          invoke: {
            src: 'fence',
            input: ({ context }) => ({ uid: context.uid }),
            onDone: { target: 'inspecting' },
            onError: { target: '#podWorker.syncing.inspecting' },
          },
        },
        /** A start that the fence waited for may have made a container: it goes with the others, before the one that asked. */
        inspecting: {
          invoke: {
            src: 'inspect',
            input: ({ context }) => ({ uid: context.uid }),
            onDone: { target: 'removing', actions: [assign(({ event }) => ({ status: event.output }))] },
            onError: { target: '#podWorker.syncing.inspecting' },
          },
        },
        removing: {
          invoke: {
            src: 'resetContainers',
            input: ({ context }) => ({ pod: context.pod, groups: containersToReset(context.pod, requiredStatus(context)) }),
            onDone: [
              {
                guard: ({ event }) => event.output.kind === 'failed',
                target: '#podWorker.syncing.actFailed',
                actions: { type: 'trouble', params: ({ event }) => troubleOf('RemoveContainerError', event.output, STOP_RETRY_MS) },
              },
              { target: '#podWorker.syncing.inspecting', actions: ['clearTrouble'] },
            ],
            onError: {
              target: '#podWorker.syncing.actFailed',
              actions: { type: 'trouble', params: ({ event }) => troubleOf('RemoveContainerError', event.error, STOP_RETRY_MS) },
            },
          },
        },
      },
    },
    awaitingEnd: {
      meta: { reason: 'EndAnnounced', message: 'the runtime announced the end of a container and still shows it running; looking again' },
      entry: ['countChase'],
      after: { chase: { target: 'inspecting' } },
      on: { 'pod.dirty': { target: 'inspecting', actions: ['markDirty'] }, 'pod.update': updated },
    },
    settled: {
      meta: { reason: 'Synced', message: 'the runtime holds what the pod asks for, or a container is on its way' },
      entry: ['clearTrouble', 'report', raise({ type: 'worker.resync' }, { id: 'resync', delay: 'resync' })],
      exit: [cancel('resync')],
      on: {
        'worker.resync': [
          { guard: 'nothingNew', actions: [raise({ type: 'worker.resync' }, { id: 'resync', delay: 'resync' })] },
          { target: 'inspecting' },
        ],
        'pod.dirty': [
          { guard: 'alreadySeen', actions: ['noteObjects'] },
          { target: 'inspecting', actions: ['markDirty'] },
        ],
        'container.acted': [
          { guard: 'actKnown', target: 'inspecting', actions: ['noteActed'] },
          { target: 'inspecting', actions: ['markDirty'] },
        ],
        'resize.acted': { target: 'inspecting' },
        'resize.trouble': { actions: ['noteResizeTrouble', 'decide', { type: 'publish', params: { finished: false } }] },
        'container.report': [
          { guard: 'heldBack', target: 'inspecting', actions: ['takeReport'] },
          {
            actions: ['takeReport', 'decide', { type: 'publish', params: { finished: false } }, 'report'],
          },
        ],
        'pod.update': updated,
      },
    },
    actFailed: {
      meta: {
        reason: ({ trouble }: WorkerContext) => trouble?.reason ?? 'Failed',
        message: ({ trouble }: WorkerContext) => trouble?.message ?? '',
      },
      entry: ['report'],
      after: { wait: { target: 'inspecting' } },
      on: { 'pod.dirty': itCame, 'pod.update': updated },
    },
    /** Refused by who makes something of the node that is not there yet, and wakes this worker when it is. */
    notYet: {
      meta: {
        reason: ({ trouble }: WorkerContext) => trouble?.reason ?? 'NotYet',
        message: ({ trouble }: WorkerContext) => trouble?.message ?? '',
      },
      entry: ['uncountAct', 'report'],
      // It may have come while the refusal was on its way here.
      always: { guard: 'isDirty', target: 'inspecting' },
      after: { wait: { target: 'inspecting' } },
      on: { 'pod.dirty': { target: 'inspecting', actions: ['markDirty'] }, 'pod.update': updated },
    },
    backingOff: {
      meta: {
        reason: 'NoProgress',
        message: 'several acts in a row did not bring this pod to rest (a sandbox that does not stay, say); waiting before the next',
      },
      entry: ['report'],
      after: { calm: { target: 'acting' } },
      on: { 'pod.dirty': itCame, 'pod.update': updated },
    },
    /** The wait is over: do what was decided, on a fresh inspection. */
    acting: {
      entry: [assign({ calmed: true })],
      always: { target: 'inspecting' },
    },
    networkAway: {
      meta: {
        reason: 'NetworkNotReady',
        message: ({ decision }: WorkerContext) => (decision?.plan.kind === 'network' ? decision.plan.message : ''),
      },
      entry: [
        'report',
        {
          type: 'recordEvent',
          params: () => ({
            type: 'Warning' as const,
            reason: 'NetworkNotReady',
            message: `network is not ready: ${facts().network.reason}`,
          }),
        },
      ],
      after: { network: { target: 'inspecting' } },
      on: { 'pod.update': updated },
    },
    runtimeAway: {
      meta: { reason: 'RuntimeUnavailable', message: ({ trouble }: WorkerContext) => trouble?.message ?? '' },
      entry: ['report'],
      after: { wait: { target: 'inspecting' } },
      on: { 'pod.dirty': { target: 'inspecting', actions: ['markDirty'] }, 'pod.update': updated },
    },
  },
});
