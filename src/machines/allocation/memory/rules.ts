/** The memory manager's ledger, as `holdings` works with it. Pure. */
import type { LedgerRules } from '../ledgerRules.ts';
import { memoryHintsOf } from './hints.ts';
import { grantMemory, type MemoryCounts, releaseMemory, releaseUnnamedMemory, sameMemory, wantsMemory } from './ledger.ts';
import type { MemoryLedger, MemoryPlace } from './machine.ts';

export function memoryRules({ aligned }: MemoryPlace): LedgerRules<MemoryLedger, MemoryCounts> {
  return {
    grant: grantMemory,
    hints: memoryHintsOf,
    release: releaseMemory,
    releaseUnnamed: releaseUnnamedMemory,
    wants: wantsMemory,
    same: sameMemory,
    aligned,
  };
}
