/**
 * Statechart of the CPU manager: it writes an allocation to disk before it answers, and confines containers without CPUs of
 * their own to the rest from time to time. `ledger.ts` decides; the actor provides the effects.
 */

import { assign, fromPromise, setup } from 'xstate';
import { messageOf } from '../../text/errors.ts';
import { factsOf } from '../../xstate/facts.ts';
import { names, projecting } from '../../xstate/projection.ts';
import type { AllocationEvent } from '../messages.ts';
import { formatCpuSet } from './cpuSet.ts';
import type { CpuLedger, CpuPlace } from './ledger.ts';
import { answerRequests, type CpuFacts, type CpuHoldings, type CpuReply, type CpuRequest, tidyUp } from './requests.ts';

/** A file that could not be written is tried again after this. */
const SAVE_AGAIN_MS = 1_000;
/** Runtimes answer within moments; what takes longer is tried at the next look. */
const SHARING_MAX_MS = 10_000;

export interface CpusInput {
  place: CpuPlace;
  /** cpuManagerReconcilePeriod. */
  everyMs: number;
}
export interface CpusContext extends CpusInput {
  /** Null: not read yet. */
  ledger: CpuLedger | null;
  /** What the file holds. */
  onDisk: CpuLedger | null;
  unseen: CpuHoldings['unseen'];
  heard: boolean;
  asks: readonly CpuRequest[];
  /** They wait for the disk. */
  replies: readonly CpuReply[];
  /** Of the last decision: what was answered, and pods whose CPUs came back since they are over. */
  decided: readonly CpuReply[];
  released: readonly string[];
  /** Why the file could not be written, or containers not confined; '' when nothing went wrong. */
  saveError: string;
  shareError: string;
}

export const cpusMachine = setup({
  types: { context: {} as CpusContext, events: {} as AllocationEvent, input: {} as CpusInput },
  actors: {
    /** `isNew`: there is no file yet. */
    load: fromPromise<{ ledger: CpuLedger; isNew: boolean }>(() => Promise.reject(new Error('not provided'))),
    save: fromPromise<void, CpuLedger>(() => Promise.resolve()),
    /** Answers what could not be done, '' for nothing. */
    share: fromPromise<string, CpuLedger | null>(() => Promise.resolve('')),
  },
  actions: {
    ask: assign(({ context, event }) => (event.type === 'allocation.admit' ? { asks: [...context.asks, event] } : {})),
    /** Allocates CPUs to the pods that asked. */
    decide: assign(({ context, event }) => {
      const { ledger, asks, place } = context;
      if (ledger === null) return {};
      const { holdings, replies, released } = answerRequests({ ...context, ledger }, asks, { facts: factsOf<CpuFacts>(event), place });
      return { ...holdings, asks: [], replies: [...context.replies, ...replies], decided: replies, released };
    }),
    /** Takes back what nobody has any more. */
    tidy: assign(({ context, event }) => {
      const { ledger, place } = context;
      if (ledger === null) return {};
      const { holdings, released } = tidyUp({ ...context, ledger }, { facts: factsOf<CpuFacts>(event), place });
      return { ...holdings, released };
    }),
    forget: assign(({ context, event }) =>
      event.type === 'allocation.forget' ? { unseen: new Map([...context.unseen].filter(([uid]) => uid !== event.uid)) } : {},
    ),
    read: assign(({ event }, { ledger, isNew }: { ledger: CpuLedger; isNew: boolean }) => {
      const { monoMs } = factsOf<CpuFacts>(event);
      return { ledger, onDisk: isNew ? null : ledger, unseen: new Map([...ledger.entries.keys()].map((uid) => [uid, monoMs])) };
    }),
    told: assign(({ context }) => (context.ledger === context.onDisk ? { replies: [] } : {})),
    /** Logs `released`. */
    sayReleased: () => {},
    /** Counts `decided`. */
    count: () => {},
    /** Publishes what was read, or a ledger without allocations. */
    begin: () => {},
    /** Once the ledger is on disk: publishes it and answers the request. */
    tell: () => {},
  },
  delays: { every: ({ context }) => context.everyMs },
  guards: {
    asked: ({ context }) => context.asks.length > 0,
    unsaved: ({ context }) => context.ledger !== context.onDisk,
  },
}).createMachine({
  id: 'cpus',
  meta: projecting<CpusContext>(({ ledger, onDisk, unseen, heard, asks, replies, saveError, shareError }) => ({
    sharedCpus: ledger === null ? null : formatCpuSet(ledger.shared),
    podsWithCpus: ledger === null ? null : names(ledger.entries.keys()),
    unseen: names(unseen.keys()),
    ...{ heard, isOnDisk: ledger === onDisk, asking: asks.length, answersWaiting: replies.length, saveError, shareError },
  })),
  context: ({ input }) => ({
    ...input,
    ledger: null,
    onDisk: null,
    unseen: new Map(),
    heard: false,
    asks: [],
    replies: [],
    decided: [],
    released: [],
    saveError: '',
    shareError: '',
  }),
  initial: 'loading',
  on: { 'allocation.admit': { actions: ['ask'] }, 'allocation.forget': { actions: ['forget'] } },
  states: {
    loading: {
      meta: { reason: 'Loading', message: 'reading which CPUs were allocated before' },
      // What cannot be read or believed ends this actor, with the reason.
      invoke: {
        src: 'load',
        onDone: {
          target: 'serving',
          actions: [{ type: 'read', params: ({ event }) => event.output }, 'begin'],
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
                { guard: 'unsaved', target: 'saving' },
                { guard: 'asked', target: 'settled', actions: ['decide', 'sayReleased', 'count'], reenter: true },
              ],
              entry: ['tell', 'told'],
              after: { every: { target: 'settled', actions: ['tidy', 'sayReleased'], reenter: true } },
            },
            saving: {
              meta: { reason: 'Saving', message: 'writing the record of allocated CPUs' },
              invoke: {
                src: 'save',
                input: ({ context }) => required(context.ledger),
                onDone: { target: 'settled', actions: assign(({ context }) => ({ onDisk: context.ledger, saveError: '' })) },
                onError: {
                  target: 'saveFailed',
                  actions: assign(({ event }) => ({ saveError: messageOf(event.error) })),
                },
              },
            },
            saveFailed: {
              meta: {
                reason: 'SaveFailed',
                message: ({ saveError }: CpusContext) => `the state file cannot be written, nothing is allocated until it is: ${saveError}`,
              },
              after: { [SAVE_AGAIN_MS]: { target: 'saving' } },
            },
          },
        },
        sharing: {
          initial: 'resting',
          states: {
            resting: {
              meta: {
                reason: ({ shareError }: CpusContext) => (shareError === '' ? 'Shared' : 'ShareFailed'),
                message: ({ shareError }: CpusContext) => shareError,
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

function required(ledger: CpuLedger | null): CpuLedger {
  if (ledger === null) throw new Error('CPU manager: there is no ledger yet');
  return ledger;
}
