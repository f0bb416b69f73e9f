/** What a recording tells of the world: which call had which answer and when, which events came, without their numbers. */
import type { ByHand, Input, Json, Now } from '../entries.ts';
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
export interface Fired {
  readonly setMs: number;
  readonly ms: number;
  /** Null: it was cleared, or the recording ended before. */
  firedMs: number | null;
}
/** A number that was drawn by chance. */
export interface Draw {
  readonly atMs: number;
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
  readonly draws: readonly Draw[];
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
  readonly #draws: Draw[] = [];
  readonly #wall: { atMs: number; offsetMs: number }[] = [];
  #within: Called[] = [];
  #now: When = { atMs: 0, order: -1 };
  /** The function that the input itself calls; null once it was. */
  #calls: number | null = null;

  get nowMs(): number {
    return this.#now.atMs;
  }

  script(): Script {
    return {
      ...{ asked: this.#asked, settled: this.#settled, called: this.#called, aborted: this.#aborted, done: this.#done },
      ...{ timers: this.#timers, draws: this.#draws, wall: this.#wall, endMs: this.#now.atMs },
    };
  }

  input(input: Input, { monoMs, wallOffsetMs }: { monoMs: number; wallOffsetMs: number }): void {
    this.#now = { atMs: monoMs, order: this.#now.order + 1 };
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
        if (timer !== undefined) timer.firedMs = monoMs;
        return;
      }
      case 'aborted':
        this.#aborted.set(input[2], this.#now);
        return;
      case 'turn':
        return;
      default:
        this.#done.push({ ...this.#now, input });
    }
  }

  asked(ask: Parameters<PlayerWatch['asked']>[0]): void {
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
  }

  drew(value: number): void {
    this.#draws.push({ atMs: this.#now.atMs, value });
  }

  set(_timer: number, ms: number): void {
    this.#timers.push({ setMs: this.#now.atMs, ms, firedMs: null });
  }
}

/** Functions among the arguments are numbered through the whole recording. */
function numberedFromZero(args: Json, { from, to }: Range): Json {
  if (from === to) return args;
  const text = JSON.stringify(args).replace(/\{"\$":"i","v":(\d+)\}/g, (_, id: string) => `{"$":"i","v":${Number(id) - from}}`);
  return JSON.parse(text) as Json;
}
