/** Which pods still hold something, and which release it: pods that are over, or that nobody knows (resources and volumes 2.2). Pure. */
import type { Pod } from '../kube/types.ts';
import { isTerminal } from '../pod/phase.ts';
import type { ListedPod, RuntimePodsView } from '../pod/runtime/seen.ts';
import { comesBack, isRefused, isWanted, type PodRecord, type PodsView } from '../pods/manager/messages.ts';
import { mayLeave } from './leaving.ts';
import type { Ledger, LedgerRules } from './ledgerRules.ts';

export interface Known {
  /** Undefined: nobody keeps the ledger of pods yet. */
  pods: PodsView | undefined;
  /** Undefined: the runtime was not listed yet. */
  listing: RuntimePodsView | undefined;
  /** Pods that were granted something and have not been seen in the pod manager's ledger since. */
  unseen: ReadonlySet<string>;
}
type Rules<L extends Ledger> = Pick<LedgerRules<L, unknown>, 'release' | 'releaseUnnamed'>;

/**
 * The ledger without what is over. Only once every source was heard: until then nobody can say of a pod that it is gone.
 * Containers that may run keep theirs, whatever became of their pod: nobody else may have it alone meanwhile.
 */
export function tidied<L extends Ledger>(ledger: L, known: Known, rules: Rules<L>): L {
  const { pods, listing, unseen } = known;
  if (pods?.sourcesReady !== true) return ledger;
  let now = ledger;
  for (const uid of [...ledger.entries.keys()]) {
    const record = pods.records.get(uid);
    if (unseen.has(uid)) continue;
    const holds = holding(record);
    if (holds === 'over') now = rules.release(now, [uid]);
    else if (holds === 'unknown' && listing !== undefined && !mayRun(listing.pods.get(uid))) now = rules.release(now, [uid]);
    else if (holds === 'active' && record !== undefined && listing !== undefined) {
      const seen = { pod: record.pod, listed: listing.pods.get(uid) };
      if (isTidy(now, seen)) continue;
      const less = rules.releaseUnnamed(now, record.pod, startedOf(uid, listing));
      const gone = [...(now.entries.get(uid)?.keys() ?? [])].filter((name) => less.entries.get(uid)?.has(name) !== true);
      if (less === now) noteTidy(now, seen);
      else if (!gone.some((name) => mayRun(listing.pods.get(uid), name))) now = less;
    }
  }
  return now;
}

interface Seen {
  pod: Pod;
  listed: ListedPod | undefined;
}
/** By what a pod holds: with which definition and containers nothing of it is over. In a burst each pod that asks looks at all others. */
const TIDY = new WeakMap<object, Seen>();

function isTidy(ledger: Ledger, { pod, listed }: Seen): boolean {
  const held = ledger.entries.get(pod.metadata.uid);
  const tidy = held === undefined ? undefined : TIDY.get(held);
  return tidy?.pod === pod && tidy.listed === listed;
}
function noteTidy(ledger: Ledger, seen: Seen): void {
  const held = ledger.entries.get(seen.pod.metadata.uid);
  if (held !== undefined) TIDY.set(held, seen);
}

/** Containers of the pod that were created, and may be over. */
export function startedOf(uid: string, listing: RuntimePodsView | undefined): ReadonlySet<string> {
  return new Set(listing?.pods.get(uid)?.containers.map((c) => c.name));
}

/** `over`: it was verified that nothing of it runs. `unknown`: ask the runtime. `kept`: its next life was granted what it has. */
function holding(record: PodRecord | undefined): 'active' | 'over' | 'unknown' | 'kept' {
  if (record === undefined) return 'unknown';
  if (comesBack(record)) return 'kept';
  const phase = record.worker?.phase;
  if (phase === 'terminated' || phase === 'finished') return 'over';
  if (phase === undefined && (isRefused(record) || isTerminal(record.pod.status.phase))) return 'unknown';
  return 'active';
}

function mayRun(pod: ListedPod | undefined, name?: string): boolean {
  return pod?.containers.some((c) => (name === undefined || c.name === name) && c.state !== 'exited') === true;
}

/** The ledger without what others release soon: what there would be then. */
export function withoutLeaving<L extends Ledger>(ledger: L, uid: string, { pods, rules }: Pick<Known, 'pods'> & { rules: Rules<L> }): L {
  return rules.release(
    ledger,
    [...ledger.entries.keys()].filter((other) => other !== uid && mayLeave(other, pods)),
  );
}

/** Pods that go on, and may be without what they are to have: their definition is another one now. */
export function going({ pods }: Pick<Known, 'pods'>): Pod[] {
  if (pods?.sourcesReady !== true) return [];
  return [...pods.records.values()].flatMap((record) =>
    holding(record) === 'active' &&
    isWanted(record) &&
    !isRefused(record) &&
    record.worker?.phase !== 'terminating' &&
    record.source !== 'runtime'
      ? [record.pod]
      : [],
  );
}

/** Seen now, and not as what is left of an earlier life. */
export function isSeen(uid: string, { pods }: Pick<Known, 'pods'>): boolean {
  const record = pods?.records.get(uid);
  return record !== undefined && isWanted(record) && !isRefused(record);
}
