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
import type { AllocationEvent } from '../../../machines/allocation/messages.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { LEDGER_ACTOR, LedgerMoment, ledgerOf, ledgerReplies } from '../ledgerActor.ts';
import { StateFile } from '../stateFile.ts';
import { memoryMetrics } from './metrics.ts';

interface MemoryOptions {
  /** The node's root directory. */
  rootDir: string;
  place: MemoryPlace;
}

export function memorySpec(opts: MemoryOptions): ActorSpec<AllocationEvent> {
  return {
    ...LEDGER_ACTOR,
    id: 'memory',
    start: (ctx) => ({ logic: logicOf(ctx, opts), input: { place: opts.place } }),
  };
}

function logicOf(ctx: ActorCtx<AllocationEvent>, { rootDir, place }: MemoryOptions) {
  const file = new StateFile(ctx, { rootDir, name: MEMORY_STATE_FILE, bytesMax: MEMORY_STATE_BYTES_MAX, what: 'memory' });
  const metrics = memoryMetrics(ctx.ports.metrics);
  return provided(
    memoryMachine,
    {
      actors: {
        load: fromPromise(async () => ledgerOf(openMemoryState(await file.read(), { place, file: file.path }), file.path)),
        save: fromPromise<void, MemoryLedger>(({ input }) => file.write(encodeMemoryState(input))),
      },
      actions: {
        ...ledgerReplies(),
        publish: (_, { ledger }) => ctx.publish(memoryView, ledger),
        count: (_, { replies: answered }) => metrics.answered(answered),
      },
    },
    () => new LedgerMoment(ctx),
  );
}
