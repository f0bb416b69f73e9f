/**
 * The HTTP source as a statechart: fetch, decide what the answer means, wait, fetch again (spec: pod lifecycle 1.3).
 * The request is given with `provide`.
 */
import { assign, fromPromise, type PromiseActorLogic, setup } from 'xstate';
import type { Pod } from '../../kube/types.ts';
import { factsOf } from '../../xstate/facts.ts';
import { projecting } from '../../xstate/projection.ts';
import type { SourceError } from '../podConfig/messages.ts';

/** Failures in a row that are logged as errors; the next one says that it falls silent, the rest are debug lines. */
const LOUD_FAILURES_MAX = 3;

/** What one poll came to. `digest` stands for the bytes of the body. */
export type Poll =
  | { kind: 'failed'; message: string }
  | { kind: 'empty'; digest: string }
  | { kind: 'same' }
  | { kind: 'pods'; pods: Pod[]; notes?: readonly string[]; digest: string }
  | { kind: 'bad'; message: string; digest: string };

export type HttpOutbox =
  | { kind: 'set'; pods: readonly Pod[]; errors: readonly SourceError[]; change: string }
  | { kind: 'errors'; errors: readonly SourceError[] };

export interface HttpSourceInput {
  /** The URL as people may see it: without user information. */
  shown: string;
  checkFrequencyMs: number;
}
export interface HttpSourceContext extends HttpSourceInput {
  /** Digest of the last body, good or bad: a bad document is not tried again until it changes. */
  digest: string;
  /** What is wrong with the last document. */
  documentError: string | null;
  /** What of the last good document was read leniently. */
  notes: readonly string[];
  failures: number;
  startedAtMs: number;
  outbox: HttpOutbox | null;
  log: { level: 'error' | 'warn' | 'debug' | 'info'; message: string } | null;
}

const fetch: PromiseActorLogic<Poll, { digest: string }> = fromPromise(() => Promise.reject(new Error('no implementation was provided')));

function failing(context: HttpSourceContext, message: string): Pick<HttpSourceContext, 'failures' | 'log'> {
  const failures = context.failures + 1;
  if (failures <= LOUD_FAILURES_MAX) return { failures, log: { level: 'error', message } };
  if (failures === LOUD_FAILURES_MAX + 1) {
    return {
      failures,
      log: { level: 'warn', message: `${message}; failed ${failures} times in a row, further failures are logged at debug level` },
    };
  }
  return { failures, log: { level: 'debug', message } };
}

/** What a poll makes of the context. */
export function afterPoll(context: HttpSourceContext, poll: Poll): Partial<HttpSourceContext> {
  const where = context.shown;
  const wrong = (message: string): SourceError[] => [{ where, message }];
  const noted = (notes: readonly string[]): SourceError[] => notes.map((message) => ({ where, message, note: true }));
  switch (poll.kind) {
    case 'failed':
      return { ...failing(context, `pods from ${where}: ${poll.message}`), outbox: { kind: 'errors', errors: wrong(poll.message) } };
    case 'same': {
      const errors = context.documentError === null ? noted(context.notes) : wrong(context.documentError);
      // An unchanged bad document is still a failure of this source, though not a new one.
      const quiet = context.documentError === null ? { failures: 0, log: null } : { log: null };
      return { ...quiet, outbox: { kind: 'errors', errors } };
    }
    case 'empty': {
      const message = 'the body is empty: no pods';
      return {
        ...failing(context, `pods from ${where}: ${message}`),
        digest: poll.digest,
        documentError: message,
        outbox: { kind: 'set', pods: [], errors: wrong(message), change: `${where} answered with an empty body` },
      };
    }
    case 'bad':
      return {
        ...failing(context, `pods from ${where}: ${poll.message}`),
        digest: poll.digest,
        documentError: poll.message,
        outbox: { kind: 'errors', errors: wrong(poll.message) },
      };
    case 'pods':
      return {
        failures: 0,
        log: { level: 'info', message: `${poll.pods.length} pods from ${where}` },
        digest: poll.digest,
        documentError: null,
        notes: poll.notes ?? [],
        outbox: { kind: 'set', pods: poll.pods, errors: noted(poll.notes ?? []), change: `${where} answered with a new document` },
      };
  }
}

const next = { untilFetch: 'fetching' } as const;
const fetched = { type: 'take', params: ({ event }: { event: { output: Poll } }) => ({ poll: event.output }) } as const;

export const httpSourceMachine = setup({
  types: { context: {} as HttpSourceContext, input: {} as HttpSourceInput },
  actors: { fetch },
  actions: {
    /** Sends `context.outbox` and writes `context.log`. */
    send: () => {},
    take: assign(({ context }, params: { poll: Poll }) => afterPoll(context, params.poll)),
  },
  guards: { healthy: ({ context }) => context.failures === 0 },
  delays: { untilFetch: ({ context, event }) => Math.max(0, context.startedAtMs + context.checkFrequencyMs - factsOf(event).monoMs) },
}).createMachine({
  id: 'httpSource',
  meta: projecting<HttpSourceContext>(({ shown, checkFrequencyMs, documentError, failures }) => ({
    url: shown,
    checkFrequencyMs,
    documentError,
    failures,
  })),
  context: ({ input }) => ({ ...input, digest: '', documentError: null, notes: [], failures: 0, startedAtMs: 0, outbox: null, log: null }),
  initial: 'fetching',
  states: {
    fetching: {
      meta: { reason: 'Fetching', message: 'asking the static pod URL' },
      entry: assign(({ event }) => ({ startedAtMs: factsOf(event).monoMs })),
      invoke: {
        src: 'fetch',
        input: ({ context }) => ({ digest: context.digest }),
        onDone: { target: 'sorting', actions: [fetched, 'send'] },
      },
    },
    sorting: { always: [{ guard: 'healthy', target: 'waiting' }, { target: 'failing' }] },
    waiting: {
      meta: { reason: 'UpToDate', message: 'the last answer was good' },
      after: next,
    },
    failing: {
      meta: { reason: 'SourceFailing', message: 'the last answer could not be used; pods of the last good one stay' },
      after: next,
    },
  },
});
