/** How long things take in a hollow runtime, and when they happened. */
import type { Clock, Rng } from '@actorlet/kubelet/ports/ports.ts';
import { CODE, RuntimeRefusal } from '../shared/model.ts';

export class Timing {
  readonly clock: Clock;
  readonly #rng: Rng;
  #lastStampMs = 0;
  #same = 0;
  readonly #waits = new Set<() => void>();

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
    if (ms <= 0) return undefined;
    return new Promise((resolve, reject) => {
      const timer = this.clock.setTimeout(() => {
        this.#waits.delete(cut);
        resolve();
      }, ms);
      const cut = () => {
        this.clock.clearTimeout(timer);
        reject(new RuntimeRefusal(CODE.unavailable, 'the runtime ended meanwhile'));
      };
      this.#waits.add(cut);
    });
  }

  /** What is waited for does not come. */
  cut(): void {
    for (const cut of this.#waits) cut();
    this.#waits.clear();
  }
}
