/**
 * The supervisor statechart: a few children in a fixed order, started left to right, stopped right to left, restarted by strategy. It
 * decides; its action `perform` is given by the supervision and carries effects out. All decisions are in `supervision.ts`; the statechart
 * shows where a supervisor is and owns its timers. Not for thousands of children: that is the dynamic supervisor.
 */
import { setup } from 'xstate';
import { projecting, some } from '../xstate/projection.ts';
import { unprovidedAction } from '../xstate/provide.ts';
import {
  allDown,
  initialSupervisor,
  isSettled,
  type SupervisorContext,
  type SupervisorEffect,
  type SupervisorEvent,
  type SupervisorInput,
  supervise,
} from './supervision.ts';

const waitingFor = (ctx: SupervisorContext): string =>
  ctx.children
    .filter((c) => c.cycle || (c.status !== 'up' && c.status !== 'ended'))
    .map((c) => (c.lastError === null ? c.id : `${c.id} (${c.lastError})`))
    .join(', ');

const supervisorSetup = setup({
  types: {
    context: {} as SupervisorContext,
    events: {} as SupervisorEvent,
    input: {} as SupervisorInput,
  },
  actions: {
    /** Carries one effect out, later: it must not throw and must not call back in the same turn. */
    perform: unprovidedAction<{ effect: SupervisorEffect }>(),
  },
  guards: {
    leaving: ({ context }) => context.goal !== 'run',
    settled: ({ context }) => context.goal === 'run' && isSettled(context),
    unsettled: ({ context }) => context.goal === 'run' && !isSettled(context),
    downToStop: ({ context }) => context.goal === 'stop' && allDown(context),
    downToFail: ({ context }) => context.goal === 'fail' && allDown(context),
    downToPark: ({ context }) => context.goal === 'park' && allDown(context),
  },
  delays: {
    parkMs: ({ context }) => (context.escalate === 'parent' ? 0 : context.escalate.parkMs),
  },
});

/** `own` for what the statechart itself decides; without it the event at hand is the decision's input. */
const step = (own?: { type: 'sup.begin' | 'sup.resume' }) =>
  supervisorSetup.enqueueActions(({ context, event, enqueue }) => {
    const { context: next, effects } = supervise(context, own ?? event);
    enqueue.assign(next);
    for (const effect of effects) {
      if (effect.type === 'timer') {
        enqueue.raise({ type: 'child.due', token: effect.token }, { delay: effect.delayMs, id: `due.${effect.token}` });
      } else {
        enqueue({ type: 'perform', params: { effect } });
      }
    }
  });

/** Provide `perform`; give the node's clock to `createActor`. Final state names say how it ended. */
export const supervisorMachine = supervisorSetup.createMachine({
  id: 'supervisor',
  meta: projecting<SupervisorContext>(({ strategy, goal, failure, crashes, children }) => ({
    ...{ strategy, goal, failure, crashes: crashes.length },
    children: some(children, ({ id, status, incarnation }) => `${id}: ${status}, incarnation ${incarnation}`),
  })),
  options: { maxIterations: 1000 },
  context: ({ input }) => initialSupervisor(input),
  entry: step({ type: 'sup.begin' }),
  on: {
    'sup.stop': { actions: step() },
    'child.started': { actions: step() },
    'child.ready': { actions: step() },
    'child.exited': { actions: step() },
    'child.counted': { actions: step() },
    'child.due': { actions: step() },
  },
  initial: 'starting',
  states: {
    starting: {
      meta: { reason: 'Starting', message: (c: SupervisorContext) => `waiting for ${waitingFor(c)}` },
      always: [
        { guard: 'leaving', target: 'stopping' },
        { guard: 'settled', target: 'running' },
      ],
    },
    running: {
      meta: { reason: 'Running', message: '' },
      always: [
        { guard: 'leaving', target: 'stopping' },
        { guard: 'unsettled', target: 'restarting' },
      ],
    },
    restarting: {
      meta: { reason: 'Restarting', message: (c: SupervisorContext) => `waiting for ${waitingFor(c)}` },
      always: [
        { guard: 'leaving', target: 'stopping' },
        { guard: 'settled', target: 'running' },
      ],
    },
    stopping: {
      meta: { reason: 'Stopping', message: (c: SupervisorContext) => c.failure ?? '' },
      always: [
        { guard: 'downToStop', target: 'stopped' },
        { guard: 'downToFail', target: 'failed' },
        { guard: 'downToPark', target: 'parked' },
      ],
    },
    parked: {
      meta: { reason: 'Parked', message: (c: SupervisorContext) => c.failure ?? '' },
      after: {
        parkMs: { target: 'starting', actions: step({ type: 'sup.resume' }) },
      },
      always: { guard: 'downToStop', target: 'stopped' },
    },
    stopped: { type: 'final', meta: { reason: 'Stopped', message: '' } },
    failed: { type: 'final', meta: { reason: 'Failed', message: (c: SupervisorContext) => c.failure ?? '' } },
  },
});
