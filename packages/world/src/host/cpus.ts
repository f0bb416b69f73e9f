/** The CPUs of a simulated machine whose node allocates them, and which of them it may allocate. */

import { formatCpuSet } from '@actorlet/kubelet/machines/allocation/cpuSet.ts';
import type { CpuInfo } from '@actorlet/kubelet/machines/allocation/cpus/topology.ts';
import type { NumaNode } from '@actorlet/kubelet/machines/allocation/numaNode.ts';
import type { KubeletConfiguration } from '@actorlet/kubelet/machines/config/config.ts';
import { defaultKubeletConfiguration } from '@actorlet/kubelet/machines/config/defaults.ts';
import { reservedOf } from '@actorlet/kubelet/machines/config/reservations.ts';
import type { CpuTuning, NodeTuning } from '../node/nodeTuning.ts';
import { HUGE_PAGES, MEMORY_BYTES } from '../paths.ts';

/** Where nobody hands them out. */
export const CPUS = 4;

export function cpusOfHost(tuning: CpuTuning | null): { cpus?: () => CpuInfo[]; numaNodes?: () => NumaNode[] } {
  if (tuning === null) return {};
  const { count, threads, sockets, nodes, caches } = tuning;
  const cores = count / threads;
  const all = Array.from({ length: count }, (_, id) => id);
  const infos = all.map((id): CpuInfo => {
    const part = (units: number): number => Math.floor(((id % cores) * units) / cores);
    const siblings = all.filter((other) => other % cores === id % cores);
    return { id, socket: part(sockets), node: part(nodes), siblings, ...(caches === 0 ? {} : { cache: part(caches) }) };
  });
  return { cpus: () => infos, numaNodes: () => numaNodesOf(tuning) };
}

/** Each with its part of the memory, and of the huge pages. */
export function numaNodesOf({ nodes }: Pick<CpuTuning, 'nodes'>): NumaNode[] {
  const ids = Array.from({ length: nodes }, (_, id) => id);
  return ids.map((id) => ({
    id,
    memoryBytes: MEMORY_BYTES / nodes,
    hugePages: [{ pageBytes: HUGE_PAGE_BYTES, count: HUGE_PAGES.count / nodes }],
    distances: ids.map((other) => (other === id ? 10 : 21)),
  }));
}
const HUGE_PAGE_BYTES = 2 ** 21;

export function kubeReservedOf({ cgroups, cpus }: Pick<NodeTuning, 'cgroups' | 'cpus'>): KubeletConfiguration['kubeReserved'] {
  const memory = cgroups !== null || cpus?.numa?.memory === true;
  return { ...(memory ? { memory: '256Mi' } : {}), ...(cpus?.byAmount === true ? { cpu: '500m' } : {}) };
}

export function cpusConfig(tuning: NodeTuning): Partial<KubeletConfiguration> {
  const { cpus } = tuning;
  if (cpus === null) return {};
  const { reserved, byAmount, options, everyMs } = cpus;
  return {
    cpuManagerPolicy: 'static',
    cpuManagerPolicyOptions: Object.fromEntries(options.map((option) => [option, 'true'])),
    cpuManagerReconcilePeriod: everyMs,
    kubeReserved: kubeReservedOf(tuning),
    reservedSystemCPUs: byAmount ? '' : formatCpuSet(reserved),
    ...numaConfig(tuning),
    featureGates: { CPUManagerPolicyAlphaOptions: true },
  };
}

function numaConfig(tuning: NodeTuning): Partial<KubeletConfiguration> {
  const { cpus, eviction } = tuning;
  if (cpus === null || cpus.numa === null) return {};
  const { policy, scope, memory } = cpus.numa;
  const aligned = { topologyManagerPolicy: policy, topologyManagerScope: scope } as const;
  if (!memory) return aligned;
  const evictionHard = eviction?.evictionHard ?? {};
  const reservations = { ...defaultKubeletConfiguration(), kubeReserved: kubeReservedOf(tuning), evictionHard, ignoreEviction: false };
  const kept = Number(reservedOf(reservations, 'memory', BigInt(MEMORY_BYTES)));
  const part = Math.floor(kept / cpus.nodes);
  const reservedMemory = numaNodesOf(cpus).map(({ id }) => ({
    numaNode: id,
    limits: { memory: String(id === 0 ? kept - part * (cpus.nodes - 1) : part) },
  }));
  return { ...aligned, memoryManagerPolicy: 'Static', reservedMemory };
}
