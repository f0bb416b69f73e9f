/**
 * The daemon of one node of a fleet, as the init system of its machine runs it. A daemon that fails crashes this machine: the
 * supervisor starts it again, with a back-off and limits.
 */
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { projecting } from '@actorlet/kubelet/machines/xstate/projection.ts';
import { unprovided, unprovidedAction } from '@actorlet/kubelet/machines/xstate/provide.ts';
import { assign, setup } from 'xstate';
import type { NodeAnswer, NodeEvent } from './messages.ts';

/** The actor that gives turns has started anew, and knows no node that waits: it is asked again. */
const ASK_AGAIN_MS = 1_000;

export interface NodeInput {
  /** The machine is switched on. */
  on: boolean;
}
interface NodeContext extends NodeInput {
  failure: string | null;
}
/** What the machine keeps for the next life of this actor. */
export interface NodeNote {
  on?: boolean;
  /** Why its daemon does not run; null: nothing is wrong. */
  failure?: string | null;
}

type Asked = Extract<NodeEvent, { replyTo?: unknown }>;
type Failed = { event: { error: unknown } };
const keep = { type: 'keep', params: ({ event }: { event: Asked }) => ({ replyTo: event.replyTo }) } as const;
const done = { type: 'answer', params: { answer: null } } as const;
const refuse = { type: 'answer', params: ({ context }: { context: NodeContext }) => ({ answer: context.failure }) } as const;
const note = (params: NodeNote) => ({ type: 'note', params }) as const;
const noteFailure = { type: 'note', params: ({ context: { failure } }: { context: NodeContext }) => ({ failure }) } as const;
const power = (on: boolean) => ({ type: 'power', params: { on } }) as const;
const fail = { type: 'fail', params: ({ event }: Failed) => ({ failure: messageOf(event.error) }) } as const;

export const nodeMachine = setup({
  types: { context: {} as NodeContext, input: {} as NodeInput, events: {} as NodeEvent },
  actors: {
    /** Whether the turn of this node has come; false: the actor that gives turns does not know that it waits. */
    turn: unprovided<boolean>(),
    /** Makes the daemon, when the one before it has ended. Resolves when all of its actors are ready. */
    make: unprovided<void>(),
    /** Rejects when the daemon fails, and never resolves. */
    watch: unprovided<void>(),
    /** Resolves when the daemon has ended, also one that is being made. */
    end: unprovided<void>(),
    /** As `end`, then rejects with the failure. */
    crash: unprovided<void, { failure: string }>(),
  },
  actions: {
    /** Keeps the asker until there is an answer. */
    keep: unprovidedAction<{ replyTo: Asked['replyTo'] }>(),
    /** To all askers. */
    answer: unprovidedAction<{ answer: NodeAnswer }>(),
    /** The turn of this node is over. */
    passTurn: unprovidedAction(),
    note: unprovidedAction<NodeNote>(),
    power: assign((_, { on }: NodeInput) => ({ on })),
    fail: assign((_, { failure }: { failure: string }) => ({ failure })),
  },
  guards: {
    on: ({ context }) => context.on,
    came: (_, { came }: { came: boolean }) => came,
  },
}).createMachine({
  id: 'node',
  meta: projecting<NodeContext>(({ on, failure }) => ({ on, failure })),
  context: ({ input }) => ({ ...input, failure: null }),
  initial: 'choosing',
  on: { 'node.end': { target: '.leaving', actions: [done, keep] } },
  states: {
    choosing: { always: [{ guard: 'on', target: 'waiting' }, { target: 'off' }] },
    off: {
      meta: { reason: 'Off', message: 'the machine is switched off' },
      entry: [note({ on: false, failure: null }), done],
      on: {
        'node.on': { target: 'waiting', actions: [keep, power(true)] },
        'node.off': { actions: [keep, done] },
        'node.restart': { actions: [keep, done] },
      },
    },
    waiting: {
      meta: { reason: 'Waiting', message: 'waits for its turn to start' },
      entry: [note({ on: true })],
      initial: 'asking',
      states: {
        asking: {
          invoke: {
            src: 'turn',
            onDone: [
              { guard: { type: 'came', params: ({ event }) => ({ came: event.output }) }, target: '#node.making' },
              { target: 'unheard' },
            ],
          },
        },
        unheard: { after: { [ASK_AGAIN_MS]: { target: 'asking' } } },
      },
      on: {
        'node.on': { actions: [keep] },
        'node.off': { target: 'off', actions: [keep, power(false), 'passTurn'] },
        'node.restart': { actions: [keep] },
      },
    },
    making: {
      meta: { reason: 'Making', message: 'the daemon is being made, and its actors start' },
      exit: ['passTurn'],
      invoke: { src: 'make', onDone: { target: 'running' }, onError: { target: 'failed', actions: [fail] } },
      on: {
        'node.on': { actions: [keep] },
        'node.off': { target: 'ending', actions: [keep, power(false)] },
        'node.restart': { target: 'ending', actions: [keep] },
      },
    },
    running: {
      meta: { reason: 'Running', message: 'the daemon runs' },
      entry: [note({ failure: null }), done],
      invoke: { src: 'watch', onError: { target: 'failed', actions: [fail] } },
      on: {
        'node.on': { actions: [keep, done] },
        'node.off': { target: 'ending', actions: [keep, power(false)] },
        'node.restart': { target: 'ending', actions: [keep] },
      },
    },
    /** As an init system ends a daemon: pods run on. */
    ending: {
      meta: { reason: 'Ending', message: 'the daemon ends' },
      invoke: { src: 'end', onDone: [{ guard: 'on', target: 'making' }, { target: 'off' }] },
      on: {
        'node.on': { actions: [keep, power(true)] },
        'node.off': { actions: [keep, power(false)] },
        'node.restart': { actions: [keep] },
      },
    },
    /** What is left of the daemon ends. Then this actor crashes: its supervisor knows when, and whether, another one starts. */
    failed: {
      meta: { reason: 'Failed', message: ({ failure }: NodeContext) => failure ?? '' },
      entry: [noteFailure, refuse],
      invoke: { src: 'crash', input: ({ context }) => ({ failure: context.failure ?? '' }) },
      on: {
        'node.on': { actions: [keep, note({ on: true }), refuse] },
        'node.off': { actions: [keep, note({ on: false }), done] },
        'node.restart': { actions: [keep, refuse] },
      },
    },
    leaving: {
      meta: { reason: 'Leaving', message: 'the fleet or the machine ends, and this daemon with it' },
      entry: ['passTurn'],
      invoke: { src: 'end', onDone: { target: 'ended' } },
      on: { 'node.end': { actions: [keep] } },
    },
    ended: { type: 'final', entry: [done] },
  },
});
