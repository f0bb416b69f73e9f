/** The providers of allocation, in the order in which they are asked, as in the reference: claims, devices, CPUs, memory. */
import { claimsProvider } from './claims/provider.ts';
import { cpusProvider } from './cpus/provider.ts';
import { devicesProvider } from './devices/provider.ts';
import { memoryProvider } from './memory/provider.ts';
import type { Provider } from './provider.ts';

export const PROVIDERS: readonly Provider[] = [claimsProvider, devicesProvider, cpusProvider, memoryProvider];
