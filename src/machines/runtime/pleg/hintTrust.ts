/**
 * May the hint stream be trusted, and so how often must the runtime be listed? It is trusted only while listings find
 * nothing that it had not announced. Bookkeeping only.
 */
import type { RuntimeHint } from '../../wire/cri.ts';
import type { Change, ChangeKind } from './pleg.ts';

/** Wait between the end of one listing and the next, by trust: the first is the kubelet's own period. */
export const RELIST_PERIODS_MS = [1000, 2000, 5000, 10_000, 30_000] as const;
/** Clean listings at one period before the next slower one. */
export const CLEAN_LISTINGS = 3;
/** After a hint, the next listing is at most this far away: it confirms the hint and refreshes the view. */
export const AFTER_HINT_MS = 1000;

/** A hint comes before the runtime's own ledgers show the change; on a busy machine by more than one listing. */
const REMEMBERED_LISTINGS = 30;

const ANNOUNCED_BY: Readonly<Record<ChangeKind, readonly RuntimeHint['kind'][]>> = {
  ContainerStarted: ['started', 'other'],
  ContainerDied: ['stopped', 'deleted', 'other'],
  ContainerRemoved: ['deleted', 'other'],
  ContainerChanged: ['created', 'started', 'stopped', 'deleted', 'oom', 'other'],
};

export class HintTrust {
  #level = 0;
  #clean = 0;
  #open = false;
  #listing = 0;
  /** Hints not yet matched by a change, with the listing they came before. */
  #announced = new Map<string, Map<RuntimeHint['kind'], number>>();
  /** Found by the last listing without announcement: the hint may still be on its way, so judged at the next. */
  #doubts = new Map<string, ChangeKind>();

  streamOpened(): void {
    this.#open = true;
    this.#doubts.clear();
    this.#reset();
  }
  streamLost(): void {
    this.#open = false;
    this.#announced.clear();
    this.#doubts.clear();
    this.#reset();
  }
  announced(id: string, kind: RuntimeHint['kind']): void {
    const doubt = this.#doubts.get(id);
    if (doubt !== undefined && ANNOUNCED_BY[doubt].includes(kind)) {
      this.#doubts.delete(id);
      return;
    }
    const kinds = this.#announced.get(id) ?? new Map<RuntimeHint['kind'], number>();
    kinds.set(kind, this.#listing);
    this.#announced.set(id, kinds);
  }

  /**
   * Call with what a listing found changed. Returns the ids whose change the stream surely missed (found by the listing
   * before this one and never announced since); any such brings the period back to the first.
   */
  listingEnded(changes: Iterable<Change>): string[] {
    const missed = this.#open ? [...this.#doubts.keys()] : [];
    this.#doubts.clear();
    this.#listing++;
    for (const { id, kind } of changes) {
      if (!this.#wasAnnounced(id, kind) && this.#open) this.#doubts.set(id, kind);
      if (kind === 'ContainerRemoved') this.#announced.delete(id);
    }
    this.#forgetOld();
    if (missed.length > 0) this.#reset();
    else if (this.#doubts.size === 0 && this.#open) this.#oneClean();
    return missed;
  }

  /** True once listings have confirmed the stream and slowed down. */
  get trusted(): boolean {
    return this.#open && this.#level > 0;
  }
  periodMs(): number {
    if (!this.#open || this.#doubts.size > 0) return RELIST_PERIODS_MS[0];
    return RELIST_PERIODS_MS[this.#level] ?? RELIST_PERIODS_MS[0];
  }

  /** One announcement answers for one change: a second exit of the same id needs a second hint. */
  #wasAnnounced(id: string, kind: ChangeKind): boolean {
    const kinds = this.#announced.get(id);
    const by = ANNOUNCED_BY[kind].find((k) => kinds?.has(k));
    if (kinds === undefined || by === undefined) return false;
    // A removal announces the death that came with it too, so it stays until the id is gone.
    if (by !== 'deleted' && kind !== 'ContainerChanged') kinds.delete(by);
    return true;
  }
  #forgetOld(): void {
    for (const [id, kinds] of this.#announced) {
      for (const [kind, listing] of kinds) if (this.#listing - listing > REMEMBERED_LISTINGS) kinds.delete(kind);
      if (kinds.size === 0) this.#announced.delete(id);
    }
  }
  #oneClean(): void {
    this.#clean++;
    if (this.#clean < CLEAN_LISTINGS || this.#level >= RELIST_PERIODS_MS.length - 1) return;
    this.#level++;
    this.#clean = 0;
  }
  #reset(): void {
    this.#level = 0;
    this.#clean = 0;
  }
}
