/**
 * How many pods the runtime is asked to start at once. A runtime given a hundred sandboxes at the same moment works on
 * all of them, and none is ready before nearly all are; given a few at a time it ends sooner, since its processes do
 * not fight for the same cores, and the first pods are up at once. What is nearest to a running container goes first.
 * Bookkeeping only; whoever holds it makes the calls.
 */
import type { CriMethod } from '../cri.ts';

/** Order of those that wait: lower goes first. Other methods pass at any time. */
const RANKS: Partial<Record<CriMethod, number>> = { StartContainer: 0, CreateContainer: 1, RunPodSandbox: 2 };

/**
 * A call that takes longer gives its place away and goes on beside the others: one that waits for a slow network plugin
 * needs no processor, and a hung one delays nobody for long.
 */
export const PLACE_HELD_MS_MAX = 500;

/** Places for a machine with so many cores: enough that none is idle while a call waits for the disk or for CNI. */
export function placesFor(cpus: number): number {
  return Math.max(4, 2 * Math.ceil(cpus));
}

export interface Waiting {
  readonly method: CriMethod;
  go(): void;
}

export class StartGate {
  readonly #queues: Waiting[][] = [[], [], []];
  readonly #places: number;
  #taken = 0;

  constructor(places: number) {
    this.#places = places;
  }

  static guards(method: CriMethod): boolean {
    return RANKS[method] !== undefined;
  }

  /** Goes at once when there is a place, else when one is left; each that goes must {@link leave} once. */
  enter(waiting: Waiting): void {
    if (this.#taken < this.#places) {
      this.#taken += 1;
      waiting.go();
      return;
    }
    this.#queues[RANKS[waiting.method] ?? 0]?.push(waiting);
  }

  leave(): void {
    const next = this.#queues.find((q) => q.length > 0)?.shift();
    if (next === undefined) this.#taken -= 1;
    else next.go();
  }

  /** One that gave up while it waited. False when it had gone already. */
  withdraw(waiting: Waiting): boolean {
    for (const queue of this.#queues) {
      const at = queue.indexOf(waiting);
      if (at < 0) continue;
      queue.splice(at, 1);
      return true;
    }
    return false;
  }

  waiting(): number {
    return this.#queues.reduce((sum, q) => sum + q.length, 0);
  }
}
