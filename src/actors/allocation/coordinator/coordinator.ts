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
import { reading } from '../../../machines/xstate/facts.ts';
import { providing } from '../../../machines/xstate/provide.ts';
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
    start: (ctx) => ({ logic: reading(machineOf(new Coordinator(ctx, providers)), () => facts) }),
  };
}

const nameOf = ({ address }: Asked): string => address.path.split('/').at(-1) ?? '';

function machineOf(coordinator: Coordinator) {
  const admission = providing(admissionMachine, {
    actors: { ask: fromPromise<AllocationAnswer, ProviderQuestion>(({ input, signal }) => coordinator.ask(input, signal)) },
  });
  return providing(coordinatorMachine, {
    actors: { admission },
    actions: {
      hold: (_, { id, replyTo }) => coordinator.hold(id, replyTo),
      reply: (_, { id, answer }) => coordinator.reply(id, answer),
      forget: (_, { uid }) => coordinator.forget(uid),
    },
  });
}

class Coordinator {
  readonly #ctx: ActorCtx<AllocationEvent>;
  readonly #providers: ReadonlyMap<string, Asked>;
  readonly #replies = new Map<number, ReplyTo<AllocationAnswer>>();

  constructor(ctx: ActorCtx<AllocationEvent>, providers: readonly Asked[]) {
    this.#ctx = ctx;
    this.#providers = new Map(providers.map((p) => [nameOf(p), p]));
  }

  hold(id: number, replyTo: ReplyTo<AllocationAnswer>): void {
    this.#replies.set(id, replyTo);
  }

  reply(id: number, answer: AllocationAnswer): void {
    this.#replies.get(id)?.(answer);
    this.#replies.delete(id);
  }

  /** The provider hears that the question is given up as soon as the pod manager gives it up. */
  async ask({ id, provider, pod, active }: ProviderQuestion, ended: AbortSignal): Promise<AllocationAnswer> {
    const of = this.#providers.get(provider);
    const givenUp = this.#replies.get(id)?.signal;
    if (of === undefined || givenUp === undefined) return { kind: 'later', why: `there is no provider ${provider}` };
    const question = (replyTo: ReplyTo<AllocationAnswer>) => ({ type: 'allocation.admit', pod, active, replyTo }) as const;
    const signal = AbortSignal.any([ended, givenUp]);
    const answer = await this.#ctx.registry.ask(of.address, question, { timeoutMs: of.timeoutMs, signal });
    return answer.kind === 'reply' ? answer.value : { kind: 'later', why: answer.reason };
  }

  forget(uid: string): void {
    for (const { address } of this.#providers.values()) this.#ctx.registry.send(address, { type: 'allocation.forget', uid });
  }
}
