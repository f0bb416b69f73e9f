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

/** Of a state file that a kubelet with the gate PodLevelResourceManagers left. */
export const OF_WHOLE_PODS = 'pods hold something as a whole (gate PodLevelResourceManagers), which this node does not allocate';

/** What a start finds in a state file: a ledger to go on with, `isNew` where there was none; or why it must not go on. */
export type StateOpened<L> = { ok: true; ledger: L | null; isNew: boolean } | { ok: false; message: string };

interface StateFileRules<L, P> {
  /** `CPU manager`. */
  manager: string;
  /** Without a place, and with one. */
  policies: readonly [none: string, static_: string];
  /** Before each reason, in the words of the kubelet. */
  says: string;
  first(place: P): L;
  decode(text: string): { ok: true; policyName: string; ledger: L } | { ok: false; why: string };
  /** It was never begun; or why that cannot be. */
  isUnbegun(ledger: L): boolean | { why: string };
  mistakeIn(ledger: L, place: P): string | null;
}

/**
 * `text` null: there is no file. `place` null: policy none. Another policy's file, one that cannot be believed and one that
 * is about another machine end the start: what was allocated is in the way of what would be allocated anew.
 */
export function openState<L, P>(
  text: string | null,
  { place, file }: { place: P | null; file: string },
  rules: StateFileRules<L, P>,
): StateOpened<L> {
  const policy = rules.policies[place === null ? 0 : 1];
  const first = place === null ? null : rules.first(place);
  if (text === null || text.trim() === '') return { ok: true, ledger: first, isNew: true };
  const refuse = (why: string): StateOpened<L> => ({
    ok: false,
    message: `could not restore state from checkpoint: ${why}, please drain this node and delete the ${rules.manager} checkpoint file "${file}" before restarting Kubelet`,
  });
  const read = rules.decode(text);
  if (!read.ok) return refuse(read.why);
  if (read.policyName !== policy)
    return refuse(`${rules.says}configured policy "${policy}" differs from state checkpoint policy "${read.policyName}"`);
  if (place === null) return { ok: true, ledger: null, isNew: false };
  const unbegun = rules.isUnbegun(read.ledger);
  if (typeof unbegun !== 'boolean') return refuse(`${rules.says}${unbegun.why}`);
  if (unbegun) return { ok: true, ledger: first, isNew: true };
  const wrong = rules.mistakeIn(read.ledger, place);
  return wrong === null ? { ok: true, ledger: read.ledger, isNew: false } : refuse(wrong);
}
