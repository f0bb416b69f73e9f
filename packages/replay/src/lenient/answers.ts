/** Which recorded call is the one that the tree makes now: made after the same input, with the same arguments, or of the same kind. */
import { briefOf } from '../border.ts';
import type { Json } from '../entries.ts';
import type { Asked, Script } from './script.ts';

interface Line {
  readonly all: Asked[];
  at: number;
}
/** When the tree calls. `order`: number of the input of the recording that it has; null: none. */
interface Moment {
  readonly atMs: number;
  readonly order: number | null;
}

/** Calls that wait for what comes next: none is answered twice. */
export function isStream(name: string): boolean {
  return /\.(?:next|read)$/.test(name);
}

export class Answers {
  readonly #lines = new Map<string, Line>();
  readonly #after = new Map<number, { readonly keys: readonly string[]; readonly asked: Asked }[]>();
  readonly #used = new Set<Asked>();

  constructor({ asked }: Pick<Script, 'asked'>) {
    for (const ask of asked) {
      const keys = keysOf(ask);
      for (const key of keys) {
        const line = this.#lines.get(key);
        if (line === undefined) this.#lines.set(key, { all: [ask], at: 0 });
        else line.all.push(ask);
      }
      const after = this.#after.get(ask.order);
      if (after === undefined) this.#after.set(ask.order, [{ keys, asked: ask }]);
      else after.push({ keys, asked: ask });
    }
  }

  /** Null: nothing like it was ever asked. `again`: it is the answer to an earlier call once more. */
  of(call: { fn: number; name: string; args: Json }, now: Moment): { asked: Asked; again: boolean } | null {
    const keys = keysOf(call);
    const same = this.#afterSame(keys, now.order);
    if (same !== null) return { asked: same, again: false };
    for (const key of keys) {
      const line = this.#lines.get(key);
      if (line === undefined) continue;
      const found = this.#take(line, now.atMs);
      if (found !== null) return { asked: found, again: false };
      // What a stream gave is given once.
      if (isStream(call.name)) return null;
      const last = line.all.at(-1);
      if (last !== undefined) return { asked: last, again: true };
    }
    return null;
  }

  #afterSame(keys: readonly string[], order: number | null): Asked | null {
    const after = order === null ? undefined : this.#after.get(order);
    if (after === undefined) return null;
    for (const [i, key] of keys.entries()) {
      const found = after.find((one) => one.keys[i] === key && !this.#used.has(one.asked));
      if (found === undefined) continue;
      this.#used.add(found.asked);
      return found.asked;
    }
    return null;
  }

  /** The next one, or a later one that is nearer to now: with less going on, the tree asks less often. */
  #take(line: Line, nowMs: number): Asked | null {
    const { all } = line;
    const free = (from: number): number => {
      let at = from;
      for (let ask = all[at]; ask !== undefined && this.#used.has(ask); ask = all[at]) at += 1;
      return at;
    };
    line.at = free(line.at);
    if (!isStream(all[0]?.name ?? ''))
      for (let next = free(line.at + 1); next < all.length; next = free(line.at + 1)) {
        if (Math.abs((all[next]?.atMs ?? 0) - nowMs) >= Math.abs((all[line.at]?.atMs ?? 0) - nowMs)) break;
        line.at = next;
      }
    const asked = all[line.at];
    if (asked === undefined) return null;
    this.#used.add(asked);
    return asked;
  }
}

/** Names of files that are drawn by chance. */
const RANDOM = /(?<![0-9a-f-])[0-9a-f]{8}(?![0-9a-f-])/g;

/** From the most to the least exact. */
function keysOf({ fn, name, args }: { fn: number; name: string; args: Json }): string[] {
  const exact = `${fn} ${name} =${JSON.stringify(args)}`;
  if (fn < 0) return [exact, `${fn} ${name}`];
  const brief = briefOf(args);
  const [first = ''] = brief.split(' ');
  return [exact, `${fn} ${name} ~${brief}`, `${fn} ${name} ${first}`, `${fn} ${name} *${first.replace(RANDOM, '*')}`];
}
