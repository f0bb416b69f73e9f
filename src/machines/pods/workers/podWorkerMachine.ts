/**
 * The life of one pod UID: syncing -> terminating -> terminated -> finished, each a loop of decide, one act,
 * observe. Deletion pre-empts at the root. Containers are child statecharts fed by what was observed; a pull never
 * delays a stop. Acts and inspections are provided by `actors/pods/workers`.
 */

import { and, not } from 'xstate';
import { replacedAsAsked } from '../../pod/restart/asked.ts';
import { names, podName, projecting, some } from '../../xstate/projection.ts';
import { facts, type WokenWorker, type WorkerContext, type WorkerInput } from './context.ts';
import { ACTS_IN_ROW_MAX, orFail, REPLACED_MAX, RUNTIME_RETRY_MS, STOP_RETRY_MS } from './regions/act.ts';
import { lookDueOf } from './regions/asleep.ts';
import { ENDING, NOT_SEEN_YET, refusing, restartsBefore } from './regions/restart.ts';
import { workerSetup } from './setup.ts';
import { syncing } from './syncing.ts';
import { terminating } from './terminating.ts';

function freshContext(input: WorkerInput): WorkerContext {
  return {
    ...{ uid: input.uid, pod: input.pod, runtimeOnly: input.runtimeOnly, times: input.times, causes: input.causes },
    ...{ newLife: input.newLife === true, life: input.life },
    ...{ status: input.nothing ?? null, decision: null, apiStatus: undefined },
    look: { hint: 'no', own: false, reads: 'all', ended: new Set(), chases: 0 },
    act: {
      pace: { inRow: 0, restAt: ACTS_IN_ROW_MAX, lastMonoMs: Number.NEGATIVE_INFINITY },
      ...{ trouble: null, failuresInRow: 0, changedSandboxId: '' },
      replaced: replacedAsAsked(new Map(), restartsBefore(input.asked).asked, REPLACED_MAX),
      stoppedUnknown: new Set(),
    },
    starts: {
      ...{ children: new Set(), failures: new Map(), nextStarts: new Map(), hookAhead: new Set() },
      ...{ heldBack: 'no', sinceWallMs: facts().wallMs },
    },
    restart: restartsBefore(input.asked),
    resize: { inForce: new Map(), child: false, error: null },
    end: {
      kill: input.terminating ? { graceOverride: input.graceOverride ?? null, status: input.killStatus ?? null } : null,
      ...{ graceSeconds: null, preStopped: new Set(), stopped: false },
    },
  };
}

/** Of one that slept. Its containers' children are made again. */
function wokenContext({ kept, dueAtMonoMs: due }: WokenWorker): WorkerContext {
  const { context, containers } = kept;
  const dueAtMonoMs = lookDueOf(kept, due);
  return { ...context, kept: containers, look: { ...context.look, ...(dueAtMonoMs === null ? {} : { dueAtMonoMs }) } };
}

export const podWorkerMachine = workerSetup.createMachine({
  id: 'podWorker',
  meta: projecting<WorkerContext>((c) => ({
    ...{ uid: c.uid, pod: podName(c.pod), runtimeOnly: c.runtimeOnly, life: c.life ?? null, phase: c.apiStatus?.phase ?? null },
    plan: c.decision?.plan.kind ?? null,
    sandboxes: some(c.status?.sandboxes ?? [], ({ id, ready }) => `${id}: ${ready ? 'ready' : 'not ready'}`),
    containers: some(c.status?.containers ?? [], ({ name, state }) => `${name}: ${state}`),
    failures: some(c.starts.failures, ([name, { reason, message }]) => `${name}: ${reason}: ${message}`),
    trouble: c.act.trouble === null ? null : { reason: c.act.trouble.reason, message: c.act.trouble.message },
    ...{ dirty: c.look.hint, killAsked: c.end.kill !== null, graceSeconds: c.end.graceSeconds, heldBack: c.starts.heldBack },
    restartsAsked: names(c.restart.asked.keys()),
    ...{ actsInRow: c.act.pace.inRow, failuresInRow: c.act.failuresInRow, resizeError: c.resize.error },
    causes: some(c.causes, ({ by, what }) => `${by}: ${what}`),
  })),
  options: { maxIterations: 1000 },
  context: ({ input }) => (input.woken === undefined ? freshContext(input) : wokenContext(input.woken)),
  initial: 'beginning',
  on: {
    'pod.dirty': { actions: ['markDirty'] },
    'container.report': { actions: ['takeReport', 'release'] },
    'preStop.ended': { actions: ['notePreStop'] },
    'resize.set': { actions: ['noteResized'] },
    'resize.trouble': { actions: ['noteResizeTrouble'] },
    'pod.restart': { actions: [refusing(ENDING)] },
  },
  states: {
    /** A new pod has no earlier worker and nothing in the runtime: nobody is asked. One that slept left nothing in flight. */
    beginning: {
      always: [
        { guard: 'woken', target: 'syncing.waking' },
        { guard: and(['nothingYet', not('terminating')]), target: 'syncing.deciding' },
        { target: 'fencing' },
      ],
    },
    fencing: {
      meta: { phase: 'waiting', reason: 'Fencing', message: 'waiting until no act of an earlier worker of this pod is in flight' },
      entry: ['report'],
      invoke: {
        src: 'fence',
        input: ({ context }) => ({ uid: context.uid }),
        onDone: [{ guard: 'terminating', target: 'terminating' }, { target: 'syncing' }],
        ...orFail({ reason: 'RuntimeUnavailable', baseMs: RUNTIME_RETRY_MS, failed: 'fencingAgain' }),
      },
      on: {
        'pod.update': { actions: ['takePod'] },
        'pod.kill': { guard: 'ofThisLife', actions: ['takeKill'] },
        'pod.restart': { actions: [refusing(NOT_SEEN_YET)] },
      },
    },
    fencingAgain: {
      meta: { phase: 'waiting', reason: 'RuntimeUnavailable', message: ({ act }: WorkerContext) => act.trouble?.message ?? '' },
      after: { wait: { target: 'fencing' } },
      on: {
        'pod.update': { actions: ['takePod'] },
        'pod.kill': { guard: 'ofThisLife', actions: ['takeKill'] },
        'pod.dirty': { target: 'fencing' },
        'pod.restart': { actions: [refusing(NOT_SEEN_YET)] },
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
        ...orFail({ reason: 'CleanupFailed', baseMs: STOP_RETRY_MS, failed: 'cleaningAgain' }),
      },
    },
    cleaningAgain: {
      meta: { phase: 'terminated', reason: 'CleanupFailed', message: ({ act }: WorkerContext) => act.trouble?.message ?? '' },
      after: { wait: { target: 'terminated' } },
    },
    finished: {
      type: 'final',
      meta: { phase: 'finished', reason: 'Finished', message: '' },
      entry: [{ type: 'publish', params: { finished: true } }, 'report'],
    },
  },
});
