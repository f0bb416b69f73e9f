/** What a manager decides about its ledger and about pods that ask for something. Pure. */
import type { Pod } from '../kube/types.ts';
import { going, isSeen, type Known, startedOf, tidied, withoutLeaving } from './holders.ts';
import type { Ledger, LedgerRules } from './ledgerRules.ts';
import type { Affinities, AllocationAnswer, ProviderHints } from './messages.ts';

/**
 * From when a pod no longer waits to be admitted, or from when every source was heard, until the pod manager has it in its ledger:
 * longer than that takes.
 */
const UNSEEN_MAX_MS = 10_000;

export interface GrantRequest {
  /** Number of the question. */
  ask: number;
  pod: Pod;
  /** As in `allocation.admit`. */
  active: ReadonlySet<string>;
  affinity?: Affinities;
  /** As in `allocation.admit`. */
  draft: boolean;
}
/** As in `allocation.hints`. */
export interface HintsRequest extends Pick<GrantRequest, 'ask' | 'pod' | 'active'> {
  container: string | null;
}

/** What comes with each event. */
export interface LedgerFacts extends Pick<Known, 'pods' | 'listing'> {
  readonly monoMs: number;
  /** Pods that wait to be admitted: another provider may still be asked for them. Undefined: nobody says. */
  readonly waiting: { has(uid: string): boolean } | undefined;
}
export interface Holdings<L extends Ledger> {
  ledger: L;
  /** Pods that were granted something and have not been seen since: monotonic ms of the grant, or of the last look by which they waited or not every source had been heard. */
  unseen: ReadonlyMap<string, number>;
  /** Every source had been heard at the last look. */
  heard: boolean;
}
/** Goes out once the ledger is on disk; that of a draft at once. */
export interface GrantReply<C> {
  ask: number;
  draft: boolean;
  answer: AllocationAnswer;
  counts: C;
}
interface How<L extends Ledger, C> {
  facts: LedgerFacts;
  rules: LedgerRules<L, C>;
}

/** Without what is over. */
function swept<L extends Ledger, C>({ ledger, unseen, heard }: Holdings<L>, { facts, rules }: How<L, C>): Holdings<L> {
  const { pods, listing, monoMs, waiting } = facts;
  const late = (sinceMs: number) => monoMs - sinceMs >= UNSEEN_MAX_MS;
  const left = [...unseen]
    // Until every source was heard, nobody is late; nor is a pod that still waits for its admission.
    .map(([uid, sinceMs]): [string, number] => [uid, heard && waiting?.has(uid) !== true ? sinceMs : monoMs])
    .filter(([uid, sinceMs]) => !isSeen(uid, { pods }) && !late(sinceMs) && ledger.entries.has(uid));
  const still = new Map(left);
  const known = { pods, listing, unseen: new Set(still.keys()) };
  return { ledger: tidied(ledger, known, rules), unseen: still, heard: pods?.sourcesReady === true };
}

/** ... of which nothing is over that these ask about. */
function sweptFor<L extends Ledger, C>(
  before: Holdings<L>,
  asked: readonly Pick<GrantRequest, 'pod' | 'active'>[],
  how: How<L, C>,
): Holdings<L> {
  const unseen = new Map(before.unseen);
  for (const { pod, active } of asked)
    for (const uid of [pod.metadata.uid, ...active]) if (before.ledger.entries.has(uid)) unseen.set(uid, how.facts.monoMs);
  return swept({ ...before, unseen }, how);
}

/** An unchanged ledger stays the same object: another one is written to disk. */
function settled<L extends Ledger>(before: L, { unseen, heard, ledger }: Holdings<L>, same: (a: L, b: L) => boolean): Holdings<L> {
  return { unseen, heard, ledger: same(ledger, before) ? before : ledger };
}

/** From where the pod could have what it needs: nothing changes by that. */
export function answerQuestion<L extends Ledger, C>(
  before: Holdings<L>,
  { pod, active, container }: HintsRequest,
  how: How<L, C>,
): ProviderHints {
  const { facts, rules } = how;
  const { ledger } = sweptFor(before, [{ pod, active }], how);
  const of = (those: L) => rules.hints(those, pod, container);
  const later = withoutLeaving(ledger, pod.metadata.uid, { pods: facts.pods, rules });
  const now = of(ledger);
  return { now, soon: later === ledger ? now : of(later) };
}

/** `released`: pods whose share came back, since they are over. */
export function answerRequests<L extends Ledger, C>(
  before: Holdings<L>,
  requests: readonly GrantRequest[],
  how: How<L, C>,
): { holdings: Holdings<L>; replies: GrantReply<C>[]; released: string[] } {
  const { facts, rules } = how;
  const now = sweptFor(before, requests, how);
  let { ledger } = now;
  const granted = new Map(now.unseen);
  const replies = requests.map(({ pod, ask, draft, affinity }): GrantReply<C> => {
    const { uid } = pod.metadata;
    const o = { started: startedOf(uid, facts.listing), ...(affinity === undefined ? {} : { affinity }) };
    const given = rules.grant(ledger, pod, o);
    const { counts } = given;
    if (given.ok) {
      ledger = given.ledger;
      if (ledger.entries.has(uid)) granted.set(uid, facts.monoMs);
      return { ask, draft, counts, answer: { kind: 'granted' } };
    }
    const { refusal } = given;
    const later = rules.grant(withoutLeaving(ledger, uid, { pods: facts.pods, rules }), pod, o).ok;
    const why = `${refusal.message}; pods that are on their way out still have some`;
    return { ask, draft, counts, answer: later ? { kind: 'later', why } : { kind: 'refused', ...refusal } };
  });
  const holdings = settled(before.ledger, { ...now, ledger, unseen: granted }, rules.same);
  return { holdings, replies, released: releasedBy(before.ledger, now.ledger) };
}

/** What goes on where the ledger is written to disk. */
export interface Writing<L, C> {
  ledger: L;
  /** Answers that are true once it is written. */
  replies: readonly GrantReply<C>[];
}
/** A write begins: it makes every answer true that waits by now. */
export function beginWrite<L, C>(context: {
  ledger: L | null;
  replies: readonly GrantReply<C>[];
  writing: Writing<L, C> | null;
}): { writing: Writing<L, C> | null; replies: readonly GrantReply<C>[] } {
  const { ledger, replies, writing } = context;
  return ledger === null ? { writing, replies } : { writing: { ledger, replies: [...(writing?.replies ?? []), ...replies] }, replies: [] };
}

/** After a write, or where nothing changed: which answers are true now, and which wait for the next write. */
export function afterWrite<L, C>(context: {
  ledger: L | null;
  onDisk: L | null;
  replies: readonly GrantReply<C>[];
  writing: Writing<L, C> | null;
}): { due: readonly GrantReply<C>[]; left: { writing: null; replies: readonly GrantReply<C>[] } } {
  const { ledger, onDisk, replies, writing } = context;
  const written = writing?.replies ?? [];
  return ledger === onDisk
    ? { due: [...written, ...replies], left: { writing: null, replies: [] } }
    : { due: written, left: { writing: null, replies } };
}

/** From time to time: what is over comes back, and a pod that is defined anew gets what it is to have now. */
export function tidyUp<L extends Ledger, C>(holdings: Holdings<L>, how: How<L, C>): { holdings: Holdings<L>; released: string[] } {
  const { facts, rules } = how;
  const now = swept(holdings, how);
  let { ledger } = now;
  for (const pod of rules.aligned ? [] : going(facts)) {
    const { uid } = pod.metadata;
    if (!rules.wants(pod) && !ledger.entries.has(uid)) continue;
    const granted = rules.grant(ledger, pod, { started: startedOf(uid, facts.listing) });
    if (granted.ok) ledger = granted.ledger;
  }
  return { holdings: settled(holdings.ledger, { ...now, ledger }, rules.same), released: releasedBy(holdings.ledger, now.ledger) };
}

function releasedBy<L extends Ledger>(before: L, now: L): string[] {
  return [...before.entries.keys()].filter((uid) => !now.entries.has(uid));
}
