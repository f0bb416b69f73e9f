/**
 * The shape of every reclaiming actor: idle, and from time to time, or when asked, one sweep. Those who ask one after the
 * other get one sweep: a hundred pods that end in ten seconds want the runtime for themselves. Asked during a sweep it sweeps
 * once more. A failed sweep says why and is tried again at the next time. Where nothing has changed, it stays idle.
 */

import { assign, setup } from 'xstate';
import { messageOf } from '../text/errors.ts';
import { type LookDue, unprovidedLookout } from '../xstate/lookout.ts';
import { projecting } from '../xstate/projection.ts';
import { unprovided } from '../xstate/provide.ts';

/** The longest that one who asked waits for quiet: on a busy node there is always another who asks. */
const GATHER_MS_MAX = 15_000;

export interface SweeperInput {
  /** From one sweep to the next. */
  everyMs: number;
  /** A sweep that was asked for begins once nobody has asked for so long. */
  quietMs: number;
}
interface Context extends SweeperInput {
  asked: string | null;
  /** The caller cannot wait for quiet. */
  urgent: boolean;
  /** A caller of the present sweep could not. */
  hurried: boolean;
  why: string;
  last: string;
  error: string | null;
}
export type SweeperEvent = { type: 'gc.run'; why: string; urgent?: true } | { type: 'housekeeping.run'; why: string };

export const sweeperMachine = setup({
  types: { context: {} as Context, events: {} as SweeperEvent | LookDue, input: {} as SweeperInput },
  actors: {
    /** Answers what it did, one short sentence, or '' for nothing. */
    sweep: unprovided<string, { urgent: boolean }>(),
    /** A periodic sweep may find something: what it looks at has changed since the last one, or that was long ago. */
    lookout: unprovidedLookout(),
  },
  actions: {
    ask: assign(({ context, event }) => ({
      asked: context.asked ?? ('why' in event ? event.why : ''),
      urgent: context.urgent || ('urgent' in event && event.urgent === true),
    })),
    take: assign(({ context }) => ({ why: context.asked ?? 'periodic', asked: null, urgent: false, hurried: context.urgent })),
  },
  delays: {
    longest: ({ context }) => Math.min(context.everyMs, GATHER_MS_MAX),
    quiet: ({ context }) => context.quietMs,
  },
  guards: { asked: ({ context }) => context.asked !== null, urgent: ({ context }) => context.urgent },
}).createMachine({
  id: 'sweeper',
  meta: projecting<Context>(({ everyMs, asked, why, last, error }) => ({ everyMs, asked, why, last, error })),
  options: { maxIterations: 1000 },
  context: ({ input }) => ({ ...input, asked: null, urgent: false, hurried: false, why: '', last: '', error: null }),
  initial: 'idle',
  on: { 'gc.run': { actions: ['ask'] }, 'housekeeping.run': { actions: ['ask'] } },
  states: {
    idle: {
      meta: {
        reason: ({ error }: Context) => (error === null ? 'Idle' : 'SweepFailed'),
        message: ({ error, last }: Context) => error ?? last,
      },
      always: { guard: 'asked', target: 'gathering' },
      invoke: { src: 'lookout', input: ({ context: { everyMs } }) => ({ everyMs }) },
      on: { 'look.due': { target: 'sweeping' } },
    },
    gathering: {
      meta: { reason: 'Gathering', message: 'it was asked for a sweep, and others may ask for the same' },
      always: { guard: 'urgent', target: 'sweeping' },
      after: { longest: { target: 'sweeping' } },
      initial: 'quiet',
      states: { quiet: { after: { quiet: { target: '#sweeper.sweeping' } } } },
      on: {
        'gc.run': { target: '.quiet', actions: ['ask'] },
        'housekeeping.run': { target: '.quiet', actions: ['ask'] },
      },
    },
    sweeping: {
      meta: { reason: 'Sweeping', message: ({ why }: Context) => why },
      entry: ['take'],
      invoke: {
        src: 'sweep',
        input: ({ context: { hurried } }) => ({ urgent: hurried }),
        onDone: { target: 'idle', actions: assign(({ event }) => ({ last: event.output, error: null })) },
        onError: {
          target: 'idle',
          actions: assign(({ event }) => ({ error: messageOf(event.error) })),
        },
      },
    },
  },
});
