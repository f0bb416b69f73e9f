/** Which CPUs there are and how they lie: threads of cores, cores of sockets, the NUMA nodes and the caches that they belong to. Pure. */
import { type CpuSet, cpuSet } from '../cpuSet.ts';

/** One online CPU as the kernel tells of it: a thread of a core. */
export interface CpuInfo {
  id: number;
  /** As in `physical_package_id`. */
  socket: number;
  /** All online threads of its core, this one among them. */
  siblings: CpuSet;
  /** Its NUMA node. */
  node: number;
  /** The last-level cache that it shares with a part of its NUMA node. Absent: there is none. */
  cache?: number;
}

export interface Cpu {
  id: number;
  /** The smallest CPU of its core: the kernel's own numbers of cores repeat from socket to socket. */
  core: number;
  socket: number;
  node: number;
  /** Without a cache of a part of the node: the number of the socket, as in the reference. */
  cache: number;
}
export interface Topology {
  /** By number. */
  readonly cpus: readonly Cpu[];
}

export function topologyOf(infos: readonly CpuInfo[]): Topology {
  const cpus = infos.map(({ id, socket, siblings, node, cache = socket }) => ({
    id,
    core: Math.min(id, ...siblings),
    socket,
    node,
    cache,
  }));
  return { cpus: cpus.sort((a, b) => a.id - b.id) };
}

export function allCpus({ cpus }: Topology): CpuSet {
  return cpuSet(cpus.map((c) => c.id));
}
export type Level = 'socket' | 'node' | 'cache' | 'core';

/** Numbers of the units of a level, ascending. */
export function unitsOf({ cpus }: Topology, level: Level): readonly number[] {
  return cpuSet(cpus.map((c) => c[level]));
}
export function countOf(topology: Topology, level: Level): number {
  return unitsOf(topology, level).length;
}
/** CPUs of a unit as the reference counts them: all CPUs by all units, rounded down. Offline CPUs make it less than some have. */
export function averageOf(topology: Topology, level: Level): number {
  return Math.floor(topology.cpus.length / Math.max(1, countOf(topology, level)));
}
/** Threads of a core, as the reference counts them. At least 1. */
export function threadsPerCore(topology: Topology): number {
  return Math.max(1, averageOf(topology, 'core'));
}

/** CPUs of `set` that lie in one of these units. */
export function within({ cpus }: Topology, level: Level, { units, set }: { units: readonly number[]; set: CpuSet }): CpuSet {
  const [wanted, free] = [new Set(units), new Set(set)];
  return cpus.filter((c) => free.has(c.id) && wanted.has(c[level])).map((c) => c.id);
}

/** With all other threads of their cores. */
export function wholeCoresOf({ cpus }: Topology, set: CpuSet): CpuSet {
  const some = new Set(set);
  const cores = new Set(cpus.filter((c) => some.has(c.id)).map((c) => c.core));
  return cpus.filter((c) => cores.has(c.core)).map((c) => c.id);
}
