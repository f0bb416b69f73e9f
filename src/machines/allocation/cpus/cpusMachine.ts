/**
 * Statechart of the CPU manager: it writes an allocation to disk before it answers, and confines containers without CPUs of
 * their own to the rest from time to time. `ledger.ts` decides; the actor provides the effects.
 */

import { assign } from 'xstate';
import type { ReplyTo } from '../../supervision/address.ts';
import { messageOf } from '../../text/errors.ts';
import { names, projecting } from '../../xstate/projection.ts';
import { unprovided, unprovidedAction } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
import { formatCpuSet } from '../cpuSet.ts';
import type { AllocationAnswer, AllocationEvent, ProviderHints } from '../messages.ts';
import {
  afterWrite,
  answerQuestion,
  answerRequests,
  beginWrite,
  type GrantReply,
  type GrantRequest,
  type HintsRequest,
  type Holdings,
  type LedgerFacts,
  tidyUp,
  type Writing,
} from '../requests.ts';
import type { CpuCounts, CpuLedger, CpuPlace } from './ledger.ts';
import { cpuRules } from './rules.ts';

/** A file that could not be written is tried again after this. */
const SAVE_AGAIN_MS = 1_000;
/** Runtimes answer within moments; what takes longer is tried at the next look. */
const SHARING_MAX_MS = 10_000;

interface CpusInput {
  place: CpuPlace;
  /** cpuManagerReconcilePeriod. */
  everyMs: number;
}
interface Context extends CpusInput {
  /** Null: not read yet. */
  ledger: CpuLedger | null;
  /** What the file holds. */
  onDisk: CpuLedger | null;
  unseen: Holdings<CpuLedger>['unseen'];
  heard: boolean;
  lastAsk: number;
  asks: readonly GrantRequest[];
  questions: readonly HintsRequest[];
  /** Answers that wait for the next write. */
  replies: readonly GrantReply<CpuCounts>[];
  /** Null: nothing is being written. */
  writing: Writing<CpuLedger, CpuCounts> | null;
  /** Why the file could not be written, or containers not confined; '' when nothing went wrong. */
  saveError: string;
  shareError: string;
}

const { setup, facts } = setupWith<LedgerFacts>();
const effects = setup({
  types: { context: {} as Context, events: {} as AllocationEvent, input: {} as CpusInput },
  actors: {
    /** `isNew`: there is no file yet. */
    load: unprovided<{ ledger: CpuLedger; isNew: boolean }>(),
    save: unprovided<void, CpuLedger>(),
    /** Answers what could not be done, '' for nothing. */
    share: unprovided<string, CpuLedger | null>(),
  },
  actions: {
    /** Keeps what the answer of this question goes to. */
    hold: unprovidedAction<{ ask: number; replyTo: ReplyTo<AllocationAnswer> }>(),
    reply: unprovidedAction<{ ask: number; answer: AllocationAnswer }>(),
    holdQuestion: unprovidedAction<{ ask: number; replyTo: ReplyTo<ProviderHints> }>(),
    replyHints: unprovidedAction<{ ask: number; hints: ProviderHints }>(),
    publish: unprovidedAction<{ ledger: CpuLedger }>(),
    sayReleased: unprovidedAction<{ uids: readonly string[] }>(),
    count: unprovidedAction<{ replies: readonly GrantReply<CpuCounts>[] }>(),
  },
});

/** Pods that ask while the ledger is written share the next write. */
const DECIDE = { guard: 'asked', actions: ['decide'] } as const;

export const cpusMachine = effects
  .extend({
    actions: {
      ask: effects.enqueueActions(({ context, event, enqueue }) => {
        if (event.type !== 'allocation.admit') return;
        const { pod, active, affinity, draft = false, replyTo } = event;
        const ask = context.lastAsk + 1;
        const request = { ask, pod, active, draft, ...(affinity === undefined ? {} : { affinity }) };
        enqueue.assign({ lastAsk: ask, asks: [...context.asks, request] });
        enqueue({ type: 'hold', params: { ask, replyTo } });
      }),
      question: effects.enqueueActions(({ context, event, enqueue }) => {
        if (event.type !== 'allocation.hints') return;
        const { pod, active, container, replyTo } = event;
        const ask = context.lastAsk + 1;
        enqueue.assign({ lastAsk: ask, questions: [...context.questions, { ask, pod, active, container }] });
        enqueue({ type: 'holdQuestion', params: { ask, replyTo } });
      }),
      /** Allocates CPUs to the pods that asked. */
      decide: effects.enqueueActions(({ context, enqueue }) => {
        const { ledger, asks, questions, place } = context;
        if (ledger === null) return;
        const { holdings, replies, released } = answerRequests({ ...context, ledger }, asks, { facts: facts(), rules: cpuRules(place) });
        const drafts = replies.filter((r) => r.draft);
        enqueue.assign({ ...holdings, asks: [], questions: [], replies: [...context.replies, ...replies.filter((r) => !r.draft)] });
        for (const { ask, answer } of drafts) enqueue({ type: 'reply', params: { ask, answer } });
        for (const question of questions)
          enqueue({
            type: 'replyHints',
            params: { ask: question.ask, hints: answerQuestion(holdings, question, { facts: facts(), rules: cpuRules(place) }) },
          });
        enqueue({ type: 'sayReleased', params: { uids: released } });
        // Each pod is asked about as a draft first.
        enqueue({ type: 'count', params: { replies: drafts } });
      }),
      /** Takes back what nobody has any more. */
      tidy: effects.enqueueActions(({ context, enqueue }) => {
        const { ledger, place } = context;
        if (ledger === null) return;
        const { holdings, released } = tidyUp({ ...context, ledger }, { facts: facts(), rules: cpuRules(place) });
        enqueue.assign({ ...holdings });
        enqueue({ type: 'sayReleased', params: { uids: released } });
      }),
      forget: assign(({ context, event }) =>
        event.type === 'allocation.forget' ? { unseen: new Map([...context.unseen].filter(([uid]) => uid !== event.uid)) } : {},
      ),
      read: assign((_, { ledger, isNew }: { ledger: CpuLedger; isNew: boolean }) => {
        const { monoMs } = facts();
        return { ledger, onDisk: isNew ? null : ledger, unseen: new Map([...ledger.entries.keys()].map((uid) => [uid, monoMs])) };
      }),
      beginWrite: assign(({ context }) => beginWrite(context)),
      wrote: assign(({ context: { writing, onDisk } }) => ({ onDisk: writing?.ledger ?? onDisk, saveError: '' })),
      /** What is on disk, and the answers that are true by that. */
      tell: effects.enqueueActions(({ context, enqueue }) => {
        if (context.onDisk === null) return;
        enqueue({ type: 'publish', params: { ledger: context.onDisk } });
        const { due, left } = afterWrite(context);
        for (const { ask, answer } of due) enqueue({ type: 'reply', params: { ask, answer } });
        enqueue.assign(left);
      }),
    },
    delays: { every: ({ context }) => context.everyMs },
    guards: {
      asked: ({ context }) => context.asks.length + context.questions.length > 0,
      unsaved: ({ context }) => context.ledger !== context.onDisk,
    },
  })
  .createMachine({
    id: 'cpus',
    meta: projecting<Context>(({ ledger, onDisk, unseen, heard, asks, replies, writing, saveError, shareError }) => ({
      sharedCpus: ledger === null ? null : formatCpuSet(ledger.shared),
      podsWithCpus: ledger === null ? null : names(ledger.entries.keys()),
      unseen: names(unseen.keys()),
      ...{
        heard,
        isOnDisk: ledger === onDisk,
        asking: asks.length,
        answersWaiting: replies.length + (writing?.replies.length ?? 0),
        saveError,
        shareError,
      },
    })),
    context: ({ input }) => ({
      ...input,
      ledger: null,
      onDisk: null,
      unseen: new Map(),
      heard: false,
      lastAsk: 0,
      asks: [],
      questions: [],
      replies: [],
      writing: null,
      saveError: '',
      shareError: '',
    }),
    initial: 'loading',
    on: {
      'allocation.admit': { actions: ['ask'] },
      'allocation.hints': { actions: ['question'] },
      'allocation.forget': { actions: ['forget'] },
    },
    states: {
      loading: {
        meta: { reason: 'Loading', message: 'reading which CPUs were allocated before' },
        // What cannot be read or believed ends this actor, with the reason.
        invoke: {
          src: 'load',
          onDone: {
            target: 'serving',
            actions: [
              { type: 'read', params: ({ event }) => event.output },
              { type: 'publish', params: ({ event }) => ({ ledger: event.output.ledger }) },
            ],
          },
        },
      },
      serving: {
        type: 'parallel',
        states: {
          ledger: {
            initial: 'settled',
            states: {
              settled: {
                meta: { reason: 'Settled', message: 'the record of allocated CPUs is on disk' },
                always: [
                  { guard: 'asked', target: 'settled', actions: ['decide'], reenter: true },
                  { guard: 'unsaved', target: 'saving' },
                ],
                entry: ['tell'],
                after: { every: { target: 'settled', actions: ['tidy'], reenter: true } },
              },
              saving: {
                meta: { reason: 'Saving', message: 'writing the record of allocated CPUs' },
                always: DECIDE,
                entry: ['beginWrite'],
                invoke: {
                  src: 'save',
                  input: ({ context }) => required(context.writing).ledger,
                  onDone: { target: 'settled', actions: ['wrote'] },
                  onError: {
                    target: 'saveFailed',
                    actions: assign(({ event }) => ({ saveError: messageOf(event.error) })),
                  },
                },
              },
              saveFailed: {
                meta: {
                  reason: 'SaveFailed',
                  message: ({ saveError }: Context) => `the state file cannot be written, nothing is allocated until it is: ${saveError}`,
                },
                always: DECIDE,
                after: { [SAVE_AGAIN_MS]: { target: 'saving' } },
              },
            },
          },
          sharing: {
            initial: 'resting',
            states: {
              resting: {
                meta: {
                  reason: ({ shareError }: Context) => (shareError === '' ? 'Shared' : 'ShareFailed'),
                  message: ({ shareError }: Context) => shareError,
                },
                after: { every: { target: 'confining' } },
              },
              confining: {
                meta: { reason: 'Confining', message: 'containers are given the CPUs that they may run on' },
                invoke: {
                  src: 'share',
                  input: ({ context }) => context.onDisk,
                  onDone: { target: 'resting', actions: assign(({ event }) => ({ shareError: event.output })) },
                  onError: {
                    target: 'resting',
                    actions: assign(({ event }) => ({
                      shareError: messageOf(event.error),
                    })),
                  },
                },
                after: { [SHARING_MAX_MS]: { target: 'resting', actions: assign({ shareError: 'the runtime did not answer in time' }) } },
              },
            },
          },
        },
      },
    },
  });

function required<T>(writing: T | null): T {
  if (writing === null) throw new Error('CPU manager: there is no ledger yet');
  return writing;
}
