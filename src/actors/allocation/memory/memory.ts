/**
 * State held: which container has which memory of which NUMA nodes alone; whose pod was granted memory and is not in the pod
 * manager's ledger yet.
 * Lost on restart: the last; the coordinator asks again.
 * Rebuilt from: `<root-dir>/memory_manager_state`.
 */

import { encodeMemoryState, MEMORY_STATE_BYTES_MAX, MEMORY_STATE_FILE, openMemoryState } from '../../../machines/allocation/memory/file.ts';
import type { MemoryCounts } from '../../../machines/allocation/memory/ledger.ts';
import type { MemoryLedger, MemoryPlace } from '../../../machines/allocation/memory/machine.ts';
import { memoryMachine } from '../../../machines/allocation/memory/memoryMachine.ts';
import { memoryView } from '../../../machines/allocation/memory/messages.ts';
import type { AllocationEvent } from '../../../machines/allocation/messages.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { LEDGER_ACTOR, LedgerMoment, ledgerEffects } from '../ledgerActor.ts';
import { StateFile } from '../stateFile.ts';
import { memoryMetrics } from './metrics.ts';

/** How often it is looked whose memory is free again: that of init containers is once a later container was created. */
const TIDY_EVERY_MS = 10_000;

interface MemoryOptions {
  /** The node's root directory. */
  rootDir: string;
  place: MemoryPlace;
}

export function memorySpec(opts: MemoryOptions): ActorSpec<AllocationEvent> {
  return {
    ...LEDGER_ACTOR,
    id: 'memory',
    start: (ctx) => ({ logic: logicOf(ctx, opts), input: { place: opts.place, everyMs: TIDY_EVERY_MS } }),
  };
}

function logicOf(ctx: ActorCtx<AllocationEvent>, { rootDir, place }: MemoryOptions) {
  const metrics = memoryMetrics(ctx.ports.metrics);
  const effects = ledgerEffects<MemoryLedger, MemoryCounts>({
    file: new StateFile(ctx, { rootDir, name: MEMORY_STATE_FILE, bytesMax: MEMORY_STATE_BYTES_MAX, what: 'memory' }),
    open: (text, file) => openMemoryState(text, { place, file }),
    encode: encodeMemoryState,
    publish: (ledger) => ctx.publish(memoryView, ledger),
    count: (replies) => metrics.answered(replies),
    sayReleased: () => undefined,
  });
  return provided(memoryMachine, effects, () => new LedgerMoment(ctx));
}
