/** Faults that last: each is active for its time. */
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { ActiveFaults } from '../attack/hits.ts';
import type { FaultEntry } from '../faults.ts';

export class Windows {
  readonly #active: ActiveFaults;
  readonly #clock: Clock;

  constructor(active: ActiveFaults, clock: Clock) {
    this.#active = active;
    this.#clock = clock;
  }

  /** `end` is not called where all was healed before. */
  open(f: FaultEntry, end: () => void = () => {}): void {
    this.#active.add(f);
    this.#clock.setTimeout(() => {
      if (this.#active.remove(f)) end();
    }, f.forMs);
  }

  /** Faults of one kind that overlap on a node end together, with the last of them. */
  openShared(f: FaultEntry, end: () => void): void {
    this.open(f, () => {
      if (this.#active.of(f.node, f.kind).length === 0) end();
    });
  }
}
