/**
 * What the statecharts have in common that keep a ledger of a resource which containers have alone: CPUs, memory. An allocation is
 * on disk before it is answered. The plug of a resource decides (`LedgerRules`); its actor provides the effects.
 */

import { assign } from 'xstate';
import type { ReplyTo } from '../supervision/address.ts';
import { messageOf } from '../text/errors.ts';
import { names, type Shown } from '../xstate/projection.ts';
import { unprovided, unprovidedAction } from '../xstate/provide.ts';
import { setupWith } from '../xstate/setup.ts';
import type { Ledger, LedgerRules } from './ledgerRules.ts';
import type { AllocationAnswer, AllocationEvent, ProviderHints } from './messages.ts';
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
} from './requests.ts';

/** A file that could not be written is tried again after this. */
const SAVE_AGAIN_MS = 1_000;

export interface LedgerContext<L extends Ledger, C, P> extends LedgerInput<P> {
  /** Null: not read yet. */
  ledger: L | null;
  /** What the file holds. */
  onDisk: L | null;
  unseen: Holdings<L>['unseen'];
  heard: boolean;
  lastAsk: number;
  asks: readonly GrantRequest[];
  questions: readonly HintsRequest[];
  /** Answers that wait for the next write. */
  replies: readonly GrantReply<C>[];
  /** Null: nothing is being written. */
  writing: Writing<L, C> | null;
  /** Why the file could not be written; '' when nothing went wrong. */
  saveError: string;
  /** Why running containers could not be told; '' when nothing went wrong. */
  shareError: string;
}
export interface LedgerInput<P> {
  place: P;
  /** How often it is looked what is free again. */
  everyMs: number;
}

export function noLedger<P>(input: LedgerInput<P>): LedgerContext<never, never, P> {
  return {
    ...{ ...input, shareError: '' },
    ...{ ledger: null, onDisk: null, unseen: new Map(), heard: false },
    ...{ lastAsk: 0, asks: [], questions: [], replies: [], writing: null, saveError: '' },
  };
}

/** What a person sees of it, beside what the resource shows. */
export function shownLedger<L extends Ledger, C, P>(c: LedgerContext<L, C, P>, pods: string): { readonly [field: string]: Shown } {
  return {
    [pods]: c.ledger === null ? null : names(c.ledger.entries.keys()),
    unseen: names(c.unseen.keys()),
    heard: c.heard,
    isOnDisk: c.ledger === c.onDisk,
    asking: c.asks.length,
    answersWaiting: c.replies.length + (c.writing?.replies.length ?? 0),
  };
}

export function ledgerSetup<L extends Ledger, C, P>(rulesOf: (place: P) => LedgerRules<L, C>) {
  type Context = LedgerContext<L, C, P>;
  const { setup, facts } = setupWith<LedgerFacts>();
  const how = ({ place }: Context) => ({ facts: facts(), rules: rulesOf(place) });
  const effects = setup({
    types: { context: {} as Context, events: {} as AllocationEvent, input: {} as LedgerInput<P> },
    actors: {
      /** `isNew`: there is no file yet. */
      load: unprovided<{ ledger: L; isNew: boolean }>(),
      save: unprovided<void, L>(),
      /** Tells running containers of it, where the resource needs that. Answers what could not be done, '' for nothing. */
      share: unprovided<string, L | null>(),
    },
    actions: {
      /** Keeps what the answer of this question goes to. */
      hold: unprovidedAction<{ ask: number; replyTo: ReplyTo<AllocationAnswer> }>(),
      reply: unprovidedAction<{ ask: number; answer: AllocationAnswer }>(),
      holdQuestion: unprovidedAction<{ ask: number; replyTo: ReplyTo<ProviderHints> }>(),
      replyHints: unprovidedAction<{ ask: number; hints: ProviderHints }>(),
      publish: unprovidedAction<{ ledger: L }>(),
      sayReleased: unprovidedAction<{ uids: readonly string[] }>(),
      count: unprovidedAction<{ replies: readonly GrantReply<C>[] }>(),
    },
  });
  return effects.extend({
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
      /** Allocates to the pods that asked. */
      decide: effects.enqueueActions(({ context, enqueue }) => {
        const { ledger, asks, questions } = context;
        if (ledger === null) return;
        const { holdings, replies, released } = answerRequests({ ...context, ledger }, asks, how(context));
        const drafts = replies.filter((r) => r.draft);
        const waiting = [...context.replies, ...replies.filter((r) => !r.draft)];
        enqueue.assign({ ...holdings, asks: [], questions: [], replies: waiting });
        for (const { ask, answer } of drafts) enqueue({ type: 'reply', params: { ask, answer } });
        for (const question of questions) {
          const hints = answerQuestion(holdings, question, how(context));
          enqueue({ type: 'replyHints', params: { ask: question.ask, hints } });
        }
        enqueue({ type: 'sayReleased', params: { uids: released } });
        // Each pod is asked about as a draft first.
        enqueue({ type: 'count', params: { replies: drafts } });
      }),
      /** Takes back what nobody has any more. */
      tidy: effects.enqueueActions(({ context, enqueue }) => {
        const { ledger } = context;
        if (ledger === null) return;
        const { holdings, released } = tidyUp({ ...context, ledger }, how(context));
        enqueue.assign({ ...holdings });
        enqueue({ type: 'sayReleased', params: { uids: released } });
      }),
      forget: effects.assign(({ context, event }) =>
        event.type === 'allocation.forget' ? { unseen: new Map([...context.unseen].filter(([uid]) => uid !== event.uid)) } : {},
      ),
      read: assign((_, { ledger, isNew }: { ledger: L; isNew: boolean }) => {
        const { monoMs } = facts();
        return { ledger, onDisk: isNew ? null : ledger, unseen: new Map([...ledger.entries.keys()].map((uid) => [uid, monoMs])) };
      }),
      beginWrite: effects.assign(({ context }) => beginWrite(context)),
      wrote: effects.assign(({ context: { writing, onDisk } }) => ({ onDisk: writing?.ledger ?? onDisk, saveError: '' })),
      failWrite: assign((_, { error }: { error: unknown }) => ({ saveError: messageOf(error) })),
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
  });
}

/** Pods that ask while the ledger is written share the next write. */
const DECIDE = { guard: 'asked', actions: ['decide'] } as const;

/** What it hears in every state. */
export const LEDGER_ON = {
  'allocation.admit': { actions: ['ask'] },
  'allocation.hints': { actions: ['question'] },
  'allocation.forget': { actions: ['forget'] },
} as const;

/** `what`: of which resource. What cannot be read or believed ends this actor, with the reason. */
export function loading<L, const Next extends string>(what: string, target: Next) {
  type Read = { event: { output: { ledger: L; isNew: boolean } } };
  return {
    meta: { reason: 'Loading', message: `reading which ${what} ${what === 'memory' ? 'was' : 'were'} allocated before` },
    invoke: {
      src: 'load',
      onDone: {
        target,
        actions: [
          { type: 'read', params: ({ event }: Read) => event.output },
          { type: 'publish', params: ({ event }: Read) => ({ ledger: event.output.ledger }) },
        ],
      },
    },
  } as const;
}

export function keeping<L extends Ledger>(what: string) {
  type Kept = Pick<LedgerContext<L, unknown, unknown>, 'writing' | 'saveError'>;
  return {
    settled: {
      meta: { reason: 'Settled', message: `the record of allocated ${what} is on disk` },
      always: [
        { guard: 'asked', target: 'settled', actions: ['decide'], reenter: true },
        { guard: 'unsaved', target: 'saving' },
      ],
      entry: ['tell'],
      after: { every: { target: 'settled', actions: ['tidy'], reenter: true } },
    },
    saving: {
      meta: { reason: 'Saving', message: `writing the record of allocated ${what}` },
      always: DECIDE,
      entry: ['beginWrite'],
      invoke: {
        src: 'save',
        input: ({ context: { writing } }: { context: Kept }) => {
          if (writing === null) throw new Error(`there is no record of allocated ${what} yet`);
          return writing.ledger;
        },
        onDone: { target: 'settled', actions: ['wrote'] },
        onError: {
          target: 'saveFailed',
          actions: { type: 'failWrite', params: ({ event }: { event: { error: unknown } }) => ({ error: event.error }) },
        },
      },
    },
    saveFailed: {
      meta: {
        reason: 'SaveFailed',
        message: ({ saveError }: Kept) => `the state file cannot be written, nothing is allocated until it is: ${saveError}`,
      },
      always: DECIDE,
      after: { [SAVE_AGAIN_MS]: { target: 'saving' } },
    },
  } as const;
}
