/**
 * State held: questions of the pod manager that are not answered yet; what the topology manager decided about the last pods.
 * Lost on restart: both; the pod manager asks again.
 * Rebuilt from: nothing needed; each provider keeps what it allocated.
 */

import { fromPromise } from 'xstate';
import {
  admissionMachine,
  type HintsQuestion,
  type KeepQuestion,
  type ProviderQuestion,
} from '../../../machines/allocation/coordinator/admissionMachine.ts';
import { type CoordinatorFacts, coordinatorMachine } from '../../../machines/allocation/coordinator/coordinatorMachine.ts';
import type { Weighed } from '../../../machines/allocation/coordinator/decision.ts';
import { topologyView } from '../../../machines/allocation/coordinator/messages.ts';
import type { TopologyPlan } from '../../../machines/allocation/coordinator/topologyPolicy.ts';
import type { AllocationAnswer, AllocationEvent, ProviderHints } from '../../../machines/allocation/messages.ts';
import type { ReplyTo } from '../../../machines/supervision/address.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import { Replies } from '../../supervision/mailbox/replies.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import type { Provider } from '../provider.ts';
import { topologyMetrics } from './metrics.ts';

type Asked = Pick<Provider, 'address' | 'timeoutMs' | 'wants' | 'hints' | 'drafts'>;

/** `providers`: those that this node has, in the order in which they are asked. `plan` null: topology manager policy none. */
export function coordinatorSpec(providers: readonly Asked[], plan: TopologyPlan | null): ActorSpec<AllocationEvent> {
  const facts: CoordinatorFacts = { wanted: (pod) => providers.filter((p) => p.wants(pod)).map(nameOf), plan };
  return {
    type: 'actor',
    id: 'coordinator',
    mailbox: { capacity: 4096 },
    start: (ctx) => ({ logic: logicOf(new Coordinator(ctx, providers), () => facts) }),
  };
}

const nameOf = ({ address }: Asked): string => address.path.split('/').at(-1) ?? '';

function logicOf(coordinator: Coordinator, facts: () => CoordinatorFacts) {
  const { replies, ctx } = coordinator;
  const metrics = topologyMetrics(ctx.ports.metrics);
  const { plan } = facts();
  const beganMs = new Map<number, number>();
  metrics.begin(plan);
  const admission = provided(admissionMachine, {
    actors: {
      ask: fromPromise<AllocationAnswer, ProviderQuestion>(({ input, signal }) => coordinator.ask(input, signal)),
      keep: fromPromise<AllocationAnswer, KeepQuestion>(({ input, signal }) => coordinator.keep(input, signal)),
      weigh: fromPromise<readonly Weighed[], HintsQuestion>(({ input, signal }) => coordinator.weigh(input, signal)),
    },
  });
  return provided(
    coordinatorMachine,
    {
      actors: { admission },
      actions: {
        hold: (_, { ask, replyTo }) => {
          beganMs.set(ask, ctx.ports.clock.monoMs());
          replies.hold(ask, replyTo);
        },
        reply: (_, { ask, answer }) => replies.reply(ask, answer),
        forget: (_, { uid }) => coordinator.forget(uid),
        count: (_, { ask, answer, pod, decisions }) => {
          const nowMs = ctx.ports.clock.monoMs();
          metrics.answered({ plan, pod, answer, decisions, tookMs: nowMs - (beganMs.get(ask) ?? nowMs) });
          beganMs.delete(ask);
        },
        publish: (_, { decided }) => ctx.publish(topologyView, decided),
      },
    },
    facts,
  );
}

class Coordinator {
  readonly ctx: ActorCtx<AllocationEvent>;
  readonly replies = new Replies<AllocationAnswer>();
  readonly #providers: ReadonlyMap<string, Asked>;

  constructor(ctx: ActorCtx<AllocationEvent>, providers: readonly Asked[]) {
    this.ctx = ctx;
    this.#providers = new Map(providers.map((p) => [nameOf(p), p]));
  }

  /** Asks a provider, as a draft where it can. The provider hears that the pod manager gave the question up. */
  async ask({ provider, ...o }: ProviderQuestion, ended: AbortSignal): Promise<AllocationAnswer> {
    const of = this.#providers.get(provider);
    if (of === undefined) return { kind: 'later', why: `there is no provider ${provider}` };
    return this.#admit(of, { ...o, ...(of.drafts === true ? { draft: true as const } : {}) }, ended);
  }

  /** A provider that has begun anew since its draft may answer otherwise. */
  async keep({ providers, ...o }: KeepQuestion, ended: AbortSignal): Promise<AllocationAnswer> {
    const drafted = providers.flatMap((name) => this.#providers.get(name) ?? []).filter((of) => of.drafts === true);
    const answers = await Promise.all(drafted.map((of) => this.#admit(of, o, ended)));
    return answers.find(({ kind }) => kind !== 'granted') ?? { kind: 'granted' };
  }

  async #admit(
    of: Asked,
    { ask, ...o }: Omit<KeepQuestion, 'providers'> & { draft?: true },
    ended: AbortSignal,
  ): Promise<AllocationAnswer> {
    const question = (replyTo: ReplyTo<AllocationAnswer>) => ({ type: 'allocation.admit', ...o, replyTo }) as const;
    const signal = AbortSignal.any([ended, this.replies.signal(ask)]);
    const answer = await this.ctx.registry.ask(of.address, question, { timeoutMs: of.timeoutMs, signal });
    return answer.kind === 'reply' ? answer.value : { kind: 'later', why: answer.reason };
  }

  /** Rejects where one of them does not answer. */
  weigh({ ask, providers, pod, container, active }: HintsQuestion, ended: AbortSignal): Promise<Weighed[]> {
    const signal = AbortSignal.any([ended, this.replies.signal(ask)]);
    const question = (replyTo: ReplyTo<ProviderHints>) => ({ type: 'allocation.hints', pod, container, active, replyTo }) as const;
    const asked = providers.flatMap((name) => {
      const of = this.#providers.get(name);
      return of?.hints === true ? [of] : [];
    });
    return Promise.all(
      asked.map(async (of) => {
        const answer = await this.ctx.registry.ask(of.address, question, { timeoutMs: of.timeoutMs, signal });
        if (answer.kind !== 'reply') throw new Error(answer.reason);
        return { provider: nameOf(of), hints: answer.value };
      }),
    );
  }

  forget(uid: string): void {
    for (const { address } of this.#providers.values()) this.ctx.registry.send(address, { type: 'allocation.forget', uid });
  }
}
