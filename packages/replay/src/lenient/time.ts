/** Virtual time of a lenient run: what is due, in the order of the recording where two things are due at once. */
import type { Clock, Yield } from '@actorlet/kubelet/ports/ports.ts';
import { timerMs } from '../border.ts';
import type { Header } from '../entries.ts';
import { type Due, DueQueue } from '../player/due.ts';
import { Looks } from '../player/looks.ts';
import type { Edit } from './edit.ts';
import type { Fired, Script, Turned, When } from './script.ts';

/** A timer is taken for one of the recording that was set so shortly before or after. */
const SAME_TIMER_MS = 20;
/** Less is done before it: a timer that is set after the same input may end that much earlier or later. */
const APART_MS_MAX = 50;
const FREE = Number.POSITIVE_INFINITY;

export class LenientTime {
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
  readonly #due = new DueQueue();
  readonly #free: (() => void)[] = [];
  readonly #wallOffsetMs: number;
  readonly #timers = new Map<number, Fired[]>();
  readonly #timersAfter: Map<number, Fired[]>;
  readonly #turnsAfter: Map<number, Turned[]>;
  readonly #looks = new Looks();

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
    this.nowMs += this.#looks.next();
  }

  /** Does one thing. False: nothing is left up to `untilMs`. */
  step(untilMs: number): boolean {
    const turn = this.#free.shift();
    if (turn !== undefined) {
      this.#begin(null);
      turn();
      return true;
    }
    const next = this.#due.take(untilMs);
    if (next === null) {
      this.nowMs = Math.max(this.nowMs, untilMs);
      return false;
    }
    const { atMs, order } = next.due;
    this.nowMs = Math.max(this.nowMs, atMs);
    this.#begin(order === FREE || !this.#inOrder ? null : order);
    next.run();
    return true;
  }

  #begin(order: number | null): void {
    this.order = order;
    if (order !== null) this.came.add(order);
    this.#looks.begin(order === null ? [] : (this.#script.looks.get(order) ?? []));
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
    // As in Node no timer fires in the millisecond in which it is set: one that is early by a part of it is set again and again.
    const due = { atMs: Math.max(longerMs, this.nowMs + Math.max(1, Math.floor(ms))), order: FREE };
    const fires = !this.#edit.isPart || (this.#edit.firesCleared && timer?.fired === null);
    return fires ? this.#push(due, fn) : this.#due.make(due.atMs, FREE, fn);
  }

  /** One that was set after the same input; else one of as many milliseconds that was set at about the same time. */
  #timerAsThen(ms: number): Fired | undefined {
    const after = this.order === null ? [] : (this.#timersAfter.get(this.order) ?? []);
    const found =
      after.find((timer) => timer.ms === ms) ??
      after.find((timer) => Math.abs(timer.ms - ms) <= APART_MS_MAX) ??
      this.#timers.get(ms)?.find((timer) => Math.abs(timer.atMs - this.nowMs) <= SAME_TIMER_MS) ??
      (this.#edit.firesCleared ? this.#clearedOf(this.nowMs + ms) : undefined);
    if (found === undefined) return undefined;
    for (const list of [this.#timersAfter.get(found.order), this.#timers.get(found.ms)]) list?.splice(list.indexOf(found), 1);
    return found;
  }

  /** One that would have ended then: its actor began a little earlier, or later. */
  #clearedOf(endMs: number): Fired | undefined {
    return this.#script.timers.find((timer) => timer.fired === null && Math.abs(timer.atMs + timer.ms - endMs) <= APART_MS_MAX);
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
    const due = this.#due.make(Math.max(atMs, this.nowMs), order, run);
    // Past its end only timers are due, and nothing answers what they ask.
    return due.atMs > this.#script.endMs + SAME_TIMER_MS && order !== FREE ? due : this.#due.push(due);
  }
}
