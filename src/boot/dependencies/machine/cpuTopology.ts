/** The online CPUs and how they lie, as the kernel tells below `/sys/devices/system`. These files answer at once. */
import { readdirSync, readFileSync } from 'node:fs';
import { parseCpuSet } from '../../../machines/allocation/cpus/cpuSet.ts';
import type { CpuInfo } from '../../../machines/allocation/cpus/topology.ts';

const SYSTEM = '/sys/devices/system';

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
  for (const name of nodes(system)) for (const cpu of list(`node/${name}/cpulist`)) nodeOf.set(cpu, Number(name.slice('node'.length)));
  return list('cpu/online').map((id) => {
    const topology = `cpu/cpu${id}/topology`;
    // Not known: -1. Machines without sockets are one.
    const socket = Math.max(0, Number(read(`${topology}/physical_package_id`)));
    if (!Number.isInteger(socket)) throw new Error(`${system}/${topology}/physical_package_id is no number`);
    return { id, socket, siblings: list(`${topology}/thread_siblings_list`), node: nodeOf.get(id) ?? 0 };
  });
}

/** Kernels without memory nodes have no such folder. */
function nodes(system: string): string[] {
  try {
    return readdirSync(`${system}/node`).filter((name) => /^node\d+$/.test(name));
  } catch {
    return [];
  }
}
