/**
 * Statechart of the memory manager: it writes an allocation to disk before it answers. `ledger.ts` decides; the actor provides
 * the effects.
 */

import { assign } from 'xstate';
import type { ReplyTo } from '../../supervision/address.ts';
import { messageOf } from '../../text/errors.ts';
import { names, projecting } from '../../xstate/projection.ts';
import { unprovided, unprovidedAction } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
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
import type { MemoryCounts } from './ledger.ts';
import type { MemoryLedger, MemoryPlace } from './machine.ts';
import { memoryRules } from './rules.ts';

/** A file that could not be written is tried again after this. */
const SAVE_AGAIN_MS = 1_000;
/** How often it is looked whose memory is free again: that of init containers is once a later container was created. */
const TIDY_EVERY_MS = 10_000;

interface MemoryInput {
  place: MemoryPlace;
}
interface Context extends MemoryInput {
  /** Null: not read yet. */
  ledger: MemoryLedger | null;
  /** What the file holds. */
  onDisk: MemoryLedger | null;
  unseen: Holdings<MemoryLedger>['unseen'];
  heard: boolean;
  lastAsk: number;
  asks: readonly GrantRequest[];
  questions: readonly HintsRequest[];
  /** Answers that wait for the next write. */
  replies: readonly GrantReply<MemoryCounts>[];
  /** Null: nothing is being written. */
  writing: Writing<MemoryLedger, MemoryCounts> | null;
  /** Why the file could not be written; '' when nothing went wrong. */
  error: string;
}

const { setup, facts } = setupWith<LedgerFacts>();
const effects = setup({
  types: { context: {} as Context, events: {} as AllocationEvent, input: {} as MemoryInput },
  actors: {
    /** `isNew`: there is no file yet. */
    load: unprovided<{ ledger: MemoryLedger; isNew: boolean }>(),
    save: unprovided<void, MemoryLedger>(),
  },
  actions: {
    /** Keeps what the answer of this question goes to. */
    hold: unprovidedAction<{ ask: number; replyTo: ReplyTo<AllocationAnswer> }>(),
    reply: unprovidedAction<{ ask: number; answer: AllocationAnswer }>(),
    holdQuestion: unprovidedAction<{ ask: number; replyTo: ReplyTo<ProviderHints> }>(),
    replyHints: unprovidedAction<{ ask: number; hints: ProviderHints }>(),
    publish: unprovidedAction<{ ledger: MemoryLedger }>(),
    count: unprovidedAction<{ replies: readonly GrantReply<MemoryCounts>[] }>(),
  },
});

const how = ({ place }: Context) => ({ facts: facts(), rules: memoryRules(place) });

/** Pods that ask while the ledger is written share the next write. */
const DECIDE = { guard: 'asked', actions: ['decide'] } as const;

export const memoryMachine = effects
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
      /** Allocates memory to the pods that asked. */
      decide: effects.enqueueActions(({ context, enqueue }) => {
        const { ledger, asks, questions } = context;
        if (ledger === null) return;
        const { holdings, replies } = answerRequests({ ...context, ledger }, asks, how(context));
        const drafts = replies.filter((r) => r.draft);
        enqueue.assign({ ...holdings, asks: [], questions: [], replies: [...context.replies, ...replies.filter((r) => !r.draft)] });
        for (const { ask, answer } of drafts) enqueue({ type: 'reply', params: { ask, answer } });
        for (const question of questions) {
          const hints = answerQuestion(holdings, question, how(context));
          enqueue({ type: 'replyHints', params: { ask: question.ask, hints } });
        }
        // Each pod is asked about as a draft first.
        enqueue({ type: 'count', params: { replies: drafts } });
      }),
      /** Takes back what nobody has any more. */
      tidy: assign(({ context }) => (context.ledger === null ? {} : tidyUp({ ...context, ledger: context.ledger }, how(context)).holdings)),
      forget: assign(({ context, event }) =>
        event.type === 'allocation.forget' ? { unseen: new Map([...context.unseen].filter(([uid]) => uid !== event.uid)) } : {},
      ),
      read: assign((_, { ledger, isNew }: { ledger: MemoryLedger; isNew: boolean }) => {
        const { monoMs } = facts();
        return { ledger, onDisk: isNew ? null : ledger, unseen: new Map([...ledger.entries.keys()].map((uid) => [uid, monoMs])) };
      }),
      beginWrite: assign(({ context }) => beginWrite(context)),
      wrote: assign(({ context: { writing, onDisk } }) => ({ onDisk: writing?.ledger ?? onDisk, error: '' })),
      /** What is on disk, and the answers that are true by that. */
      tell: effects.enqueueActions(({ context, enqueue }) => {
        if (context.onDisk === null) return;
        enqueue({ type: 'publish', params: { ledger: context.onDisk } });
        const { due, left } = afterWrite(context);
        for (const { ask, answer } of due) enqueue({ type: 'reply', params: { ask, answer } });
        enqueue.assign(left);
      }),
    },
    guards: {
      asked: ({ context }) => context.asks.length + context.questions.length > 0,
      unsaved: ({ context }) => context.ledger !== context.onDisk,
    },
  })
  .createMachine({
    id: 'memory',
    meta: projecting<Context>(({ ledger, onDisk, unseen, heard, asks, replies, writing, error }) => ({
      podsWithMemory: ledger === null ? null : names(ledger.entries.keys()),
      unseen: names(unseen.keys()),
      ...{
        heard,
        isOnDisk: ledger === onDisk,
        asking: asks.length,
        answersWaiting: replies.length + (writing?.replies.length ?? 0),
        error,
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
      error: '',
    }),
    initial: 'loading',
    on: {
      'allocation.admit': { actions: ['ask'] },
      'allocation.hints': { actions: ['question'] },
      'allocation.forget': { actions: ['forget'] },
    },
    states: {
      loading: {
        meta: { reason: 'Loading', message: 'reading which memory was allocated before' },
        // What cannot be read or believed ends this actor, with the reason.
        invoke: {
          src: 'load',
          onDone: {
            target: 'settled',
            actions: [
              { type: 'read', params: ({ event }) => event.output },
              { type: 'publish', params: ({ event }) => ({ ledger: event.output.ledger }) },
            ],
          },
        },
      },
      settled: {
        meta: { reason: 'Settled', message: 'the record of allocated memory is on disk' },
        always: [
          { guard: 'asked', target: 'settled', actions: ['decide'], reenter: true },
          { guard: 'unsaved', target: 'saving' },
        ],
        entry: ['tell'],
        after: { [TIDY_EVERY_MS]: { target: 'settled', actions: ['tidy'], reenter: true } },
      },
      saving: {
        meta: { reason: 'Saving', message: 'writing the record of allocated memory' },
        always: DECIDE,
        entry: ['beginWrite'],
        invoke: {
          src: 'save',
          input: ({ context }) => required(context.writing).ledger,
          onDone: { target: 'settled', actions: ['wrote'] },
          onError: { target: 'saveFailed', actions: assign(({ event }) => ({ error: messageOf(event.error) })) },
        },
      },
      saveFailed: {
        meta: {
          reason: 'SaveFailed',
          message: ({ error }: Context) => `the state file cannot be written, nothing is allocated until it is: ${error}`,
        },
        always: DECIDE,
        after: { [SAVE_AGAIN_MS]: { target: 'saving' } },
      },
    },
  });

function required<T>(writing: T | null): T {
  if (writing === null) throw new Error('memory manager: there is no ledger yet');
  return writing;
}
