/** Which pods of the ledger hold room, while the pod manager handles one event. Counted from step to step: only what changes is looked at. */

import type { Pod } from '../../kube/types.ts';
import type { RuntimePodsView } from '../../pod/runtime/seen.ts';
import type { PodRecord } from '../manager/messages.ts';
import { holdsRoom, isLeaving } from './judge.ts';

/** Kept from step to step, since thousands of refused pods may stand in the ledger. */
export interface Holders {
  /** The runtime's listing that it goes by. */
  readonly listing: RuntimePodsView | undefined;
  /** Records that hold room, by UID. */
  readonly pods: ReadonlyMap<string, Pod>;
  /** Pods among them that release it soon. */
  readonly leaving: ReadonlySet<string>;
}

type Counted = { listing: RuntimePodsView | undefined; pods: Map<string, Pod>; leaving: Set<string> };

export class RoomCount {
  private readonly listing: RuntimePodsView | undefined;
  private readonly records: { [Symbol.iterator](): Iterator<[string, PodRecord]> };
  private readonly known: Holders | null;
  /** In place of what is known; null while that is right. */
  private counted: Counted | null = null;

  /** `known`: of the step before. */
  constructor(known: Holders | null, listing: RuntimePodsView | undefined, records: RoomCount['records']) {
    this.known = known;
    this.listing = listing;
    this.records = records;
  }

  finish(): Holders | null {
    return this.counted ?? this.known;
  }

  holders(): Holders {
    const known = this.finish();
    if (known !== null && known.listing === this.listing) return known;
    const counted = { listing: this.listing, pods: new Map(), leaving: new Set<string>() };
    for (const [uid, rec] of this.records) count(uid, rec, counted);
    this.counted = counted;
    return counted;
  }

  /** `rec` null: it is forgotten. */
  recount(uid: string, rec: PodRecord | null): void {
    const known = this.finish();
    // What a worker says of itself changes nothing here, and is most of what comes.
    if (known === null || isCounted(uid, rec, known)) return;
    this.counted ??= { listing: known.listing, pods: new Map(known.pods), leaving: new Set(known.leaving) };
    count(uid, rec, this.counted);
  }
}

function isCounted(uid: string, rec: PodRecord | null, { listing, pods, leaving }: Holders): boolean {
  const holds = rec !== null && holdsRoom(rec, listing);
  return pods.get(uid) === (holds ? rec.pod : undefined) && leaving.has(uid) === (holds && isLeaving(rec));
}

function count(uid: string, rec: PodRecord | null, { listing, pods, leaving }: Counted): void {
  const holds = rec !== null && holdsRoom(rec, listing);
  // A pod that is there keeps its place in the order.
  if (holds) pods.set(uid, rec.pod);
  else pods.delete(uid);
  if (holds && isLeaving(rec)) leaving.add(uid);
  else leaving.delete(uid);
}
