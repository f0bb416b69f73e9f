/** Turns of all trees of a fleet on the thread that they share. */
import type { Clock, Yield } from '../ports/ports.ts';

/** Time after which turns end and I/O gets its chance, also for those who have waited since. */
const TOGETHER_MS = 16;

/**
 * In the order in which they were asked for, some at a time. Were each tree to take its turn before the next I/O, a thousand
 * busy ones would hold it up for seconds: leases would end, and answers that are there would count as missing.
 */
export class FleetTurns implements Yield {
  /** As short as any: others wait. */
  readonly turnMsMax = 0;
  readonly #clock: Pick<Clock, 'monoMs'>;
  readonly #yield: Pick<Yield, 'defer'>;
  readonly #waiting: (() => void)[] = [];
  #armed = false;

  constructor(o: { clock: Pick<Clock, 'monoMs'>; yield: Pick<Yield, 'defer'> }) {
    this.#clock = o.clock;
    this.#yield = o.yield;
  }

  defer(fn: () => void): void {
    this.#waiting.push(fn);
    this.#arm();
  }

  #arm(): void {
    if (this.#armed || this.#waiting.length === 0) return;
    this.#armed = true;
    this.#yield.defer(() => {
      this.#armed = false;
      const untilMs = this.#clock.monoMs() + TOGETHER_MS;
      let taken = 0;
      try {
        while (taken < this.#waiting.length && (taken === 0 || this.#clock.monoMs() < untilMs)) {
          taken += 1;
          this.#waiting[taken - 1]?.();
        }
      } finally {
        this.#waiting.splice(0, taken);
        this.#arm();
      }
    });
  }
}
