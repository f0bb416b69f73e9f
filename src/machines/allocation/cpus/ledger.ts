/**
 * Which CPUs a container has alone, and what is left for all others: how CPUs are allocated and released (resources and volumes
 * 2.2). Pure.
 */
import type { Pod } from '../../kube/types.ts';
import { isRestartableInit } from '../../pod/runtime/shouldRestart.ts';
import { type CpuSet, formatCpuSet, NO_CPUS, sameSet, shared, union, without } from './cpuSet.ts';
import { type CpuPolicy, exclusiveCpus, lastingOf } from './policy.ts';
import { takeCpus } from './take.ts';
import { allCpus, type Topology, threadsPerCore } from './topology.ts';

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
}

export function firstLedger({ topology, policy, reserved }: CpuPlace): CpuLedger {
  const all = allCpus(topology);
  return { shared: policy.strictReservation ? without(all, reserved) : all, entries: new Map() };
}

/** What is wrong with a ledger that was kept; null: nothing. CPUs may have come or gone, or others are reserved now. */
export function mistakeIn({ shared: left, entries }: CpuLedger, { topology, policy, reserved }: CpuPlace): string | null {
  const strict = policy.strictReservation;
  // Under a strict reservation all that is not the system's may be allocated.
  if (!strict && left.length === 0 && entries.size > 0) return 'the default CPU set is empty although CPUs were allocated';
  if (strict && shared(left, reserved).length > 0)
    return `some of the strictly reserved CPUs ${formatCpuSet(reserved)} are in the default CPU set ${formatCpuSet(left)}`;
  if (!strict && without(reserved, left).length > 0)
    return `not all reserved CPUs ${formatCpuSet(reserved)} are in the default CPU set ${formatCpuSet(left)}`;
  let known = strict ? union(left, reserved) : left;
  for (const [uid, containers] of entries) {
    for (const [name, cpus] of containers) {
      const both = shared(cpus, left);
      if (both.length > 0)
        return `CPUs ${formatCpuSet(both)} of container ${name} of pod ${uid} are in the default CPU set ${formatCpuSet(left)}, too`;
      known = union(known, cpus);
    }
  }
  const online = allCpus(topology);
  if (sameSet(known, online)) return null;
  return `the CPUs that are online, ${formatCpuSet(online)}, are not those of the state, ${formatCpuSet(known)}`;
}

interface CpuRefusal {
  reason: 'UnexpectedAdmissionError' | 'SMTAlignmentError';
  message: string;
}
/** `asked`: containers that were to have CPUs of their own, up to the one that was refused. */
export type CpuGrant = { ok: true; ledger: CpuLedger; asked: number } | { ok: false; refusal: CpuRefusal; asked: number };

/**
 * CPUs for every container of the pod that is to have some of its own; all or none. What is there is left as it is, so it
 * can be asked for again; one that is to have another number now gets others. What init containers held, which have ended
 * by then, is used again by those after them; sidecars keep theirs.
 */
export function grant(ledger: CpuLedger, pod: Pod, place: CpuPlace): CpuGrant {
  const { uid } = pod.metadata;
  const wanted = lastingOf(pod).map((c) => ({ ...c, n: exclusiveCpus(pod, c.container) }));
  const kept = new Map<string, CpuSet>();
  for (const [name, cpus] of ledger.entries.get(uid) ?? [])
    if (wanted.some(({ container, n }) => container.name === name && n === cpus.length)) kept.set(name, cpus);
  let now = withEntries(ledger, uid, kept);
  let reusable: CpuSet = NO_CPUS;
  let asked = 0;
  for (const { container, init, n } of wanted) {
    if (n === 0) continue;
    asked += 1;
    let cpus = kept.get(container.name);
    if (cpus === undefined) {
      const got = takeFor(now, { n, reusable, place });
      if (!got.ok) return { ...got, asked };
      cpus = got.cpus;
      kept.set(container.name, cpus);
      now = withEntries({ ...now, shared: without(now.shared, cpus) }, uid, kept);
    }
    reusable = init && !isRestartableInit(container) ? union(reusable, cpus) : without(reusable, cpus);
  }
  return { ok: true, ledger: sameLedger(now, ledger) ? ledger : now, asked };
}

function takeFor(
  ledger: CpuLedger,
  { n, reusable, place: { topology, policy, reserved } }: { n: number; reusable: CpuSet; place: CpuPlace },
): { ok: true; cpus: CpuSet } | { ok: false; refusal: CpuRefusal } {
  const free = union(without(ledger.shared, reserved), reusable);
  const threads = threadsPerCore(topology);
  if (policy.fullCoresOnly && n % threads !== 0) {
    const message = `SMT Alignment Error: requested ${n} cpus not multiple cpus per core = ${threads}`;
    return { ok: false, refusal: { reason: 'SMTAlignmentError', message } };
  }
  if (policy.fullCoresOnly) {
    const whole = wholeCores(topology, free);
    if (n > whole.length) {
      const message = `SMT Alignment Error: not enough free physical CPUs: available physical CPUs = ${whole.length}, requested CPUs = ${n}, CPUs per core = ${threads}`;
      return { ok: false, refusal: { reason: 'SMTAlignmentError', message } };
    }
  }
  const cpus = reusing(topology, { free, n, reusable, acrossCores: policy.acrossCores });
  if (cpus !== null) return { ok: true, cpus };
  const why = `not enough cpus available to satisfy request: requested=${n}, available=${free.length}`;
  return {
    ok: false,
    refusal: { reason: 'UnexpectedAdmissionError', message: `Allocate failed due to ${why}, which is unexpected` },
  };
}

/** What is the pod's own already comes first: less is taken from the others. */
function reusing(
  topology: Topology,
  { free, n, reusable, acrossCores }: { free: CpuSet; n: number; reusable: CpuSet; acrossCores: boolean },
): CpuSet | null {
  const own = takeCpus(topology, { free: reusable, n: Math.min(n, reusable.length), acrossCores }) ?? NO_CPUS;
  const rest = takeCpus(topology, { free: without(free, own), n: n - own.length, acrossCores });
  return rest === null ? null : union(own, rest);
}

/** CPUs of `free` whose whole core is free. */
function wholeCores({ cpus }: Topology, free: CpuSet): CpuSet {
  const set = new Set(free);
  const broken = new Set(cpus.filter((c) => !set.has(c.id)).map((c) => c.core));
  return cpus.filter((c) => !broken.has(c.core)).map((c) => c.id);
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
