/**
 * How many pods the runtime is asked to start at once, and of how many it is asked to take the sandbox down. A runtime given
 * a hundred sandboxes at the same moment works on all of them, and none is ready before nearly all are; given a few at a
 * time it ends sooner, since its processes do not fight for the same cores, and the first pods are up, or gone, at once. What
 * is nearest to a running container goes first, and of what goes what is nearest to its end. Bookkeeping only; whoever
 * holds it makes the calls.
 */

import type { CriMethod } from '../../cri.ts';
import { viewKey } from '../../supervision/address.ts';

/** Whether starts or stops wait for a place: the runtime has as much to do as it is given, and whatever can wait should. */
export const runtimeBusy = viewKey<boolean>('runtimeBusy');

/** Order of those that wait: lower goes first. Other methods pass at any time. */
export type Ranks = Partial<Record<CriMethod, number>>;
export const START_RANKS: Ranks = { StartContainer: 0, CreateContainer: 1, RunPodSandbox: 2 };
/** Apart from the starts: what goes makes room, and waits for nothing that comes. */
export const STOP_RANKS: Ranks = { StopPodSandbox: 0, StopContainer: 1 };

/**
 * A call that takes longer gives its place away and goes on beside the others: one that waits for a slow network plugin
 * needs no processor, and a hung one delays nobody for long.
 */
const PLACE_HELD_MS_MAX = 500;
/**
 * The same while the processors are busy. Calls are slow then because there are too many of them: one more makes all of them
 * slower, and no pod runs before nearly all sandboxes are there.
 */
const BUSY_HELD_MS_MAX = 4 * PLACE_HELD_MS_MAX;
/** Of the processors' time, while the place was held. */
const BUSY_IDLE_SHARE = 0.1;
/**
 * The same for the stop of a container: what the runtime does for it is done by then, the rest is the process's own time to
 * end. Of a hundred containers that ignore the signal the last is sent it after 2.5 s, on two cores.
 */
const STOP_HELD_MS_MAX = 100;

export function heldMsMax(method: CriMethod): number {
  return method === 'StopContainer' ? STOP_HELD_MS_MAX : PLACE_HELD_MS_MAX;
}

/** Whether a call that has held its place for {@link heldMsMax}, or a multiple of it, holds it for that long again. */
export function holdsOn(method: CriMethod, held: { ms: number; idleShare: number }): boolean {
  return method !== 'StopContainer' && held.idleShare < BUSY_IDLE_SHARE && held.ms + heldMsMax(method) <= BUSY_HELD_MS_MAX;
}

/** Places for a machine with so many cores: enough that none is idle while a call waits for the disk or for CNI. */
export function placesFor(cpus: number): number {
  return Math.max(4, 2 * Math.ceil(cpus));
}

export interface Waiting {
  readonly method: CriMethod;
  go(): void;
}

export class StartGate {
  readonly #queues: Waiting[][];
  readonly #places: number;
  readonly #ranks: Ranks;
  #taken = 0;

  constructor(places: number, ranks: Ranks = START_RANKS) {
    this.#places = places;
    this.#ranks = ranks;
    this.#queues = Object.values(ranks).map(() => []);
  }

  guards(method: CriMethod): boolean {
    return this.#ranks[method] !== undefined;
  }

  /** Goes at once when there is a place, else when one is left; each that goes must {@link leave} once. */
  enter(waiting: Waiting): void {
    if (this.#taken < this.#places) {
      this.#taken += 1;
      waiting.go();
      return;
    }
    this.#queues[this.#ranks[waiting.method] ?? 0]?.push(waiting);
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
