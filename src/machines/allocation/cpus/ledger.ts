/**
 * Which CPUs a container has alone, and what is left for all others: how CPUs are allocated and released (resources and volumes
 * 2.2). Pure.
 */
import type { Pod } from '../../kube/types.ts';
import { isRestartableInit } from '../../pod/runtime/shouldRestart.ts';
import { type CpuSet, formatCpuSet, NO_CPUS, sameSet, shared, union, without } from '../cpuSet.ts';
import type { Grant, Refusal } from '../ledgerRules.ts';
import type { Affinities } from '../messages.ts';
import { lastingOf } from '../podContainers.ts';
import { type CpuPolicy, exclusiveCpus } from './policy.ts';
import { type Taken, takeCpus } from './take.ts';
import { allCpus, type Topology, threadsPerCore, wholeCoresOf, within } from './topology.ts';

/** By UID of the pod, then by name of the container. */
export type CpuEntries = ReadonlyMap<string, ReadonlyMap<string, CpuSet>>;
export interface CpuLedger {
  /** What all containers run on that have none of their own. */
  readonly shared: CpuSet;
  readonly entries: CpuEntries;
}
export interface CpuPlace {
  topology: Topology;
  policy: CpuPolicy;
  /** CPUs that no container gets alone. */
  reserved: CpuSet;
  /** The topology manager says from which NUMA nodes. */
  aligned?: boolean;
}

export function firstLedger({ topology, policy, reserved }: CpuPlace): CpuLedger {
  const all = allCpus(topology);
  return { shared: policy.strictReservation === true ? without(all, reserved) : all, entries: new Map() };
}

/** What is wrong with a ledger that was kept; null: nothing. CPUs may have come or gone, or others are reserved now. */
export function mistakeIn({ shared: left, entries }: CpuLedger, { topology, policy, reserved }: CpuPlace): string | null {
  const strict = policy.strictReservation === true;
  // Under a strict reservation all that is not the system's may be allocated.
  if (!strict && left.length === 0 && entries.size > 0) return 'default cpuset cannot be empty';
  if (strict && shared(left, reserved).length > 0)
    return `some of strictly reserved cpus: "${formatCpuSet(shared(left, reserved))}" are present in defaultCpuSet: "${formatCpuSet(left)}"`;
  if (!strict && without(reserved, left).length > 0)
    return `not all reserved cpus: "${formatCpuSet(reserved)}" are present in defaultCpuSet: "${formatCpuSet(left)}"`;
  let known = strict ? union(left, reserved) : left;
  for (const [uid, containers] of entries) {
    for (const [name, cpus] of containers) {
      const both = shared(cpus, left);
      if (both.length > 0)
        return `pod: ${uid}, container: ${name} cpuset: "${formatCpuSet(cpus)}" overlaps with default cpuset "${formatCpuSet(left)}"`;
      known = union(known, cpus);
    }
  }
  const online = allCpus(topology);
  if (sameSet(known, online)) return null;
  return `current set of available CPUs "${formatCpuSet(online)}" doesn't match with CPUs in state "${formatCpuSet(known)}"`;
}

/** What of a grant is counted. */
export interface CpuCounts {
  /** Containers that were to have CPUs of their own, up to the one that was refused. */
  asked: number;
  /** Only whole cores are given. */
  wholeCores: boolean;
  /** Containers whose new CPUs share a last-level cache. */
  inOneCache: number;
}

/**
 * CPUs for every container of the pod that is to have some of its own; all or none. What is there is left as it is, so it
 * can be asked for again; one that is to have another number now gets others. What init containers held, which have ended
 * by then, is used again by those after them; sidecars keep theirs. With `affinity` containers that it names alone get some.
 */
export function grant(ledger: CpuLedger, pod: Pod, place: CpuPlace, affinity?: Affinities): Grant<CpuLedger, CpuCounts> {
  const { uid } = pod.metadata;
  const wanted = lastingOf(pod).map((c) => ({ ...c, n: exclusiveCpus(pod, c.container) }));
  const kept = new Map<string, CpuSet>();
  for (const [name, cpus] of ledger.entries.get(uid) ?? [])
    if (wanted.some(({ container, n }) => container.name === name && n === cpus.length)) kept.set(name, cpus);
  let now = withEntries(ledger, uid, kept);
  let reusable: CpuSet = NO_CPUS;
  const counts = { asked: 0, wholeCores: place.policy.fullCoresOnly === true, inOneCache: 0 };
  for (const { container, init, n } of wanted) {
    const { name } = container;
    if (n === 0 || (affinity !== undefined && !affinity.has(name))) continue;
    let cpus = kept.get(name);
    if (cpus === undefined) {
      // A pod is asked about once for each of its containers, under a topology policy: each counts once.
      counts.asked += 1;
      const got = takeFor(now, { n, reusable, place, nodes: affinity?.get(name)?.nodes ?? null });
      if (!got.ok) return { ...got, counts };
      cpus = got.cpus;
      kept.set(name, cpus);
      now = withEntries({ ...now, shared: without(now.shared, cpus) }, uid, kept);
      if (isInOneCache(place.topology, cpus)) counts.inOneCache += 1;
    }
    reusable = afterwards(reusable, cpus, init && !isRestartableInit(container));
  }
  return { ok: true, ledger: sameLedger(now, ledger) ? ledger : now, counts };
}

/** What containers after this one may use again. */
export function afterwards(reusable: CpuSet, cpus: CpuSet, handsOn: boolean): CpuSet {
  return handsOn ? union(reusable, cpus) : without(reusable, cpus);
}

function isInOneCache({ cpus: all }: Topology, cpus: CpuSet): boolean {
  const own = new Set(cpus);
  return new Set(all.filter((c) => own.has(c.id)).map((c) => c.cache)).size <= 1;
}

function takeFor(
  ledger: CpuLedger,
  { n, reusable, nodes, place }: { n: number; reusable: CpuSet; nodes: readonly number[] | null; place: CpuPlace },
): { ok: true; cpus: CpuSet } | { ok: false; refusal: Refusal } {
  const { topology, policy, reserved } = place;
  const free = union(without(ledger.shared, reserved), reusable);
  const threads = threadsPerCore(topology);
  const unaligned = (why: string): { ok: false; refusal: Refusal } => ({
    ok: false,
    refusal: { reason: 'SMTAlignmentError', message: `SMT Alignment Error: ${why}` },
  });
  if (policy.fullCoresOnly === true && n % threads !== 0) return unaligned(`requested ${n} cpus not multiple cpus per core = ${threads}`);
  // Without those that init containers leave to the next one, as in the reference.
  const whole = without(without(ledger.shared, reserved), wholeCoresOf(topology, reserved)).length;
  if (policy.fullCoresOnly === true && n > whole)
    return unaligned(
      `not enough free physical CPUs: available physical CPUs = ${whole}, requested CPUs = ${n}, CPUs per core = ${threads}`,
    );
  const near = nodes === null ? { ok: true as const, cpus: NO_CPUS } : takeNear(place, { free, n, nodes });
  const rest = near.ok ? takeCpus(topology, { free: without(free, near.cpus), n: n - near.cpus.length }, policy) : near;
  if (near.ok && rest.ok) return { ok: true, cpus: union(near.cpus, rest.cpus) };
  const why = rest.ok ? '' : rest.why;
  return { ok: false, refusal: { reason: 'UnexpectedAdmissionError', message: `Allocate failed due to ${why}, which is unexpected` } };
}

/** As many as there are on these NUMA nodes, or with `align-by-socket` on their sockets. */
function takeNear({ topology, policy }: CpuPlace, { free, n, nodes }: { free: CpuSet; n: number; nodes: readonly number[] }): Taken {
  const those = within(topology, 'node', { units: nodes, set: allCpus(topology) });
  const sockets = topology.cpus.filter((c) => those.includes(c.id)).map((c) => c.socket);
  const near =
    policy.bySocket === true
      ? within(topology, 'socket', { units: sockets, set: free })
      : within(topology, 'node', { units: nodes, set: free });
  return takeCpus(topology, { free: near, n: Math.min(n, near.length), nodesMin: nodes.length }, policy);
}

/** CPUs of these pods come back to all. The same ledger where they had none. */
export function release(ledger: CpuLedger, uids: Iterable<string>): CpuLedger {
  let now = ledger;
  for (const uid of uids) if (now.entries.has(uid)) now = withEntries(now, uid, new Map());
  return now;
}

/** Containers that the pod's definition no longer names, or that are to have none of their own any more, give theirs back. */
export function releaseUnnamed(ledger: CpuLedger, pod: Pod): CpuLedger {
  const entries = ledger.entries.get(pod.metadata.uid);
  if (entries === undefined) return ledger;
  const named = new Set(
    lastingOf(pod)
      .filter(({ container }) => exclusiveCpus(pod, container) > 0)
      .map(({ container }) => container.name),
  );
  if ([...entries.keys()].every((name) => named.has(name))) return ledger;
  return withEntries(ledger, pod.metadata.uid, new Map([...entries].filter(([name]) => named.has(name))));
}

/** What the container runs on. */
export function cpusOf({ shared: left, entries }: CpuLedger, uid: string, container: string): { cpus: CpuSet; exclusive: boolean } {
  const own = entries.get(uid)?.get(container);
  return own === undefined ? { cpus: left, exclusive: false } : { cpus: own, exclusive: true };
}

/** These entries in place of the pod's: what it gives up is everybody's again. */
function withEntries(ledger: CpuLedger, uid: string, containers: ReadonlyMap<string, CpuSet>): CpuLedger {
  const had = union(...(ledger.entries.get(uid)?.values() ?? []));
  const keeps = union(...containers.values());
  const entries = new Map(ledger.entries);
  if (containers.size === 0) entries.delete(uid);
  else entries.set(uid, new Map(containers));
  return { shared: union(ledger.shared, without(had, keeps)), entries };
}

export function sameLedger(a: CpuLedger, b: CpuLedger): boolean {
  if (!sameSet(a.shared, b.shared) || a.entries.size !== b.entries.size) return false;
  return [...a.entries].every(([uid, containers]) => {
    const other = b.entries.get(uid);
    return other?.size === containers.size && [...containers].every(([name, cpus]) => sameSet(cpus, other.get(name) ?? NO_CPUS));
  });
}
