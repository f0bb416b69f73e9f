/**
 * The coordinator of allocation: the one address at which the pod manager asks for all that a pod is to have alone. Each pod that
 * is asked about has a statechart of its own, so a provider that takes its time delays no other pod. Under a topology policy pods
 * take turns: NUMA nodes are chosen from what is free, and another pod would take that meanwhile. A turn ends when all is decided,
 * so that the pods of a burst do not wait for each other's writes.
 */

import type { Pod } from '../../kube/types.ts';
import { unclaimed } from '../../pod/resources/claims.ts';
import type { ReplyTo } from '../../supervision/address.ts';
import { podName, projecting, some } from '../../xstate/projection.ts';
import { unprovidedAction } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
import type { AllocationAnswer, AllocationEvent } from '../messages.ts';
import { type AdmissionDecided, type AdmissionDrafted, type AdmissionInput, admissionMachine } from './admissionMachine.ts';
import type { TopologyDecision, TopologyDecisions } from './messages.ts';
import type { TopologyPlan } from './topologyPolicy.ts';

/** What comes with each event. */
export interface CoordinatorFacts {
  /** Names of the providers that this pod is to have something of, in the order in which they are asked. */
  wanted(pod: Pod): readonly string[];
  /** Null: policy none. */
  readonly plan: TopologyPlan | null;
}
interface Context {
  /** Pods that are being asked about, by the number of the question. */
  open: ReadonlyMap<number, Pod>;
  /** Whose turn it is; null: nobody's. */
  turn: number | null;
  /** Questions that wait for their turn. */
  waiting: readonly AdmissionInput[];
  lastAsk: number;
  /** Decisions about pods that were asked about last, by UID. */
  decided: TopologyDecisions;
}

const GRANTED: AllocationAnswer = { kind: 'granted' };
/** As many as a page shows. */
const DECIDED_MAX = 200;

const { setup, facts } = setupWith<CoordinatorFacts>();
const effects = setup({
  types: { context: {} as Context, events: {} as AllocationEvent | AdmissionDrafted | AdmissionDecided },
  actors: { admission: admissionMachine },
  actions: {
    /** Keeps what the answer of this question goes to. */
    hold: unprovidedAction<{ ask: number; replyTo: ReplyTo<AllocationAnswer> }>(),
    reply: unprovidedAction<{ ask: number; answer: AllocationAnswer }>(),
    /** Tells every provider that the pod is not admitted. */
    forget: unprovidedAction<{ uid: string }>(),
    /** `pod` was asked about. */
    count: unprovidedAction<{ ask: number; answer: AllocationAnswer; pod: Pod; decisions: readonly TopologyDecision[] }>(),
    publish: unprovidedAction<{ decided: TopologyDecisions }>(),
  },
});

type Enqueue = Parameters<Parameters<typeof effects.enqueueActions>[0]>[0]['enqueue'];
const spawn = (enqueue: Enqueue, input: AdmissionInput): void => {
  enqueue.spawnChild('admission', { id: String(input.ask), input });
};

/** The turn goes on from this one, where it has it. */
function passTurn(enqueue: Enqueue, { turn, waiting }: Pick<Context, 'turn' | 'waiting'>, ask: number): void {
  if (turn !== ask) return;
  const [next, ...others] = waiting;
  enqueue.assign({ turn: next?.ask ?? null, waiting: others });
  if (next !== undefined) spawn(enqueue, next);
}

function remembered(decided: TopologyDecisions, { metadata }: Pod, decisions: readonly TopologyDecision[]): TopologyDecisions {
  const pod = `${metadata.namespace}/${metadata.name}`;
  const others = [...decided].filter(([uid]) => uid !== metadata.uid).slice(1 - DECIDED_MAX);
  return new Map([...others, [metadata.uid, { pod, decisions }]]);
}

export const coordinatorMachine = effects
  .extend({
    actions: {
      begin: effects.enqueueActions(({ context, event, enqueue }) => {
        if (event.type !== 'allocation.admit') return;
        const { active, replyTo } = event;
        const pod = unclaimed(event.pod);
        const { plan } = facts();
        const ask = context.lastAsk + 1;
        const providers = facts().wanted(pod);
        enqueue.assign({ lastAsk: ask });
        enqueue({ type: 'hold', params: { ask, replyTo } });
        if (providers.length === 0) {
          enqueue({ type: 'count', params: { ask, answer: GRANTED, pod, decisions: [] } });
          enqueue({ type: 'reply', params: { ask, answer: GRANTED } });
          return;
        }
        enqueue.assign({ open: new Map(context.open).set(ask, pod) });
        const input = { ask, pod, active, providers, plan };
        if (plan !== null && context.turn !== null) {
          enqueue.assign({ waiting: [...context.waiting, input] });
          return;
        }
        if (plan !== null) enqueue.assign({ turn: ask });
        spawn(enqueue, input);
      }),
      end: effects.enqueueActions(({ context, event, enqueue }) => {
        if (event.type !== 'allocation.decided') return;
        const { ask, answer, decisions } = event;
        const pod = context.open.get(ask);
        enqueue.stopChild(String(ask));
        enqueue.assign({ open: new Map([...context.open].filter(([other]) => other !== ask)) });
        if (pod !== undefined) {
          enqueue({ type: 'count', params: { ask, answer, pod, decisions } });
          if (decisions.length > 0) {
            const decided = remembered(context.decided, pod, decisions);
            enqueue.assign({ decided });
            enqueue({ type: 'publish', params: { decided } });
          }
        }
        enqueue({ type: 'reply', params: { ask, answer } });
        passTurn(enqueue, context, ask);
      }),
      pass: effects.enqueueActions(({ context, event, enqueue }) => {
        if (event.type === 'allocation.drafted') passTurn(enqueue, context, event.ask);
      }),
    },
  })
  .createMachine({
    id: 'coordinator',
    meta: projecting<Context>(({ open, waiting }) => ({ asking: some(open.values(), podName), waiting: waiting.length })),
    context: { open: new Map(), turn: null, waiting: [], lastAsk: 0, decided: new Map() },
    initial: 'serving',
    states: {
      serving: {
        meta: {
          reason: 'Serving',
          message: ({ open, waiting }: Context) =>
            open.size === 0
              ? 'no pod waits for an allocation'
              : `pods that wait for an allocation: ${open.size}${waiting.length === 0 ? '' : `, ${waiting.length} of them for their turn`}`,
        },
        on: {
          'allocation.admit': { description: 'asks each provider that the pod needs, at once or when it is its turn', actions: ['begin'] },
          'allocation.drafted': { description: 'passes the turn to the next pod, since all is decided for this one', actions: ['pass'] },
          'allocation.decided': {
            description: 'answers the pod manager, and remembers what the topology policy decided',
            actions: ['end'],
          },
          'allocation.forget': {
            description: 'tells every provider that the pod is not admitted',
            actions: [{ type: 'forget', params: ({ event }) => ({ uid: event.uid }) }],
          },
          'allocation.hints': { description: 'does nothing, since it is a question to providers' },
        },
      },
    },
  });
