/** One fault in front of an API server, from its beginning to its end. */
import { projecting } from '@actorlet/kubelet/machines/xstate/projection.ts';
import { unprovided, unprovidedAction } from '@actorlet/kubelet/machines/xstate/provide.ts';
import { assign, setup } from 'xstate';
import type { FaultAnswer, FaultEvent, FaultInput } from './messages.ts';

interface FaultContext extends FaultInput {
  /** Of all objects, when it began. */
  version: string;
  why: FaultAnswer;
}

const said = ({ context: { name, fault, version } }: { context: FaultContext }) => ({ name, fault, version });

export const faultMachine = setup({
  types: { context: {} as FaultContext, input: {} as FaultInput, events: {} as FaultEvent },
  actors: {
    /** Resolves with the version of the API server. */
    version: unprovided<string>(),
  },
  actions: {
    begin: unprovidedAction<FaultInput & { version: string }>(),
    heal: unprovidedAction<{ name: string }>(),
    /** To the one who began it, once. */
    answer: unprovidedAction<{ answer: FaultAnswer }>(),
    take: assign((_, { version }: { version: string }) => ({ version })),
    fail: assign((_, { why }: { why: string }) => ({ why })),
  },
  guards: { isStale: ({ context }) => context.fault.fault === 'stale-reads' },
  delays: { age: ({ context }) => context.fault.ageMs, length: ({ context }) => context.fault.forMs },
}).createMachine({
  id: 'fault',
  meta: projecting<FaultContext>(({ name, fault, version, why }) => ({ name, fault: fault.fault, version, why })),
  context: ({ input }) => ({ ...input, version: '', why: null }),
  initial: 'choosing',
  on: { 'fault.heal': { target: '.healed' } },
  states: {
    choosing: { always: [{ guard: 'isStale', target: 'noting' }, { target: 'active' }] },
    noting: {
      meta: { reason: 'Noting', message: 'asking the API server for its version, which reads are answered with later' },
      invoke: {
        src: 'version',
        onDone: { target: 'aging', actions: [{ type: 'take', params: ({ event }) => ({ version: event.output }) }] },
        onError: { target: 'failed', actions: [{ type: 'fail', params: ({ event }) => ({ why: String(event.error) }) }] },
      },
    },
    aging: {
      meta: { reason: 'Aging', message: 'what was noted becomes old' },
      after: { age: { target: 'active' } },
    },
    active: {
      meta: { reason: 'Active', message: 'requests that it selects are hit' },
      entry: [
        { type: 'begin', params: said },
        { type: 'answer', params: { answer: null } },
      ],
      after: { length: { target: 'healed' } },
    },
    failed: {
      entry: [{ type: 'answer', params: ({ context }) => ({ answer: context.why }) }],
      always: { target: 'healed' },
    },
    healed: {
      type: 'final',
      entry: [
        { type: 'heal', params: ({ context }) => ({ name: context.name }) },
        { type: 'answer', params: { answer: null } },
      ],
    },
  },
});
