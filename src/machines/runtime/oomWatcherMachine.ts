/** Statechart of the watch on the kernel's log: reading, or waiting to try again. Pure. */

import { assign, setup } from 'xstate';
import { retryDelayMs } from '../supervision/restartPolicy.ts';
import { projecting } from '../xstate/projection.ts';
import { unprovidedAction, unprovidedCallback } from '../xstate/provide.ts';

/** A log that cannot be read is tried again after this, doubled up to the last: rights and devices seldom change by themselves. */
const RETRY_MIN_MS = 5_000;
const RETRY_MAX_MS = 300_000;

export type OomWatcherMachineEvent =
  | { type: 'log.part'; part: { records: readonly string[]; seq: number } }
  | { type: 'log.lost'; reason: string };

interface Context {
  /** Attempts in a row that read nothing. */
  failures: number;
  reason: string;
}

export const oomWatcherMachine = setup({
  types: { context: {} as Context, events: {} as OomWatcherMachineEvent },
  actors: { follow: unprovidedCallback<OomWatcherMachineEvent>() },
  actions: {
    read: unprovidedAction<{ part: { records: readonly string[]; seq: number } }>(),
    lost: unprovidedAction<{ reason: string }>(),
  },
  delays: {
    retry: ({ context }) => retryDelayMs({ minMs: RETRY_MIN_MS, maxMs: RETRY_MAX_MS }, context.failures - 1),
  },
}).createMachine({
  id: 'oomWatcher',
  meta: projecting<Context>(({ failures, reason }) => ({ failures, reason })),
  context: { failures: 0, reason: '' },
  initial: 'following',
  states: {
    following: {
      meta: { reason: 'Following', message: "reading the kernel's log for processes killed for want of memory" },
      invoke: { src: 'follow' },
      on: {
        'log.part': {
          actions: [{ type: 'read', params: ({ event }) => ({ part: event.part }) }, assign({ failures: 0 })],
        },
        'log.lost': {
          target: 'unreadable',
          actions: [
            assign({ failures: ({ context }) => context.failures + 1, reason: ({ event }) => event.reason }),
            { type: 'lost', params: ({ event }) => ({ reason: event.reason }) },
          ],
        },
      },
    },
    unreadable: {
      meta: {
        reason: 'KernelLogUnreadable',
        message: ({ reason }: Context): string =>
          `the kernel's log cannot be read, so a node that runs out of memory is not told as an event: ${reason}`,
      },
      after: { retry: 'following' },
    },
  },
});
