/**
 * Virtual time: a heap of deadlines and a queue of yields. Deadlines of one instant come in an order the seed decides,
 * so do yields; time moves only when there is nothing to do without it.
 */
import type { Clock, Yield } from '@actorlet/kubelet/ports/ports.ts';
import { drain } from './globals.ts';
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

/** Monotonic time starts at 1000 ms, wall time at 2026-01-01T00:00:00Z. */
const MONO_START_MS = 1_000;
export const WALL_START_MS = Date.UTC(2026, 0, 1);
/** How often a deadline that is due goes before a yield that waits. */
const DUE_FIRST = 0.2;

export class SimTime {
  readonly #rng: SimRng;
  readonly #heap = new DeadlineHeap();
  readonly #byId = new Map<number, Deadline>();
  readonly #yields: Deferred[] = [];
  #mono = MONO_START_MS;
  #nextId = 1;

  constructor(rng: SimRng) {
    this.#rng = rng;
  }

  /** Clock and yield for one process, dead when its power is off. `wallOffsetMs` is read at each call. */
  clockFor(power: Power, wallOffsetMs: () => number = () => 0): Clock {
    return {
      monoMs: () => this.#mono,
      wallMs: () => WALL_START_MS - MONO_START_MS + this.#mono + wallOffsetMs(),
      setTimeout: (fn, ms) => {
        const d: Deadline = { id: this.#nextId++, atMs: this.#mono + Math.max(0, ms), tie: this.#rng.next(), power, fn };
        this.#byId.set(d.id, d);
        this.#heap.push(d);
        return d.id;
      },
      clearTimeout: (id) => {
        if (typeof id !== 'number') return;
        const d = this.#byId.get(id);
        if (d === undefined) return;
        d.fn = null;
        this.#byId.delete(id);
      },
    };
  }

  yieldFor(power: Power): Yield {
    return { defer: (fn) => void this.#yields.push({ power, fn }) };
  }

  get monoMs(): number {
    return this.#mono;
  }

  /** Does one thing: one yield or one deadline due by `untilMonoMs`, then lets promises settle. False when there was none; time is then there. */
  async step(untilMonoMs: number): Promise<boolean> {
    for (;;) {
      const next = this.#peek();
      if (this.#yields.length > 0 && !(next !== undefined && next.atMs <= this.#mono && this.#rng.chance(DUE_FIRST))) {
        const chosen = this.#takeYield();
        if (chosen === undefined || !chosen.power.on) continue;
        chosen.fn();
        await drain();
        return true;
      }
      if (next === undefined || next.atMs > untilMonoMs) {
        this.#mono = Math.max(this.#mono, untilMonoMs);
        return false;
      }
      await this.#fire(next);
      return true;
    }
  }

  /** True when something waits that needs no time. */
  busy(): boolean {
    return this.#yields.some((y) => y.power.on) || (this.#peek()?.atMs ?? Number.POSITIVE_INFINITY) <= this.#mono;
  }

  pendingTimers(): number {
    return this.#byId.size;
  }

  /** The next deadline that still matters. */
  #peek(): Deadline | undefined {
    for (;;) {
      const { first } = this.#heap;
      if (first === undefined) return undefined;
      if (first.fn !== null && first.power.on) return first;
      this.#heap.pop();
      this.#byId.delete(first.id);
    }
  }

  #takeYield(): Deferred | undefined {
    const at = this.#rng.int(this.#yields.length);
    const chosen = this.#yields[at];
    const last = this.#yields.pop();
    if (chosen !== undefined && last !== undefined && chosen !== last) this.#yields[at] = last;
    return chosen;
  }

  async #fire(d: Deadline): Promise<void> {
    this.#heap.pop();
    this.#byId.delete(d.id);
    this.#mono = Math.max(this.#mono, d.atMs);
    d.fn?.();
    await drain();
  }
}

/** A binary heap: the first deadline on top. */
class DeadlineHeap {
  readonly #heap: Deadline[] = [];

  get first(): Deadline | undefined {
    return this.#heap[0];
  }

  push(d: Deadline): void {
    const heap = this.#heap;
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
  }

  /** Removes the first. */
  pop(): void {
    const heap = this.#heap;
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
  }
}

function before(a: Deadline, b: Deadline): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && (a.tie < b.tie || (a.tie === b.tie && a.id < b.id)));
}
