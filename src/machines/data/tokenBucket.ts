/** A token bucket: `perSecond` on average, `burst` at once. Pure but for its own count. */
export class TokenBucket {
  readonly #perSecond: number;
  readonly #burst: number;
  #tokens: number;
  #atMonoMs: number | undefined;

  /** `perSecond` 0 means no limit. */
  constructor(perSecond: number, burst: number) {
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#tokens = burst;
  }

  take(nowMonoMs: number): boolean {
    if (this.#perSecond === 0) return true;
    const elapsedMs = this.#atMonoMs === undefined ? 0 : Math.max(0, nowMonoMs - this.#atMonoMs);
    this.#atMonoMs = nowMonoMs;
    this.#tokens = Math.min(this.#burst, this.#tokens + (elapsedMs / 1000) * this.#perSecond);
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
