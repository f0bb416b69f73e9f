/** Sends events to the API one after another, as a statechart. */
import { assign } from 'xstate';
import type { Moment } from '../xstate/facts.ts';
import { projecting } from '../xstate/projection.ts';
import { unprovided, unprovidedAction } from '../xstate/provide.ts';
import { setupWith } from '../xstate/setup.ts';
import type { EventWriterEvent } from './messages.ts';

/** Between tries of one event, lengthened by up to half. */
const EVENT_RETRY_MS = 10_000;
const EVENT_TRIES_MAX = 12;
/** Events wait so long at most while many pods start or stop; how often it is looked whether they still do. */
export const EVENT_YIELD_MS_MAX = 30_000;
export const EVENT_YIELD_LOOK_MS = 250;

/** `again`: it did not arrive; `settled`: sent, or not to be sent. */
export type EventOutcome = 'settled' | 'again';
/** What comes with each event. */
export interface EventWriterFacts extends Moment {
  readonly waiting: boolean;
  /** The machine is needed for more: an event tells what has been, and nobody acts on it. */
  readonly busy: boolean;
}
interface EventWriterContext {
  tries: number;
  /** Since when it has been busy without a pause, as far as events waited for it; monotonic ms. */
  yieldingSinceMs: number | null;
}

type Done = { event: { output: EventOutcome } };
type Keep = Extract<EventWriterEvent, { type: 'event.write' }>;
const again = { type: 'again', params: ({ event }: Done) => ({ outcome: event.output }) } as const;
const keep = { type: 'keep', params: ({ event }: { event: Keep }) => ({ events: event.events }) } as const;

const { setup, facts } = setupWith<EventWriterFacts>();
export const eventWriterMachine = setup({
  types: { context: {} as EventWriterContext, events: {} as EventWriterEvent },
  actors: { send: unprovided<EventOutcome>() },
  actions: {
    /** Takes the event into the ledger. */
    keep: unprovidedAction<{ events: Keep['events'] }>(),
    /** Drops the one that was tried too often. */
    giveUp: unprovidedAction(),
  },
  guards: {
    waiting: () => facts().waiting,
    yields: ({ context: { yieldingSinceMs } }) => {
      const now = facts();
      return now.waiting && now.busy && (yieldingSinceMs === null || now.monoMs - yieldingSinceMs < EVENT_YIELD_MS_MAX);
    },
    again: (_, p: { outcome: EventOutcome }) => p.outcome === 'again',
    triesLeft: ({ context }) => context.tries + 1 < EVENT_TRIES_MAX,
  },
  delays: { retry: () => EVENT_RETRY_MS * (1 + 0.5 * facts().random) },
}).createMachine({
  id: 'eventWriter',
  meta: projecting<EventWriterContext>(({ tries, yieldingSinceMs }) => ({ tries, yieldingSinceMs })),
  context: { tries: 0, yieldingSinceMs: null },
  on: { 'event.write': { actions: [keep] } },
  initial: 'idle',
  states: {
    idle: {
      meta: { reason: 'UpToDate', message: 'no event waits' },
      entry: [assign(() => (facts().busy ? {} : { yieldingSinceMs: null }))],
      always: [
        { guard: 'yields', target: 'yielding' },
        { guard: 'waiting', target: 'sending' },
      ],
      on: { 'event.write': { target: 'idle', reenter: true, actions: [keep] } },
    },
    yielding: {
      meta: { reason: 'Yielding', message: 'many pods are starting or stopping: events wait for them' },
      entry: [assign(({ context }) => ({ yieldingSinceMs: context.yieldingSinceMs ?? facts().monoMs }))],
      after: { [EVENT_YIELD_LOOK_MS]: { target: 'idle' } },
    },
    sending: {
      meta: { reason: 'Sending', message: 'events are on their way' },
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
