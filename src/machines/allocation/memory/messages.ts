/** What is said to and published by the memory manager. It exists with `memoryManagerPolicy: Static` only. */
import { address, viewKey } from '../../supervision/address.ts';
import type { AllocationEvent } from '../messages.ts';
import type { MemoryLedger } from './machine.ts';

export const memoryAddr = address<AllocationEvent>('node/allocation/memory');

/** Containers that have memory alone; never published under policy None. */
export const memoryView = viewKey<MemoryLedger>('memory');
