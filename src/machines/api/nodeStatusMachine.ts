/** Registration and status of the node as a statechart (boot-and-node 9.1, 9.3). */

import { assign } from 'xstate';
import type { KubeFailure } from '../kube/request.ts';
import { retryDelayMs } from '../supervision/restartPolicy.ts';
import { failureOf, projecting } from '../xstate/projection.ts';
import { unprovided, unprovidedAction } from '../xstate/provide.ts';
import { setupWith } from '../xstate/setup.ts';
import type { NodeStatusEvent } from './messages.ts';

/** Between tries of registration: doubles from the first to the second. */
const REGISTER_RETRY_MS = 100;
const REGISTER_RETRY_MAX_MS = 7_000;
/** Tries of one report in a row. */
const REPORT_TRIES_MAX = 5;
/** Until the node was first reported Ready, it is looked at more often, for so long. */
const EAGER_MS = 30_000;
const EAGER_PERIOD_MS = 500;

export type NodeOutcome = { ok: true; ready: boolean } | { ok: false; failure: KubeFailure };

export interface NodeStatusInput {
  name: string;
  /** False: the object is made by somebody else. */
  register: boolean;
  updateFrequencyMs: number;
}
export interface NodeStatusContext extends NodeStatusInput {
  failures: number;
  failure: KubeFailure | null;
  ready: boolean;
  startedAtMs: number;
  /** A report was asked for during the present one, which may have read too early. */
  again: boolean;
  /** The next report asks the API server for the object, and does not go by what is known of it. */
  fresh: boolean;
}

const refusedText = ({ failure }: NodeStatusContext) => failure?.message ?? '';

const failing = { type: 'failing', params: ({ context }: { context: NodeStatusContext }) => ({ failures: context.failures }) } as const;

const { setup, facts } = setupWith();
export const nodeStatusMachine = setup({
  types: { context: {} as NodeStatusContext, input: {} as NodeStatusInput, events: {} as NodeStatusEvent },
  actors: { register: unprovided<NodeOutcome>(), report: unprovided<NodeOutcome, { fresh: boolean }>() },
  actions: {
    /** From the second failure in a row on: the connection may be dead. */
    failing: unprovidedAction<{ failures: number }>(),
    took: assign(
      ({ context }, p: { outcome: NodeOutcome }): Partial<NodeStatusContext> =>
        p.outcome.ok
          ? { failures: 0, failure: null, ready: p.outcome.ready }
          : { failures: context.failures + 1, failure: p.outcome.failure },
    ),
    calm: assign({ failures: 0 }),
    doubt: assign({ fresh: true }),
  },
  guards: {
    done: (_, p: { outcome: NodeOutcome }) => p.outcome.ok,
    doneForNow: ({ context }, p: { outcome: NodeOutcome }) => p.outcome.ok && !context.again,
    registers: ({ context }) => context.register,
    triesLeft: ({ context }) => context.failures < REPORT_TRIES_MAX - 1,
    toldToWait: ({ context }, p: { outcome: NodeOutcome }) =>
      context.failures < REPORT_TRIES_MAX - 1 && !p.outcome.ok && p.outcome.failure.retryAfterMs !== undefined,
  },
  delays: {
    registerRetry: ({ context: { failures, failure } }) =>
      Math.max(
        retryDelayMs({ minMs: REGISTER_RETRY_MS, maxMs: REGISTER_RETRY_MAX_MS, jitter: 0.2 }, failures - 1, facts().random),
        failure?.retryAfterMs ?? 0,
      ),
    told: ({ context: { failure } }) => failure?.retryAfterMs ?? 0,
    period: ({ context }) => {
      const { monoMs, random } = facts();
      const eager = !context.ready && monoMs - context.startedAtMs < EAGER_MS;
      return (eager ? Math.min(EAGER_PERIOD_MS, context.updateFrequencyMs) : context.updateFrequencyMs) * (1 + 0.04 * random);
    },
  },
}).createMachine({
  id: 'nodeStatus',
  meta: projecting<NodeStatusContext>(({ name, register, updateFrequencyMs, ready, again, fresh, failures, failure }) => ({
    ...{ name, register, updateFrequencyMs, ready, again, fresh, failures },
    failure: failureOf(failure),
  })),
  context: ({ input }) => ({
    ...input,
    failures: 0,
    failure: null,
    ready: false,
    startedAtMs: facts().monoMs,
    again: false,
    fresh: false,
  }),
  initial: 'beginning',
  states: {
    beginning: { always: [{ guard: 'registers', target: 'registering' }, { target: 'reporting' }] },
    registering: {
      meta: { reason: 'Registering', message: ({ name }: NodeStatusContext) => `asking the API server for node ${name}` },
      invoke: {
        src: 'register',
        onDone: [
          {
            guard: { type: 'done', params: ({ event }) => ({ outcome: event.output }) },
            target: 'reporting',
            actions: [{ type: 'took', params: ({ event }) => ({ outcome: event.output }) }],
          },
          { target: 'unregistered', actions: [{ type: 'took', params: ({ event }) => ({ outcome: event.output }) }, failing] },
        ],
      },
    },
    unregistered: {
      meta: { reason: 'RegistrationFailed', message: refusedText },
      after: { registerRetry: { target: 'registering' } },
      on: { 'api.found': { target: 'registering' } },
    },
    reporting: {
      meta: { reason: 'Reporting', message: 'comparing the status of the node with what the API server has' },
      entry: [assign({ again: false })],
      on: { 'node.report': { actions: [assign({ again: true })] }, 'node.changed': { actions: [assign({ again: true })] } },
      invoke: {
        src: 'report',
        input: ({ context }) => ({ fresh: context.fresh }),
        onDone: [
          {
            guard: { type: 'doneForNow', params: ({ event }) => ({ outcome: event.output }) },
            target: 'resting',
            actions: [{ type: 'took', params: ({ event }) => ({ outcome: event.output }) }, assign({ fresh: false })],
          },
          {
            guard: { type: 'done', params: ({ event }) => ({ outcome: event.output }) },
            target: 'reporting',
            reenter: true,
            actions: [{ type: 'took', params: ({ event }) => ({ outcome: event.output }) }, 'doubt'],
          },
          {
            guard: { type: 'toldToWait', params: ({ event }) => ({ outcome: event.output }) },
            target: 'toldToWait',
            actions: [{ type: 'took', params: ({ event }) => ({ outcome: event.output }) }, failing, 'doubt'],
          },
          {
            guard: 'triesLeft',
            target: 'reporting',
            reenter: true,
            actions: [{ type: 'took', params: ({ event }) => ({ outcome: event.output }) }, failing, 'doubt'],
          },
          { target: 'unreported', actions: [{ type: 'took', params: ({ event }) => ({ outcome: event.output }) }, failing, 'doubt'] },
        ],
      },
    },
    resting: {
      meta: { reason: 'Reported', message: 'the API server has the status of the node' },
      after: { period: { target: 'reporting' } },
      on: {
        'api.found': { target: 'reporting', actions: ['doubt'] },
        'node.report': { target: 'reporting', actions: ['doubt'] },
        'node.changed': { target: 'reporting' },
      },
    },
    toldToWait: {
      meta: { reason: 'ToldToWait', message: refusedText },
      after: { told: { target: 'reporting' } },
    },
    unreported: {
      meta: { reason: 'ReportFailed', message: refusedText },
      exit: ['calm'],
      after: { period: { target: 'reporting' } },
      on: { 'api.found': { target: 'reporting' } },
    },
  },
});
