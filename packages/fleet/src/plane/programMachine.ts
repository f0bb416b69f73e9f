/**
 * One program of a local control plane, as an init system runs it. A program that ends by itself crashes this machine: the supervisor
 * starts it again, with a back-off and limits.
 */
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { projecting } from '@actorlet/kubelet/machines/xstate/projection.ts';
import { unprovided, unprovidedAction } from '@actorlet/kubelet/machines/xstate/provide.ts';
import { assign, setup } from 'xstate';
import type { EndSignal, ProgramAnswer, ProgramEvent } from './messages.ts';

export interface ProgramInput {
  /** It is meant to run. */
  on: boolean;
}
interface ProgramContext extends ProgramInput {
  failure: string | null;
  /** How it is ended. */
  by: EndSignal;
}
/** What the program keeps for the next life of this actor. */
export interface ProgramNote {
  on?: boolean;
  /** Why it does not run; null: nothing is wrong. */
  failure?: string | null;
}

type Asked = Extract<ProgramEvent, { replyTo?: unknown }>;
type Off = { event: Extract<ProgramEvent, { type: 'program.off' }> };
type Failed = { event: { error: unknown } };
const keep = { type: 'keep', params: ({ event }: { event: Asked }) => ({ replyTo: event.replyTo }) } as const;
const done = { type: 'answer', params: { answer: null } } as const;
const refuse = { type: 'answer', params: ({ context }: { context: ProgramContext }) => ({ answer: context.failure }) } as const;
const note = (params: ProgramNote) => ({ type: 'note', params }) as const;
const noteFailure = { type: 'note', params: ({ context: { failure } }: { context: ProgramContext }) => ({ failure }) } as const;
const wanted = { type: 'want', params: { on: true } } as const;
const unwanted = { type: 'want', params: ({ event }: Off) => ({ on: false, by: event.by }) } as const;
const fail = { type: 'fail', params: ({ event }: Failed) => ({ failure: messageOf(event.error) }) } as const;
const endBy = ({ context }: { context: ProgramContext }) => ({ by: context.by });

export const programMachine = setup({
  types: { context: {} as ProgramContext, input: {} as ProgramInput, events: {} as ProgramEvent },
  actors: {
    /** Starts the process when the one before it has ended. Resolves when it is ready, rejects when it ends or takes too long. */
    start: unprovided<void>(),
    /** Rejects when the process ends, and never resolves. */
    watch: unprovided<void>(),
    /** Resolves when the process has ended, also one that starts. */
    end: unprovided<void, { by: EndSignal }>(),
    /** Ends what is left of it, then rejects with the failure. */
    crash: unprovided<void, { failure: string }>(),
  },
  actions: {
    /** Keeps the asker until there is an answer. */
    keep: unprovidedAction<{ replyTo: Asked['replyTo'] }>(),
    /** To all askers. */
    answer: unprovidedAction<{ answer: ProgramAnswer }>(),
    note: unprovidedAction<ProgramNote>(),
    want: assign((_, wish: { on: boolean; by?: EndSignal }) => wish),
    fail: assign((_, { failure }: { failure: string }) => ({ failure })),
  },
  guards: { on: ({ context }) => context.on },
}).createMachine({
  id: 'program',
  meta: projecting<ProgramContext>(({ on, failure }) => ({ on, failure })),
  context: ({ input }) => ({ ...input, failure: null, by: 'SIGTERM' }),
  initial: 'choosing',
  on: { 'program.end': { target: '.leaving' } },
  states: {
    choosing: { always: [{ guard: 'on', target: 'starting' }, { target: 'off' }] },
    off: {
      meta: { reason: 'Off', message: 'the program was ended on purpose' },
      entry: [note({ on: false, failure: null }), done],
      on: {
        'program.on': { target: 'starting', actions: [keep, wanted] },
        'program.off': { actions: [keep, done] },
      },
    },
    starting: {
      meta: { reason: 'Starting', message: 'the program starts, and is not ready yet' },
      entry: [note({ on: true })],
      invoke: { src: 'start', onDone: { target: 'running' }, onError: { target: 'failed', actions: [fail] } },
      on: {
        'program.on': { actions: [keep] },
        'program.off': { target: 'ending', actions: [keep, unwanted] },
      },
    },
    running: {
      meta: { reason: 'Running', message: 'the program runs and was ready' },
      entry: [note({ failure: null }), done],
      invoke: { src: 'watch', onError: { target: 'failed', actions: [fail] } },
      on: {
        'program.on': { actions: [keep, done] },
        'program.off': { target: 'ending', actions: [keep, unwanted] },
      },
    },
    ending: {
      meta: { reason: 'Ending', message: 'the program ends' },
      invoke: { src: 'end', input: endBy, onDone: [{ guard: 'on', target: 'starting' }, { target: 'off' }] },
      on: {
        'program.on': { actions: [keep, wanted] },
        'program.off': { actions: [keep, unwanted] },
      },
    },
    /** Its process ended by itself. This actor crashes: its supervisor knows when, and whether, another one starts. */
    failed: {
      meta: { reason: 'Failed', message: ({ failure }: ProgramContext) => failure ?? '' },
      entry: [noteFailure, refuse],
      invoke: { src: 'crash', input: ({ context }) => ({ failure: context.failure ?? '' }) },
      on: {
        'program.on': { actions: [keep, note({ on: true }), refuse] },
        'program.off': { actions: [keep, note({ on: false }), done] },
      },
    },
    leaving: {
      meta: { reason: 'Leaving', message: 'the control plane ends, and this program with it' },
      entry: [done],
      invoke: { src: 'end', input: endBy, onDone: { target: 'ended' } },
      on: { 'program.end': {} },
    },
    ended: { type: 'final' },
  },
});
