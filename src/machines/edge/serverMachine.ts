/**
 * Life of one listening server: opening, listening, waiting for its address to become free, closing. One that has
 * certificates looks now and then whether they changed. Pure.
 */

import { assign, cancel, enqueueActions, setup } from 'xstate';
import { messageOf } from '../text/errors.ts';
import { projecting } from '../xstate/projection.ts';
import { unprovided, unprovidedAction } from '../xstate/provide.ts';
import { CANNOT_LISTEN, type ServerEvent } from './messages.ts';

interface ServerContext {
  /** Files of certificates are read before it listens, and read again while it does. */
  certificates: boolean;
  /** What it listens on once it does. */
  address: string;
  /** Why the last attempt failed; names the flag and the address. */
  error: string;
  attempts: number;
  /** What is wrong with the certificates that it read last; it keeps those it has. */
  refreshError: string;
}

/** Waits between attempts to listen; the last one repeats (the kubelet's health server retries every 5 s, for ever). */
const LISTEN_RETRY_MS = [100, 500, 2000, 5000] as const;
/** How often files of certificates are looked at: a renewed certificate or client CA counts at most this much later. */
const CERTIFICATE_CHECK_MS = 10_000;
const CHECK = 'certificates';

export const serverMachine = setup({
  types: { context: {} as ServerContext, events: {} as ServerEvent, input: {} as Pick<ServerContext, 'certificates'> },
  actors: {
    /** Listens and gives the address; rejects with the reason. */
    listen: unprovided<string>(),
    /** Reads certificates again and uses them if they changed; rejects with what is wrong with them. */
    refresh: unprovided<void>(),
    close: unprovided<void>(),
  },
  actions: {
    opened: unprovidedAction<{ address: string }>(),
    /** Says that it does not listen. */
    reportBlocked: unprovidedAction<{ error: string }>(),
    /** Says that it keeps the certificates it has. */
    reportRefresh: unprovidedAction<{ error: string }>(),
  },
  guards: { hasCertificates: ({ context }) => context.certificates },
  delays: {
    retry: ({ context }) => LISTEN_RETRY_MS[Math.min(context.attempts, LISTEN_RETRY_MS.length) - 1] ?? LISTEN_RETRY_MS[3],
  },
}).createMachine({
  id: 'server',
  meta: projecting<ServerContext>(({ certificates, address, error, attempts, refreshError }) => ({
    address,
    error,
    attempts,
    ...(certificates ? { refreshError } : {}),
  })),
  context: ({ input }) => ({ ...input, address: '', error: '', attempts: 0, refreshError: '' }),
  initial: 'opening',
  on: { 'server.close': { target: '.closing' } },
  states: {
    opening: {
      meta: {
        reason: 'Opening',
        message: (c: ServerContext) => (c.certificates ? 'reading its certificate and binding its address' : 'binding its address'),
      },
      invoke: {
        src: 'listen',
        onDone: {
          target: 'listening',
          actions: [
            assign({ address: ({ event }) => event.output, error: '', attempts: 0 }),
            { type: 'opened', params: ({ event }) => ({ address: event.output }) },
          ],
        },
        onError: {
          target: 'blocked',
          actions: enqueueActions(({ context, event, enqueue }) => {
            const error = messageOf(event.error);
            if (error !== context.error) enqueue({ type: 'reportBlocked', params: { error } });
            enqueue.assign({ attempts: context.attempts + 1, error });
          }),
        },
      },
    },
    listening: {
      meta: {
        reason: 'Listening',
        message: (c: ServerContext) =>
          `on ${c.address}${c.refreshError === '' ? '' : `, with the certificates it had before: ${c.refreshError}`}`,
      },
      entry: enqueueActions(({ context, enqueue }) => {
        if (context.certificates) enqueue.raise({ type: 'server.refresh' }, { id: CHECK, delay: CERTIFICATE_CHECK_MS });
      }),
      exit: cancel(CHECK),
      on: { 'server.refresh': { guard: 'hasCertificates', target: 'refreshing' } },
    },
    refreshing: {
      meta: { reason: 'Listening', message: (c: ServerContext) => `on ${c.address}, looking at its certificates` },
      on: { 'server.refresh': { target: 'refreshing', reenter: true } },
      invoke: {
        src: 'refresh',
        onDone: { target: 'listening', actions: assign({ refreshError: '' }) },
        onError: {
          target: 'listening',
          actions: enqueueActions(({ context, event, enqueue }) => {
            const error = messageOf(event.error);
            if (error !== context.refreshError) enqueue({ type: 'reportRefresh', params: { error } });
            enqueue.assign({ refreshError: error });
          }),
        },
      },
    },
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
