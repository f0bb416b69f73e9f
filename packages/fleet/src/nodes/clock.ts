/** The clock of one machine. */
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';

/** Its wall time is apart from that of the world. Lengths of time are the same everywhere. */
export class MachineClock implements Clock {
  /** Below 0: it is behind. */
  aheadMs = 0;
  readonly #world: Clock;

  constructor(world: Clock) {
    this.#world = world;
  }

  wallMs(): number {
    return this.#world.wallMs() + this.aheadMs;
  }
  monoMs(): number {
    return this.#world.monoMs();
  }
  setTimeout(fn: () => void, ms: number): unknown {
    return this.#world.setTimeout(fn, ms);
  }
  clearTimeout(id: unknown): void {
    this.#world.clearTimeout(id);
  }
}
