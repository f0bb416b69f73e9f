/** Life of one listening server: opening, listening, waiting for its address to become free, closing. Pure. */

import { assign, fromPromise, setup } from 'xstate';
import { messageOf } from '../text/errors.ts';
import { projecting } from '../xstate/projection.ts';
import { CANNOT_LISTEN, type ServerEvent } from './messages.ts';

export interface ServerContext {
  /** What it listens on once it does. */
  address: string;
  /** Why the last attempt failed; names the flag and the address. */
  error: string;
  attempts: number;
}

/** Waits between attempts to listen; the last one repeats (the kubelet's health server retries every 5 s, for ever). */
export const LISTEN_RETRY_MS = [100, 500, 2000, 5000] as const;

export const serverMachine = setup({
  types: { context: {} as ServerContext, events: {} as ServerEvent },
  actors: {
    /** Listens and gives the address; rejects with the reason. */
    listen: fromPromise<string>(() => Promise.reject(new Error('listen is not provided'))),
    close: fromPromise<void>(() => Promise.resolve()),
  },
  actions: {
    /** Says once per new reason that it does not listen. */
    report: () => undefined,
    opened: () => undefined,
  },
  delays: {
    retry: ({ context }) => LISTEN_RETRY_MS[Math.min(context.attempts, LISTEN_RETRY_MS.length) - 1] ?? LISTEN_RETRY_MS[3],
  },
}).createMachine({
  id: 'server',
  meta: projecting<ServerContext>(({ address, error, attempts }) => ({ address, error, attempts })),
  context: { address: '', error: '', attempts: 0 },
  initial: 'opening',
  on: { 'server.close': { target: '.closing' } },
  states: {
    opening: {
      meta: { reason: 'Opening', message: 'binding its address' },
      invoke: {
        src: 'listen',
        onDone: { target: 'listening', actions: [assign({ address: ({ event }) => event.output, error: '', attempts: 0 }), 'opened'] },
        onError: {
          target: 'blocked',
          actions: [
            assign({
              attempts: ({ context }) => context.attempts + 1,
              error: ({ event }) => messageOf(event.error),
            }),
            'report',
          ],
        },
      },
    },
    listening: { meta: { reason: 'Listening', message: (context: ServerContext) => `on ${context.address}` } },
    blocked: {
      meta: { reason: CANNOT_LISTEN, message: (context: ServerContext) => context.error },
      after: { retry: { target: 'opening' } },
    },
    closing: {
      meta: { reason: 'Closing', message: 'finishing open requests' },
      invoke: { src: 'close', onDone: { target: 'closed' }, onError: { target: 'closed' } },
    },
    closed: { type: 'final' },
  },
});
