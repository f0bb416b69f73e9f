/**
 * Statechart of the CPU manager: it writes an allocation to disk before it answers, and confines containers without CPUs of
 * their own to the rest from time to time. `ledger.ts` decides; the actor provides the effects.
 */
import { assign, fromPromise, setup } from 'xstate';
import type { AllocationEvent } from '../messages.ts';
import type { CpuLedger } from './ledger.ts';

/** A file that could not be written is tried again after this. */
const SAVE_AGAIN_MS = 1_000;
/** Runtimes answer within moments; what takes longer is tried at the next look. */
const SHARING_MAX_MS = 10_000;

type Admit = Extract<AllocationEvent, { type: 'allocation.admit' }>;

export interface CpusInput {
  /** cpuManagerReconcilePeriod. */
  everyMs: number;
}
export interface CpusContext extends CpusInput {
  /** Null: not read yet. */
  ledger: CpuLedger | null;
  /** What the file holds. */
  onDisk: CpuLedger | null;
  asks: readonly Admit[];
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
    /** Hands out to those who asked. */
    decide: assign((): Partial<CpusContext> => ({})),
    /** Takes back what nobody has any more. */
    tidy: assign((): Partial<CpusContext> => ({})),
    forget: () => {},
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
  context: ({ input }) => ({ ...input, ledger: null, onDisk: null, asks: [], saveError: '', shareError: '' }),
  initial: 'loading',
  on: { 'allocation.admit': { actions: ['ask'] }, 'allocation.forget': { actions: ['forget'] } },
  states: {
    loading: {
      meta: { reason: 'Loading', message: 'reading which CPUs were handed out before' },
      // What cannot be read or believed ends this actor, with the reason.
      invoke: {
        src: 'load',
        onDone: {
          target: 'serving',
          actions: [
            assign(({ event }) => ({ ledger: event.output.ledger, onDisk: event.output.isNew ? null : event.output.ledger })),
            'begin',
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
              meta: { reason: 'Settled', message: 'what was handed out is on disk' },
              always: [
                { guard: 'unsaved', target: 'saving' },
                { guard: 'asked', target: 'settled', actions: ['decide'], reenter: true },
              ],
              entry: ['tell'],
              after: { every: { target: 'settled', actions: ['tidy'], reenter: true } },
            },
            saving: {
              meta: { reason: 'Saving', message: 'writing what was handed out' },
              invoke: {
                src: 'save',
                input: ({ context }) => required(context.ledger),
                onDone: { target: 'settled', actions: assign(({ context }) => ({ onDisk: context.ledger, saveError: '' })) },
                onError: {
                  target: 'saveFailed',
                  actions: assign(({ event }) => ({ saveError: event.error instanceof Error ? event.error.message : String(event.error) })),
                },
              },
            },
            saveFailed: {
              meta: {
                reason: 'SaveFailed',
                message: ({ saveError }: CpusContext) =>
                  `the state file cannot be written, nothing is handed out until it is: ${saveError}`,
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
                    shareError: event.error instanceof Error ? event.error.message : String(event.error),
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
