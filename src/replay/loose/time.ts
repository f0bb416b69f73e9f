/** Virtual time of a loose world: what is due, in the order of the recording where two things are due at once. */
import type { Clock, Yield } from '../../ports/ports.ts';
import { timerMs } from '../border.ts';
import type { Header } from '../entries.ts';
import type { Fired, Script, When } from './script.ts';

interface Due {
  readonly atMs: number;
  readonly order: number;
  readonly seq: number;
  /** Null once cleared. */
  run: (() => void) | null;
}
/** A timer is taken for one of the recording that was set so shortly before or after. */
const SAME_TIMER_MS = 20;

export class LooseTime {
  nowMs: number;
  readonly clock: Clock;
  readonly yield: Yield;
  readonly #due: Due[] = [];
  readonly #turns: (() => void)[] = [];
  readonly #wall: Script['wall'];
  readonly #wallOffsetMs: number;
  readonly #timers = new Map<number, Fired[]>();
  readonly #endMs: number;
  #seq = 0;

  constructor({ wall, timers, endMs }: Script, header: Header) {
    this.nowMs = header.monoMs;
    this.#wall = wall;
    this.#wallOffsetMs = header.wallMs - header.monoMs;
    this.#endMs = endMs;
    for (const timer of timers) {
      const same = this.#timers.get(timer.ms);
      if (same === undefined) this.#timers.set(timer.ms, [timer]);
      else same.push(timer);
    }
    this.clock = {
      monoMs: () => this.nowMs,
      wallMs: () => this.nowMs + this.#offsetMs(),
      setTimeout: (fn, ms) => this.#push({ atMs: this.#firesMs(ms), order: Number.POSITIVE_INFINITY }, fn),
      clearTimeout: (due) => {
        if (typeof due === 'object' && due !== null) (due as Due).run = null;
      },
    };
    this.yield = { defer: (fn) => void this.#turns.push(fn) };
  }

  get wallMs(): number {
    return this.clock.wallMs();
  }

  /** Runs it then, or now where that is over. */
  at(when: When, run: () => void): void {
    this.#push(when, run);
  }

  /** Does one thing. False: nothing is left up to `untilMs`. */
  step(untilMs: number): boolean {
    const turn = this.#turns.shift();
    if (turn !== undefined) {
      turn();
      return true;
    }
    for (;;) {
      const [next] = this.#due;
      if (next === undefined || next.atMs > untilMs) {
        this.nowMs = Math.max(this.nowMs, untilMs);
        return false;
      }
      this.#due.shift();
      if (next.run === null) continue;
      this.nowMs = Math.max(this.nowMs, next.atMs);
      next.run();
      return true;
    }
  }

  #offsetMs(): number {
    return this.#wall.findLast((w) => w.atMs <= this.nowMs)?.offsetMs ?? this.#wallOffsetMs;
  }

  /** Timers of a machine are late, each by as much as it was then. */
  #firesMs(ms: number): number {
    const same = this.#timers.get(timerMs(ms));
    const at = same?.findIndex((t) => Math.abs(t.setMs - this.nowMs) <= SAME_TIMER_MS) ?? -1;
    const [timer] = at < 0 ? [] : (same?.splice(at, 1) ?? []);
    const asThen = timer === undefined || timer.firedMs === null ? 0 : timer.firedMs - timer.setMs;
    // A recording knows whole milliseconds.
    return this.nowMs + Math.max(asThen, Math.floor(ms));
  }

  #push({ atMs, order }: When, run: () => void): Due {
    const due: Due = { atMs: Math.max(atMs, this.nowMs), order, seq: this.#seq++, run };
    // Past its end only timers are due, and nothing answers what they ask.
    if (due.atMs > this.#endMs + SAME_TIMER_MS && Number.isFinite(order)) return due;
    let from = 0;
    let to = this.#due.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      const other = this.#due[middle];
      if (other !== undefined && isBefore(other, due)) from = middle + 1;
      else to = middle;
    }
    this.#due.splice(from, 0, due);
    return due;
  }
}

function isBefore(a: Due, b: Due): boolean {
  if (a.atMs !== b.atMs) return a.atMs < b.atMs;
  return a.order === b.order ? a.seq < b.seq : a.order < b.order;
}
