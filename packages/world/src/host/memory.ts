/** What a simulated machine holds its containers' memory by, where its draw says so: cgroup v2 with swap, shared out, and throttles. */

import type { KubeletConfiguration } from '@actorlet/kubelet/machines/config/config.ts';
import type { MemoryControlOfHost } from '@actorlet/kubelet/ports/ports.ts';

const SWAP_BYTES = 2 ** 30;

export function memoryOfHost(throttles: boolean): { memoryControl?: () => MemoryControlOfHost } {
  return throttles ? { memoryControl: () => ({ cgroupVersion: 2, swapController: true, swapBytes: SWAP_BYTES }) } : {};
}
export function memoryConfig(throttles: boolean): Partial<Pick<KubeletConfiguration, 'memorySwap' | 'featureGates'>> {
  return throttles ? { memorySwap: { swapBehavior: 'LimitedSwap' }, featureGates: { MemoryQoS: true } } : {};
}
