/** Sets of NUMA nodes from which something could be had. Pure. */
import type { NumaHint } from './messages.ts';

/** Not every set is looked at with more nodes than this: sets double with each node. The reference recommends 8 at most. */
const NODES_MAX = 16;

/** Sets of `nodes`, smaller ones first, then in order. Of too many: each alone, and all together. */
export function subsetsOf(nodes: readonly number[]): readonly (readonly number[])[] {
  let ofSize: (readonly number[])[] = nodes.map((node) => [node]);
  if (nodes.length > NODES_MAX) return [...ofSize, nodes];
  const all = [...ofSize];
  for (let size = 2; size <= nodes.length; size++) {
    // Each is made longer by nodes behind its last one.
    ofSize = ofSize.flatMap((set) => nodes.slice(nodes.indexOf(set.at(-1) ?? 0) + 1).map((node) => [...set, node]));
    all.push(...ofSize);
  }
  return all;
}

interface Judge {
  /** All that is there, taken or free, would do. */
  wouldDo(set: readonly number[]): boolean;
  /** What is free does. */
  doesNow(set: readonly number[]): boolean;
}

/** Every set that does now. `fewest`: nodes of the smallest set that would do on an empty machine. */
export function setsFor(nodes: readonly number[], judge: Judge): { sets: (readonly number[])[]; fewest: number } {
  let fewest = nodes.length;
  const sets: (readonly number[])[] = [];
  for (const set of subsetsOf(nodes)) {
    if (set.length < fewest && judge.wouldDo(set)) fewest = set.length;
    if (judge.doesNow(set)) sets.push(set);
  }
  return { sets, fewest };
}

/** Preferred are those of as few nodes as can be. */
export function hintsFor(nodes: readonly number[], judge: Judge): NumaHint[] {
  const { sets, fewest } = setsFor(nodes, judge);
  return sets.map((set) => ({ nodes: set, preferred: set.length === fewest }));
}

/** Which of two sets of as many nodes is lower: the highest node that only one of them has decides. */
export function isLower(a: readonly number[], b: readonly number[]): boolean {
  for (let i = a.length - 1; i >= 0; i--) if (a[i] !== b[i]) return (a[i] ?? 0) < (b[i] ?? 0);
  return false;
}
