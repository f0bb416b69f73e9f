/** What the actors have in common that keep a ledger of what containers have alone: CPUs, memory. */
import { fromPromise } from 'xstate';
import type { StateOpened } from '../../machines/allocation/ledgerRules.ts';
import type { AllocationAnswer, AllocationEvent, ProviderHints } from '../../machines/allocation/messages.ts';
import type { GrantReply, LedgerFacts } from '../../machines/allocation/requests.ts';
import { waitingPodsView } from '../../machines/pods/admission/messages.ts';
import { podsView } from '../../machines/pods/manager/messages.ts';
import { runtimePodsView } from '../../machines/runtime/pleg/messages.ts';
import type { ReplyTo } from '../../machines/supervision/address.ts';
import { LazyMoment } from '../../machines/xstate/facts.ts';
import { Replies } from '../supervision/mailbox/replies.ts';
import type { ActorCtx, ActorSpec, Registry } from '../supervision/types.ts';
import type { StateFile } from './stateFile.ts';

const READY_TIMEOUT_MS = 15_000;

/** Ready once what was allocated before is read. */
export const LEDGER_ACTOR = {
  type: 'actor',
  backoff: { jitter: 0.1 },
  mailbox: { capacity: 1024 },
  ready: { when: (snapshot) => !(snapshot as { matches(state: string): boolean }).matches('loading'), timeoutMs: READY_TIMEOUT_MS },
} as const satisfies Partial<ActorSpec<AllocationEvent>>;

export class LedgerMoment extends LazyMoment implements LedgerFacts {
  readonly #registry: Registry;

  constructor({ ports, registry }: ActorCtx<AllocationEvent>) {
    super(ports);
    this.#registry = registry;
  }
  get pods(): LedgerFacts['pods'] {
    return this.#registry.read(podsView)?.value;
  }
  get listing(): LedgerFacts['listing'] {
    return this.#registry.read(runtimePodsView)?.value;
  }
  get waiting(): LedgerFacts['waiting'] {
    return this.#registry.read(waitingPodsView)?.value;
  }
}

interface Held<T> {
  ask: number;
  replyTo: ReplyTo<T>;
}

/** What one resource does with its ledger. */
export interface LedgerIo<L, C> {
  file: StateFile;
  open(text: string | null, path: string): StateOpened<L>;
  encode(ledger: L): string;
  publish(ledger: L): void;
  count(replies: readonly GrantReply<C>[]): void;
  /** Pods that are over held some of it. */
  sayReleased(uids: readonly string[]): void;
}

/** The effects of a ledger's statechart. */
export function ledgerEffects<L, C>(io: LedgerIo<L, C>) {
  const replies = new Replies<AllocationAnswer>();
  const questions = new Replies<ProviderHints>();
  return {
    actors: {
      load: fromPromise(async () => ledgerOf(io.open(await io.file.read(), io.file.path), io.file.path)),
      save: fromPromise<void, L>(({ input }) => io.file.write(io.encode(input))),
    },
    actions: {
      hold: (_: unknown, { ask, replyTo }: Held<AllocationAnswer>) => replies.hold(ask, replyTo),
      reply: (_: unknown, { ask, answer }: { ask: number; answer: AllocationAnswer }) => replies.reply(ask, answer),
      holdQuestion: (_: unknown, { ask, replyTo }: Held<ProviderHints>) => questions.hold(ask, replyTo),
      replyHints: (_: unknown, { ask, hints }: { ask: number; hints: ProviderHints }) => questions.reply(ask, hints),
      publish: (_: unknown, { ledger }: { ledger: L }) => io.publish(ledger),
      sayReleased: (_: unknown, { uids }: { uids: readonly string[] }) => io.sayReleased(uids),
      count: (_: unknown, { replies: answered }: { replies: readonly GrantReply<C>[] }) => io.count(answered),
    },
  };
}

/** @throws where it must not be gone on with: the actor ends with the reason, and in the end the node. */
function ledgerOf<L>(opened: StateOpened<L>, file: string): { ledger: L; isNew: boolean } {
  if (!opened.ok) throw new Error(opened.message);
  if (opened.ledger === null) throw new Error(`${file}: it is of a policy that allocates nothing`);
  return { ledger: opened.ledger, isNew: opened.isNew };
}
