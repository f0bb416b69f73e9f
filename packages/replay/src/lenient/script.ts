/** What a recording tells of the world: which call had which answer and when, which events came, without their numbers. */
import type { ByHand, Input, Json, Now } from '../entries.ts';
import type { Look } from '../player/looks.ts';
import type { PlayerWatch, Range } from '../player/watch.ts';

/** When something came in. `order`: number of the input. */
export interface When {
  readonly atMs: number;
  readonly order: number;
}
export interface Asked extends When {
  /** Number of the function that was called; -1: a digest or random bytes. */
  readonly fn: number;
  readonly name: string;
  readonly args: Json;
  readonly insides: Range;
  readonly call: number | null;
  readonly now: Now;
  /** Functions of the tree that were called before this call returned. */
  readonly within: readonly Called[];
}
export interface Called extends When {
  readonly fn: number;
  readonly args: Json;
  /** Functions in what the tree answered. */
  readonly answer: { insides: Range | null };
}
export interface Settled extends When {
  readonly failed: boolean;
  readonly value: Json;
}
/** A timer that the tree set. `atMs`, `order`: when it did. */
export interface Fired extends When {
  readonly ms: number;
  /** Null: it was cleared, or the recording ended before. */
  fired: When | null;
  /** Null: it fired, or the recording ended before. */
  clearedMs: number | null;
}
/** A turn that the tree asked for. */
export interface Turned extends When {
  /** Null: the recording ended before. */
  ran: When | null;
}
/** A number that was drawn by chance. */
export interface Draw extends When {
  readonly value: number;
}
/** What was done to the node from outside its ports. */
export interface Done extends When {
  readonly input: ByHand;
}
export interface Script {
  readonly asked: readonly Asked[];
  readonly settled: ReadonlyMap<number, Settled>;
  /** By number of the function. */
  readonly called: ReadonlyMap<number, readonly Called[]>;
  readonly aborted: ReadonlyMap<number, When>;
  readonly done: readonly Done[];
  readonly timers: readonly Fired[];
  readonly turns: readonly Turned[];
  readonly draws: readonly Draw[];
  /** How the clock moved while the tree looked at it, by number of the input. */
  readonly looks: ReadonlyMap<number, readonly Look[]>;
  /** Of each input, by its number: that after which the tree asked for it, or set its timer; -1: nothing did. */
  readonly causes: readonly number[];
  /** Wall time less monotonic time, and from when on. */
  readonly wall: readonly { readonly atMs: number; readonly offsetMs: number }[];
  readonly endMs: number;
}

/** Hears a replay of the recording. */
export class Learner implements PlayerWatch {
  readonly #asked: Asked[] = [];
  readonly #settled = new Map<number, Settled>();
  readonly #called = new Map<number, Called[]>();
  readonly #answers = new Map<number, { insides: Range | null }>();
  readonly #aborted = new Map<number, When>();
  readonly #done: Done[] = [];
  readonly #timers: Fired[] = [];
  readonly #turns: Turned[] = [];
  readonly #draws: Draw[] = [];
  readonly #looks = new Map<number, readonly Look[]>();
  readonly #causes: number[] = [];
  /** Numbers of the inputs after which calls were made, and functions given, by their numbers. */
  readonly #calledAfter = new Map<number, number>();
  readonly #givenAfter = new Map<number, number>();
  readonly #wall: { atMs: number; offsetMs: number }[] = [];
  #within: Called[] = [];
  #now: When = { atMs: 0, order: -1 };
  /** The function that the input itself calls; null once it was. */
  #calls: number | null = null;

  /** When the last input came. */
  get now(): When {
    return this.#now;
  }

  script(): Script {
    return {
      ...{ asked: this.#asked, settled: this.#settled, called: this.#called, aborted: this.#aborted, done: this.#done },
      ...{ timers: this.#timers, turns: this.#turns, draws: this.#draws, looks: this.#looks, causes: this.#causes },
      ...{ wall: this.#wall, endMs: this.#now.atMs },
    };
  }

  input(input: Input, { monoMs, wallOffsetMs, looks }: Parameters<PlayerWatch['input']>[1]): void {
    this.#now = { atMs: monoMs, order: this.#now.order + 1 };
    this.#causes.push(this.#causeOf(input) ?? -1);
    if (looks.length > 0) this.#looks.set(this.#now.order, looks);
    if (this.#wall.at(-1)?.offsetMs !== wallOffsetMs) this.#wall.push({ atMs: monoMs, offsetMs: wallOffsetMs });
    this.#calls = null;
    switch (input[0]) {
      case 'settled':
      case 'failed':
        this.#settled.set(input[2], { ...this.#now, failed: input[0] === 'failed', value: input[3] });
        return;
      case 'called':
        this.#calls = input[2];
        return;
      case 'timer': {
        const timer = this.#timers[input[2]];
        if (timer !== undefined) timer.fired = this.#now;
        return;
      }
      case 'aborted':
        this.#aborted.set(input[2], this.#now);
        return;
      case 'turn': {
        const turn = this.#turns[input[2]];
        if (turn !== undefined) turn.ran = this.#now;
        return;
      }
      default:
        this.#done.push({ ...this.#now, input });
    }
  }

  #causeOf(input: Input): number | undefined {
    switch (input[0]) {
      case 'settled':
      case 'failed':
        return this.#calledAfter.get(input[2]);
      case 'called':
        return this.#givenAfter.get(input[2]);
      case 'timer':
        return this.#timers[input[2]]?.order;
      case 'turn':
        return this.#turns[input[2]]?.order;
      default:
        return undefined;
    }
  }

  asked(ask: Parameters<PlayerWatch['asked']>[0]): void {
    if (ask.call !== null) this.#calledAfter.set(ask.call, this.#now.order);
    this.#given(ask.insides);
    this.#asked.push({ ...this.#now, ...ask, args: numberedFromZero(ask.args, ask.insides), within: this.#within });
    this.#within = [];
  }

  called({ fn, of, args }: Parameters<PlayerWatch['called']>[0]): void {
    const answer = { insides: null };
    this.#answers.set(of, answer);
    const call: Called = { ...this.#now, fn, args, answer };
    if (this.#calls !== fn) {
      this.#within.push(call);
      return;
    }
    this.#calls = null;
    const all = this.#called.get(fn);
    if (all === undefined) this.#called.set(fn, [call]);
    else all.push(call);
  }

  answered(of: number, insides: Range): void {
    const answer = this.#answers.get(of);
    if (answer !== undefined) answer.insides = insides;
    this.#given(insides);
  }

  #given({ from, to }: Range): void {
    for (let fn = from; fn < to; fn++) this.#givenAfter.set(fn, this.#now.order);
  }

  drew(value: number): void {
    this.#draws.push({ ...this.#now, value });
  }

  set(_timer: number, ms: number): void {
    this.#timers.push({ ...this.#now, ms, fired: null, clearedMs: null });
  }

  cleared(id: number): void {
    const timer = this.#timers[id];
    if (timer !== undefined) timer.clearedMs = this.#now.atMs;
  }

  deferred(): void {
    this.#turns.push({ ...this.#now, ran: null });
  }
}

/** Functions among the arguments are numbered through the whole recording. */
function numberedFromZero(args: Json, { from, to }: Range): Json {
  if (from === to) return args;
  const text = JSON.stringify(args).replace(/\{"\$":"i","v":(\d+)\}/g, (_, id: string) => `{"$":"i","v":${Number(id) - from}}`);
  return JSON.parse(text) as Json;
}
