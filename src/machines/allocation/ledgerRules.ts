/** What a manager keeps of who holds what: as much of it as is the same for CPUs and memory. Pure. */
import type { Pod } from '../kube/types.ts';
import type { Affinities, ResourceHints } from './messages.ts';

/** By UID of the pod, then by name of the container. */
interface Entries {
  keys(): Iterable<string>;
  has(uid: string): boolean;
  get(uid: string): { keys(): Iterable<string>; has(container: string): boolean } | undefined;
}
export interface Ledger {
  readonly entries: Entries;
}
export interface Refusal {
  reason: string;
  message: string;
}
/** `C`: what is counted of a grant, also where it is refused. */
export type Grant<L, C> = { ok: true; ledger: L; counts: C } | { ok: false; refusal: Refusal; counts: C };

/** What a manager does with its ledger. */
export interface LedgerRules<L extends Ledger, C> {
  /** Gives the same answer when it is asked again with the ledger that it answered. `started`: containers that were created already. */
  grant(ledger: L, pod: Pod, o: { affinity?: Affinities; started: ReadonlySet<string> }): Grant<L, C>;
  /** `container` null: of the pod as a whole. */
  hints(ledger: L, pod: Pod, container: string | null): ResourceHints[];
  /** All that pods hold is free. The same ledger where they held nothing. */
  release(ledger: L, uids: Iterable<string>): L;
  /** What the pod's containers hold that are no longer to have something, `started` being known. */
  releaseUnnamed(ledger: L, pod: Pod, started: ReadonlySet<string>): L;
  wants(pod: Pod): boolean;
  same(a: L, b: L): boolean;
  /** The topology manager says from which NUMA nodes: nobody else chooses. */
  readonly aligned: boolean;
}
