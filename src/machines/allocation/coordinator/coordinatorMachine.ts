/**
 * The coordinator of allocation: the one address at which the pod manager asks for all that a pod is to have alone. Each pod that
 * is asked about has a statechart of its own, so a provider that takes its time delays no other pod.
 */

import { enqueueActions, setup } from 'xstate';
import type { Pod } from '../../kube/types.ts';
import type { ReplyTo } from '../../supervision/address.ts';
import { factsOf } from '../../xstate/facts.ts';
import { podName, projecting, some } from '../../xstate/projection.ts';
import { perform } from '../../xstate/provide.ts';
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
  lastId: number;
}

export const coordinatorMachine = setup({
  types: { context: {} as Context, events: {} as AllocationEvent | AdmissionDecided },
  actors: { admission: admissionMachine },
  actions: {
    /** Keeps what the answer of this question goes to. */
    hold: (_, _params: { id: number; replyTo: ReplyTo<AllocationAnswer> }) => {},
    reply: (_, _params: { id: number; answer: AllocationAnswer }) => {},
    /** Tells every provider that the pod is not admitted. */
    forget: (_, _params: { uid: string }) => {},
    begin: enqueueActions(
      ({ context, event, enqueue }, { pod, active, replyTo }: Extract<AllocationEvent, { type: 'allocation.admit' }>) => {
        const id = context.lastId + 1;
        const providers = factsOf<CoordinatorFacts>(event).wanted(pod);
        enqueue.assign({ lastId: id });
        perform(enqueue, 'hold', { id, replyTo });
        if (providers.length === 0) {
          perform(enqueue, 'reply', { id, answer: { kind: 'granted' } satisfies AllocationAnswer });
          return;
        }
        enqueue.assign({ open: new Map(context.open).set(id, podName(pod)) });
        enqueue.spawnChild('admission', { id: String(id), input: { id, pod, active, providers } });
      },
    ),
    end: enqueueActions(({ context, enqueue }, { id, answer }: AdmissionDecided) => {
      const open = new Map(context.open);
      open.delete(id);
      enqueue.stopChild(String(id));
      enqueue.assign({ open });
      perform(enqueue, 'reply', { id, answer });
    }),
  },
}).createMachine({
  id: 'coordinator',
  meta: projecting<Context>(({ open }) => ({ asking: some(open.values(), (pod) => pod) })),
  context: { open: new Map(), lastId: 0 },
  initial: 'serving',
  states: {
    serving: {
      meta: {
        reason: 'Serving',
        message: ({ open }: Context) =>
          open.size === 0 ? 'no pod waits for an allocation' : `pods that wait for an allocation: ${open.size}`,
      },
      on: {
        'allocation.admit': { actions: [{ type: 'begin', params: ({ event }) => event }] },
        'allocation.decided': { actions: [{ type: 'end', params: ({ event }) => event }] },
        'allocation.forget': { actions: [{ type: 'forget', params: ({ event }) => ({ uid: event.uid }) }] },
      },
    },
  },
});
