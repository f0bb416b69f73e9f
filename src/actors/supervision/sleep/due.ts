/** When the timers of one machine are due: one that falls asleep is woken when the first of them is. */
import type { Clock } from '../../../ports/ports.ts';

export type Timers = Pick<Clock, 'setTimeout' | 'clearTimeout'>;

export class Due {
  #at: Map<unknown, number> | null = null;

  /** Monotonic ms; null: there is no timer. */
  get first(): number | null {
    const times = [...(this.#at?.values() ?? [])];
    return times.length === 0 ? null : Math.min(...times);
  }

  /** The same timers; each is known here until it fires or is cleared. */
  watching(timers: Timers, monoMs: () => number): Timers {
    return {
      setTimeout: (fn, ms) => {
        const id = timers.setTimeout(() => {
          this.#at?.delete(id);
          fn();
        }, ms);
        this.#at ??= new Map();
        this.#at.set(id, monoMs() + ms);
        return id;
      },
      clearTimeout: (id) => {
        this.#at?.delete(id);
        timers.clearTimeout(id);
      },
    };
  }
}
