/** One question to the API server about a caller (TokenReview, SubjectAccessReview), asked again where that may help (boot-and-node 7.2). */
import { assign } from 'xstate';
import type { KubeFailure, KubeResult } from '../../kube/request.ts';
import { failureOf, projecting } from '../../xstate/projection.ts';
import { unprovided } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';

/** First wait, its factor and jitter, and how often it is asked in all: 0.5, 0.75, 1.1, 1.7 s between five. */
const RETRY_BASE_MS = 500;
const RETRY_FACTOR = 1.5;
const RETRY_JITTER = 0.2;
export const REVIEW_ATTEMPTS_MAX = 5;
/** A client waits for the answer: a server that asks for more time is asked again after this. */
const RETRY_AFTER_MAX_MS = 5_000;
const RETRIED_CODES: ReadonlySet<number> = new Set([429, 500, 504]);

/** Reset connections and a server in trouble; where nobody listens at all, asking again within seconds is in vain. */
export function isRetried(failure: KubeFailure): boolean {
  return failure.reason === 'ECONNRESET' || RETRIED_CODES.has(failure.code) || failure.retryAfterMs !== undefined;
}

/** After so many answers that were none. `random` from 0 to 1. */
export function reviewDelayMs(failure: KubeFailure, attempts: number, random: number): number {
  const ownMs = RETRY_BASE_MS * RETRY_FACTOR ** (attempts - 1) * (1 + RETRY_JITTER * random);
  return Math.max(ownMs, Math.min(failure.retryAfterMs ?? 0, RETRY_AFTER_MAX_MS));
}

interface Context {
  attempts: number;
  delayMs: number;
  result: KubeResult | null;
}

const { setup, facts } = setupWith();
export const reviewMachine = setup({
  types: { context: {} as Context, output: {} as KubeResult | null },
  actors: { ask: unprovided<KubeResult>() },
  actions: {
    take: assign(({ context }, { result }: { result: KubeResult }) => {
      const attempts = context.attempts + 1;
      return { attempts, result, delayMs: result.ok ? 0 : reviewDelayMs(result.failure, attempts, facts().random) };
    }),
  },
  delays: { retry: ({ context }) => context.delayMs },
  guards: {
    again: ({ context }) => context.result?.ok === false && context.attempts < REVIEW_ATTEMPTS_MAX && isRetried(context.result.failure),
  },
}).createMachine({
  id: 'review',
  meta: projecting<Context>(({ attempts, delayMs, result }) => ({
    ...{ attempts, delayMs, answered: result !== null },
    failure: result === null || result.ok ? null : failureOf(result.failure),
  })),
  context: { attempts: 0, delayMs: 0, result: null },
  initial: 'asking',
  states: {
    asking: {
      meta: { reason: 'Asking', message: 'asking the API server about a caller' },
      invoke: {
        src: 'ask',
        onDone: { target: 'weighing', actions: { type: 'take', params: ({ event }) => ({ result: event.output }) } },
        onError: { target: 'answered' },
      },
    },
    weighing: { always: [{ guard: 'again', target: 'waiting' }, { target: 'answered' }] },
    waiting: {
      meta: { reason: 'AskingAgain', message: 'the API server did not answer: it is asked again' },
      after: { retry: { target: 'asking' } },
    },
    answered: { type: 'final' },
  },
  output: ({ context }) => context.result,
});
