/** What the eviction manager shows of pressure on the node. */
import type { NodePressure } from '../../nodeFacts.ts';
import { viewKey } from '../../supervision/address.ts';
import type { EvictionLedger } from './pass.ts';

export const EVICTED = 'Evicted';

/** What the node is short of, and since when: what its status and admission go by. */
export interface PressureView {
  pressures: readonly NodePressure[];
  /** For the next incarnation of the eviction manager. */
  ledger: EvictionLedger;
}

/** Absent where no eviction threshold is set, and before the first look. */
export const pressureView = viewKey<PressureView>('pressure');
