/** From which NUMA nodes containers could have their CPUs (resources and volumes 2.2). Pure. */
import type { Pod } from '../../kube/types.ts';
import { isRestartableInit } from '../../pod/runtime/shouldRestart.ts';
import { type CpuSet, NO_CPUS, union, without } from '../cpuSet.ts';
import type { NumaHint, ResourceHints } from '../messages.ts';
import { setsFor } from '../nodeSets.ts';
import { lastingOf, podTotal } from '../podContainers.ts';
import { afterwards, type CpuLedger, type CpuPlace } from './ledger.ts';
import { byUnit } from './order.ts';
import { exclusiveCpus } from './policy.ts';
import { countOf, type Topology, unitsOf } from './topology.ts';

const RESOURCE = 'cpu';

/** `container` null: of the pod as a whole. None: it shares. */
export function cpuHints(
  ledger: CpuLedger,
  pod: Pod,
  { container, place }: { container: string | null; place: CpuPlace },
): ResourceHints[] {
  const wanted = lastingOf(pod).map((c) => ({ ...c, n: exclusiveCpus(pod, c.container) }));
  const n = container === null ? podTotal(wanted) : (wanted.find((w) => w.container.name === container)?.n ?? 0);
  if (n === 0) return [];
  const held = ledger.entries.get(pod.metadata.uid);
  const hints = (free: CpuSet, reusable: CpuSet): ResourceHints[] => [{ resource: RESOURCE, hints: hintsOf(place, { free, reusable, n }) }];
  const own = wanted.flatMap((w) =>
    container === null || w.container.name === container ? [{ ...w, cpus: held?.get(w.container.name) }] : [],
  );
  // It has another number of them: no node will do.
  if (own.some(({ cpus, n: asked }) => cpus !== undefined && cpus.length !== asked)) return [{ resource: RESOURCE, hints: [] }];
  const assigned = union(...own.map(({ cpus = NO_CPUS }) => cpus));
  if (assigned.length === n) return hints(assigned, NO_CPUS);
  const free = without(ledger.shared, place.reserved);
  return hints(free, container === null ? assigned : reusableBefore(wanted, { container, held }));
}

type Wanted = ReturnType<typeof lastingOf>[number] & { n: number };

function reusableBefore(wanted: readonly Wanted[], o: { container: string; held: ReadonlyMap<string, CpuSet> | undefined }): CpuSet {
  let reusable = NO_CPUS;
  for (const { container, init } of wanted) {
    if (container.name === o.container) break;
    const cpus = o.held?.get(container.name);
    if (cpus !== undefined) reusable = afterwards(reusable, cpus, init && !isRestartableInit(container));
  }
  return reusable;
}

function hintsOf({ topology, policy }: CpuPlace, { free, reusable, n }: { free: CpuSet; reusable: CpuSet; n: number }): NumaHint[] {
  const all = countByNode(
    topology,
    topology.cpus.map((c) => c.id),
  );
  const [freeIn, reusableIn] = [countByNode(topology, free), countByNode(topology, reusable)];
  const nodes = unitsOf(topology, 'node');
  const { sets, fewest } = setsFor(nodes, {
    wouldDo: (set) => sumOver(all, set) >= n,
    doesNow: (set) => [...reusableIn.keys()].every((node) => set.includes(node)) && sumOver(freeIn, set) + reusable.length >= n,
  });
  const fits = (set: readonly number[]): boolean =>
    set.length === fewest || (policy.bySocket === true && fillsSockets(topology, set, fewest));
  return sets.map((set) => ({ nodes: set, preferred: fits(set) }));
}

/** Its nodes lie on as few sockets as the smallest set that would do. */
function fillsSockets(topology: Topology, nodes: readonly number[], fewest: number): boolean {
  const perSocket = Math.floor(countOf(topology, 'node') / countOf(topology, 'socket'));
  if (perSocket === 0) return false;
  const sockets = new Set(topology.cpus.filter((c) => nodes.includes(c.node)).map((c) => c.socket));
  return sockets.size === Math.ceil(fewest / perSocket);
}

function countByNode({ cpus }: Topology, set: CpuSet): ReadonlyMap<number, number> {
  const among = new Set(set);
  const nodes = byUnit(
    cpus.filter((c) => among.has(c.id)),
    'node',
  );
  return new Map([...nodes].map(([node, those]) => [node, those.length]));
}

function sumOver(counts: ReadonlyMap<number, number>, nodes: readonly number[]): number {
  let sum = 0;
  for (const node of nodes) sum += counts.get(node) ?? 0;
  return sum;
}
