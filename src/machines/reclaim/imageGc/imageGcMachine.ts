/**
 * The collector of images as a statechart: looks from time to time, or when it is asked to, and removes what may go. Looking
 * and removing are given with `provide`; what the look found decides whether there is anything to do.
 */

import { assign, setup } from 'xstate';
import { messageOf } from '../../text/errors.ts';
import { projecting } from '../../xstate/projection.ts';
import { unprovided, unprovidedAction } from '../../xstate/provide.ts';
import type { ImageGcEvent } from '../messages.ts';
import type { ImageLedger, ImagePlan } from './imageGc.ts';

/** Between two looks. */
const IMAGE_GC_EVERY_MS = 300_000;
/** From the start of the daemon to the first: the runtime has answered by then. */
const IMAGE_GC_FIRST_MS = 10_000;

export interface ImageLook {
  ledger: ImageLedger;
  plan: ImagePlan;
}
/** What was removed; `errors`: what was not, and why, or that it was too little. */
export interface ImageOutcome {
  removed: readonly string[];
  freedBytes: number;
  errors: readonly string[];
}
export interface ImageGcInput {
  /** As the incarnation before left it. */
  ledger: ImageLedger;
}
interface Context extends ImageGcInput {
  /** Callers that wait for the next collection, and those that wait for this one: numbers that the actor knows. */
  asked: readonly number[];
  waiting: readonly number[];
  lastAsk: number;
  plan: ImagePlan | null;
  last: string;
  error: string | null;
}

const NOTHING: ImageOutcome = { removed: [], freedBytes: 0, errors: [] };

export const imageGcMachine = setup({
  types: { context: {} as Context, events: {} as ImageGcEvent, input: {} as ImageGcInput },
  actors: {
    /** What there is, what of it is used, and how full it is there. `all`: somebody needs the room. */
    look: unprovided<ImageLook, { ledger: ImageLedger; all: boolean }>(),
    /** Never rejects: what could not be removed is in the outcome. */
    remove: unprovided<ImageOutcome, ImageLook>(),
  },
  actions: {
    ask: assign(({ context: { asked, lastAsk } }) => ({ asked: [...asked, lastAsk + 1], lastAsk: lastAsk + 1 })),
    /** Keeps where the answer to this number goes. */
    keep: unprovidedAction<{ ask: number; replyTo: ImageGcEvent['replyTo'] }>(),
    reply: unprovidedAction<{ asks: readonly number[]; freedBytes: number }>(),
    take: assign(({ context }) => ({ waiting: context.asked, asked: [] })),
    learn: assign((_, p: ImageLook) => ({ ledger: p.ledger, plan: p.plan })),
    settle: assign(({ context }, p: { outcome: ImageOutcome }) => {
      const { removed, freedBytes, errors } = p.outcome;
      const records = new Map(context.ledger.records);
      for (const id of removed) records.delete(id);
      const ledger = { ...context.ledger, records, failures: errors.length === 0 ? 0 : context.ledger.failures + 1 };
      const last = removed.length === 0 ? '' : `${removed.length} images removed, ${freedBytes} bytes`;
      return { ledger, last, error: errors.length === 0 ? null : errors.join('; ') };
    }),
    fail: assign(({ context }, p: { error: unknown }) => ({
      ledger: { ...context.ledger, failures: context.ledger.failures + 1 },
      error: messageOf(p.error),
    })),
    /** Keeps `ledger` for the next incarnation, and says what is to be said of `error`. */
    publish: unprovidedAction<{ ledger: ImageLedger; error: string | null }>(),
  },
  delays: {
    wait: ({ context }) => (context.ledger.records === null && context.ledger.failures === 0 ? IMAGE_GC_FIRST_MS : IMAGE_GC_EVERY_MS),
  },
  guards: {
    asked: ({ context }) => context.asked.length > 0,
    nothingToGo: (_, p: { plan: ImagePlan }) => p.plan.byAge.length === 0 && p.plan.wantedBytes === 0,
  },
}).createMachine({
  id: 'imageGc',
  meta: projecting<Context>(({ ledger, asked, waiting, plan, last, error }) => ({
    ...{ images: ledger.records?.size ?? null, failures: ledger.failures, asked: asked.length, waiting: waiting.length, last, error },
    plan: plan === null ? null : { byAge: plan.byAge.length, bySpace: plan.bySpace.length, usedPercent: plan.usedPercent },
  })),
  context: ({ input }) => ({ ...input, asked: [], waiting: [], lastAsk: 0, plan: null, last: '', error: null }),
  initial: 'idle',
  on: {
    'images.free': {
      actions: ['ask', { type: 'keep', params: ({ context, event }) => ({ ask: context.lastAsk, replyTo: event.replyTo }) }],
    },
  },
  states: {
    idle: {
      meta: {
        reason: ({ error }: Context) => (error === null ? 'Idle' : 'ImageGCFailed'),
        message: ({ error, last }: Context) => error ?? last,
      },
      always: { guard: 'asked', target: 'looking' },
      after: { wait: { target: 'looking' } },
    },
    looking: {
      meta: { reason: 'Looking', message: 'asking the runtime which images there are, which are used, and how much room is left' },
      entry: ['take'],
      invoke: {
        src: 'look',
        input: ({ context }) => ({ ledger: context.ledger, all: context.waiting.length > 0 }),
        onDone: [
          {
            guard: { type: 'nothingToGo', params: ({ event }) => ({ plan: event.output.plan }) },
            target: 'idle',
            actions: [
              { type: 'learn', params: ({ event }) => event.output },
              { type: 'settle', params: { outcome: NOTHING } },
              { type: 'reply', params: ({ context }) => ({ asks: context.waiting, freedBytes: 0 }) },
              { type: 'publish', params: ({ context }) => context },
            ],
          },
          {
            target: 'removing',
            actions: [
              { type: 'learn', params: ({ event }) => event.output },
              { type: 'publish', params: ({ context }) => ({ ledger: context.ledger, error: null }) },
            ],
          },
        ],
        onError: {
          target: 'idle',
          actions: [
            { type: 'fail', params: ({ event }) => ({ error: event.error }) },
            { type: 'reply', params: ({ context }) => ({ asks: context.waiting, freedBytes: 0 }) },
            { type: 'publish', params: ({ context }) => context },
          ],
        },
      },
    },
    removing: {
      meta: {
        reason: 'Removing',
        message: ({ plan }: Context) =>
          `removing images that nobody uses: ${plan?.byAge.length ?? 0} for their age, ${plan?.bySpace.length ?? 0} at most for their room`,
      },
      invoke: {
        src: 'remove',
        input: ({ context }) => ({
          ledger: context.ledger,
          plan: context.plan ?? { byAge: [], bySpace: [], wantedBytes: 0, usedPercent: null },
        }),
        onDone: {
          target: 'idle',
          actions: [
            { type: 'settle', params: ({ event }) => ({ outcome: event.output }) },
            { type: 'reply', params: ({ context, event }) => ({ asks: context.waiting, freedBytes: event.output.freedBytes }) },
            { type: 'publish', params: ({ context }) => context },
          ],
        },
      },
    },
  },
});
