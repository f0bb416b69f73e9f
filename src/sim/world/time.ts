/**
 * Virtual time: a heap of deadlines and a queue of yields. Deadlines of one instant come in an order the seed decides,
 * so do yields; time moves only when there is nothing to do without it.
 */
import type { Clock, Yield } from '../../ports/ports.ts';
import { drain } from '../globals.ts';
import type { SimRng } from './rng.ts';

/** Whether what armed a timer is still alive; a dead process's timers never fire. */
export interface Power {
  on: boolean;
}

interface Deadline {
  id: number;
  atMs: number;
  tie: number;
  power: Power;
  /** Null once cleared. */
  fn: (() => void) | null;
}
interface Deferred {
  power: Power;
  fn: () => void;
}

export interface SimTime {
  /** Clock and yield for one process, dead when its power is off. `wallOffsetMs` is read at each call. */
  clockFor(power: Power, wallOffsetMs?: () => number): Clock;
  yieldFor(power: Power): Yield;
  readonly monoMs: number;
  /** Does one thing: one yield or one deadline due by `untilMonoMs`, then lets promises settle. False when there was none; time is then there. */
  step(untilMonoMs: number): Promise<boolean>;
  /** True when something waits that needs no time. */
  busy(): boolean;
  pendingTimers(): number;
}

/** Monotonic time starts at 1000 ms, wall time at 2026-01-01T00:00:00Z. */
const MONO_START_MS = 1_000;
export const WALL_START_MS = Date.UTC(2026, 0, 1);
/** How often a deadline that is due goes before a yield that waits. */
const DUE_FIRST = 0.2;

export function simTime(rng: SimRng): SimTime {
  let mono = MONO_START_MS;
  let nextId = 1;
  const heap: Deadline[] = [];
  const byId = new Map<number, Deadline>();
  const yields: Deferred[] = [];

  const before = (a: Deadline, b: Deadline): boolean =>
    a.atMs < b.atMs || (a.atMs === b.atMs && (a.tie < b.tie || (a.tie === b.tie && a.id < b.id)));
  const push = (d: Deadline): void => {
    let i = heap.length;
    heap.push(d);
    while (i > 0) {
      const up = (i - 1) >> 1;
      const parent = heap[up];
      if (parent === undefined || !before(d, parent)) break;
      heap[i] = parent;
      i = up;
    }
    heap[i] = d;
  };
  const pop = (): void => {
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let i = 0;
    for (;;) {
      let at = 2 * i + 1;
      let child = heap[at];
      if (child === undefined) break;
      const right = heap[at + 1];
      if (right !== undefined && before(right, child)) {
        child = right;
        at += 1;
      }
      if (!before(child, last)) break;
      heap[i] = child;
      i = at;
    }
    heap[i] = last;
  };
  /** The next deadline that still matters. */
  const peek = (): Deadline | undefined => {
    for (;;) {
      const first = heap[0];
      if (first === undefined) return undefined;
      if (first.fn !== null && first.power.on) return first;
      pop();
      byId.delete(first.id);
    }
  };
  const takeYield = (): Deferred | undefined => {
    const at = rng.int(yields.length);
    const chosen = yields[at];
    const last = yields.pop();
    if (chosen !== undefined && last !== undefined && chosen !== last) yields[at] = last;
    return chosen;
  };
  const fire = async (d: Deadline): Promise<void> => {
    pop();
    byId.delete(d.id);
    mono = Math.max(mono, d.atMs);
    d.fn?.();
    await drain();
  };

  return {
    clockFor: (power, wallOffsetMs = () => 0) => ({
      monoMs: () => mono,
      wallMs: () => WALL_START_MS - MONO_START_MS + mono + wallOffsetMs(),
      setTimeout(fn, ms) {
        const d: Deadline = { id: nextId++, atMs: mono + Math.max(0, ms), tie: rng.next(), power, fn };
        byId.set(d.id, d);
        push(d);
        return d.id;
      },
      clearTimeout(id) {
        if (typeof id !== 'number') return;
        const d = byId.get(id);
        if (d === undefined) return;
        d.fn = null;
        byId.delete(id);
      },
    }),
    yieldFor: (power) => ({ defer: (fn) => void yields.push({ power, fn }) }),
    get monoMs() {
      return mono;
    },
    async step(untilMonoMs) {
      for (;;) {
        const next = peek();
        if (yields.length > 0 && !(next !== undefined && next.atMs <= mono && rng.chance(DUE_FIRST))) {
          const chosen = takeYield();
          if (chosen === undefined || !chosen.power.on) continue;
          chosen.fn();
          await drain();
          return true;
        }
        if (next === undefined || next.atMs > untilMonoMs) {
          mono = Math.max(mono, untilMonoMs);
          return false;
        }
        await fire(next);
        return true;
      }
    },
    busy: () => yields.some((y) => y.power.on) || (peek()?.atMs ?? Number.POSITIVE_INFINITY) <= mono,
    pendingTimers: () => byId.size,
  };
}
