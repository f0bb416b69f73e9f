/**
 * The coordinator of allocation: the one address at which the pod manager asks for all that a pod is to have alone. Each pod that
 * is asked about has a statechart of its own, so a provider that takes its time delays no other pod.
 */

import type { Pod } from '../../kube/types.ts';
import type { ReplyTo } from '../../supervision/address.ts';
import { podName, projecting, some } from '../../xstate/projection.ts';
import { unprovidedAction } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
import type { AllocationAnswer, AllocationEvent } from '../messages.ts';
import { type AdmissionDecided, admissionMachine } from './admissionMachine.ts';

/** What comes with each event. */
export interface CoordinatorFacts {
  /** Names of the providers that this pod is to have something of, in the order in which they are asked. */
  wanted(pod: Pod): readonly string[];
}
interface Context {
  /** Names of pods that are being asked about, by the number of the question. */
  open: ReadonlyMap<number, string>;
  lastAsk: number;
}

const GRANTED: AllocationAnswer = { kind: 'granted' };

const { setup, facts } = setupWith<CoordinatorFacts>();
const effects = setup({
  types: { context: {} as Context, events: {} as AllocationEvent | AdmissionDecided },
  actors: { admission: admissionMachine },
  actions: {
    /** Keeps what the answer of this question goes to. */
    hold: unprovidedAction<{ ask: number; replyTo: ReplyTo<AllocationAnswer> }>(),
    reply: unprovidedAction<{ ask: number; answer: AllocationAnswer }>(),
    /** Tells every provider that the pod is not admitted. */
    forget: unprovidedAction<{ uid: string }>(),
  },
});

export const coordinatorMachine = effects
  .extend({
    actions: {
      begin: effects.enqueueActions(({ context, event, enqueue }) => {
        if (event.type !== 'allocation.admit') return;
        const { pod, active, replyTo } = event;
        const ask = context.lastAsk + 1;
        const providers = facts().wanted(pod);
        enqueue.assign({ lastAsk: ask });
        enqueue({ type: 'hold', params: { ask, replyTo } });
        if (providers.length === 0) {
          enqueue({ type: 'reply', params: { ask, answer: GRANTED } });
          return;
        }
        enqueue.assign({ open: new Map(context.open).set(ask, podName(pod)) });
        enqueue.spawnChild('admission', { id: String(ask), input: { ask, pod, active, providers } });
      }),
      end: effects.enqueueActions(({ context, event, enqueue }) => {
        if (event.type !== 'allocation.decided') return;
        const { ask, answer } = event;
        enqueue.stopChild(String(ask));
        enqueue.assign({ open: new Map([...context.open].filter(([other]) => other !== ask)) });
        enqueue({ type: 'reply', params: { ask, answer } });
      }),
    },
  })
  .createMachine({
    id: 'coordinator',
    meta: projecting<Context>(({ open }) => ({ asking: some(open.values(), (pod) => pod) })),
    context: { open: new Map(), lastAsk: 0 },
    initial: 'serving',
    states: {
      serving: {
        meta: {
          reason: 'Serving',
          message: ({ open }: Context) =>
            open.size === 0 ? 'no pod waits for an allocation' : `pods that wait for an allocation: ${open.size}`,
        },
        on: {
          'allocation.admit': { actions: ['begin'] },
          'allocation.decided': { actions: ['end'] },
          'allocation.forget': { actions: [{ type: 'forget', params: ({ event }) => ({ uid: event.uid }) }] },
        },
      },
    },
  });
