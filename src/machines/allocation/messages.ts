/** What the layer `allocation` is asked and what it publishes; each of its actors is there where it is configured. */

import type { Pod } from '../kube/types.ts';
import { address, type Message, type ReplyTo, viewKey } from '../supervision/address.ts';
import type { CpuSet } from './cpus/cpuSet.ts';
import type { CpuLedger } from './cpus/ledger.ts';

/** What a pod that is about to be let in gets. `later`: nothing is decided, mostly since others still hold what it needs and are on their way out; ask again. */
export type AllocationAnswer = { kind: 'granted' } | { kind: 'refused'; reason: string; message: string } | { kind: 'later'; why: string };

/**
 * To whoever hands something out: all that this pod's containers need of it, or nothing. May be asked again at any time,
 * and is told the same then. Answered when it is on disk.
 */
export type AllocationEvent = Message &
  (
    | {
        type: 'allocation.admit';
        pod: Pod;
        /** Pods that may have something although the view of pods does not show them yet: theirs is not given away. */
        active: ReadonlySet<string>;
        replyTo: ReplyTo<AllocationAnswer>;
      }
    /** It was not let in after all. */
    | { type: 'allocation.forget'; uid: string }
  );

export interface CpusView {
  ledger: CpuLedger;
  /** Containers with CPUs of their own have no quota of time on them (gate DisableCPUQuotaWithExclusiveCPUs). */
  quotaLifted: boolean;
  /** What containers can have alone, taken or free. */
  allocatable: CpuSet;
}

export const allocationAddr = {
  /** With cpuManagerPolicy static only. */
  cpus: address<AllocationEvent>('node/allocation/cpus'),
} as const;

export const allocationView = {
  /** Who has which CPUs alone; never published under policy none. */
  cpus: viewKey<CpusView>('cpus'),
} as const;
