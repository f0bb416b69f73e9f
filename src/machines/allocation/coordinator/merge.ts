/**
 * How the topology manager merges hints: of all ways to take one hint of each resource, the best set of NUMA nodes that they have
 * in common. The result is the reference's. The reference looks at each way; here ways with the same nodes in common are one, so the
 * effort grows with the sets of nodes that there are and not with the product of hints. Pure.
 */
import type { Affinity, NumaHint, ResourceHints } from '../messages.ts';
import { isLower } from '../nodeSets.ts';

export type TopologyPolicy = 'none' | 'best-effort' | 'restricted' | 'single-numa-node';
export interface NumaMap {
  nodes: readonly number[];
  /** `prefer-closest-numa-nodes`: distances by node, as the kernel lists them. Null: the option is off. */
  distances: ReadonlyMap<number, readonly number[]> | null;
}
export interface Merged {
  affinity: Affinity;
  admitted: boolean;
}

/** `providers`: the hints of each provider, in order. */
export function mergeHints(policy: TopologyPolicy, map: NumaMap, providers: readonly (readonly ResourceHints[])[]): Merged {
  if (policy === 'none') return { affinity: { nodes: null, preferred: false }, admitted: true };
  const lists = filtered(providers);
  const single = policy === 'single-numa-node';
  const best = bestOf(single ? lists.map(singleNodes) : lists, single ? { ...map, distances: null } : map);
  const isAll = best.nodes !== null && best.nodes.length === map.nodes.length;
  const affinity = single && isAll ? { nodes: null, preferred: best.preferred } : best;
  return { affinity, admitted: policy === 'best-effort' || affinity.preferred };
}

/** Null for a hint's nodes: any. */
type Hint = Affinity;

/** What does not matter is one hint for any nodes. So is what is nowhere, which is not preferred. */
function filtered(providers: readonly (readonly ResourceHints[])[]): (readonly Hint[])[] {
  return providers.flatMap((hints): (readonly Hint[])[] =>
    hints.length === 0
      ? [[{ nodes: null, preferred: true }]]
      : hints.map((one) => (one.hints === null ? [{ nodes: null, preferred: true }] : nonEmpty(one.hints))),
  );
}

function nonEmpty(hints: readonly NumaHint[]): readonly Hint[] {
  return hints.length === 0 ? [{ nodes: null, preferred: false }] : hints;
}

function singleNodes(hints: readonly Hint[]): readonly Hint[] {
  return hints.filter(({ nodes, preferred }) => preferred && (nodes === null || nodes.length === 1));
}

function bestOf(lists: readonly (readonly Hint[])[], map: NumaMap): Hint {
  // Each node is a bit, in their order: numbers of nodes have holes, and may be large.
  const bits = [...new Set(lists.flat().flatMap((hint) => hint.nodes ?? []))].filter((n) => map.nodes.includes(n)).sort((a, b) => a - b);
  const place = new Map(bits.map((node, i) => [node, 2 ** i]));
  const maskOf = (nodes: readonly number[]): number => nodes.reduce((mask, node) => mask + (place.get(node) ?? 0), 0);
  const choices = lists.map((list): Choices => {
    const named = list.map(({ nodes, preferred }) => ({ mask: nodes === null ? ANY : maskOf(nodes), preferred }));
    return { all: new Set(named.map((c) => c.mask)), preferred: new Set(named.flatMap((c) => (c.preferred ? [c.mask] : []))) };
  });
  const aim = Math.max(0, ...lists.map(fewestNodes));
  const best = (masks: Iterable<number>, preferred: boolean): Hint | null => {
    let found: Hint | null = null;
    for (const mask of masks) {
      const nodes = mask === ANY ? map.nodes : bits.filter((_, i) => Math.floor(mask / 2 ** i) % 2 === 1);
      if (nodes.length > 0 && (found === null || isBetter({ nodes, preferred }, found, { aim, map }))) found = { nodes, preferred };
    }
    return found;
  };
  return best(agreed(choices), true) ?? best(common(choices, bits.length), false) ?? { nodes: map.nodes, preferred: false };
}

/** Sets of nodes that hints of one resource name, as masks. */
interface Choices {
  all: ReadonlySet<number>;
  preferred: ReadonlySet<number>;
}
const ANY = -1;

/** What a preferred hint of each resource names: nothing else is preferred. */
function agreed(choices: readonly Choices[]): ReadonlySet<number> {
  let masks: ReadonlySet<number> = new Set([ANY]);
  for (const { preferred } of choices) {
    const both = [...masks].filter((mask) => preferred.has(mask));
    masks = new Set([...both, ...(masks.has(ANY) ? preferred : []), ...(preferred.has(ANY) ? masks : [])]);
  }
  return masks;
}

/** What one hint of each resource, whichever, has in common. */
function common(choices: readonly Choices[], bits: number): ReadonlySet<number> {
  let masks: ReadonlySet<number> = new Set([ANY]);
  for (const { all } of choices) {
    const named = (of: ReadonlySet<number>): number[] => [...of].filter((mask) => mask !== ANY);
    const both = (bits > TABLE_BITS ? intersectionsOfMany : intersections)(named(masks), named(all), bits);
    masks = new Set([...both, ...(masks.has(ANY) ? all : []), ...(all.has(ANY) ? named(masks) : [])]);
  }
  return masks;
}

/** A table has a place for each set of so many nodes. */
const TABLE_BITS = 16;

/** All that one of `a` and one of `b` have in common: of each set is counted in how many it is, and from that how many it is alone. */
function intersections(a: readonly number[], b: readonly number[], bits: number): number[] {
  const [inA, inB] = [supersets(a, bits), supersets(b, bits)];
  const pairs = inA.map((n, mask) => n * (inB[mask] ?? 0));
  for (let bit = 1; bit < 2 ** bits; bit *= 2)
    for (let mask = 0; mask < pairs.length; mask++) if ((mask & bit) === 0) pairs[mask] = (pairs[mask] ?? 0) - (pairs[mask | bit] ?? 0);
  return [...pairs.keys()].filter((mask) => pairs[mask] !== 0);
}

function supersets(masks: readonly number[], bits: number): Float64Array {
  const counts = new Float64Array(2 ** bits);
  for (const mask of masks) counts[mask] = 1;
  for (let bit = 1; bit < 2 ** bits; bit *= 2)
    for (let mask = 0; mask < counts.length; mask++) if ((mask & bit) === 0) counts[mask] = (counts[mask] ?? 0) + (counts[mask | bit] ?? 0);
  return counts;
}

/** The same for masks with more bits than operators take: of so many nodes not every set is a hint. */
function intersectionsOfMany(a: readonly number[], b: readonly number[]): Set<number> {
  return new Set(a.flatMap((one) => b.map((other) => commonBits(one, other))));
}

const HALF = 2 ** 26;
function commonBits(a: number, b: number): number {
  return ((a % HALF) & (b % HALF)) + (Math.floor(a / HALF) & Math.floor(b / HALF)) * HALF;
}

/** 0: no hint names nodes. */
function fewestNodes(list: readonly Hint[]): number {
  return list.reduce((least, { nodes }) => (nodes === null ? least : Math.min(least || nodes.length, nodes.length)), 0);
}

/** A total order of hints that are all preferred, or all not, in which the reference's comparisons of two come to the same best one. */
function isBetter(a: Required<Hint>, b: Hint, { aim, map }: { aim: number; map: NumaMap }): boolean {
  const [ours, theirs] = [a.nodes ?? [], b.nodes ?? []];
  if (!a.preferred) {
    // As many nodes as the most demanding resource needs; else rather fewer, and of those as many as there are.
    const [mine, other] = [rankOf(ours.length, aim), rankOf(theirs.length, aim)];
    if (mine !== other) return mine < other;
  }
  if (ours.length !== theirs.length) return ours.length < theirs.length;
  const apart = map.distances === null ? 0 : averageDistance(ours, map.distances) - averageDistance(theirs, map.distances);
  return apart === 0 ? isLower(ours, theirs) : apart < 0;
}

function rankOf(count: number, aim: number): number {
  return count === aim ? 0 : count < aim ? aim - count : count + aim;
}

function averageDistance(nodes: readonly number[], distances: ReadonlyMap<number, readonly number[]>): number {
  let sum = 0;
  for (const from of nodes) for (const to of nodes) sum += distances.get(from)?.[to] ?? 0;
  return sum / (nodes.length * nodes.length);
}
