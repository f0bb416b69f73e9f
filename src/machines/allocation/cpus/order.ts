/** The order in which free CPUs, and what they lie in, are taken. Pure. */
import { type Cpu, countOf, type Level, type Topology } from './topology.ts';

/** NUMA nodes are the larger units where there are no more of them than sockets. */
export function outerLevel(topology: Topology): 'node' | 'socket' {
  return countOf(topology, 'socket') >= countOf(topology, 'node') ? 'node' : 'socket';
}

/** CPUs of `cpus`, by the unit that they lie in. */
export function byUnit(cpus: Iterable<Cpu>, level: Level): Map<number, Cpu[]> {
  const units = new Map<number, Cpu[]>();
  for (const cpu of cpus) {
    const those = units.get(cpu[level]);
    if (those === undefined) units.set(cpu[level], [cpu]);
    else those.push(cpu);
  }
  return units;
}

/** Units with a CPU among `free`: outer ones with fewer of them first, and the same within each; then by number. */
export function unitsInOrder(
  free: readonly Cpu[],
  { outer, level }: { outer: 'node' | 'socket'; level: Exclude<Level, 'cache'> },
): number[] {
  const parent = {
    node: outer === 'node' ? null : 'socket',
    socket: outer === 'socket' ? null : 'node',
    core: outer === 'node' ? 'socket' : 'node',
  } as const;
  const above = parent[level];
  if (above === null) return fewestFirst(byUnit(free, level).keys(), byUnit(free, level));
  const all = byUnit(free, level);
  const those = byUnit(free, above);
  return unitsInOrder(free, { outer, level: above }).flatMap((unit) => fewestFirst(byUnit(those.get(unit) ?? [], level).keys(), all));
}

/** Then by number. */
export function fewestFirst(units: Iterable<number>, all: ReadonlyMap<number, readonly Cpu[]>): number[] {
  const size = (unit: number): number => all.get(unit)?.length ?? 0;
  return [...units].sort((a, b) => size(a) - size(b) || a - b);
}
