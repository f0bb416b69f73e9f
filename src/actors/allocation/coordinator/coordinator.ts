/**
 * State held: questions of the pod manager that are not answered yet.
 * Lost on restart: these questions; the pod manager asks again.
 * Rebuilt from: nothing needed; each provider keeps what it allocated.
 */

import { fromPromise } from 'xstate';
import { admissionMachine, type ProviderQuestion } from '../../../machines/allocation/coordinator/admissionMachine.ts';
import { type CoordinatorFacts, coordinatorMachine } from '../../../machines/allocation/coordinator/coordinatorMachine.ts';
import type { AllocationAnswer, AllocationEvent } from '../../../machines/allocation/messages.ts';
import type { ReplyTo } from '../../../machines/supervision/address.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import { Replies } from '../../supervision/mailbox/replies.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import type { Provider } from '../provider.ts';

type Asked = Pick<Provider, 'address' | 'timeoutMs' | 'wants'>;

/** `providers`: those that this node has, in the order in which they are asked. */
export function coordinatorSpec(providers: readonly Asked[]): ActorSpec<AllocationEvent> {
  const facts: CoordinatorFacts = { wanted: (pod) => providers.filter((p) => p.wants(pod)).map(nameOf) };
  return {
    type: 'actor',
    id: 'coordinator',
    mailbox: { capacity: 4096 },
    start: (ctx) => ({ logic: logicOf(new Coordinator(ctx, providers), () => facts) }),
  };
}

const nameOf = ({ address }: Asked): string => address.path.split('/').at(-1) ?? '';

function logicOf(coordinator: Coordinator, facts: () => CoordinatorFacts) {
  const { replies } = coordinator;
  const admission = provided(admissionMachine, {
    actors: { ask: fromPromise<AllocationAnswer, ProviderQuestion>(({ input, signal }) => coordinator.ask(input, signal)) },
  });
  return provided(
    coordinatorMachine,
    {
      actors: { admission },
      actions: {
        hold: (_, { ask, replyTo }) => replies.hold(ask, replyTo),
        reply: (_, { ask, answer }) => replies.reply(ask, answer),
        forget: (_, { uid }) => coordinator.forget(uid),
      },
    },
    facts,
  );
}

class Coordinator {
  readonly #ctx: ActorCtx<AllocationEvent>;
  readonly #providers: ReadonlyMap<string, Asked>;
  readonly replies = new Replies<AllocationAnswer>();

  constructor(ctx: ActorCtx<AllocationEvent>, providers: readonly Asked[]) {
    this.#ctx = ctx;
    this.#providers = new Map(providers.map((p) => [nameOf(p), p]));
  }

  /** The provider hears that the question is given up as soon as the pod manager gives it up. */
  async ask({ ask, provider, pod, active }: ProviderQuestion, ended: AbortSignal): Promise<AllocationAnswer> {
    const of = this.#providers.get(provider);
    if (of === undefined) return { kind: 'later', why: `there is no provider ${provider}` };
    const question = (replyTo: ReplyTo<AllocationAnswer>) => ({ type: 'allocation.admit', pod, active, replyTo }) as const;
    const signal = AbortSignal.any([ended, this.replies.signal(ask)]);
    const answer = await this.#ctx.registry.ask(of.address, question, { timeoutMs: of.timeoutMs, signal });
    return answer.kind === 'reply' ? answer.value : { kind: 'later', why: answer.reason };
  }

  forget(uid: string): void {
    for (const { address } of this.#providers.values()) this.#ctx.registry.send(address, { type: 'allocation.forget', uid });
  }
}
