/**
 * What a tree does beyond its recording, once it has gone another way: its timers end by the clock, its turns come in order, and
 * a call that was never made then gets the last answer to the same one.
 */
import type { Json, Now } from '../entries.ts';
import { type Due, DueQueue } from '../player/due.ts';

interface Turn {
  readonly id: number;
  readonly fn: () => void;
  readonly input: number;
}
/** An answer as it was given last. `value` and `failed`: how it was settled; absent: it was not yet. */
interface Answer {
  readonly now: Now;
  settled?: { readonly failed: boolean; readonly value: Json };
}

/** Calls whose last answer is kept; then all are forgotten. */
const ANSWERS_MAX = 4_000;
/** A turn comes within so many inputs. */
const TURN_INPUTS_MAX = 6;

export class Beyond {
  readonly #timers = new DueQueue();
  #turns: Turn[] = [];
  readonly #answers = new Map<string, Answer>();
  readonly #byCall = new Map<number, Answer>();

  /** An answer of the recording. `key`: of the call. `call`: it is settled later. */
  saw(key: string, now: Now, call: number | null): void {
    if (this.#answers.size >= ANSWERS_MAX) this.#answers.clear();
    const answer: Answer = { now };
    this.#answers.set(key, answer);
    if (call !== null) this.#byCall.set(call, answer);
  }

  settled(call: number, failed: boolean, value: Json): void {
    const answer = this.#byCall.get(call);
    if (answer !== undefined) answer.settled = { failed, value };
    this.#byCall.delete(call);
  }

  /** Undefined: it was never asked. */
  last(key: string): Answer | undefined {
    return this.#answers.get(key);
  }

  timer(fn: () => void, dueMs: number): Due {
    return this.#timers.push(this.#timers.make(dueMs, 0, fn));
  }

  turn(id: number, fn: () => void, input: number): void {
    this.#turns.push({ id, fn, input });
  }

  /** The turn of this number, else the oldest one. */
  takeTurn(id: number): void {
    const i = this.#turns.findIndex((turn) => turn.id === id);
    this.#turns.splice(Math.max(0, i), 1)[0]?.fn();
  }

  /** Runs one thing that is due; false: nothing is. */
  catchUp(nowMs: number, input: number): boolean {
    const [first] = this.#turns;
    if (first !== undefined && input - first.input >= TURN_INPUTS_MAX) {
      this.takeTurn(first.id);
      return true;
    }
    const timer = this.#timers.take(nowMs);
    timer?.run();
    return timer !== null;
  }
}
