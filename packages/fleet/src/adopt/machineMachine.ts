/** The machine behind a node that others made, as its cloud has it. It comes up, or does not. It goes when its node is deleted. */
import { projecting } from '@actorlet/kubelet/machines/xstate/projection.ts';
import { unprovided } from '@actorlet/kubelet/machines/xstate/provide.ts';
import { assign, setup } from 'xstate';
import type { Adopted, MachineEvent } from './messages.ts';

/** From a try that failed to the next one. */
const AGAIN_MS = 2_000;

interface MachineContext {
  adopted: Adopted;
  /** A node of the same name that was created while the machine of the one before ended. */
  next: Adopted | null;
  failure: string | null;
}
type Seen = { event: Extract<MachineEvent, { type: 'machine.seen' }> };
const failed = { type: 'failed', params: ({ event }: { event: { error: unknown } }) => ({ error: event.error }) } as const;
const take = { type: 'take', params: ({ event }: Seen) => ({ adopted: event.adopted }) } as const;

export const machineMachine = setup({
  types: { context: {} as MachineContext, input: {} as { adopted: Adopted }, events: {} as MachineEvent },
  actors: {
    /** Gives the node a kubelet, with the pods that it has. */
    come: unprovided<void, { adopted: Adopted }>(),
    /** Deletes the node, and says why. */
    refuse: unprovided<void, { adopted: Adopted }>(),
    /** Ends the kubelet of the node. */
    go: unprovided<void, { adopted: Adopted }>(),
  },
  actions: {
    take: assign((_, { adopted }: { adopted: Adopted }) => ({ next: adopted })),
    forget: assign({ next: null }),
    begin: assign(({ context }) => ({ adopted: context.next ?? context.adopted, next: null, failure: null })),
    failed: assign((_, { error }: { error: unknown }) => ({ failure: error instanceof Error ? error.message : String(error) })),
  },
  guards: {
    dead: ({ context }) => context.adopted.fate.what === 'dead',
    refused: ({ context }) => context.adopted.fate.what === 'noCapacity',
    next: ({ context }) => context.next !== null,
  },
  delays: { registration: ({ context }) => context.adopted.fate.afterMs },
}).createMachine({
  id: 'machine',
  meta: projecting<MachineContext>(({ adopted: { rule, fate }, failure }) => ({ rule, fate: fate.what, afterMs: fate.afterMs, failure })),
  context: ({ input }) => ({ ...input, next: null, failure: null }),
  initial: 'coming',
  states: {
    coming: {
      meta: {
        reason: 'Coming',
        message: ({ adopted }: MachineContext) => `its machine is up ${adopted.fate.afterMs / 1_000} s after its node`,
      },
      always: { guard: 'dead', target: 'dead' },
      after: { registration: [{ guard: 'refused', target: 'refusing' }, { target: 'starting' }] },
      on: { 'machine.gone': { target: 'gone' } },
    },
    starting: {
      meta: { reason: 'Starting', message: ({ failure }: MachineContext) => failure ?? 'its kubelet is made' },
      invoke: {
        src: 'come',
        input: ({ context }) => ({ adopted: context.adopted }),
        onDone: { target: 'here' },
        onError: { target: 'startingAgain', actions: [failed] },
      },
      on: { 'machine.gone': { target: 'going' } },
    },
    startingAgain: {
      meta: { reason: 'Waiting', message: ({ failure }: MachineContext) => failure ?? '' },
      after: { [AGAIN_MS]: { target: 'starting' } },
      on: { 'machine.gone': { target: 'going' } },
    },
    here: {
      meta: { reason: 'Here', message: 'its kubelet is a node of this fleet' },
      on: { 'machine.gone': { target: 'going' } },
    },
    dead: {
      meta: { reason: 'DeadOnArrival', message: 'its kubelet never comes: the fleet file says so' },
      on: { 'machine.gone': { target: 'gone' } },
    },
    refusing: {
      meta: { reason: 'NoCapacity', message: ({ failure }: MachineContext) => failure ?? 'its node is deleted: the fleet file says so' },
      invoke: {
        src: 'refuse',
        input: ({ context }) => ({ adopted: context.adopted }),
        onDone: { target: 'refused' },
        onError: { target: 'refusingAgain', actions: [failed] },
      },
      on: { 'machine.gone': { target: 'gone' } },
    },
    refusingAgain: {
      meta: { reason: 'Waiting', message: ({ failure }: MachineContext) => failure ?? '' },
      after: { [AGAIN_MS]: { target: 'refusing' } },
      on: { 'machine.gone': { target: 'gone' } },
    },
    refused: {
      meta: { reason: 'NoCapacity', message: 'its node was deleted, and goes when its finalizers let it' },
      on: { 'machine.gone': { target: 'gone' } },
    },
    going: {
      meta: { reason: 'Going', message: 'its node was deleted, and its kubelet ends' },
      invoke: {
        src: 'go',
        input: ({ context }) => ({ adopted: context.adopted }),
        onDone: [{ guard: 'next', target: 'coming', actions: ['begin'] }, { target: 'gone' }],
      },
      on: { 'machine.seen': { actions: [take] }, 'machine.gone': { actions: ['forget'] } },
    },
    gone: { type: 'final' },
  },
});
