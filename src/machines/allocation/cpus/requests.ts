/** What the CPU manager decides about its ledger and about pods that ask for CPUs. Pure. */
import type { Pod } from '../../kube/types.ts';
import type { AllocationAnswer } from '../messages.ts';
import { going, isSeen, type Known, tidied, withoutLeaving } from './holders.ts';
import { type CpuLedger, type CpuPlace, grant, sameLedger } from './ledger.ts';
import { wantsExclusive } from './policy.ts';

/**
 * From an answer, or from when every source was heard, until the pod manager has the pod in its ledger: longer than that takes.
 * A pod that comes later gets CPUs anew.
 */
const UNSEEN_MAX_MS = 10_000;

export interface CpuRequest {
  /** Number of the question. */
  ask: number;
  pod: Pod;
  /** As in `allocation.admit`. */
  active: ReadonlySet<string>;
}

/** What comes with each event. */
export interface CpuFacts extends Pick<Known, 'pods' | 'listing'> {
  readonly monoMs: number;
}
export interface CpuHoldings {
  ledger: CpuLedger;
  /** Pods that were granted CPUs and have not been seen since: monotonic ms of the grant, or of the look by which every source had been heard. */
  unseen: ReadonlyMap<string, number>;
  /** Every source had been heard at the last look. */
  heard: boolean;
}
/** Goes out once the ledger is on disk. */
export interface CpuReply {
  ask: number;
  answer: AllocationAnswer;
  /** Containers that were to have CPUs of their own, up to the one that was refused. */
  asked: number;
  /** Only whole cores are given. */
  wholeCores: boolean;
}

function knownOf({ pods, listing }: CpuFacts, unseen: ReadonlyMap<string, number>): Known {
  return { pods, listing, unseen: new Set(unseen.keys()) };
}

/** Without what is over. */
function swept({ ledger, unseen, heard }: CpuHoldings, facts: CpuFacts): CpuHoldings {
  const { pods, monoMs } = facts;
  const late = (sinceMs: number) => monoMs - sinceMs >= UNSEEN_MAX_MS;
  const left = [...unseen]
    // Until every source was heard, nobody is late.
    .map(([uid, sinceMs]): [string, number] => [uid, heard ? sinceMs : monoMs])
    .filter(([uid, sinceMs]) => !isSeen(uid, { pods }) && !late(sinceMs) && ledger.entries.has(uid));
  const still = new Map(left);
  return { ledger: tidied(ledger, knownOf(facts, still)), unseen: still, heard: pods?.sourcesReady === true };
}

/** An unchanged ledger stays the same object: another one is written to disk. */
function settled(before: CpuHoldings, { unseen, heard, ledger }: CpuHoldings): CpuHoldings {
  return { unseen, heard, ledger: sameLedger(ledger, before.ledger) ? before.ledger : ledger };
}

/** `released`: pods whose CPUs came back, since they are over. */
export function answerRequests(
  before: CpuHoldings,
  requests: readonly CpuRequest[],
  { facts, place }: { facts: CpuFacts; place: CpuPlace },
): { holdings: CpuHoldings; replies: CpuReply[]; released: string[] } {
  const unseen = new Map(before.unseen);
  const held = (uid: string) => before.ledger.entries.has(uid);
  for (const { pod, active } of requests) for (const uid of [pod.metadata.uid, ...active]) if (held(uid)) unseen.set(uid, facts.monoMs);
  const now = swept({ ...before, unseen }, facts);
  let { ledger } = now;
  const granted = new Map(now.unseen);
  const replies = requests.map(({ pod, ask }): CpuReply => {
    const { uid } = pod.metadata;
    const given = grant(ledger, pod, place);
    const counted = { asked: given.asked, wholeCores: place.policy.fullCoresOnly };
    if (given.ok) {
      ledger = given.ledger;
      if (ledger.entries.has(uid)) granted.set(uid, facts.monoMs);
      return { ...counted, ask, answer: { kind: 'granted' } };
    }
    const { refusal } = given;
    const later = grant(withoutLeaving(ledger, uid, facts), pod, place).ok;
    const why = `${refusal.message}; pods that are on their way out still have some`;
    return { ...counted, ask, answer: later ? { kind: 'later', why } : { kind: 'refused', ...refusal } };
  });
  const holdings = settled(before, { ...now, ledger, unseen: granted });
  return { holdings, replies, released: releasedBy(before.ledger, now.ledger) };
}

/** From time to time: what is over comes back, and a pod that is defined anew gets what it is to have now. */
export function tidyUp(
  holdings: CpuHoldings,
  { facts, place }: { facts: CpuFacts; place: CpuPlace },
): { holdings: CpuHoldings; released: string[] } {
  const now = swept(holdings, facts);
  let { ledger } = now;
  for (const pod of going(knownOf(facts, now.unseen))) {
    if (!wantsExclusive(pod) && !ledger.entries.has(pod.metadata.uid)) continue;
    const granted = grant(ledger, pod, place);
    if (granted.ok) ledger = granted.ledger;
  }
  return { holdings: settled(holdings, { ...now, ledger }), released: releasedBy(holdings.ledger, now.ledger) };
}

function releasedBy(before: CpuLedger, now: CpuLedger): string[] {
  return [...before.entries.keys()].filter((uid) => !now.entries.has(uid));
}
