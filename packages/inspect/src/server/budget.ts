/** So much within a second and no more. What comes above it costs one comparison. */

const SECOND_MS = 1000;

export class Budget {
  readonly #perSecond: number;
  readonly #nowMs: () => number;
  #windowMs = Number.NEGATIVE_INFINITY;
  #taken = 0;

  constructor(perSecond: number, nowMs: () => number = () => performance.now()) {
    this.#perSecond = perSecond;
    this.#nowMs = nowMs;
  }

  /** False: this second has had its share. */
  take(): boolean {
    const nowMs = this.#nowMs();
    if (nowMs - this.#windowMs >= SECOND_MS) {
      this.#windowMs = nowMs;
      this.#taken = 0;
    }
    this.#taken += 1;
    return this.#taken <= this.#perSecond;
  }
}
