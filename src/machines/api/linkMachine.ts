/** Whether the API server can be reached, as a statechart: everybody's calls say how it goes, and while it is lost it is asked. */

import { assign } from 'xstate';
import { retryDelayMs } from '../supervision/restartPolicy.ts';
import { projecting } from '../xstate/projection.ts';
import { unprovided, unprovidedAction } from '../xstate/provide.ts';
import { setupWith } from '../xstate/setup.ts';
import type { ApiLinkEvent } from './messages.ts';

/** A question that is not answered within this counts as no answer. */
export const LINK_PROBE_TIMEOUT_MS = 5_000;
/** Between questions while it is lost: 0.5 s doubling to 5 s, lengthened by up to half. Running pods do not depend on it. */
const LINK_RETRY_MS = 500;
const LINK_RETRY_MAX_MS = 5_000;

export type ProbeResult = { ok: true } | { ok: false; reason: string; message: string };

export interface ApiLinkInput {
  server: string;
}
export interface ApiLinkContext extends ApiLinkInput {
  /** Questions in a row without an answer. */
  misses: number;
  reason: string;
}

interface Announced {
  state: 'connecting' | 'reachable' | 'lost';
  server: string;
  reason: string;
}
const announcing = (state: Announced['state']) =>
  ({ type: 'announce', params: ({ context: { server, reason } }: { context: ApiLinkContext }) => ({ state, server, reason }) }) as const;

const { setup, facts } = setupWith();
export const apiLinkMachine = setup({
  types: { context: {} as ApiLinkContext, input: {} as ApiLinkInput, events: {} as ApiLinkEvent },
  actors: { probe: unprovided<ProbeResult>() },
  actions: {
    /** Publishes the view and says so in the log. */
    announce: unprovidedAction<Announced>(),
    /** Drops connections that lead nowhere. */
    disconnect: unprovidedAction(),
    /** Wakes everybody who waits for the API server. */
    reportFound: unprovidedAction(),
    missed: assign(({ context }, p: { result: ProbeResult }) => ({
      misses: context.misses + 1,
      reason: p.result.ok ? '' : `${p.result.reason}: ${p.result.message}`,
    })),
    heard: assign({ misses: 0, reason: '' }),
  },
  guards: { answered: (_, p: { result: ProbeResult }) => p.result.ok },
  delays: {
    retry: ({ context }) =>
      retryDelayMs({ minMs: LINK_RETRY_MS, maxMs: LINK_RETRY_MAX_MS, jitter: 0.5 }, context.misses - 1, facts().random),
  },
}).createMachine({
  id: 'apiLink',
  meta: projecting<ApiLinkContext>(({ server, misses, reason }) => ({ server, misses, reason })),
  context: ({ input }) => ({ ...input, misses: 0, reason: '' }),
  initial: 'connecting',
  states: {
    connecting: {
      meta: { reason: 'Connecting', message: ({ server }: ApiLinkContext) => `asking ${server} for the first time` },
      entry: [announcing('connecting')],
      on: { 'api.answered': { target: 'reachable' } },
      invoke: {
        src: 'probe',
        onDone: [
          { guard: { type: 'answered', params: ({ event }) => ({ result: event.output }) }, target: 'reachable' },
          { target: 'lost', actions: [{ type: 'missed', params: ({ event }) => ({ result: event.output }) }] },
        ],
      },
    },
    reachable: {
      meta: { reason: 'Reachable', message: ({ server }: ApiLinkContext) => `${server} answers` },
      entry: ['heard', announcing('reachable')],
      initial: 'trusted',
      states: {
        trusted: { on: { 'api.failed': { target: 'doubted' }, 'api.check': { target: 'doubted' } } },
        // One call that failed is not an API server that is away.
        doubted: {
          meta: { reason: 'Doubted', message: ({ server }: ApiLinkContext) => `a call failed; asking whether ${server} is there` },
          on: { 'api.answered': { target: 'trusted' } },
          invoke: {
            src: 'probe',
            onDone: [
              { guard: { type: 'answered', params: ({ event }) => ({ result: event.output }) }, target: 'trusted' },
              { target: '#apiLink.lost', actions: [{ type: 'missed', params: ({ event }) => ({ result: event.output }) }] },
            ],
          },
        },
      },
    },
    lost: {
      meta: {
        reason: 'ApiServerLost',
        message: ({ server, reason }: ApiLinkContext) => `${server} does not answer (${reason}); pods run on, statuses are kept`,
      },
      entry: [announcing('lost'), 'disconnect'],
      initial: 'waiting',
      on: { 'api.answered': { target: 'reachable', actions: ['reportFound'] } },
      states: {
        waiting: { after: { retry: { target: 'asking' } } },
        asking: {
          invoke: {
            src: 'probe',
            onDone: [
              {
                guard: { type: 'answered', params: ({ event }) => ({ result: event.output }) },
                target: '#apiLink.reachable',
                actions: ['reportFound'],
              },
              { target: 'waiting', actions: [{ type: 'missed', params: ({ event }) => ({ result: event.output }) }] },
            ],
          },
        },
      },
    },
  },
});
