/** Small documents on disk: read and written as asked, and before the stop what is pending is written. */
import { assign, setup } from 'xstate';
import { names, projecting } from '../xstate/projection.ts';
import { unprovided, unprovidedAction } from '../xstate/provide.ts';
import type { CheckpointEvent } from './messages.ts';

interface Context {
  /** Names of documents that could not be written before the stop. */
  unsaved: readonly string[];
}

type Put = Extract<CheckpointEvent, { type: 'checkpoint.put' }>;
type Get = Extract<CheckpointEvent, { type: 'checkpoint.get' }>;

export const checkpointMachine = setup({
  types: { context: {} as Context, events: {} as CheckpointEvent },
  actors: { flush: unprovided<readonly string[]>() },
  actions: { put: unprovidedAction<Put>(), get: unprovidedAction<Get>(), report: unprovidedAction<{ unsaved: readonly string[] }>() },
}).createMachine({
  id: 'checkpoint',
  meta: projecting<Context>(({ unsaved }) => ({ unsaved: names(unsaved) })),
  context: { unsaved: [] },
  initial: 'serving',
  states: {
    serving: {
      meta: { reason: 'Serving', message: 'documents are read and written as asked' },
      on: {
        'checkpoint.put': { actions: { type: 'put', params: ({ event }) => event } },
        'checkpoint.get': { actions: { type: 'get', params: ({ event }) => event } },
        'checkpoint.flush': { target: 'flushing' },
      },
    },
    flushing: {
      meta: { reason: 'Flushing', message: 'writing what is pending before the stop' },
      invoke: {
        src: 'flush',
        onDone: {
          target: 'ended',
          actions: [
            assign({ unsaved: ({ event }) => event.output }),
            { type: 'report', params: ({ context: { unsaved } }) => ({ unsaved }) },
          ],
        },
        onError: { target: 'ended' },
      },
    },
    ended: { type: 'final' },
  },
});
