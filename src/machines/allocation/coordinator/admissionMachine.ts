/**
 * What is allocated to one pod before it is admitted: the providers are asked one after the other. The first answer that is not
 * `granted` ends it, and is the answer of all. A provider that has granted keeps it for this pod; the pod manager says with
 * `allocation.forget` that the pod is not admitted.
 */

import { assign, sendParent, setup } from 'xstate';
import type { Pod } from '../../kube/types.ts';
import { podName, projecting } from '../../xstate/projection.ts';
import { unprovided } from '../../xstate/provide.ts';
import type { AllocationAnswer } from '../messages.ts';

export interface AdmissionInput {
  /** Number of the question. */
  ask: number;
  pod: Pod;
  /** Pods that may have something although the view of pods does not show them yet. */
  active: ReadonlySet<string>;
  /** Providers that the pod is to have something of, by name, in the order in which they are asked. At least one. */
  providers: readonly string[];
}
interface Context extends AdmissionInput {
  /** Index in `providers` of the one that is asked. */
  at: number;
  answer: AllocationAnswer | null;
}
/** One question to one provider. */
export interface ProviderQuestion extends Pick<AdmissionInput, 'ask' | 'pod' | 'active'> {
  provider: string;
}
export interface AdmissionDecided {
  type: 'allocation.decided';
  ask: number;
  answer: AllocationAnswer;
}

const UNANSWERED: AllocationAnswer = { kind: 'later', why: 'there is no answer' };
const asked = ({ providers, at }: Context): string => providers[at] ?? '';

export const admissionMachine = setup({
  types: { context: {} as Context, input: {} as AdmissionInput },
  actors: { ask: unprovided<AllocationAnswer, ProviderQuestion>() },
  actions: {
    next: assign(({ context }) => ({ at: context.at + 1 })),
    note: assign((_, params: { answer: AllocationAnswer }) => params),
    report: sendParent(
      ({ context: { ask, answer } }): AdmissionDecided => ({ type: 'allocation.decided', ask, answer: answer ?? UNANSWERED }),
    ),
  },
  guards: {
    goesOn: ({ context: { providers, at } }, { answer }: { answer: AllocationAnswer }) =>
      answer.kind === 'granted' && at + 1 < providers.length,
  },
}).createMachine({
  id: 'podAllocation',
  meta: projecting<Context>((context) => ({ pod: podName(context.pod), asking: asked(context), answer: context.answer?.kind ?? null })),
  context: ({ input }) => ({ ...input, at: 0, answer: null }),
  initial: 'asking',
  states: {
    asking: {
      meta: { reason: 'Asking', message: (context: Context) => `${asked(context)} allocates to pod ${podName(context.pod)}` },
      invoke: {
        src: 'ask',
        input: ({ context }) => ({ ask: context.ask, pod: context.pod, active: context.active, provider: asked(context) }),
        onDone: [
          {
            guard: { type: 'goesOn', params: ({ event }) => ({ answer: event.output }) },
            target: 'asking',
            reenter: true,
            actions: ['next'],
          },
          { target: 'answered', actions: [{ type: 'note', params: ({ event }) => ({ answer: event.output }) }] },
        ],
      },
    },
    answered: { type: 'final', entry: ['report'] },
  },
});
