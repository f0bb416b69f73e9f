/** Virtual time of a loose world: what is due, in the order of the recording where two things are due at once. */
import type { Clock, Yield } from '@actorlet/kubelet/ports/ports.ts';
import { timerMs } from '../border.ts';
import type { Header } from '../entries.ts';
import type { Look } from '../player/watch.ts';
import type { Edit } from './edit.ts';
import type { Fired, Script, Turned, When } from './script.ts';

interface Due {
  readonly atMs: number;
  readonly order: number;
  readonly seq: number;
  /** Null once cleared. */
  run: (() => void) | null;
}
/** A timer is taken for one of the recording that was set so shortly before or after. */
const SAME_TIMER_MS = 20;
/** Less is done before it: a timer that is set after the same input may end that much earlier or later. */
const APART_MS_MAX = 50;
const FREE = Number.POSITIVE_INFINITY;

export class LooseTime {
  nowMs: number;
  /** Number of the input of the recording that the tree has now; null: this one is not in it. */
  order: number | null = null;
  /** Numbers of all inputs of the recording that the tree had. */
  readonly came = new Set<number>();
  readonly clock: Clock;
  /** Of what is played: its timers are none of the recording's. */
  readonly free: Clock;
  readonly yield: Yield;
  readonly #script: Script;
  readonly #edit: Edit;
  /** Nothing is played: what the tree has is an input of the recording, so long as it does what it did then. */
  readonly #inOrder: boolean;
  readonly #due: Due[] = [];
  readonly #free: (() => void)[] = [];
  readonly #wallOffsetMs: number;
  readonly #timers = new Map<number, Fired[]>();
  readonly #timersAfter: Map<number, Fired[]>;
  readonly #turnsAfter: Map<number, Turned[]>;
  #looked = 0;
  #looks: readonly Look[] = [];
  #seq = 0;

  constructor(script: Script, header: Header, o: { edit: Edit; inOrder: boolean }) {
    this.nowMs = header.monoMs;
    this.#script = script;
    this.#edit = o.edit;
    this.#inOrder = o.inOrder;
    this.#wallOffsetMs = header.wallMs - header.monoMs;
    this.#timersAfter = Map.groupBy(script.timers, ({ order }) => order);
    this.#turnsAfter = Map.groupBy(script.turns, ({ order }) => order);
    for (const timer of script.timers) {
      const same = this.#timers.get(timer.ms);
      if (same === undefined) this.#timers.set(timer.ms, [timer]);
      else same.push(timer);
    }
    this.clock = {
      monoMs: () => this.nowMs,
      wallMs: () => this.nowMs + this.#offsetMs(),
      setTimeout: (fn, ms) => this.#set(fn, ms),
      clearTimeout: (due) => {
        if (typeof due === 'object' && due !== null) (due as Due).run = null;
      },
    };
    this.free = { ...this.clock, setTimeout: (fn, ms) => this.#push({ atMs: this.nowMs + ms, order: FREE }, fn) };
    this.yield = { defer: (fn) => this.#defer(fn) };
  }

  get wallMs(): number {
    return this.clock.wallMs();
  }

  /** Runs it then, or now where that is over. */
  at(when: When, run: () => void): void {
    this.#push(when, run);
  }

  /** The tree looks at the clock, which moves as it did then. */
  look(): void {
    this.#looked += 1;
    for (; this.#looks[0] !== undefined && this.#looks[0].look <= this.#looked; this.#looks = this.#looks.slice(1))
      this.nowMs += this.#looks[0].ms;
  }

  /** Does one thing. False: nothing is left up to `untilMs`. */
  step(untilMs: number): boolean {
    const turn = this.#free.shift();
    if (turn !== undefined) {
      this.#begin(null);
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
      this.#begin(next.order === FREE || !this.#inOrder ? null : next.order);
      next.run();
      return true;
    }
  }

  #begin(order: number | null): void {
    this.order = order;
    if (order !== null) this.came.add(order);
    this.#looked = 0;
    this.#looks = order === null ? [] : (this.#script.looks.get(order) ?? []);
  }

  #offsetMs(): number {
    return this.#script.wall.findLast((w) => w.atMs <= this.nowMs)?.offsetMs ?? this.#wallOffsetMs;
  }

  #defer(fn: () => void): void {
    const ran = this.order === null ? undefined : this.#turnsAfter.get(this.order)?.shift()?.ran;
    // Without a turn the tree stands still.
    if (ran === undefined || ran === null) this.#free.push(fn);
    else this.#push(ran, fn);
  }

  #set(fn: () => void, ms: number): Due {
    const timer = this.#timerAsThen(timerMs(ms));
    const fired = timer === undefined ? null : this.#firing(timer);
    if (fired !== null && this.#edit.keeps(fired.order)) return this.#push(fired, fn);
    // A recording knows whole milliseconds. One that did not fire then was late, at the least, until it was cleared.
    const longerMs = !this.#inOrder || timer === undefined || timer.fired !== null ? 0 : (timer.clearedMs ?? this.#script.endMs) + 1;
    const due = { atMs: Math.max(longerMs, this.nowMs + Math.floor(ms)), order: FREE };
    return this.#edit.isPart ? { ...due, seq: this.#seq++, run: fn } : this.#push(due, fn);
  }

  /** One that was set after the same input; else one of as many milliseconds that was set at about the same time. */
  #timerAsThen(ms: number): Fired | undefined {
    const after = this.order === null ? [] : (this.#timersAfter.get(this.order) ?? []);
    const found =
      after.find((timer) => timer.ms === ms) ??
      after.find((timer) => Math.abs(timer.ms - ms) <= APART_MS_MAX) ??
      this.#timers.get(ms)?.find((timer) => Math.abs(timer.atMs - this.nowMs) <= SAME_TIMER_MS);
    if (found === undefined) return undefined;
    for (const list of [this.#timersAfter.get(found.order), this.#timers.get(found.ms)]) list?.splice(list.indexOf(found), 1);
    return found;
  }

  /** Where a round of a loop is left out, its timer is that of the next round which is not. */
  #firing({ ms, fired }: Fired): When | null {
    let at = fired;
    while (at !== null && !this.#edit.keeps(at.order)) {
      const before: When = at;
      const next = this.#timers.get(ms)?.find((timer) => timer.order >= before.order && this.#comesOf(timer.order, before.order));
      at = next?.fired ?? null;
    }
    return at;
  }

  #comesOf(order: number, cause: number): boolean {
    let at = order;
    while (at > cause) at = this.#script.causes[at] ?? -1;
    return at === cause;
  }

  #push({ atMs, order }: When, run: () => void): Due {
    const due: Due = { atMs: Math.max(atMs, this.nowMs), order, seq: this.#seq++, run };
    // Past its end only timers are due, and nothing answers what they ask.
    if (due.atMs > this.#script.endMs + SAME_TIMER_MS && order !== FREE) return due;
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
