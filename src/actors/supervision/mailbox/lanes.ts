/** What waits in a mailbox: two FIFO lanes, control before data, and items put aside for single routes. Counts all of it. */
import type { Message } from '../../../machines/supervision/address.ts';
import { type Item, Queue } from './item.ts';

export class Lanes<E extends Message> {
  /** Most that ever waited at once. */
  depthMax = 0;
  readonly #control = new Queue<E>();
  readonly #data = new Queue<E>();
  /** Waiting per lane, held and dirty ones included. */
  #controlDepth = 0;
  #dataDepth = 0;
  /** Items put aside by a dynamic supervisor until their child is back. */
  readonly #held = new Map<string, Item<E>[]>();

  get depth(): number {
    return this.#controlDepth + this.#dataDepth;
  }
  get hasReady(): boolean {
    return this.#control.peek() !== null || this.#data.peek() !== null;
  }
  depthOf(lane: { control: boolean }): number {
    return lane.control ? this.#controlDepth : this.#dataDepth;
  }

  /** The items that were first in each line; the oldest is among them. */
  heads(): Item<E>[] {
    const first = [this.#control.peek(), this.#data.peek(), ...[...this.#held.values()].map((list) => list[0])];
    return first.filter((item) => item !== null && item !== undefined);
  }

  /** An item that is not in a lane (dirty, or moved) is counted by hand. */
  count(item: Item<E>, by: 1 | -1): void {
    if (item.control) this.#controlDepth += by;
    else this.#dataDepth += by;
    if (this.depth > this.depthMax) this.depthMax = this.depth;
  }

  push(item: Item<E>, where: 'back' | 'front'): void {
    const queue = item.control ? this.#control : this.#data;
    if (where === 'back') queue.pushBack(item);
    else queue.pushFront(item);
    this.count(item, 1);
  }

  /** The next in line, no longer counted. */
  shift(): Item<E> | null {
    return this.#taken(this.#control.shift() ?? this.#data.shift());
  }

  /** The oldest of one lane, no longer counted. */
  shiftOf(lane: { control: boolean }): Item<E> | null {
    return this.#taken((lane.control ? this.#control : this.#data).shift());
  }

  #taken(item: Item<E> | null): Item<E> | null {
    if (item !== null) this.count(item, -1);
    return item;
  }

  /** Sets an item aside; it still counts. */
  hold(route: string, item: Item<E>, where: 'front' | 'back'): void {
    this.count(item, 1);
    const list = this.#held.get(route);
    if (list === undefined) this.#held.set(route, [item]);
    else if (where === 'back') list.push(item);
    else list.unshift(item);
  }

  isHeld(item: Item<E>): boolean {
    for (const list of this.#held.values()) if (list.includes(item)) return true;
    return false;
  }

  /** What was held for a route, no longer counted. */
  unhold(route: string): Item<E>[] {
    const list = this.#held.get(route) ?? [];
    this.#held.delete(route);
    for (const item of list) this.count(item, -1);
    return list;
  }

  /** Takes an item out of wherever it stands, still counted. */
  forget(item: Item<E>): void {
    item.gone = true;
    for (const [route, list] of this.#held) {
      if (!list.includes(item)) continue;
      this.#held.set(
        route,
        list.filter((i) => i !== item),
      );
    }
  }

  /** Everything that waits, held items first, emptied and no longer counted. */
  drain(): Item<E>[] {
    const out = [...this.#held.keys()].flatMap((route) => this.unhold(route));
    for (let item = this.shift(); item !== null; item = this.shift()) out.push(item);
    return out;
  }
}
