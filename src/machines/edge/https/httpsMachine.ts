/** Life of the kubelet's HTTPS server: as any server's, and now and then it looks whether its certificates changed. Pure. */

import { assign, fromPromise, setup } from 'xstate';
import { messageOf } from '../../text/errors.ts';
import { projecting } from '../../xstate/projection.ts';
import { CANNOT_LISTEN, type ServerEvent } from '../messages.ts';
import { LISTEN_RETRY_MS, type ServerContext } from '../serverMachine.ts';

/** How often files of certificates are looked at: a renewed certificate or client CA counts at most this much later. */
const CERTIFICATE_CHECK_MS = 10_000;

export const httpsServerMachine = setup({
  types: { context: {} as ServerContext & { refreshError: string }, events: {} as ServerEvent },
  actors: {
    /** Reads certificates, listens and gives the address; rejects with the reason. */
    listen: fromPromise<string>(() => Promise.reject(new Error('listen is not provided'))),
    /** Reads certificates again and uses them if they changed; rejects with what is wrong with them. */
    refresh: fromPromise<void>(() => Promise.resolve()),
    close: fromPromise<void>(() => Promise.resolve()),
  },
  actions: {
    /** Says once per new reason that it does not listen. */
    report: () => undefined,
    opened: () => undefined,
    /** Says once per new reason that it keeps the certificates it has. */
    reportRefresh: () => undefined,
  },
  delays: {
    retry: ({ context }) => LISTEN_RETRY_MS[Math.min(context.attempts, LISTEN_RETRY_MS.length) - 1] ?? LISTEN_RETRY_MS[3],
    check: CERTIFICATE_CHECK_MS,
  },
}).createMachine({
  id: 'httpsServer',
  meta: projecting<ServerContext & { refreshError: string }>(({ address, error, attempts, refreshError }) => ({
    address,
    error,
    attempts,
    refreshError,
  })),
  context: { address: '', error: '', attempts: 0, refreshError: '' },
  initial: 'opening',
  on: { 'server.close': { target: '.closing' } },
  states: {
    opening: {
      meta: { reason: 'Opening', message: 'reading its certificate and binding its address' },
      invoke: {
        src: 'listen',
        onDone: { target: 'listening', actions: [assign({ address: ({ event }) => event.output, error: '', attempts: 0 }), 'opened'] },
        onError: {
          target: 'blocked',
          actions: [assign({ attempts: ({ context }) => context.attempts + 1, error: ({ event }) => messageOf(event.error) }), 'report'],
        },
      },
    },
    listening: {
      meta: {
        reason: 'Listening',
        message: (c: ServerContext & { refreshError: string }) =>
          `on ${c.address}${c.refreshError === '' ? '' : `, with the certificates it had before: ${c.refreshError}`}`,
      },
      after: { check: { target: 'refreshing' } },
      on: { 'server.refresh': { target: 'refreshing' } },
    },
    refreshing: {
      meta: { reason: 'Listening', message: (c: ServerContext) => `on ${c.address}, looking at its certificates` },
      on: { 'server.refresh': { target: 'refreshing', reenter: true } },
      invoke: {
        src: 'refresh',
        onDone: { target: 'listening', actions: assign({ refreshError: '' }) },
        onError: {
          target: 'listening',
          actions: ['reportRefresh', assign({ refreshError: ({ event }) => messageOf(event.error) })],
        },
      },
    },
    blocked: {
      meta: { reason: CANNOT_LISTEN, message: (context: ServerContext) => context.error },
      after: { retry: { target: 'opening' } },
    },
    closing: {
      meta: { reason: 'Closing', message: 'ending open requests' },
      invoke: { src: 'close', onDone: { target: 'closed' }, onError: { target: 'closed' } },
    },
    closed: { type: 'final' },
  },
});
