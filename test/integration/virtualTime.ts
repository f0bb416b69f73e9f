/** Virtual time that goes from timer to timer: hours pass in milliseconds, and every state between two timers can be seen. */
import type { Clock, Yield } from '../../src/ports/ports.ts';

export interface VirtualTime {
  clock: Clock;
  yield: Yield;
  /** Lets everything happen that needs no time. */
  settle(): Promise<void>;
  /** Fires the next timer if it is due by then (monotonic ms), else moves to then. False when nothing was fired. */
  step(untilMonoMs: number): Promise<boolean>;
  advance(ms: number): Promise<void>;
  /** Turns the clock until the work is over. */
  during<T>(work: Promise<T>): Promise<T>;
  /** Moves wall time only. */
  jumpWall(ms: number): void;
  pendingTimers(): number;
}

const WALL_START_MS = Date.UTC(2026, 0, 1);

export function virtualTime(): VirtualTime {
  let mono = 1000;
  let wallOffset = WALL_START_MS - 1000;
  let nextId = 1;
  const timers = new Map<number, { id: number; atMs: number; fn: () => void }>();
  let yields: (() => void)[] = [];

  const settle = async (): Promise<void> => {
    for (let rounds = 0; rounds < 100_000; rounds++) {
      const batch = yields;
      yields = [];
      for (const fn of batch) fn();
      await new Promise<void>((resolve) => setImmediate(resolve));
      if (yields.length === 0) return;
    }
    throw new Error('virtual time: still busy after 100,000 rounds of the yield queue: somebody spins');
  };
  const step = async (untilMonoMs: number): Promise<boolean> => {
    let first: { id: number; atMs: number; fn: () => void } | undefined;
    for (const t of timers.values()) if (first === undefined || t.atMs < first.atMs) first = t;
    if (first === undefined || first.atMs > untilMonoMs) {
      mono = Math.max(mono, untilMonoMs);
      return false;
    }
    mono = Math.max(mono, first.atMs);
    timers.delete(first.id);
    first.fn();
    await settle();
    return true;
  };
  const advance = async (ms: number): Promise<void> => {
    const end = mono + ms;
    await settle();
    while (await step(end));
  };
  return {
    clock: {
      wallMs: () => mono + wallOffset,
      monoMs: () => mono,
      setTimeout(fn, ms) {
        const id = nextId++;
        timers.set(id, { id, atMs: mono + Math.max(0, ms), fn });
        return id;
      },
      clearTimeout(id) {
        if (typeof id === 'number') timers.delete(id);
      },
    },
    yield: { defer: (fn) => void yields.push(fn) },
    settle,
    step,
    advance,
    async during(work) {
      let over = false;
      const watched = work.finally(() => {
        over = true;
      });
      watched.catch(() => undefined);
      while (!over) await advance(1);
      return watched;
    },
    jumpWall(ms) {
      wallOffset += ms;
    },
    pendingTimers: () => timers.size,
  };
}
