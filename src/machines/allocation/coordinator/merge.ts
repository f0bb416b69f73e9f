/**
 * How the topology manager merges hints: of all ways to take one hint of each resource, the best set of NUMA nodes that they have
 * in common. The result is the reference's. The reference looks at each way; here ways with the same nodes in common are one, so the
 * effort grows with the number of hints and not with their product. Pure.
 */
import type { Affinity, NumaHint, ResourceHints } from '../messages.ts';
import { isLower } from '../nodeSets.ts';

export type TopologyPolicy = 'none' | 'best-effort' | 'restricted' | 'single-numa-node';
/** The machine's NUMA nodes. */
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
  let ways: readonly number[] = [wayOf(null, true)];
  for (const list of lists) {
    const choices = list.map(({ nodes, preferred }) => wayOf(nodes === null ? null : maskOf(nodes), preferred));
    ways = combined(ways, choices, bits.length);
  }
  const aim = Math.max(0, ...lists.map(fewestNodes));
  let best: Hint | null = null;
  for (const way of ways) {
    const mask = Math.floor(way / 2) - 1;
    const nodes = mask === -1 ? map.nodes : bits.filter((_, i) => Math.floor(mask / 2 ** i) % 2 === 1);
    const hint = { nodes, preferred: way % 2 === 1 };
    if (nodes.length > 0 && (best === null || isBetter(hint, best, { aim, map }))) best = hint;
  }
  return best ?? { nodes: map.nodes, preferred: false };
}

/** 0: no hint names nodes. */
function fewestNodes(list: readonly Hint[]): number {
  return list.reduce((least, { nodes }) => (nodes === null ? least : Math.min(least || nodes.length, nodes.length)), 0);
}

/**
 * Ways to choose that come to the same are one number: twice the mask of the common nodes and one, and one more where it is
 * preferred. Below that: no choice until now names nodes. Of preferred ones all masks were equal.
 */
const wayOf = (mask: number | null, preferred: boolean): number => (mask === null ? 0 : (mask + 1) * 2) + Number(preferred);

/** Below this many nodes a table is quicker than a set, and small. */
const TABLE_BITS = 16;

function combined(ways: readonly number[], choices: readonly number[], bits: number): readonly number[] {
  if (bits > TABLE_BITS) return combinedOfMany(ways, choices);
  const seen = new Uint8Array(2 ** (bits + 1) + 4);
  const next: number[] = [];
  for (const way of ways) {
    const a = way >> 1;
    for (const choice of choices) {
      const b = choice >> 1;
      const both = a === 0 ? b : b === 0 ? a : ((a - 1) & (b - 1)) + 1;
      const joined = both * 2 + (a === 0 || b === 0 || a === b ? way & choice & 1 : 0);
      if (seen[joined] !== 0) continue;
      seen[joined] = 1;
      next.push(joined);
    }
  }
  return next;
}

/** The same for masks with more bits than operators take. */
function combinedOfMany(ways: readonly number[], choices: readonly number[]): readonly number[] {
  const next = new Set<number>();
  for (const way of ways) {
    const a = Math.floor(way / 2);
    for (const choice of choices) {
      const b = Math.floor(choice / 2);
      const both = a === 0 ? b : b === 0 ? a : commonBits(a - 1, b - 1) + 1;
      const preferred = way % 2 === 1 && choice % 2 === 1 && (a === 0 || b === 0 || a === b);
      next.add(both * 2 + Number(preferred));
    }
  }
  return [...next];
}

const HALF = 2 ** 26;
function commonBits(a: number, b: number): number {
  return ((a % HALF) & (b % HALF)) + (Math.floor(a / HALF) & Math.floor(b / HALF)) * HALF;
}

/** A total order, in which the reference's comparisons of two come to the same best one. */
function isBetter(a: Required<Hint>, b: Hint, { aim, map }: { aim: number; map: NumaMap }): boolean {
  const [ours, theirs] = [a.nodes ?? [], b.nodes ?? []];
  if (a.preferred !== b.preferred) return a.preferred;
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
