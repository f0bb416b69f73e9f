/** What waits in a mailbox, and the queue it waits in. */
import type { Message } from '../../../machines/supervision/address.ts';
import type { PendingAsk } from './ask.ts';

export interface Item<E extends Message> {
  event: E;
  key: string | undefined;
  /** Child key for items sent to a dynamic child's own address; else the specification's `route` decides. */
  route: string | undefined;
  control: boolean;
  /** Monotonic ms at which the oldest part of it was sent. */
  atMs: number;
  /** Monotonic times of the crashes held against it. */
  crashedAtMs: number[];
  ask: PendingAsk | undefined;
  /** Taken out of the middle of its queue (moved or dropped); skipped when its turn comes. */
  gone: boolean;
  next: Item<E> | null;
}

/** FIFO with O(1) ends. Items marked `gone` are skipped. */
export class Queue<E extends Message> {
  #head: Item<E> | null = null;
  #tail: Item<E> | null = null;

  pushBack(item: Item<E>): void {
    item.next = null;
    if (this.#tail === null) this.#head = item;
    else this.#tail.next = item;
    this.#tail = item;
  }

  pushFront(item: Item<E>): void {
    item.next = this.#head;
    this.#head = item;
    if (this.#tail === null) this.#tail = item;
  }

  peek(): Item<E> | null {
    while (this.#head?.gone === true) this.#drop();
    return this.#head;
  }

  shift(): Item<E> | null {
    const item = this.peek();
    if (item !== null) this.#drop();
    return item;
  }

  #drop(): void {
    const head = this.#head;
    if (head === null) return;
    this.#head = head.next;
    if (this.#head === null) this.#tail = null;
    head.next = null;
  }
}
