/** Statechart of the memory manager: a ledger of memory. */

import { projecting } from '../../xstate/projection.ts';
import { keeping, LEDGER_ON, type LedgerContext, ledgerSetup, loading, noLedger, shownLedger } from '../ledgerMachine.ts';
import type { MemoryCounts } from './ledger.ts';
import type { MemoryLedger, MemoryPlace } from './machine.ts';
import { memoryRules } from './rules.ts';

export const memoryMachine = ledgerSetup<MemoryLedger, MemoryCounts, MemoryPlace>(memoryRules).createMachine({
  id: 'memory',
  meta: projecting<LedgerContext<MemoryLedger, MemoryCounts, MemoryPlace>>((c) => ({
    ...shownLedger(c, 'podsWithMemory'),
    error: c.saveError,
  })),
  context: ({ input }) => noLedger(input),
  initial: 'loading',
  on: LEDGER_ON,
  states: { loading: loading<MemoryLedger, 'settled'>('memory', 'settled'), ...keeping<MemoryLedger>('memory') },
});
