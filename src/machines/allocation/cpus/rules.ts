/** The CPU manager's ledger, as `holdings` works with it. Pure. */
import type { LedgerRules } from '../ledgerRules.ts';
import { cpuHints } from './hints.ts';
import { type CpuCounts, type CpuLedger, type CpuPlace, grant, release, releaseUnnamed, sameLedger } from './ledger.ts';
import { wantsExclusive } from './policy.ts';

export function cpuRules(place: CpuPlace): LedgerRules<CpuLedger, CpuCounts> {
  return {
    grant: (ledger, pod, { affinity }) => grant(ledger, pod, place, affinity),
    hints: (ledger, pod, container) => cpuHints(ledger, pod, { container, place }),
    release,
    releaseUnnamed,
    wants: wantsExclusive,
    same: sameLedger,
    aligned: place.aligned === true,
  };
}
