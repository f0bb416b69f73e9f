/**
 * State held: which container has which memory of which NUMA nodes alone; whose pod was granted memory and is not in the pod
 * manager's ledger yet.
 * Lost on restart: the last; the coordinator asks again.
 * Rebuilt from: `<root-dir>/memory_manager_state`.
 */

import { fromPromise } from 'xstate';
import { encodeMemoryState, MEMORY_STATE_BYTES_MAX, MEMORY_STATE_FILE, openMemoryState } from '../../../machines/allocation/memory/file.ts';
import type { MemoryLedger, MemoryPlace } from '../../../machines/allocation/memory/machine.ts';
import { memoryMachine } from '../../../machines/allocation/memory/memoryMachine.ts';
import { memoryView } from '../../../machines/allocation/memory/messages.ts';
import type { AllocationAnswer, AllocationEvent, ProviderHints } from '../../../machines/allocation/messages.ts';
import type { LedgerFacts } from '../../../machines/allocation/requests.ts';
import { podsView } from '../../../machines/pods/manager/messages.ts';
import { runtimePodsView } from '../../../machines/runtime/pleg/messages.ts';
import { LazyMoment } from '../../../machines/xstate/facts.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import { Replies } from '../../supervision/mailbox/replies.ts';
import type { ActorCtx, ActorSpec, Registry } from '../../supervision/types.ts';
import { StateFile } from '../stateFile.ts';
import { memoryMetrics } from './metrics.ts';

interface MemoryOptions {
  /** The node's root directory. */
  rootDir: string;
  place: MemoryPlace;
}

const READY_TIMEOUT_MS = 15_000;

export function memorySpec(opts: MemoryOptions): ActorSpec<AllocationEvent> {
  return {
    type: 'actor',
    id: 'memory',
    backoff: { jitter: 0.1 },
    mailbox: { capacity: 1024 },
    ready: { when: (snapshot) => !(snapshot as { matches(state: string): boolean }).matches('loading'), timeoutMs: READY_TIMEOUT_MS },
    start: (ctx) => ({ logic: logicOf(ctx, opts), input: { place: opts.place } }),
  };
}

function logicOf(ctx: ActorCtx<AllocationEvent>, { rootDir, place }: MemoryOptions) {
  const replies = new Replies<AllocationAnswer>();
  const questions = new Replies<ProviderHints>();
  const file = new StateFile(ctx, { rootDir, name: MEMORY_STATE_FILE, bytesMax: MEMORY_STATE_BYTES_MAX, what: 'memory' });
  const metrics = memoryMetrics(ctx.ports.metrics);
  return provided(
    memoryMachine,
    {
      actors: {
        load: fromPromise(async () => opened(await file.read(), { place, file: file.path })),
        save: fromPromise<void, MemoryLedger>(({ input }) => file.write(encodeMemoryState(input))),
      },
      actions: {
        hold: (_, { ask, replyTo }) => replies.hold(ask, replyTo),
        reply: (_, { ask, answer }) => replies.reply(ask, answer),
        holdQuestion: (_, { ask, replyTo }) => questions.hold(ask, replyTo),
        replyHints: (_, { ask, hints }) => questions.reply(ask, hints),
        publish: (_, { ledger }) => ctx.publish(memoryView, ledger),
        count: (_, { replies: answered }) => metrics.answered(answered),
      },
    },
    () => new MemoryMoment(ctx),
  );
}

/** @throws where it must not be gone on with: this actor ends with the reason, and in the end the node. */
function opened(text: string | null, o: { place: MemoryPlace; file: string }): { ledger: MemoryLedger; isNew: boolean } {
  const found = openMemoryState(text, o);
  if (!found.ok) throw new Error(found.message);
  if (found.ledger === null) throw new Error(`${o.file}: it holds no memory`);
  return { ledger: found.ledger, isNew: found.isNew };
}

class MemoryMoment extends LazyMoment implements LedgerFacts {
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
}
