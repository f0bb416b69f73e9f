/** The pod manager as a statechart: the ledger of pods, and whether every source has delivered. */
import { assign, setup } from 'xstate';
import { factsOf } from '../../facts.ts';
import { names, podName, projecting, some } from '../../projection.ts';
import type { PodManagerEvent } from '../../protocol.ts';
import type { SourceName } from '../types.ts';
import { emptyLedger, type Out, type PodLedger, sourcesReady } from './records.ts';
import { step } from './step.ts';

export interface PodManagerInput {
  /** Which incarnation of the pod manager this is, from 1. */
  epoch: number;
  sources: readonly SourceName[];
  /** Its own path, for causes. */
  path: string;
}
export interface PodManagerContext {
  ledger: PodLedger;
  /** What the last event asks to be sent; `deliver` sends it within the same transition. */
  out: readonly Out[];
  changed: boolean;
  path: string;
}

const TAKEN = [
  'pods.op',
  'pods.rejected',
  'worker.state',
  'pods.orphan',
  'pods.quarantined',
  'pods.evict',
  'pods.dirty',
] as const satisfies readonly PodManagerEvent['type'][];

const apply = { actions: ['step', 'deliver'] as const };

export const podManagerMachine = setup({
  types: {
    context: {} as PodManagerContext,
    events: {} as PodManagerEvent,
    input: {} as PodManagerInput,
  },
  actions: {
    step: assign(({ context, event }) => {
      const next = step(context.ledger, event, { atMs: factsOf(event).wallMs, by: context.path });
      return { ledger: next.ledger, out: next.out, changed: next.changed };
    }),
    /** Sends `context.out` and publishes the view when `context.changed`. */
    deliver: () => {},
  },
  guards: { ready: ({ context }) => sourcesReady(context.ledger) },
}).createMachine({
  id: 'podManager',
  meta: projecting<PodManagerContext>(({ ledger }) => ({
    pods: some(ledger.records.values(), ({ pod, state }) => `${podName(pod)}: ${state.is}`),
    sources: names(ledger.sources),
    delivered: names(ledger.seen),
    undecided: names(ledger.undecided),
    ...{ epoch: ledger.epoch, ready: ledger.ready },
  })),
  options: { maxIterations: 1000 },
  context: ({ input }) => ({ ledger: emptyLedger(input.sources, input.epoch), out: [], changed: true, path: input.path }),
  on: Object.fromEntries(TAKEN.map((type) => [type, apply])),
  initial: 'waitingForSources',
  states: {
    waitingForSources: {
      entry: ['deliver'],
      meta: { reason: 'WaitingForSources', message: 'not every configured source has delivered yet; nothing is cleaned up until then' },
      always: { guard: 'ready', target: 'ready' },
    },
    ready: { meta: { reason: 'Ready', message: 'every source has delivered at least once' } },
  },
});
