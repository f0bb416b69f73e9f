/** The CPUs of a simulated machine whose node allocates them, and which of them it may allocate. */

import { formatCpuSet } from '../../../machines/allocation/cpuSet.ts';
import type { CpuInfo } from '../../../machines/allocation/cpus/topology.ts';
import type { KubeletConfiguration } from '../../../machines/config/config.ts';
import type { CpuTuning, NodeTuning } from '../node/nodeTuning.ts';
import { memoryConfig } from './memory.ts';

/** Where nobody hands them out. */
export const CPUS = 4;

export function cpusOfHost(tuning: CpuTuning | null): { cpus?: () => CpuInfo[] } {
  if (tuning === null) return {};
  const { count, threads, sockets } = tuning;
  const cores = count / threads;
  const all = Array.from({ length: count }, (_, id) => id);
  const infos = all.map((id): CpuInfo => {
    const socket = Math.floor(((id % cores) * sockets) / cores);
    return { id, socket, node: socket, siblings: all.filter((other) => other % cores === id % cores) };
  });
  return { cpus: () => infos };
}

export function kubeReservedOf({ cgroups, cpus }: Pick<NodeTuning, 'cgroups' | 'cpus'>): KubeletConfiguration['kubeReserved'] {
  return { ...(cgroups === null ? {} : { memory: '256Mi' }), ...(cpus?.byAmount === true ? { cpu: '500m' } : {}) };
}

/** `beside`: what of the configuration belongs to others, whose feature gates stay on. */
export function cpusConfig(tuning: NodeTuning, beside: Partial<KubeletConfiguration>): Partial<KubeletConfiguration> {
  const { cpus, throttles } = tuning;
  if (cpus === null) return {};
  const { reserved, byAmount, options, everyMs } = cpus;
  return {
    cpuManagerPolicy: 'static',
    cpuManagerPolicyOptions: Object.fromEntries(options.map((option) => [option, 'true'])),
    cpuManagerReconcilePeriod: everyMs,
    kubeReserved: kubeReservedOf(tuning),
    reservedSystemCPUs: byAmount ? '' : formatCpuSet(reserved),
    featureGates: { ...memoryConfig(throttles).featureGates, ...beside.featureGates, CPUManagerPolicyAlphaOptions: true },
  };
}
