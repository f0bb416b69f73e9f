/**
 * What is allocated to one pod before it is admitted: the providers are asked one after the other. The first answer that is not
 * `granted` ends it, and is the answer of all. A provider that has granted keeps it for this pod; the pod manager says with
 * `allocation.forget` that the pod is not admitted.
 *
 * Providers that can answer with a draft first. Once all have, they are asked to keep it, together: their records are on disk then.
 *
 * Under a topology policy there is a round for each container, or one for the pod as a whole: first every provider tells from
 * which NUMA nodes it could allocate, then the nodes are chosen, then the providers allocate from them.
 */

import { assign, sendParent, setup } from 'xstate';
import type { Pod } from '../../kube/types.ts';
import { podName, projecting } from '../../xstate/projection.ts';
import { unprovided } from '../../xstate/provide.ts';
import type { Affinities, AllocationAnswer } from '../messages.ts';
import { lastingOf } from '../podContainers.ts';
import { decide, REFUSAL_REASON, refusalOf, type Weighed } from './decision.ts';
import type { TopologyDecision } from './messages.ts';
import type { TopologyPlan } from './topologyPolicy.ts';

export interface AdmissionInput {
  /** Number of the question. */
  ask: number;
  pod: Pod;
  /** Pods that may have something although the view of pods does not show them yet. */
  active: ReadonlySet<string>;
  /** Providers that the pod is to have something of, by name, in the order in which they are asked. At least one. */
  providers: readonly string[];
  /** Null: policy none. */
  plan: TopologyPlan | null;
}
interface Context extends AdmissionInput {
  /** Index in `providers` of the one that is asked. */
  at: number;
  /** Containers that no NUMA nodes were chosen for yet, in the order of their rounds; null: the pod as a whole. */
  rounds: readonly (string | null)[];
  /** Absent under policy none. */
  affinity?: Affinities;
  decisions: readonly TopologyDecision[];
  answer: AllocationAnswer | null;
}
export interface ProviderQuestion extends Pick<AdmissionInput, 'ask' | 'pod' | 'active'> {
  provider: string;
  affinity?: Affinities;
}
/** What every provider has drafted is to be on disk. */
export interface KeepQuestion extends Pick<AdmissionInput, 'ask' | 'pod' | 'active' | 'providers'> {
  affinity?: Affinities;
}
export interface HintsQuestion extends Pick<AdmissionInput, 'ask' | 'pod' | 'active' | 'providers'> {
  container: string | null;
}
/** All is decided and nothing refused: another pod can be weighed beside this one. */
export interface AdmissionDrafted {
  type: 'allocation.drafted';
  ask: number;
}
export interface AdmissionDecided {
  type: 'allocation.decided';
  ask: number;
  answer: AllocationAnswer;
  decisions: readonly TopologyDecision[];
}

const UNANSWERED: AllocationAnswer = { kind: 'later', why: 'there is no answer' };
const asked = ({ providers, at }: Context): string => providers[at] ?? '';
const namesOf = (pod: Pod): string[] => lastingOf(pod).map(({ container }) => container.name);
const roundOf = ({ rounds }: Context): string | null => rounds[0] ?? null;

/** What was chosen goes for the container of this round, or for all. */
function chosen(context: Context, weighed: readonly Weighed[]): Partial<Context> {
  const { plan, pod, affinity, decisions, rounds } = context;
  if (plan === null) return {};
  const decision = decide(plan, weighed, roundOf(context));
  const those = decision.container === null ? namesOf(pod) : [decision.container];
  const all = [...decisions, decision];
  if (decision.outcome === 'admitted')
    return {
      decisions: all,
      rounds: rounds.slice(1),
      at: 0,
      affinity: new Map([...(affinity ?? []), ...those.map((name) => [name, decision.affinity] as const)]),
    };
  const message = refusalOf(decision);
  const answer: AllocationAnswer =
    decision.outcome === 'later'
      ? { kind: 'later', why: `${message}; pods that are on their way out still have some` }
      : { kind: 'refused', reason: REFUSAL_REASON, message };
  return { decisions: all, answer };
}

export const admissionMachine = setup({
  types: { context: {} as Context, input: {} as AdmissionInput },
  actors: {
    ask: unprovided<AllocationAnswer, ProviderQuestion>(),
    keep: unprovided<AllocationAnswer, KeepQuestion>(),
    weigh: unprovided<readonly Weighed[], HintsQuestion>(),
  },
  actions: {
    next: assign(({ context }) => ({ at: context.at + 1 })),
    choose: assign(({ context }, { weighed }: { weighed: readonly Weighed[] }) => chosen(context, weighed)),
    note: assign((_, params: { answer: AllocationAnswer }) => params),
    pass: sendParent(({ context: { ask } }): AdmissionDrafted => ({ type: 'allocation.drafted', ask })),
    report: sendParent(
      ({ context: { ask, answer, decisions } }): AdmissionDecided => ({
        type: 'allocation.decided',
        ask,
        answer: answer ?? UNANSWERED,
        decisions,
      }),
    ),
  },
  guards: {
    goesOn: ({ context: { providers, at } }, { answer }: { answer: AllocationAnswer }) =>
      answer.kind === 'granted' && at + 1 < providers.length,
    hasRounds: ({ context: { rounds } }, { answer }: { answer: AllocationAnswer }) => answer.kind === 'granted' && rounds.length > 0,
    isGranted: (_, { answer }: { answer: AllocationAnswer }) => answer.kind === 'granted',
    isAligned: ({ context }) => context.plan !== null,
    isAnswered: ({ context }) => context.answer !== null,
  },
}).createMachine({
  id: 'podAllocation',
  meta: projecting<Context>((context) => ({
    pod: podName(context.pod),
    asking: asked(context),
    chosen: context.decisions.map(({ container, chosen: nodes }) => `${container ?? 'pod'}: ${nodes}`),
    answer: context.answer?.kind ?? null,
  })),
  context: ({ input }) => ({
    ...input,
    at: 0,
    rounds: input.plan === null ? [] : input.plan.scope === 'pod' ? [null] : namesOf(input.pod),
    decisions: [],
    answer: null,
  }),
  initial: 'beginning',
  states: {
    beginning: { always: [{ guard: 'isAligned', target: 'weighing' }, { target: 'asking' }] },
    weighing: {
      meta: {
        reason: 'Weighing',
        message: (context: Context) =>
          `providers tell from which NUMA nodes ${roundOf(context) === null ? 'the pod' : `container ${roundOf(context)}`} could have what it needs`,
      },
      invoke: {
        src: 'weigh',
        input: ({ context }) => {
          const { ask, pod, active, providers } = context;
          return { ask, pod, active, providers, container: roundOf(context) };
        },
        onDone: { target: 'chosen', actions: [{ type: 'choose', params: ({ event }) => ({ weighed: event.output }) }] },
        onError: { target: 'answered' },
      },
    },
    chosen: { always: [{ guard: 'isAnswered', target: 'answered' }, { target: 'asking' }] },
    asking: {
      meta: { reason: 'Asking', message: (context: Context) => `${asked(context)} allocates to pod ${podName(context.pod)}` },
      invoke: {
        src: 'ask',
        input: ({ context }) => ({
          ...{ ask: context.ask, pod: context.pod, active: context.active, provider: asked(context) },
          ...(context.affinity === undefined ? {} : { affinity: context.affinity }),
        }),
        onDone: [
          {
            guard: { type: 'goesOn', params: ({ event }) => ({ answer: event.output }) },
            target: 'asking',
            reenter: true,
            actions: ['next'],
          },
          { guard: { type: 'hasRounds', params: ({ event }) => ({ answer: event.output }) }, target: 'weighing' },
          { guard: { type: 'isGranted', params: ({ event }) => ({ answer: event.output }) }, target: 'keeping' },
          { target: 'answered', actions: [{ type: 'note', params: ({ event }) => ({ answer: event.output }) }] },
        ],
      },
    },
    keeping: {
      meta: { reason: 'Keeping', message: (context: Context) => `what pod ${podName(context.pod)} is allocated is written to disk` },
      entry: ['pass'],
      invoke: {
        src: 'keep',
        input: ({ context: { ask, pod, active, providers, affinity } }) => ({
          ...{ ask, pod, active, providers },
          ...(affinity === undefined ? {} : { affinity }),
        }),
        onDone: { target: 'answered', actions: [{ type: 'note', params: ({ event }) => ({ answer: event.output }) }] },
      },
    },
    answered: { type: 'final', entry: ['report'] },
  },
});
