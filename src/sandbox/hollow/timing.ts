/** How long things take in a hollow runtime, and when they happened. */
import type { Clock, Rng } from '../../ports/ports.ts';

export class Timing {
  readonly clock: Clock;
  readonly #rng: Rng;
  #lastStampMs = 0;
  #same = 0;

  constructor(o: { clock: Clock; rng: Rng }) {
    this.clock = o.clock;
    this.#rng = o.rng;
  }

  /** Now, but never the same twice: real runtimes stamp nanoseconds, and readers sort by them. */
  stampMs(): number {
    const wallMs = this.clock.wallMs();
    this.#same = wallMs === this.#lastStampMs ? this.#same + 0.001 : 0;
    this.#lastStampMs = wallMs;
    return wallMs + this.#same;
  }

  stretched(ms: number, jitter: number): number {
    return jitter === 0 ? ms : ms * (1 + jitter * this.#rng.next());
  }

  /** Undefined for no time at all: an await would still let others go first. */
  wait(ms: number): Promise<void> | undefined {
    return ms <= 0 ? undefined : new Promise((resolve) => void this.clock.setTimeout(resolve, ms));
  }
}
