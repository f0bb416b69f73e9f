/**
 * How many pods the runtime is asked to start at once, and of how many it is asked to take the sandbox down. A runtime given a hundred
 * sandboxes at the same moment works on all of them, and none is ready before nearly all are; given a few at a time it ends sooner, since
 * its processes do not fight for the same cores, and the first pods are up, or gone, at once. What is nearest to a running container goes
 * first, and of what goes what is nearest to its end. Bookkeeping only; its holder makes the calls.
 */

import type { CriMethod } from '../../wire/criCalls.ts';

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
/** Share of the processors' time, while the place was held. */
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

/**
 * So many calls of one pod go by their order alone, more than a pod of three containers makes. For each so many more it stands
 * one place further back: the sandbox of another pod comes before the ninth of a pod's 400 containers.
 */
const CALLS_PER_TURN = 8;

export interface Waiting {
  readonly method: CriMethod;
  /** UID of the pod it is for; the calls of none count as those of one. */
  readonly pod?: string | undefined;
  go(): void;
}

/** One pod's calls, from the first that waits or goes to the last. */
interface Calls {
  /** By rank, each with its number in the order in which all came. */
  readonly queues: { waiting: Waiting; at: number }[][];
  /** Calls that wait, or have a place. */
  open: number;
  /** Calls that got a place. */
  went: number;
}

export class StartGate {
  readonly #pods = new Map<string, Calls>();
  readonly #places: number;
  readonly #ranks: Ranks;
  #taken = 0;
  #came = 0;
  #waiting = 0;

  constructor(places: number, ranks: Ranks = START_RANKS) {
    this.#places = places;
    this.#ranks = ranks;
  }

  guards(method: CriMethod): boolean {
    return this.#ranks[method] !== undefined;
  }

  /** Goes at once when there is a place, else when one is left; each that goes must {@link leave} once. */
  enter(waiting: Waiting): void {
    const calls = this.#callsOf(waiting.pod);
    calls.open += 1;
    if (this.#taken < this.#places) {
      this.#taken += 1;
      calls.went += 1;
      waiting.go();
      return;
    }
    this.#came += 1;
    this.#waiting += 1;
    calls.queues[this.#ranks[waiting.method] ?? 0]?.push({ waiting, at: this.#came });
  }

  /** `of`: the call that ended. */
  leave(of?: Waiting): void {
    this.#closed(of?.pod);
    const calls = this.#next();
    const next = calls?.queues.find((q) => q.length > 0)?.shift();
    if (calls === undefined || next === undefined) {
      this.#taken -= 1;
      return;
    }
    this.#waiting -= 1;
    calls.went += 1;
    next.waiting.go();
  }

  /** Takes out a call that gave up while it waited. False when it had gone already. */
  withdraw(waiting: Waiting): boolean {
    for (const queue of this.#pods.get(waiting.pod ?? '')?.queues ?? []) {
      const at = queue.findIndex((q) => q.waiting === waiting);
      if (at < 0) continue;
      queue.splice(at, 1);
      this.#waiting -= 1;
      this.#closed(waiting.pod);
      return true;
    }
    return false;
  }

  waiting(): number {
    return this.#waiting;
  }

  #callsOf(pod = ''): Calls {
    const calls = this.#pods.get(pod) ?? { queues: Object.values(this.#ranks).map(() => []), open: 0, went: 0 };
    this.#pods.set(pod, calls);
    return calls;
  }

  #closed(pod = ''): void {
    const calls = this.#pods.get(pod);
    if (calls === undefined) return;
    calls.open -= 1;
    if (calls.open === 0) this.#pods.delete(pod);
  }

  /** The calls whose turn it is: those that had the fewest turns, then those nearest to running, then those that came first. */
  #next(): Calls | undefined {
    let best: Calls | undefined;
    let key: readonly number[] = [];
    for (const calls of this.#pods.values()) {
      const rank = calls.queues.findIndex((q) => q.length > 0);
      const first = calls.queues[rank]?.[0];
      if (first === undefined) continue;
      const own = [Math.floor(calls.went / CALLS_PER_TURN), rank, first.at];
      if (best !== undefined && !isBefore(own, key)) continue;
      best = calls;
      key = own;
    }
    return best;
  }
}

function isBefore(a: readonly number[], b: readonly number[]): boolean {
  for (const [i, n] of a.entries()) if (n !== b[i]) return n < (b[i] ?? 0);
  return false;
}
