/** Which CPUs there are and how they lie: threads of cores, cores of sockets, and the memory nodes that they belong to. Pure. */
import { type CpuSet, cpuSet } from './cpuSet.ts';

/** One online CPU as the kernel tells of it: a thread of a core. */
export interface CpuInfo {
  id: number;
  /** As in `physical_package_id`. */
  socket: number;
  /** All online threads of its core, this one among them. */
  siblings: CpuSet;
  /** Its memory (NUMA) node. */
  node: number;
}

export interface Cpu {
  id: number;
  /** The smallest CPU of its core: the kernel's own numbers of cores repeat from socket to socket. */
  core: number;
  socket: number;
  node: number;
}
export interface Topology {
  /** By number. */
  readonly cpus: readonly Cpu[];
}

export function topologyOf(infos: readonly CpuInfo[]): Topology {
  const cpus = infos.map(({ id, socket, siblings, node }) => ({ id, core: Math.min(id, ...siblings), socket, node }));
  return { cpus: cpus.sort((a, b) => a.id - b.id) };
}

export function allCpus({ cpus }: Topology): CpuSet {
  return cpuSet(cpus.map((c) => c.id));
}
const LEVELS = ['socket', 'node', 'core'] as const;
export type Level = (typeof LEVELS)[number];

export function countOf({ cpus }: Topology, level: Level): number {
  return new Set(cpus.map((c) => c[level])).size;
}
/** Threads of a core, as the reference counts them: CPUs by cores, on average. At least 1. */
export function threadsPerCore(topology: Topology): number {
  return Math.max(1, Math.floor(topology.cpus.length / Math.max(1, countOf(topology, 'core'))));
}
