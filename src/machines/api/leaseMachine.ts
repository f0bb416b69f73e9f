/** The node's lease as a statechart: held by writing the time into it (boot-and-node 9.8). */

import { assign } from 'xstate';
import type { KubeFailure } from '../kube/request.ts';
import { retryDelayMs } from '../supervision/restartPolicy.ts';
import { failureOf, projecting } from '../xstate/projection.ts';
import { unprovided, unprovidedAction } from '../xstate/provide.ts';
import { setupWith } from '../xstate/setup.ts';
import type { LeaseEvent } from './messages.ts';

/** Between tries to find or make it: doubles from the first to the second. */
const LEASE_RETRY_MS = 200;
const LEASE_RETRY_MAX_MS = 7_000;
/** Tries of one renewal in a row; after them it is looked up anew. */
const RENEW_TRIES_MAX = 5;
/** Share of its duration after which it is renewed. */
const RENEW_SHARE = 0.25;

/** `conflict`: somebody else wrote it; it is read again and nothing is wrong. */
export type LeaseOutcome = { ok: true } | { ok: false; conflict: boolean; failure: KubeFailure };
export interface LeaseInput {
  durationMs: number;
}
export interface LeaseContext extends LeaseInput {
  failures: number;
  failure: KubeFailure | null;
}

type Done = { event: { output: LeaseOutcome } };
const took = { type: 'took', params: ({ event }: Done) => ({ outcome: event.output }) } as const;
const held = { type: 'held', params: ({ event }: Done) => ({ outcome: event.output }) } as const;
const conflict = { type: 'conflict', params: ({ event }: Done) => ({ outcome: event.output }) } as const;
const toldToWait = { type: 'toldToWait', params: ({ event }: Done) => ({ outcome: event.output }) } as const;

const failing = { type: 'failing', params: ({ context }: { context: LeaseContext }) => ({ failures: context.failures }) } as const;

const { setup, facts } = setupWith();
export const leaseMachine = setup({
  types: { context: {} as LeaseContext, input: {} as LeaseInput, events: {} as LeaseEvent },
  actors: { acquire: unprovided<LeaseOutcome>(), renew: unprovided<LeaseOutcome>() },
  actions: {
    /** From the second failure in a row on: the connection may be dead. */
    failing: unprovidedAction<{ failures: number }>(),
    took: assign(
      ({ context }, p: { outcome: LeaseOutcome }): Partial<LeaseContext> =>
        p.outcome.ok ? { failures: 0, failure: null } : { failures: context.failures + 1, failure: p.outcome.failure },
    ),
    calm: assign({ failures: 0 }),
  },
  guards: {
    held: (_, p: { outcome: LeaseOutcome }) => p.outcome.ok,
    conflict: (_, p: { outcome: LeaseOutcome }) => !p.outcome.ok && p.outcome.conflict,
    triesLeft: ({ context }) => context.failures < RENEW_TRIES_MAX - 1,
    toldToWait: ({ context }, p: { outcome: LeaseOutcome }) =>
      context.failures < RENEW_TRIES_MAX - 1 && !p.outcome.ok && p.outcome.failure.retryAfterMs !== undefined,
  },
  delays: {
    retry: ({ context: { failures, failure } }) =>
      Math.max(
        retryDelayMs({ minMs: LEASE_RETRY_MS, maxMs: LEASE_RETRY_MAX_MS, jitter: 0.2 }, failures - 1, facts().random),
        failure?.retryAfterMs ?? 0,
      ),
    told: ({ context: { failure } }) => failure?.retryAfterMs ?? 0,
    interval: ({ context }) => context.durationMs * RENEW_SHARE * (1 + 0.04 * facts().random),
  },
}).createMachine({
  id: 'lease',
  meta: projecting<LeaseContext>(({ durationMs, failures, failure }) => ({ durationMs, failures, failure: failureOf(failure) })),
  context: ({ input }) => ({ ...input, failures: 0, failure: null }),
  initial: 'acquiring',
  states: {
    acquiring: {
      meta: { reason: 'Acquiring', message: 'looking up the lease of the node, or making it' },
      invoke: {
        src: 'acquire',
        onDone: [
          { guard: held, target: 'holding', actions: [took] },
          { target: 'missing', actions: [took, failing] },
        ],
      },
    },
    missing: {
      meta: { reason: 'LeaseMissing', message: ({ failure }: LeaseContext) => failure?.message ?? '' },
      after: { retry: { target: 'acquiring' } },
      on: { 'api.found': { target: 'acquiring' } },
    },
    holding: {
      meta: { reason: 'Held', message: 'the lease was renewed' },
      after: { interval: { target: 'renewing' } },
      on: { 'api.found': { target: 'renewing' } },
    },
    renewing: {
      meta: { reason: 'Renewing', message: 'writing the time into the lease' },
      invoke: {
        src: 'renew',
        onDone: [
          { guard: held, target: 'holding', actions: [took] },
          { guard: conflict, target: 'acquiring' },
          { guard: toldToWait, target: 'toldToWait', actions: [took, failing] },
          { guard: 'triesLeft', target: 'renewing', reenter: true, actions: [took, failing] },
          { target: 'acquiring', actions: [took, failing, 'calm'] },
        ],
      },
    },
    toldToWait: {
      meta: { reason: 'ToldToWait', message: ({ failure }: LeaseContext) => failure?.message ?? '' },
      after: { told: { target: 'renewing' } },
    },
  },
});
