/** Sets of CPUs and their text, such as `0-3,7`. Pure. */

/** Numbers of CPUs, ascending, each once. */
export type CpuSet = readonly number[];

export const NO_CPUS: CpuSet = [];
/** More CPUs than any machine has: a longer range is a mistake, and would cost memory. */
const CPU_MAX = 65_535;

export function cpuSet(cpus: Iterable<number>): CpuSet {
  return [...new Set(cpus)].sort((a, b) => a - b);
}
export function union(...sets: readonly CpuSet[]): CpuSet {
  return cpuSet(sets.flat());
}
export function without(set: CpuSet, other: CpuSet): CpuSet {
  const gone = new Set(other);
  return set.filter((cpu) => !gone.has(cpu));
}
export function shared(a: CpuSet, b: CpuSet): CpuSet {
  const both = new Set(b);
  return a.filter((cpu) => both.has(cpu));
}
export function sameSet(a: CpuSet, b: CpuSet): boolean {
  return a.length === b.length && a.every((cpu, i) => cpu === b[i]);
}

/** Reads a list such as `0-3,8`. Null: the text is no list of CPUs. '' is the empty set. */
export function parseCpuSet(text: string): CpuSet | null {
  if (text === '') return NO_CPUS;
  const cpus: number[] = [];
  for (const part of text.split(',')) {
    const match = /^\s*(\d{1,5})(?:-(\d{1,5}))?\s*$/.exec(part);
    if (match === null) return null;
    const from = Number(match[1]);
    const to = Number(match[2] ?? match[1]);
    if (to < from || to > CPU_MAX) return null;
    for (let cpu = from; cpu <= to; cpu++) cpus.push(cpu);
  }
  return cpuSet(cpus);
}

/** Ascending, with `-` for runs of two or more. */
export function formatCpuSet(set: CpuSet): string {
  const runs: string[] = [];
  for (let i = 0; i < set.length; ) {
    let end = i;
    while (set[end + 1] === (set[end] ?? 0) + 1) end++;
    runs.push(end === i ? `${set[i]}` : `${set[i]}-${set[end]}`);
    i = end + 1;
  }
  return runs.join(',');
}
