/**
 * Fencing of mutating CRI calls: one act in flight per pod UID (stops of single containers may share its place), the rest queued in order,
 * acts of an older incarnation refused. Bookkeeping only; its holder runs the jobs it starts and reports their end.
 */

/** UIDs whose newest incarnation is remembered after their last act; the oldest are forgotten beyond this. */
const REMEMBERED_MAX = 4096;

export interface FencedJob {
  readonly uid: string;
  /** Null: of no incarnation (garbage collection): waits its turn, supersedes nobody, is never refused for age. */
  readonly incarnation: number | null;
  /**
   * It may run beside others of its incarnation that say so, too: stops of containers, each of which begins when that
   * container's hook has ended and none of which may wait for another's grace. Default false.
   */
  readonly shares?: boolean;
}
export interface Refusal<J> {
  job: J;
  reason: string;
}
export interface FenceStep<J> {
  /** Run these now; call {@link Fences.settled} with each when it really ended. */
  start: J[];
  refuse: Refusal<J>[];
}

interface Lane<J> {
  readonly running: Set<J>;
  queue: J[];
}

function beside(job: FencedJob, running: Iterable<FencedJob>): boolean {
  for (const other of running) if (job.shares !== true || other.shares !== true || other.incarnation !== job.incarnation) return false;
  return true;
}

export class Fences<J extends FencedJob> {
  readonly #lanes = new Map<string, Lane<J>>();
  /** Newest incarnation seen per UID, in order of last use. */
  readonly #newest = new Map<string, number>();

  submit(job: J): FenceStep<J> {
    const refuse = this.#supersede(job);
    if (refuse === undefined) {
      return { start: [], refuse: [{ job, reason: `a newer worker of pod ${job.uid} has taken over: nothing was done` }] };
    }
    const lane = this.#lanes.get(job.uid);
    if (lane === undefined) {
      this.#lanes.set(job.uid, { running: new Set([job]), queue: [] });
      return { start: [job], refuse };
    }
    if (lane.queue.length === 0 && beside(job, lane.running)) {
      lane.running.add(job);
      return { start: [job], refuse };
    }
    lane.queue.push(job);
    return { start: [], refuse };
  }

  /** The job's calls have all ended: its successor may run. A job that is not running is ignored. */
  settled(job: J): J[] {
    const lane = this.#lanes.get(job.uid);
    if (lane === undefined || !lane.running.delete(job) || lane.running.size > 0) return [];
    const next = lane.queue.shift();
    if (next === undefined) {
      this.#lanes.delete(job.uid);
      return [];
    }
    lane.running.add(next);
    while (lane.queue[0] !== undefined && beside(lane.queue[0], lane.running)) lane.running.add(lane.queue.shift() ?? next);
    return [...lane.running];
  }

  /** The asker gave up while waiting. True when the job was queued and is now gone; a running one ends by itself. */
  withdraw(job: J): boolean {
    const lane = this.#lanes.get(job.uid);
    const at = lane?.queue.indexOf(job) ?? -1;
    if (lane === undefined || at < 0) return false;
    lane.queue.splice(at, 1);
    return true;
  }

  running(): number {
    return this.#lanes.size;
  }
  queued(): number {
    let total = 0;
    for (const lane of this.#lanes.values()) total += lane.queue.length;
    return total;
  }

  /** Undefined when the job itself is of an older incarnation; else the queued jobs that it makes obsolete. */
  #supersede(job: J): Refusal<J>[] | undefined {
    if (job.incarnation === null) return [];
    const newest = this.#newest.get(job.uid);
    if (newest !== undefined && job.incarnation < newest) return undefined;
    this.#newest.delete(job.uid);
    this.#newest.set(job.uid, job.incarnation);
    if (this.#newest.size > REMEMBERED_MAX) {
      for (const uid of this.#newest.keys()) {
        if (this.#lanes.has(uid)) continue;
        this.#newest.delete(uid);
        break;
      }
    }
    if (newest === job.incarnation) return [];
    const lane = this.#lanes.get(job.uid);
    if (lane === undefined) return [];
    const incarnation = job.incarnation;
    const obsolete = lane.queue.filter((j) => j.incarnation !== null && j.incarnation < incarnation);
    lane.queue = lane.queue.filter((j) => !obsolete.includes(j));
    return obsolete.map((j) => ({ job: j, reason: `a newer worker of pod ${job.uid} has taken over: nothing was done` }));
  }
}
