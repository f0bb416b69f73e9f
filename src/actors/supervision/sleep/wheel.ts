/** Due times of many behind one timer of the clock, in buckets: thousands that wait cost a node one timer. */
import type { Clock } from '../../../ports/ports.ts';

/** Nothing comes due early; it comes late by less than this. */
export const WHEEL_GRAIN_MS = 250;

/** What stands in the wheel says where: no map of thousands is needed for it. */
export interface OnWheel {
  /** Number of its bucket; null: it waits for nothing. The wheel's own. */
  slot: number | null;
}

export class Wheel<T extends OnWheel> {
  readonly #clock: Pick<Clock, 'monoMs' | 'setTimeout' | 'clearTimeout'>;
  /** What came due, in the order of their times. May set and delete. */
  readonly #due: (items: readonly T[], nowMonoMs: number) => void;
  readonly #buckets = new Map<number, Set<T>>();
  #timer: unknown = null;
  /** The bucket that the timer is for. */
  #armed = Number.POSITIVE_INFINITY;

  constructor(clock: Pick<Clock, 'monoMs' | 'setTimeout' | 'clearTimeout'>, due: (items: readonly T[], nowMonoMs: number) => void) {
    this.#clock = clock;
    this.#due = due;
  }

  /** One time for each: a later call replaces it. */
  set(item: T, atMonoMs: number, nowMonoMs = this.#clock.monoMs()): void {
    this.delete(item);
    const slot = Math.ceil(atMonoMs / WHEEL_GRAIN_MS);
    const bucket = this.#buckets.get(slot);
    if (bucket === undefined) this.#buckets.set(slot, new Set([item]));
    else bucket.add(item);
    item.slot = slot;
    if (slot < this.#armed) this.#arm(slot, nowMonoMs);
  }

  delete(item: T): void {
    const { slot } = item;
    if (slot === null) return;
    item.slot = null;
    const bucket = this.#buckets.get(slot);
    bucket?.delete(item);
    if (bucket?.size !== 0) return;
    this.#buckets.delete(slot);
    // A timer for an empty bucket finds that out when it fires; the last one goes at once, so that nothing wakes an idle node.
    if (this.#buckets.size === 0) this.#disarm();
  }

  #arm(slot: number, nowMonoMs: number): void {
    this.#disarm();
    this.#armed = slot;
    this.#timer = this.#clock.setTimeout(() => this.#fire(), Math.max(0, slot * WHEEL_GRAIN_MS - nowMonoMs));
  }

  #disarm(): void {
    if (this.#timer !== null) this.#clock.clearTimeout(this.#timer);
    this.#timer = null;
    this.#armed = Number.POSITIVE_INFINITY;
  }

  #fire(): void {
    this.#timer = null;
    this.#armed = Number.POSITIVE_INFINITY;
    const now = this.#clock.monoMs();
    const items: T[] = [];
    for (const slot of [...this.#buckets.keys()].filter((s) => s * WHEEL_GRAIN_MS <= now).sort((a, b) => a - b)) {
      for (const item of this.#buckets.get(slot) ?? []) {
        item.slot = null;
        items.push(item);
      }
      this.#buckets.delete(slot);
    }
    if (items.length > 0) this.#due(items, now);
    // What came due may have been set anew, and armed the timer for itself alone.
    let next = Number.POSITIVE_INFINITY;
    for (const slot of this.#buckets.keys()) next = Math.min(next, slot);
    if (next < this.#armed) this.#arm(next, now);
  }
}
