/**
 * `distribute-cpus-across-numa`: where one NUMA node does not suffice, as many CPUs of each of several, so that what stays free
 * is as even as can be (KEP-2902). Pure.
 */
import { type CpuSet, union, without } from '../cpuSet.ts';
import { byUnit, outerLevel, unitsInOrder } from './order.ts';
import { countOf, type Topology } from './topology.ts';

export interface TakeRequest {
  free: CpuSet;
  n: number;
  /** Of so many NUMA nodes, where CPUs are distributed and there are so many. Default: of as few as suffice. */
  nodesMin?: number;
}
export type Taken = { ok: true; cpus: CpuSet } | { ok: false; why: string };

interface Place {
  topology: Topology;
  /** CPUs are given in groups of so many. */
  group: number;
  packed(request: TakeRequest): Taken;
}
/** Free CPUs by NUMA node. */
type Free = ReadonlyMap<number, number>;
interface Spread {
  nodes: Slice;
  /** Nodes that give what cannot be divided. */
  rest: Slice | null;
  balance: number;
}

/** Takes CPUs evenly from several NUMA nodes. Null: no set of nodes can give as many each. */
export function distribute(place: Place, { free, n, nodesMin = 0 }: TakeRequest): Taken | null {
  const { topology, group } = place;
  if (n % group !== 0 || n < 1) return null;
  const among = new Set(free);
  const cpus = topology.cpus.filter((c) => among.has(c.id));
  if (n > cpus.length) return null;
  const nodes = unitsInOrder(cpus, { outer: outerLevel(topology), level: 'node' });
  const sizes: Free = new Map([...byUnit(cpus, 'node')].map(([node, those]) => [node, those.length]));
  const perNode = Math.ceil(Math.ceil(topology.cpus.length / group) / countOf(topology, 'node'));
  const groups = Math.ceil(n / group);
  const most = Math.min(groups, sizes.size);
  // The topology manager chose these nodes for what else the pod has there (kubernetes/kubernetes#139456).
  const fewest = nodesMin > sizes.size ? 0 : Math.min(nodesMin, most);
  for (let k = Math.max(Math.ceil(groups / perNode), fewest); k <= most; k++) {
    const best = bestSpread(nodes, k, { sizes, n, group });
    if (best !== null) return give(place, { free, n }, best);
  }
  return null;
}

function bestSpread(nodes: readonly number[], k: number, o: { sizes: Free; n: number; group: number }): Spread | null {
  let best: Spread | null = null;
  combinations(nodes, k, (slice) => {
    if (best?.balance === 0) return false;
    const found = spreadOver(slice, o);
    if (found !== null && (best === null || found.balance < best.balance)) best = found;
    return true;
  });
  return best;
}

function spreadOver(nodes: Slice, { sizes, n, group }: { sizes: Free; n: number; group: number }): Spread | null {
  const combo = valuesOf(nodes);
  const size = (node: number): number => sizes.get(node) ?? 0;
  if (combo.reduce((sum, node) => sum + Math.floor(size(node) / group), 0) * group < n) return null;
  const each = shareOf(n, combo.length, group);
  if (combo.some((node) => size(node) < each)) return null;
  const left = new Map([...sizes].map(([node, cpus]) => [node, cpus - (combo.includes(node) ? each : 0)]));
  const rest = n - each * combo.length;
  if (rest === 0) return { nodes, rest: null, balance: deviation(left) };
  const givers = combo.filter((node) => (left.get(node) ?? 0) >= group);
  let best: Spread | null = null;
  for (let k = givers.length; k >= 1; k--) {
    combinations(givers, k, (slice) => {
      const balance = balanceWith(left, valuesOf(slice), { rest, group });
      if (balance !== null && (best === null || balance < best.balance)) best = { nodes, rest: slice, balance };
      return true;
    });
  }
  return best;
}

/** How uneven the nodes are after these gave the rest. Null: these nodes do not have the rest. */
function balanceWith(left: Free, givers: readonly number[], o: { rest: number; group: number }): number | null {
  let { rest } = o;
  const after = new Map(left);
  if (givers.reduce((sum, node) => sum + (after.get(node) ?? 0), 0) < rest) return null;
  for (let given = -1; rest > 0 && given !== 0; ) {
    given = 0;
    for (const node of givers) {
      const has = after.get(node) ?? 0;
      if (rest === 0) break;
      if (has < o.group) continue;
      after.set(node, has - o.group);
      rest -= o.group;
      given += 1;
    }
  }
  return rest > 0 ? null : deviation(after);
}

function give({ topology, group, packed }: Place, { free, n }: TakeRequest, best: Spread): Taken {
  let left: CpuSet = free;
  let taken: CpuSet = [];
  const take = (node: number, count: number): number => {
    const here = new Set(topology.cpus.filter((c) => c.node === node).map((c) => c.id));
    const got = packed({ free: left.filter((cpu) => here.has(cpu)), n: count });
    if (!got.ok) return 0;
    taken = union(taken, got.cpus);
    left = without(left, got.cpus);
    return got.cpus.length;
  };
  const combo = valuesOf(best.nodes);
  const each = shareOf(n, combo.length, group);
  for (const node of combo) take(node, each);
  let rest = n - each * combo.length;
  for (let given = -1; rest > 0 && given !== 0; ) {
    given = 0;
    for (const node of best.rest === null ? [] : valuesOf(best.rest)) {
      if (rest === 0) break;
      const got = take(node, group);
      if (got > 0) rest -= group;
      given += got;
    }
  }
  if (taken.length === n) return { ok: true, cpus: taken };
  return { ok: false, why: `accounting error, not enough CPUs allocated, remaining: ${n - taken.length}` };
}

function shareOf(n: number, nodes: number, group: number): number {
  return Math.floor(Math.floor(n / nodes) / group) * group;
}

/** Standard deviation, in thousandths as in the reference: it decides between equals. */
function deviation(of: Free): number {
  const values = [...of.values()];
  const rounded = (x: number): number => Math.round(x * 1000) / 1000;
  const mean = rounded(values.reduce((sum, x) => sum + x, 0) / values.length);
  return rounded(Math.sqrt(values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / values.length));
}

/**
 * A combination is a part of a buffer that later combinations with the same beginning share, and overwrite. The reference's
 * choice depends on that: of four nodes it may take the last one that was looked at, not the one that was best.
 */
interface Slice {
  buffer: number[];
  length: number;
}
const valuesOf = ({ buffer, length }: Slice): number[] => buffer.slice(0, length);

/** A buffer has room for 1, 2, 4, 8, ... numbers: it is copied where it is full. */
function appended({ buffer, length }: Slice, value: number): Slice {
  const isFull = length === 0 || (length & (length - 1)) === 0;
  const next = isFull ? buffer.slice(0, length) : buffer;
  next[length] = value;
  return { buffer: next, length: length + 1 };
}

/** All combinations of `k` in order, until `visit` says false. */
function combinations(of: readonly number[], k: number, visit: (slice: Slice) => boolean): void {
  const walk = (start: number, left: number, slice: Slice): boolean => {
    if (left === 0) return visit(slice);
    for (let i = start; i <= of.length - left; i++) if (!walk(i + 1, left - 1, appended(slice, of[i] ?? 0))) return false;
    return true;
  };
  if (k >= 1) walk(0, k, { buffer: [], length: 0 });
}
