/** Turns of all trees of a fleet on the thread that they share, and new work at the pace at which they do it. */
import type { KubeApi } from '../ports/kube.ts';
import type { Clock, Yield } from '../ports/ports.ts';
import { resourceOf } from './calls.ts';

/** Time after which turns end and I/O gets its chance, also for those who have waited since. */
const TOGETHER_MS = 16;
/** Trees that wait for a turn while new work comes in: enough to have always something to do. */
const BUSY_TREES = 32;
/** Requests under way while new work comes in: an API server that falls behind gets no more of it. */
const REQUESTS_MAX = 100;
/** A thread that takes longer from one look at I/O to the next is behind with its timers, leases among them. */
const ROUND_MS = 100;

/**
 * In the order in which they were asked for, some at a time. Were each tree to take its turn before the next I/O, a thousand
 * busy ones would hold it up for seconds: leases would end, and answers that are there would count as missing.
 */
export class FleetTurns implements Yield {
  /** No turn grows with the wait for it, which is due to other trees. */
  readonly turnMsMax = 0;
  readonly #clock: Pick<Clock, 'monoMs'>;
  readonly #yield: Pick<Yield, 'defer'>;
  readonly #waiting: (() => void)[] = [];
  readonly #later: (() => void)[] = [];
  #armed = false;
  #requests = 0;

  constructor(o: { clock: Pick<Clock, 'monoMs'>; yield: Pick<Yield, 'defer'> }) {
    this.#clock = o.clock;
    this.#yield = o.yield;
  }

  defer(fn: () => void): void {
    this.#waiting.push(fn);
    this.#arm();
  }

  /**
   * Resolves once few trees wait, few requests are under way and the thread is not behind, for one caller after the other. Where
   * it always is, one comes in each time.
   */
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

  /** How much new work may come in. */
  #free(): number {
    return Math.max(0, Math.min(BUSY_TREES - this.#waiting.length, REQUESTS_MAX - this.#requests));
  }

  #arm(): void {
    if (this.#armed || (this.#waiting.length === 0 && (this.#later.length === 0 || this.#free() === 0))) return;
    this.#armed = true;
    const armedMs = this.#clock.monoMs();
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
        for (const go of this.#later.splice(0, Math.min(this.#free(), nowMs - armedMs > ROUND_MS ? 1 : BUSY_TREES))) go();
        this.#arm();
      }
    });
  }
}

/**
 * The way of a node to the API server, with changes of its pods taken as there is room. Thousands of pods that all begin at once
 * would each get so little of the thread that their requests end in timeouts, and begin again.
 */
export function pacedPods(kube: KubeApi, turns: FleetTurns): KubeApi {
  return {
    server: kube.server,
    request: (request, opts) => turns.asking(() => kube.request(request, opts)),
    watch: async (request, opts) => {
      const watch = await kube.watch(request, opts);
      return watch.ok && resourceOf(request.path) === 'pods' ? { ok: true, lines: paced(watch.lines, turns) } : watch;
    },
    closeConnections: (of) => kube.closeConnections(of),
    reload: async () => kube.reload?.(),
    close: () => kube.close(),
  };
}

async function* paced(lines: AsyncIterable<string>, turns: FleetTurns): AsyncGenerator<string, void, undefined> {
  for await (const line of lines) {
    await turns.room();
    yield line;
  }
}
