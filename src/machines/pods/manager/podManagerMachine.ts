/** The pod manager as a statechart: the ledger of pods, whether every source has delivered, and what waits to be admitted. */
import { assign } from 'xstate';
import type { SourceName } from '../../pod/runtime/seen.ts';
import { inspectionOf } from '../../xstate/kept.ts';
import { names, podName, projecting, some } from '../../xstate/projection.ts';
import { unprovided, unprovidedAction } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
import type { Allocation } from '../resize/allocation.ts';
import type { PodManagerEvent } from './messages.ts';
import { emptyLedger, type Facts, type PodLedger, type Step } from './records.ts';
import { type StepEvent, step } from './step.ts';

/** How often a pod that was not admitted at first sight is looked at again. */
const LOOK_AGAIN_MS = 500;
/** How often changes of resources that do not fit are looked at again. */
const RESIZES_AGAIN_MS = 2_000;

interface PodManagerInput {
  /** Which incarnation of the pod manager this is, from 1. */
  epoch: number;
  sources: readonly SourceName[];
}
export interface PodManagerContext {
  ledger: PodLedger;
}

const TAKEN = [
  'pods.op',
  'pods.allocated',
  'worker.state',
  'pods.orphan',
  'pods.quarantined',
  'pods.evict',
  'pods.refuse',
  'pods.dirty',
] as const satisfies readonly PodManagerEvent['type'][];

type Allocations = ReadonlyMap<string, Allocation>;
const TAKE = { actions: 'take' } as const;

const { setup, facts } = setupWith<Facts>();

function begun({ ledger }: PodManagerContext, allocations: Allocations): PodManagerContext {
  return { ledger: { ...ledger, resizes: { ...ledger.resizes, allocations }, beganMonoMs: facts().monoMs } };
}

const effects = setup({
  types: {
    context: {} as PodManagerContext,
    events: {} as PodManagerEvent,
    input: {} as PodManagerInput,
  },
  actors: { load: unprovided<Allocations>() },
  actions: {
    /** Sends `out`, and publishes the view where a reader could see that it `changed`. */
    deliver: unprovidedAction<Step>(),
  },
});

const deciding = effects.extend({
  actions: {
    take: effects.enqueueActions(({ context: { ledger }, event, enqueue, system }) => {
      // A timer: time to look at what waits.
      const taken: StepEvent = event.type.startsWith('xstate.') ? { type: 'look' } : event;
      const next = step(ledger, taken, facts(), inspectionOf(system));
      enqueue.assign({ ledger: next.ledger });
      enqueue({ type: 'deliver', params: next });
    }),
  },
  guards: {
    waits: ({ context: { ledger } }) => ledger.candidates.size > 0,
    misses: ({ context: { ledger } }) => ledger.candidates.size === 0 && !ledger.ready,
    resizesWait: ({ context: { ledger } }) => ledger.candidates.size === 0 && ledger.ready && ledger.resizes.waiting.size > 0,
    settled: ({ context: { ledger } }) => ledger.candidates.size === 0 && ledger.ready && ledger.resizes.waiting.size === 0,
  },
});

export const podManagerMachine = deciding.createMachine({
  id: 'podManager',
  meta: projecting<PodManagerContext>(({ ledger }) => ({
    pods: some(ledger.records.values(), ({ pod, state }) => `${podName(pod)}: ${state.is}`),
    candidates: some(ledger.candidates.values(), ({ pod, wait }) => `${podName(pod)}: ${wait}`),
    resizes: some(ledger.resizes.waiting.values(), ({ pod }) => podName(pod)),
    sources: names(ledger.sources),
    delivered: names(ledger.seen),
    ...{ epoch: ledger.epoch, ready: ledger.ready },
  })),
  options: { maxIterations: 1000 },
  context: ({ input }) => ({ ledger: emptyLedger(input.sources, input.epoch) }),
  on: Object.fromEntries(TAKEN.map((type) => [type, TAKE])),
  initial: 'loading',
  states: {
    loading: {
      entry: { type: 'deliver', params: ({ context: { ledger } }) => ({ ledger, out: [], changed: true }) },
      meta: { reason: 'Loading', message: 'reading what pods were granted before the daemon started' },
      invoke: {
        src: 'load',
        onDone: { target: 'waitingForSources', actions: assign(({ context, event }) => begun(context, event.output)) },
        onError: { target: 'waitingForSources', actions: assign(({ context }) => begun(context, new Map())) },
      },
      // A config that ended with the pod manager before this one sent it. The next config starts after this state, and sends every pod.
      on: { 'pods.op': {} },
    },
    waitingForSources: {
      meta: { reason: 'WaitingForSources', message: 'not every configured source has delivered yet; nothing is cleaned up until then' },
      always: [
        { guard: 'waits', target: 'lookingAgain' },
        { guard: 'resizesWait', target: 'holdingResizes' },
        { guard: 'settled', target: 'ready' },
      ],
    },
    lookingAgain: {
      meta: {
        reason: 'LookingAgain',
        message:
          'a pod does not fit, but it may run here already, the node may have changed, or others make room for it; or something is being allocated to it. Waiting for the first listing of the runtime, the next look at the node, the end of those others, or an answer',
      },
      always: [
        { guard: 'misses', target: 'waitingForSources' },
        { guard: 'resizesWait', target: 'holdingResizes' },
        { guard: 'settled', target: 'ready' },
      ],
      after: { [LOOK_AGAIN_MS]: { target: 'lookingAgain', reenter: true, ...TAKE } },
    },
    holdingResizes: {
      meta: { reason: 'ResizePending', message: 'a change of resources does not fit, or cannot be; waiting for room' },
      always: [
        { guard: 'waits', target: 'lookingAgain' },
        { guard: 'settled', target: 'ready' },
      ],
      after: { [RESIZES_AGAIN_MS]: { target: 'holdingResizes', reenter: true, ...TAKE } },
    },
    ready: {
      meta: { reason: 'Ready', message: 'every source has delivered at least once' },
      always: [
        { guard: 'waits', target: 'lookingAgain' },
        { guard: 'resizesWait', target: 'holdingResizes' },
      ],
    },
  },
});
