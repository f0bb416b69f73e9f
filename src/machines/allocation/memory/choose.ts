/** From which NUMA nodes memory comes. Pure. */
import type { Affinity, NumaHint } from '../messages.ts';
import { isLower, setsFor } from '../nodeSets.ts';
import { type Machine, sameNodes, totalOf, type Wanted } from './machine.ts';

interface Question {
  wanted: Wanted;
  /** What of a resource on exactly these nodes is used again. */
  again(nodes: readonly number[], resource: string): number;
}

/** The same for each resource, preferred where no fewer nodes would do on an empty machine. A node gives either alone, or always with the same others. */
export function memoryHints(machine: Machine, { wanted, again }: Question): NumaHint[] {
  const all = [...machine.keys()].sort((a, b) => a - b);
  // Looked up once: there are hundreds of sets.
  const resources = [...wanted].map(([resource, size]) => {
    const amounts = (of: 'free' | 'allocatable') => new Map(all.map((id) => [id, totalOf(machine, [id], { resource, of })]));
    return { resource, size, free: amounts('free'), allocatable: amounts('allocatable') };
  });
  const sum = (amounts: ReadonlyMap<number, number>, nodes: readonly number[]): number => {
    let total = 0;
    for (const id of nodes) total += amounts.get(id) ?? 0;
    return total;
  };
  const wouldDo = (nodes: readonly number[]): boolean => resources.every(({ size, allocatable }) => sum(allocatable, nodes) >= size);
  const isFree = (nodes: readonly number[]): boolean =>
    resources.every(({ resource, size, free }) => sum(free, nodes) + again(nodes, resource) >= size);
  const { sets, fewest } = setsFor(all, {
    wouldDo,
    doesNow: (nodes) => isFree(nodes) && wouldDo(nodes) && !splits(machine, nodes),
  });
  return sets.map((nodes) => ({ nodes, preferred: nodes.length === fewest }));
}

/** A node that others have memory of together cannot give alone, and one that gave alone not together. */
function splits(machine: Machine, nodes: readonly number[]): boolean {
  const [first = 0] = nodes;
  if (nodes.length === 1) return (machine.get(first)?.cells.length ?? 0) > 1;
  return violates(machine, nodes);
}

function violates(machine: Machine, nodes: readonly number[]): boolean {
  return (
    nodes.length > 1 &&
    nodes.some((id) => {
      const node = machine.get(id);
      return node !== undefined && node.assignments > 0 && (node.cells.length === 1 || !sameNodes(node.cells, nodes));
    })
  );
}

/** The topology manager's nodes; where it chose none, or too few, the best ones that include them. */
export function chooseNodes(
  machine: Machine,
  question: Question & { affinity: Affinity },
): { ok: true; nodes: readonly number[] } | { ok: false; why: string } {
  const { wanted, affinity } = question;
  let { nodes, preferred } = affinity;
  if (nodes === null) {
    const hints = memoryHints(machine, question);
    const found = bestOf(hints);
    if (found === null || wanted.size === 0)
      return { ok: false, why: 'failed to get the default NUMA affinity, no NUMA nodes with enough memory is available' };
    if (!found.preferred && preferred) return { ok: false, why: 'failed to find the default preferred hint' };
    ({ nodes, preferred } = found);
  }
  const chosen = nodes;
  if (![...wanted].every(([resource, size]) => totalOf(machine, chosen, { resource, of: 'free' }) >= size)) {
    const wider = bestOf(memoryHints(machine, question).filter((hint) => chosen.every((node) => hint.nodes.includes(node))));
    if (wider === null) return { ok: false, why: 'failed to find NUMA nodes to extend the current topology hint' };
    if (!wider.preferred && preferred) return { ok: false, why: 'failed to find the extended preferred hint' };
    nodes = wider.nodes;
  }
  return violates(machine, nodes) ? { ok: false, why: 'preferred hint violates NUMA node allocation' } : { ok: true, nodes };
}

/** Preferred ones first, then those of as few nodes as can be. */
function bestOf(hints: readonly NumaHint[]): NumaHint | null {
  let best: NumaHint | null = null;
  for (const hint of hints) if (best === null || isBetter(hint, best)) best = hint;
  return best;
}

function isBetter(a: NumaHint, b: NumaHint): boolean {
  if (a.preferred !== b.preferred) return a.preferred;
  return a.nodes.length === b.nodes.length ? isLower(a.nodes, b.nodes) : a.nodes.length < b.nodes.length;
}
