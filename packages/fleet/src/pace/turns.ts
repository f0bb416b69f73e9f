/** Turns of all trees of a fleet on the thread that they share, and room for new work at the pace at which they do it. */
import type { Clock, Yield } from '@actorlet/kubelet/ports/ports.ts';

/** Time after which turns end and I/O gets its chance, also for those who have waited since. */
const TOGETHER_MS = 16;
/** Trees that wait for a turn while new work comes in: enough to have always something to do. */
const BUSY_TREES = 32;
/** Requests under way while new work comes in: an API server that falls behind gets no more of it. */
const REQUESTS_MAX = 100;
/**
 * Leases and node status go before new work: while leases are late, one comes in that often. How long the thread takes from one look
 * at I/O to the next says nothing: beside other programs, it is their time that passes.
 */
const BEHIND_EVERY_MS = 1_000;
/** Pods that are being made while new ones come in. All that are begun together are Ready together, late. */
const PODS_MAX = 256;
/** After that time a pod is not waited for: it may be meant to take long. */
const POD_MS = 15_000;

/**
 * In the order in which they were asked for, some at a time. Were each tree to take its turn before the next I/O, a thousand
 * busy ones would hold it up for seconds: leases would end, and answers that are there would count as missing.
 */
export class FleetTurns implements Yield {
  /** No turn grows with the wait for it, which is due to other trees. */
  readonly turnMsMax = 0;
  readonly #clock: Pick<Clock, 'monoMs' | 'setTimeout'>;
  readonly #yield: Pick<Yield, 'defer'>;
  readonly #waiting: (() => void)[] = [];
  readonly #later: (() => void)[] = [];
  readonly #late: () => boolean;
  #armed = false;
  #requests = 0;
  /** By UID: since when they are being made, the oldest first. */
  readonly #pods = new Map<string, number>();
  #waitsForPods = false;
  #cameMs = Number.NEGATIVE_INFINITY;

  /** `late`: too many leases were written too long ago. */
  constructor(o: { clock: Pick<Clock, 'monoMs' | 'setTimeout'>; yield: Pick<Yield, 'defer'>; late: () => boolean }) {
    this.#clock = o.clock;
    this.#yield = o.yield;
    this.#late = o.late;
  }

  defer(fn: () => void): void {
    this.#waiting.push(fn);
    this.#arm();
  }

  /** Resolves once there is little else to do: see the bounds above. One caller after the other. */
  async room(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#later.push(resolve);
    this.#arm();
    await promise;
  }

  /** Counts it as long as it is under way. */
  async asking<T>(request: () => Promise<T>): Promise<T> {
    this.#requests += 1;
    try {
      return await request();
    } finally {
      this.#requests -= 1;
      this.#arm();
    }
  }

  /** A node has this pod now. */
  begun(uid: string): void {
    this.#pods.set(uid, this.#clock.monoMs());
  }

  /** It is Ready, or gone. */
  made(uid: string): void {
    if (this.#pods.delete(uid)) this.#arm();
  }

  /** How much new work may come in. */
  #free(): number {
    const nowMs = this.#clock.monoMs();
    for (const [uid, sinceMs] of this.#pods) {
      if (nowMs - sinceMs < POD_MS) break;
      this.#pods.delete(uid);
    }
    return Math.max(0, Math.min(BUSY_TREES - this.#waiting.length, REQUESTS_MAX - this.#requests, PODS_MAX - this.#pods.size));
  }

  #mayCome(): number {
    const late = this.#late();
    if (late && this.#clock.monoMs() - this.#cameMs < BEHIND_EVERY_MS) return 0;
    return Math.min(late ? 1 : BUSY_TREES, this.#free());
  }

  #arm(): void {
    if (this.#armed) return;
    if (this.#waiting.length === 0 && (this.#later.length === 0 || this.#free() === 0)) {
      this.#waitForPods();
      return;
    }
    this.#armed = true;
    this.#yield.defer(() => {
      this.#armed = false;
      const nowMs = this.#clock.monoMs();
      const untilMs = nowMs + TOGETHER_MS;
      let taken = 0;
      try {
        while (taken < this.#waiting.length && (taken === 0 || this.#clock.monoMs() < untilMs)) {
          taken += 1;
          this.#waiting[taken - 1]?.();
        }
      } finally {
        this.#waiting.splice(0, taken);
        const coming = this.#later.splice(0, this.#later.length === 0 ? 0 : this.#mayCome());
        if (coming.length > 0) this.#cameMs = nowMs;
        for (const go of coming) go();
        this.#arm();
      }
    });
  }

  /** Pods that take long say nothing when they are not waited for any more. */
  #waitForPods(): void {
    if (this.#waitsForPods || this.#later.length === 0 || this.#pods.size < PODS_MAX) return;
    this.#waitsForPods = true;
    this.#clock.setTimeout(() => {
      this.#waitsForPods = false;
      this.#arm();
    }, POD_MS / 10);
  }
}
