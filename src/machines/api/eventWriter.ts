/** Sends events to the API one after another, as a statechart. The request is given with `provide`. */
import { assign, fromPromise, type PromiseActorLogic, setup } from 'xstate';
import type { EventWriterEvent } from './messages.ts';

/** Between tries of one event, lengthened by up to half. */
export const EVENT_RETRY_MS = 10_000;
export const EVENT_TRIES_MAX = 12;

/** `again`: it did not arrive; `settled`: sent, or not to be sent. */
export type EventOutcome = 'settled' | 'again';
export interface EventWriterInput {
  waiting(): boolean;
  random(): number;
}

const send: PromiseActorLogic<EventOutcome> = fromPromise(() => Promise.reject(new Error('no request was provided')));
type Done = { event: { output: EventOutcome } };
const again = { type: 'again', params: ({ event }: Done) => ({ outcome: event.output }) } as const;

export const eventWriterMachine = setup({
  types: { context: {} as EventWriterInput & { tries: number }, input: {} as EventWriterInput, events: {} as EventWriterEvent },
  actors: { send },
  actions: {
    /** Takes the event into the book. */
    keep: () => {},
    /** Drops the one that was tried too often. */
    giveUp: () => {},
  },
  guards: {
    waiting: ({ context }) => context.waiting(),
    again: (_, p: { outcome: EventOutcome }) => p.outcome === 'again',
    triesLeft: ({ context }) => context.tries + 1 < EVENT_TRIES_MAX,
  },
  delays: { retry: ({ context }) => EVENT_RETRY_MS * (1 + 0.5 * context.random()) },
}).createMachine({
  id: 'eventWriter',
  context: ({ input }) => ({ ...input, tries: 0 }),
  on: { 'event.write': { actions: ['keep'] } },
  initial: 'idle',
  states: {
    idle: {
      meta: { reason: 'UpToDate', message: 'no event waits' },
      always: { guard: 'waiting', target: 'sending' },
      on: { 'event.write': { target: 'idle', reenter: true, actions: ['keep'] } },
    },
    sending: {
      meta: { reason: 'Sending', message: 'an event is on its way' },
      invoke: {
        src: 'send',
        onDone: [
          { guard: again, target: 'judging' },
          { target: 'idle', actions: [assign({ tries: 0 })] },
        ],
      },
    },
    judging: {
      always: [
        { guard: 'triesLeft', target: 'waiting', actions: [assign(({ context }) => ({ tries: context.tries + 1 }))] },
        { target: 'idle', actions: ['giveUp', assign({ tries: 0 })] },
      ],
    },
    waiting: {
      meta: { reason: 'EventsDelayed', message: 'the API server did not take an event; it is tried again' },
      after: { retry: { target: 'sending' } },
      on: { 'api.found': { target: 'sending' } },
    },
  },
});
