/**
 * The life of one pod UID: syncing -> terminating -> terminated -> finished, each a loop of decide, one act,
 * observe. Deletion pre-empts at the root. Containers are child statecharts fed by what was observed; a pull never
 * delays a stop. Acts and inspections are provided by `actors/pods/workers`.
 */

import { and, not } from 'xstate';
import { podName, projecting, some } from '../../xstate/projection.ts';
import { facts, RUNTIME_RETRY_MS, STOP_RETRY_MS, troubleOf, type WorkerContext } from './context.ts';
import { workerSetup } from './setup.ts';
import { syncing } from './syncing.ts';
import { terminating } from './terminating.ts';

export const podWorkerMachine = workerSetup.createMachine({
  id: 'podWorker',
  meta: projecting<WorkerContext>((c) => ({
    ...{ uid: c.uid, pod: podName(c.pod), runtimeOnly: c.runtimeOnly, life: c.life ?? null, phase: c.apiStatus?.phase ?? null },
    plan: c.decision?.plan.kind ?? null,
    sandboxes: some(c.status?.sandboxes ?? [], ({ id, ready }) => `${id}: ${ready ? 'ready' : 'not ready'}`),
    containers: some(c.status?.containers ?? [], ({ name, state }) => `${name}: ${state}`),
    failures: some(c.failures, ([name, { reason, message }]) => `${name}: ${reason}: ${message}`),
    trouble: c.trouble === null ? null : { reason: c.trouble.reason, message: c.trouble.message },
    ...{ dirty: c.dirty, killAsked: c.killAsked, graceSeconds: c.graceSeconds, heldBack: c.heldBack },
    ...{ actsInRow: c.actsInRow, failuresInRow: c.failuresInRow, resizeError: c.resizeError },
    causes: some(c.causes, ({ by, what }) => `${by}: ${what}`),
  })),
  options: { maxIterations: 1000 },
  context: ({ input }) => ({
    uid: input.uid,
    pod: input.pod,
    runtimeOnly: input.runtimeOnly,
    newLife: input.newLife === true,
    life: input.life,
    times: input.times,
    causes: input.causes,
    status: input.nothing ?? null,
    decision: null,
    apiStatus: undefined,
    failures: new Map(),
    nextStarts: new Map(),
    replaced: new Map(),
    stoppedUnknown: new Set(),
    hookAhead: new Set(),
    preStopped: new Set(),
    heldBack: 'no',
    sinceWallMs: facts().wallMs,
    children: new Set(),
    dirty: 'no',
    acted: false,
    partial: false,
    killAsked: input.terminating,
    stopped: false,
    graceSeconds: null,
    graceOverride: input.graceOverride ?? null,
    killStatus: input.killStatus ?? null,
    trouble: null,
    failuresInRow: 0,
    actsInRow: 0,
    lastActMonoMs: Number.NEGATIVE_INFINITY,
    changedSandboxId: '',
    calmed: false,
    ended: new Set(),
    chases: 0,
    inForce: new Map(),
    resizes: false,
    resizeError: null,
  }),
  initial: 'beginning',
  on: {
    'pod.dirty': { actions: ['markDirty'] },
    'container.report': { actions: ['takeReport', 'release'] },
    'preStop.ended': { actions: ['notePreStop'] },
    'resize.set': { actions: ['noteResized'] },
    'resize.trouble': { actions: ['noteResizeTrouble'] },
  },
  states: {
    /** A new pod has no earlier worker and nothing in the runtime: nobody is asked. */
    beginning: {
      always: [{ guard: and(['nothingYet', not('terminating')]), target: 'syncing.deciding' }, { target: 'fencing' }],
    },
    fencing: {
      meta: { phase: 'waiting', reason: 'Fencing', message: 'waiting until no act of an earlier worker of this pod is in flight' },
      entry: ['report'],
      invoke: {
        src: 'fence',
        input: ({ context }) => ({ uid: context.uid }),
        onDone: [{ guard: 'terminating', target: 'terminating' }, { target: 'syncing' }],
        onError: {
          target: 'fencingAgain',
          actions: { type: 'trouble', params: ({ event }) => troubleOf('RuntimeUnavailable', event.error, RUNTIME_RETRY_MS) },
        },
      },
      on: { 'pod.update': { actions: ['takePod'] }, 'pod.kill': { guard: 'ofThisLife', actions: ['takeKill'] } },
    },
    fencingAgain: {
      meta: { phase: 'waiting', reason: 'RuntimeUnavailable', message: ({ trouble }: WorkerContext) => trouble?.message ?? '' },
      after: { wait: { target: 'fencing' } },
      on: {
        'pod.update': { actions: ['takePod'] },
        'pod.kill': { guard: 'ofThisLife', actions: ['takeKill'] },
        'pod.dirty': { target: 'fencing' },
      },
    },

    syncing,
    terminating,
    terminated: {
      meta: { phase: 'terminated', reason: 'Terminated', message: 'all containers are stopped; taking volumes down' },
      entry: [
        'clearTrouble',
        { type: 'terminalStatus', params: { podIsTerminal: true } },
        { type: 'publish', params: { finished: false } },
        'report',
      ],
      invoke: {
        src: 'cleanup',
        input: ({ context }) => ({ pod: context.pod }),
        onDone: { target: 'finished' },
        onError: {
          target: 'cleaningAgain',
          actions: { type: 'trouble', params: ({ event }) => troubleOf('CleanupFailed', event.error, STOP_RETRY_MS) },
        },
      },
    },
    cleaningAgain: {
      meta: { phase: 'terminated', reason: 'CleanupFailed', message: ({ trouble }: WorkerContext) => trouble?.message ?? '' },
      after: { wait: { target: 'terminated' } },
    },
    finished: {
      type: 'final',
      meta: { phase: 'finished', reason: 'Finished', message: '' },
      entry: [{ type: 'publish', params: { finished: true } }, 'report'],
    },
  },
});
