/**
 * The shape of every reclaiming actor: idle, and from time to time, or when asked, one sweep. Asked during a sweep it
 * sweeps once more. A failed sweep says why and is tried again at the next time.
 */

import { assign, fromPromise, setup } from 'xstate';
import { projecting } from '../projection.ts';
import { providing, unprovided } from '../provide.ts';
import { messageOf } from '../text/errors.ts';

export interface SweeperInput {
  everyMs: number;
  /** Least time between the end of a sweep and one that was asked for. */
  restMs: number;
}
interface Context extends SweeperInput {
  asked: string | null;
  why: string;
  last: string;
  error: string | null;
}
export type SweeperEvent = { type: 'gc.run'; why: string } | { type: 'housekeeping.run'; why: string };

export const sweeperMachine = setup({
  types: { context: {} as Context, events: {} as SweeperEvent, input: {} as SweeperInput },
  actors: { sweep: unprovided<string>() },
  actions: {
    ask: assign(({ context, event }) => ({ asked: context.asked ?? ('why' in event ? event.why : '') })),
    take: assign(({ context }) => ({ why: context.asked ?? 'periodic', asked: null })),
  },
  delays: { every: ({ context }) => context.everyMs, rest: ({ context }) => context.restMs },
  guards: { asked: ({ context }) => context.asked !== null },
}).createMachine({
  id: 'sweeper',
  meta: projecting<Context>(({ everyMs, asked, why, last, error }) => ({ everyMs, asked, why, last, error })),
  options: { maxIterations: 1000 },
  context: ({ input }) => ({ ...input, asked: null, why: '', last: '', error: null }),
  initial: 'idle',
  on: { 'gc.run': { actions: ['ask'] }, 'housekeeping.run': { actions: ['ask'] } },
  states: {
    idle: {
      meta: {
        reason: ({ error }: Context) => (error === null ? 'Idle' : 'SweepFailed'),
        message: ({ error, last }: Context) => error ?? last,
      },
      always: { guard: 'asked', target: 'sweeping' },
      after: { every: { target: 'sweeping' } },
    },
    sweeping: {
      meta: { reason: 'Sweeping', message: ({ why }: Context) => why },
      entry: ['take'],
      invoke: {
        src: 'sweep',
        onDone: { target: 'resting', actions: assign(({ event }) => ({ last: event.output, error: null })) },
        onError: {
          target: 'resting',
          actions: assign(({ event }) => ({ error: messageOf(event.error) })),
        },
      },
    },
    resting: {
      meta: { reason: 'Resting', message: 'a sweep has just ended' },
      after: { rest: { target: 'idle' } },
    },
  },
});

/** `sweep` answers what it did, one short sentence, or '' for nothing. */
export const sweeperWith = (sweep: (signal: AbortSignal) => Promise<string>): typeof sweeperMachine =>
  providing(sweeperMachine, { actors: { sweep: fromPromise(({ signal }) => sweep(signal)) } });
