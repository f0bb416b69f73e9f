/** Syncing: make the runtime hold what the pod asks for. Decide, one act, observe, decide. */

import { assign, cancel, raise } from 'xstate';
import { DEADLINE_OVERRIDE } from '../../pod/ends/byNode.ts';
import { containersToReset } from '../../pod/runtime/restartAll.ts';
import { messageOf } from '../../text/errors.ts';
import { facts, planActions, requiredActions, requiredStatus, type WorkerContext } from './context.ts';
import {
  ACT_RETRY_MS,
  attempt,
  attemptToldOf,
  CLAIMS_RETRY_MS,
  isLater,
  LATER_RETRY_MS,
  orFail,
  plannedStop,
  podStop,
  RUNTIME_RETRY_MS,
  STOP_RETRY_MS,
  troubleOf,
  VOLUMES_RETRY_MS,
} from './regions/act.ts';
import { refusing } from './regions/restart.ts';
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

/** A person asked: no wait holds it back. */
const restart = { target: '#podWorker.syncing.inspecting', actions: ['takeRestart' as const] };

const sandbox = attempt(
  { reason: 'CreatePodSandboxError', baseMs: ACT_RETRY_MS, failed: 'actFailed' },
  { target: 'inspecting', actions: ['clearTrouble', 'noteActed'] },
);

/** Before everything goes: an act in flight is waited for, and what it did is seen. */
const fencing = workerSetup.createStateConfig({
  invoke: {
    src: 'fence',
    input: ({ context }) => ({ uid: context.uid }),
    onDone: { target: 'inspecting' },
    onError: { target: '#podWorker.syncing.inspecting' },
  },
});
const inspectingFor = <const Next extends string>(target: Next) =>
  workerSetup.createStateConfig({
    invoke: {
      src: 'inspect',
      input: ({ context }) => ({ uid: context.uid }),
      onDone: { target, actions: [assign(({ event }) => ({ status: event.output }))] },
      onError: { target: '#podWorker.syncing.inspecting' },
    },
  });

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
    'pod.restart': { actions: ['takeRestart'] },
  },
  states: {
    /** It slept, and goes on where it was settled: children of its containers see what was seen last. */
    waking: {
      entry: ['showSeen'],
      always: { target: 'settled' },
    },
    inspecting: {
      meta: { reason: 'Inspecting', message: 'asking the runtime what it holds of this pod' },
      entry: ['beginInspection'],
      invoke: {
        src: 'inspect',
        input: ({ context }) => ({ uid: context.uid, partial: context.look.reads === 'own' }),
        onDone: { target: 'deciding', actions: [assign(({ event }) => ({ status: event.output }))] },
        ...orFail({ reason: 'RuntimeUnavailable', baseMs: RUNTIME_RETRY_MS, failed: 'runtimeAway' }),
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
        ...attemptToldOf(
          { reason: 'FailedMount', baseMs: VOLUMES_RETRY_MS, failed: 'actFailed', say: (message) => message },
          { guard: 'usesClaims', target: 'preparingClaims' },
          { target: 'creatingSandbox' },
        ),
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
        ...attemptToldOf(
          {
            ...{ reason: 'FailedPrepareDynamicResources', baseMs: CLAIMS_RETRY_MS, failed: 'actFailed' },
            say: (message) => `Failed to prepare dynamic resources: ${message}`,
          },
          { target: 'creatingSandbox' },
        ),
      },
      on: { 'pod.update': updated },
    },
    creatingSandbox: {
      meta: { reason: 'CreatingSandbox', message: 'the runtime is creating the pod sandbox' },
      entry: ['noteWhole'],
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
          ...sandbox.onDone,
        ],
        onError: sandbox.onError,
      },
    },
    killing: {
      meta: { reason: 'KillingPod', message: 'stopping everything of this pod: its sandbox must be replaced, or nothing is left to run' },
      entry: ['cancelChildren', 'report'],
      initial: 'fencing',
      states: {
        fencing,
        /** An act that the fence waited for may have started a container: it is to be stopped with its grace like the others. */
        inspecting: inspectingFor('stopping'),
        stopping: {
          entry: ['noteReplaced'],
          invoke: {
            src: 'stopPod',
            input: ({ context }) => podStop(context, { graceSeconds: null, forSandbox: planActions(context)?.createSandbox === true }),
            ...attempt(
              { reason: 'FailedKillPod', baseMs: STOP_RETRY_MS, failed: '#podWorker.syncing.actFailed' },
              { target: '#podWorker.syncing.inspecting', actions: ['clearTrouble'] },
            ),
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
        ...attempt(
          { reason: 'KillContainerError', baseMs: STOP_RETRY_MS, failed: 'actFailed' },
          { target: 'inspecting', actions: ['clearTrouble', 'noteStopped'] },
        ),
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
        fencing,
        /** A start that the fence waited for may have made a container: it goes with the others, before the one that asked. */
        inspecting: inspectingFor('removing'),
        removing: {
          invoke: {
            src: 'resetContainers',
            input: ({ context }) => ({ pod: context.pod, groups: containersToReset(context.pod, requiredStatus(context)) }),
            ...attempt(
              { reason: 'RemoveContainerError', baseMs: STOP_RETRY_MS, failed: '#podWorker.syncing.actFailed' },
              { target: '#podWorker.syncing.inspecting', actions: ['clearTrouble'] },
            ),
          },
        },
      },
    },
    awaitingEnd: {
      meta: { reason: 'EndAnnounced', message: 'the runtime announced the end of a container and still shows it running; looking again' },
      entry: ['countChase'],
      after: { chase: { target: 'inspecting' } },
      on: { 'pod.dirty': { target: 'inspecting', actions: ['markDirty'] }, 'pod.update': updated, 'pod.restart': restart },
    },
    settled: {
      meta: { reason: 'Synced', message: 'the runtime holds what the pod asks for, or a container is on its way' },
      entry: ['clearTrouble', 'report', raise({ type: 'worker.resync' }, { id: 'resync', delay: 'resync' }), 'forgetDue'],
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
        'container.unseen': { target: 'inspecting', actions: ['markDirty'] },
        'resize.acted': { target: 'inspecting' },
        'resize.trouble': { actions: ['noteResizeTrouble', 'decide', { type: 'publish', params: { finished: false } }] },
        'container.report': [
          { guard: 'heldBack', target: 'inspecting', actions: ['takeReport'] },
          {
            actions: ['takeReport', 'decide', { type: 'publish', params: { finished: false } }, 'report'],
          },
        ],
        'pod.update': updated,
        'pod.restart': restart,
      },
    },
    actFailed: {
      meta: {
        reason: ({ act }: WorkerContext) => act.trouble?.reason ?? 'Failed',
        message: ({ act }: WorkerContext) => act.trouble?.message ?? '',
      },
      entry: ['report'],
      after: { wait: { target: 'inspecting' } },
      on: { 'pod.dirty': itCame, 'pod.update': updated, 'pod.restart': restart },
    },
    /** Refused by who makes something of the node that is not there yet, and wakes this worker when it is. */
    notYet: {
      meta: {
        reason: ({ act }: WorkerContext) => act.trouble?.reason ?? 'NotYet',
        message: ({ act }: WorkerContext) => act.trouble?.message ?? '',
      },
      entry: ['uncountAct', 'report'],
      // It may have come while the refusal was on its way here.
      always: { guard: 'isDirty', target: 'inspecting' },
      after: { wait: { target: 'inspecting' } },
      on: { 'pod.dirty': { target: 'inspecting', actions: ['markDirty'] }, 'pod.update': updated, 'pod.restart': restart },
    },
    backingOff: {
      meta: {
        reason: 'NoProgress',
        message: 'several acts in a row did not bring this pod to rest (a sandbox that does not stay, say); waiting before the next',
      },
      entry: ['report'],
      after: { calm: { target: 'acting' } },
      on: { 'pod.dirty': itCame, 'pod.update': updated, 'pod.restart': restart },
    },
    /** The wait is over: do what was decided, on a fresh inspection. */
    acting: {
      entry: ['letAct'],
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
      meta: { reason: 'RuntimeUnavailable', message: ({ act }: WorkerContext) => act.trouble?.message ?? '' },
      entry: ['report'],
      after: { wait: { target: 'inspecting' } },
      on: {
        'pod.dirty': { target: 'inspecting', actions: ['markDirty'] },
        'pod.update': updated,
        'pod.restart': {
          actions: [refusing(({ act }) => ({ later: true, why: `the container runtime does not answer: ${act.trouble?.message ?? ''}` }))],
        },
      },
    },
  },
});
