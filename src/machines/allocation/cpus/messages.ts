/** What is said to and published by the CPU manager. It exists with `cpuManagerPolicy: static` only. */

import { address, viewKey } from '../../supervision/address.ts';
import type { CpuSet } from '../cpuSet.ts';
import type { AllocationEvent } from '../messages.ts';
import type { CpuLedger } from './ledger.ts';

export interface CpusView {
  ledger: CpuLedger;
  /** Containers with CPUs of their own have no quota of time on them (gate DisableCPUQuotaWithExclusiveCPUs). */
  quotaLifted: boolean;
  /** What containers can have alone, taken or free. */
  allocatable: CpuSet;
}

export const cpusAddr = address<AllocationEvent>('node/allocation/cpus');

/** Containers that have CPUs alone; never published under policy none. */
export const cpusView = viewKey<CpusView>('cpus');
