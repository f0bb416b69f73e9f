/** Which inputs of a recording others come of: without them they are not asked for. */
import { briefOf } from '../border.ts';
import { isStream } from '../lenient/answers.ts';
import type { Script } from '../lenient/script.ts';

export class Causes {
  readonly #script: Script;
  /** Of inputs that come again and again: what of. */
  readonly #rounds = new Map<number, string>();
  readonly #kinds = new Map<number, string>();
  /** What comes of each input, by its number. */
  readonly #below: ReadonlyMap<number, readonly number[]>;

  constructor(script: Script) {
    this.#script = script;
    this.#below = Map.groupBy(script.causes.keys(), (input) => script.causes[input] ?? -1);
    for (const { ms, fired } of script.timers) if (fired !== null) this.#rounds.set(fired.order, `timer ${ms}`);
    for (const { fn, name, args, call } of script.asked) {
      const settled = call === null ? undefined : script.settled.get(call);
      if (settled === undefined) continue;
      if (isStream(name)) this.#rounds.set(settled.order, `stream ${fn}`);
      else this.#kinds.set(settled.order, `${name} ${briefOf(args).split(' ')[0]}`);
    }
    for (const [fn, calls] of script.called) for (const { order } of calls) this.#kinds.set(order, `function ${fn}`);
  }

  /** Those that are of one kind: rounds of a loop, answers to the same question. Large kinds come first. */
  kinds(inputs: Iterable<number>): number[][] {
    const all = Map.groupBy(inputs, (input) => this.#rounds.get(input) ?? this.#kinds.get(input) ?? 'other');
    return [...all.values()].sort((a, b) => b.length - a.length);
  }

  /** Those that these inputs come of, with themselves. `once`: of each loop that leads there only the last round. */
  of(inputs: Iterable<number>, { once }: { once: boolean }): Set<number> {
    // The making and the start of the node.
    const kept = new Set(this.#script.done.filter(({ input }) => input[0] === 'told').map(({ order }) => order));
    for (const input of inputs) {
      const path: number[] = [];
      const rounds = new Map<string, number>();
      for (let at = input; at >= 0 && !kept.has(at); at = this.#script.causes[at] ?? -1) {
        const round = once ? this.#rounds.get(at) : undefined;
        const later = round === undefined ? undefined : rounds.get(round);
        if (later === undefined) {
          if (round !== undefined) rounds.set(round, path.length);
          path.push(at);
        } else path.length = later + 1;
      }
      for (const at of path) {
        kept.add(at);
        for (const beside of this.#beside(at)) kept.add(beside);
      }
    }
    return kept;
  }

  /** Answers to what was asked together with what this one comes of, and what they lead to, until it came: a step may wait for all. */
  *#beside(input: number): Generator<number> {
    const waiting = [this.#script.causes[input] ?? -1];
    for (let at = waiting.pop(); at !== undefined && at >= 0; at = waiting.pop()) {
      for (const below of this.#below.get(at) ?? []) {
        if (below >= input || this.#rounds.has(below)) continue;
        yield below;
        waiting.push(below);
      }
    }
  }

  /** Each after what it comes of, and before what comes of something else: what follows one another goes together. */
  sorted(inputs: Iterable<number>): number[] {
    const wanted = new Set(inputs);
    const below = new Map<number, number[]>();
    for (const input of [...wanted].sort((a, b) => a - b)) {
      let cause = this.#script.causes[input] ?? -1;
      while (cause >= 0 && !wanted.has(cause)) cause = this.#script.causes[cause] ?? -1;
      const list = below.get(cause);
      if (list === undefined) below.set(cause, [input]);
      else list.push(input);
    }
    const sorted: number[] = [];
    const waiting = [...(below.get(-1) ?? [])].reverse();
    for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
      sorted.push(at);
      waiting.push(...[...(below.get(at) ?? [])].reverse());
    }
    return sorted;
  }
}
