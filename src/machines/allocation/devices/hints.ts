/** From which NUMA nodes containers could have their devices, and which devices are on chosen ones. Pure. */
import type { Pod } from '../../kube/types.ts';
import type { NumaHint, ResourceHints } from '../messages.ts';
import { hintsFor } from '../nodeSets.ts';
import { lastingOf, podTotal } from '../podContainers.ts';
import { type AllocationPlan, allocationOf, deviceRequests, reusable } from './allocate.ts';
import { type DeviceLedger, deviceIds, type ResourceDevices } from './types.ts';

interface Place {
  /** Null: of the pod as a whole. */
  container: string | null;
  /** The machine's NUMA nodes. */
  nodes: readonly number[];
  /** Devices that others are being given just now, by resource. */
  reserved: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Hints for resources whose plugin is known. */
export function deviceHints(ledger: DeviceLedger, pod: Pod, place: Place): ResourceHints[] {
  return [...requestsOf(pod, place.container)].flatMap(([resource, count]): ResourceHints[] => {
    const state = ledger.resources.get(resource);
    if (state === undefined) return [];
    // A plugin that names no node does not care.
    if (state.numa.size === 0) return [{ resource, hints: null }];
    return [{ resource, hints: hintsOf(ledger, { state, resource, count, pod }, place) }];
  });
}

function requestsOf(pod: Pod, name: string | null): Map<string, number> {
  const all = lastingOf(pod).flatMap((c) => deviceRequests(c.container).map(({ resource, count }) => ({ ...c, resource, n: count })));
  const those = name === null ? all : all.filter(({ container }) => container.name === name);
  return new Map(
    [...Map.groupBy(those, (r) => r.resource)].map(([resource, list]) => [resource, podTotal(name === null ? list : ofOne(list))]),
  );
}
/** The number itself, whatever else the pod has. */
const ofOne = <T extends { init: boolean }>(list: readonly T[]): T[] => list.map((one) => ({ ...one, init: false }));

interface Wanted {
  state: ResourceDevices;
  resource: string;
  count: number;
  pod: Pod;
}

function hintsOf(ledger: DeviceLedger, { state, resource, count, pod }: Wanted, { container, nodes, reserved }: Place): NumaHint[] {
  const { uid } = pod.metadata;
  const given = ledger.allocations.filter((a) => a.resource === resource);
  const own =
    container === null
      ? given.filter((a) => a.uid === uid)
      : [allocationOf(ledger, uid, { container, resource })].filter((a) => a !== undefined);
  const has = new Set(own.flatMap(deviceIds));
  const nodesOf = (id: string): readonly number[] => state.numa.get(id) ?? [];
  const all = [...state.healthy, ...state.unhealthy];
  const near = nodes.filter((node) => all.some((id) => nodesOf(id).includes(node)));
  // Devices that are near to the same nodes count together.
  const places = Map.groupBy(all, (id) => nodesOf(id).join());
  const search = (available: readonly string[], again: readonly string[]): NumaHint[] => {
    const free = new Set(available);
    const bound = new Set(again.filter((id) => state.numa.has(id)));
    const counts = [...places.values()].map((list) => ({
      at: nodesOf(list[0] ?? ''),
      all: list.length,
      free: list.filter((id) => free.has(id)).length,
      bound: list.some((id) => bound.has(id)),
    }));
    const isIn = ({ at }: { at: readonly number[] }, set: readonly number[]): boolean => at.some((node) => set.includes(node));
    // Most devices are near to one node: there are hundreds of sets.
    const single = new Map(counts.flatMap((place) => (place.at.length === 1 ? [[place.at[0], place] as const] : [])));
    const spread = counts.filter((place) => place.at.length !== 1);
    const held = counts.filter((place) => place.bound);
    const counted = (what: 'all' | 'free', set: readonly number[]): number => {
      let n = 0;
      for (const node of set) n += single.get(node)?.[what] ?? 0;
      for (const place of spread) if (isIn(place, set)) n += place[what];
      return n;
    };
    return hintsFor(near.length === 0 ? nodes : near, {
      wouldDo: (set) => counted('all', set) >= count,
      doesNow: (set) => held.every((place) => isIn(place, set)) && bound.size + counted('free', set) >= count,
    });
  };
  if (has.size > 0) return has.size === count ? search([...has], []) : [];
  const taken = new Set([...given.flatMap(deviceIds), ...(reserved.get(resource) ?? [])]);
  const again = container === null ? [] : reusable(ledger, pod, { container, resource });
  const available = [...state.healthy].filter((id) => !taken.has(id));
  return new Set([...available, ...again]).size < count ? [] : search(available, again);
}

/** Devices on the chosen nodes first; where they do not suffice all of them, and of the others those that name a node. */
export function nearFirst(
  plan: Extract<AllocationPlan, { kind: 'choose' }>,
  state: ResourceDevices | undefined,
  nodes: readonly number[] | null,
): typeof plan {
  if (nodes === null || state === undefined || state.numa.size === 0) return plan;
  const isNear = (id: string): boolean => state.numa.get(id)?.some((node) => nodes.includes(node)) === true;
  const near = plan.available.filter(isNear);
  if (plan.count - plan.must.length < near.length) return { ...plan, available: near };
  const others = plan.available.filter((id) => !isNear(id));
  const [named, unnamed] = [others.filter((id) => state.numa.has(id)), others.filter((id) => !state.numa.has(id))];
  return { ...plan, must: [...plan.must, ...near], available: [...named, ...unnamed] };
}
