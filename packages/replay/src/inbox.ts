/**
 * What comes in, one at a time: the next comes when every promise that the one before settled has run. Two answers that reach
 * the process at once would else mix their steps, in an order that no recording tells.
 */

/** Runs `fn` once no microtask is left. */
export type AfterMicrotasks = (fn: () => void) => void;

export class Inbox {
  readonly #after: AfterMicrotasks;
  #waiting: (() => void)[] = [];
  #taken = 0;
  #armed = false;

  constructor(after: AfterMicrotasks) {
    this.#after = after;
  }

  put(deliver: () => void): void {
    this.#waiting.push(deliver);
    if (this.#armed) return;
    this.#armed = true;
    this.#after(() => this.#next());
  }

  #next(): void {
    const deliver = this.#waiting[this.#taken];
    this.#taken += 1;
    if (this.#taken === this.#waiting.length) {
      this.#waiting = [];
      this.#taken = 0;
    }
    this.#armed = this.#waiting.length > 0;
    try {
      deliver?.();
    } finally {
      if (this.#armed) this.#after(() => this.#next());
    }
  }
}
