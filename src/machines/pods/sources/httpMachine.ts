/**
 * The HTTP source as a statechart: fetch, decide what the answer means, wait, fetch again (spec: pod lifecycle 1.3).
 * The actor provides the request and what is sent.
 */
import { assign, enqueueActions } from 'xstate';
import type { Pod } from '../../kube/types.ts';
import { projecting } from '../../xstate/projection.ts';
import { unprovided, unprovidedAction } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
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

/** For podConfig: the complete set, or what is wrong while the pods of the last set stay. */
export type HttpPost =
  | { kind: 'set'; pods: readonly Pod[]; errors: readonly SourceError[]; change: string }
  | { kind: 'errors'; errors: readonly SourceError[] };
export interface HttpLogLine {
  level: 'error' | 'warn' | 'debug' | 'info';
  /** The URL as people may see it. */
  url: string;
  message: string;
}

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
  /** Parts of the last good document that were read leniently. */
  notes: readonly string[];
  failures: number;
  startedAtMs: number;
}
/** What one poll leads to. */
export interface AfterPoll {
  next: Partial<HttpSourceContext>;
  post: HttpPost;
  log: Omit<HttpLogLine, 'url'> | null;
}

function logOf(failures: number, message: string): AfterPoll['log'] {
  if (failures <= LOUD_FAILURES_MAX) return { level: 'error', message };
  if (failures > LOUD_FAILURES_MAX + 1) return { level: 'debug', message };
  return { level: 'warn', message: `${message}; failed ${failures} times in a row, further failures are logged at debug level` };
}

export function afterPoll(context: HttpSourceContext, poll: Poll): AfterPoll {
  const failures = context.failures + 1;
  const where = context.shown;
  const wrong = (message: string): SourceError[] => [{ where, message }];
  const noted = (notes: readonly string[]): SourceError[] => notes.map((message) => ({ where, message, note: true }));
  switch (poll.kind) {
    case 'failed':
      return {
        next: { failures },
        post: { kind: 'errors', errors: wrong(poll.message) },
        log: logOf(failures, `pods from ${where}: ${poll.message}`),
      };
    case 'same': {
      const errors = context.documentError === null ? noted(context.notes) : wrong(context.documentError);
      // An unchanged bad document is still a failure of this source, though not a new one.
      return { next: context.documentError === null ? { failures: 0 } : {}, post: { kind: 'errors', errors }, log: null };
    }
    case 'empty': {
      const message = 'the body is empty: no pods';
      return {
        next: { failures, digest: poll.digest, documentError: message },
        post: { kind: 'set', pods: [], errors: wrong(message), change: `${where} answered with an empty body` },
        log: logOf(failures, `pods from ${where}: ${message}`),
      };
    }
    case 'bad':
      return {
        next: { failures, digest: poll.digest, documentError: poll.message },
        post: { kind: 'errors', errors: wrong(poll.message) },
        log: logOf(failures, `pods from ${where}: ${poll.message}`),
      };
    case 'pods':
      return {
        next: { failures: 0, digest: poll.digest, documentError: null, notes: poll.notes ?? [] },
        post: { kind: 'set', pods: poll.pods, errors: noted(poll.notes ?? []), change: `${where} answered with a new document` },
        log: { level: 'info', message: `${poll.pods.length} pods from ${where}` },
      };
  }
}

const next = { untilFetch: 'fetching' } as const;

const { setup, facts } = setupWith();

export const httpSourceMachine = setup({
  types: { context: {} as HttpSourceContext, input: {} as HttpSourceInput },
  actors: { fetch: unprovided<Poll, { digest: string }>() },
  actions: { post: unprovidedAction<HttpPost>(), log: unprovidedAction<HttpLogLine>() },
  guards: { healthy: ({ context }) => context.failures === 0 },
  delays: { untilFetch: ({ context }) => Math.max(0, context.startedAtMs + context.checkFrequencyMs - facts().monoMs) },
}).createMachine({
  id: 'httpSource',
  meta: projecting<HttpSourceContext>(({ shown, checkFrequencyMs, documentError, failures }) => ({
    url: shown,
    checkFrequencyMs,
    documentError,
    failures,
  })),
  context: ({ input }) => ({ ...input, digest: '', documentError: null, notes: [], failures: 0, startedAtMs: 0 }),
  initial: 'fetching',
  states: {
    fetching: {
      meta: { reason: 'Fetching', message: 'asking the static pod URL' },
      entry: assign(() => ({ startedAtMs: facts().monoMs })),
      invoke: {
        src: 'fetch',
        input: ({ context }) => ({ digest: context.digest }),
        onDone: {
          target: 'sorting',
          actions: enqueueActions(({ context, event, enqueue }) => {
            const { next, post, log } = afterPoll(context, event.output);
            enqueue.assign(next);
            if (log !== null) enqueue({ type: 'log', params: { ...log, url: context.shown } });
            enqueue({ type: 'post', params: post });
          }),
        },
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
