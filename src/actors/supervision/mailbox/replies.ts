/** What answers go to, by the number of the question: a machine holds the number alone. */

import type { ReplyTo } from '../../../machines/supervision/address.ts';

export class Replies<R> {
  readonly #held = new Map<number, ReplyTo<R>>();

  hold(ask: number, replyTo: ReplyTo<R>): void {
    if (replyTo.signal.aborted) return;
    this.#held.set(ask, replyTo);
    replyTo.signal.addEventListener('abort', () => this.#held.delete(ask), { once: true });
  }

  /** Its asker still waits. */
  isOpen(ask: number): boolean {
    return this.#held.has(ask);
  }
  /** Aborted when the asker gives up. */
  signal(ask: number): AbortSignal {
    return this.#held.get(ask)?.signal ?? AbortSignal.abort();
  }

  reply(ask: number, result: R): void {
    this.#held.get(ask)?.(result);
    this.#held.delete(ask);
  }
}
