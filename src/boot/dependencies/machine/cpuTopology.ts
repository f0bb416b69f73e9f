/** The online CPUs, the NUMA nodes and how they lie, as the kernel tells below `/sys/devices/system`. These files answer at once. */
import { readdirSync, readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { parseCpuSet } from '../../../machines/allocation/cpuSet.ts';
import type { CpuInfo } from '../../../machines/allocation/cpus/topology.ts';
import type { NumaNode } from '../../../machines/allocation/numaNode.ts';

const SYSTEM = '/sys/devices/system';
/** Caches above this level are shared by cores. */
const OWN_LEVEL = 2;

/** @throws naming the file that does not tell. */
export function readCpus(system = SYSTEM): CpuInfo[] {
  const read = (path: string): string => readFileSync(`${system}/${path}`, 'utf8').trim();
  const list = (path: string): readonly number[] => {
    const text = read(path);
    const cpus = parseCpuSet(text);
    if (cpus === null) throw new Error(`${system}/${path}: ${JSON.stringify(text)} is no list of CPUs`);
    return cpus;
  };
  const nodeOf = new Map<number, number>();
  for (const id of nodeIds(system)) for (const cpu of list(`node/node${id}/cpulist`)) nodeOf.set(cpu, id);
  const cpus = list('cpu/online').map((id): CpuInfo => {
    const topology = `cpu/cpu${id}/topology`;
    // Not known: -1. Machines without sockets are one.
    const socket = Math.max(0, Number(read(`${topology}/physical_package_id`)));
    if (!Number.isInteger(socket)) throw new Error(`${system}/${topology}/physical_package_id is no number`);
    return { id, socket, siblings: list(`${topology}/thread_siblings_list`), node: nodeOf.get(id) ?? socket };
  });
  const inNode = Map.groupBy(cpus, (c) => c.node);
  return cpus.map((cpu) => {
    const cache = partCache(`${system}/cpu/cpu${cpu.id}/cache`, inNode.get(cpu.node)?.length ?? 0);
    return cache === undefined ? cpu : { ...cpu, cache };
  });
}

/** The cache above level 2 that a part of the NUMA node shares: not all `nodeCpus`. Virtual machines may tell of no caches. */
function partCache(folder: string, nodeCpus: number): number | undefined {
  for (const index of named(folder, /^index\d+$/).sort()) {
    const read = (file: string): string => readFileSync(`${folder}/${index}/${file}`, 'utf8').trim();
    try {
      if (Number(read('level')) > OWN_LEVEL && parseCpuSet(read('shared_cpu_list'))?.length !== nodeCpus) return Number(read('id'));
    } catch {
      return undefined;
    }
  }
  return undefined;
}

/** Never empty: a kernel without NUMA nodes has one with all memory for each socket. @throws naming what does not tell. */
export function readNumaNodes(system = SYSTEM): NumaNode[] {
  const ids = nodeIds(system);
  if (ids.length === 0) {
    const sockets = [...new Set(readCpus(system).map((c) => c.socket))].sort((a, b) => a - b);
    return sockets.map((id) => ({ id, memoryBytes: Math.floor(totalmem() / sockets.length), hugePages: [], distances: null }));
  }
  return ids.map((id) => numaNode(`${system}/node/node${id}`, id));
}

/** A node may have no memory, and virtual machines may tell of no distances. */
function numaNode(folder: string, id: number): NumaNode {
  const read = (file: string): string => {
    try {
      return readFileSync(`${folder}/${file}`, 'utf8').trim();
    } catch {
      return '';
    }
  };
  const kilobytes = /MemTotal:\s*(\d+) kB/.exec(read('meminfo'))?.[1] ?? '0';
  const pages = named(`${folder}/hugepages`, /^hugepages-\d+kB$/).map((name) => ({
    pageBytes: Number.parseInt(name.slice('hugepages-'.length), 10) * 1024,
    count: Number.parseInt(read(`hugepages/${name}/nr_hugepages`), 10) || 0,
  }));
  const distances = read('distance');
  return {
    id,
    memoryBytes: Number(kilobytes) * 1024,
    hugePages: pages.sort((a, b) => a.pageBytes - b.pageBytes),
    distances: distances === '' ? null : distances.split(/\s+/).map(Number),
  };
}

/** Kernels without NUMA nodes have no such folder. */
function nodeIds(system: string): number[] {
  return named(`${system}/node`, /^node\d+$/)
    .map((name) => Number(name.slice('node'.length)))
    .sort((a, b) => a - b);
}

function named(folder: string, pattern: RegExp): string[] {
  try {
    return readdirSync(folder).filter((name) => pattern.test(name));
  } catch {
    return [];
  }
}
