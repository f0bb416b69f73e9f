/** Which recorded call is the one that the tree makes now: the same arguments, the same names in them, or the same kind. */
import { briefOf } from '../border.ts';
import type { Json } from '../entries.ts';
import type { Asked, Script } from './script.ts';

interface Line {
  readonly all: Asked[];
  at: number;
}

/** Calls that wait for what comes next: none is answered twice. */
export function isStream(name: string): boolean {
  return /\.(?:next|read)$/.test(name);
}

export class Answers {
  readonly #lines = new Map<string, Line>();

  constructor({ asked }: Pick<Script, 'asked'>) {
    for (const ask of asked) {
      for (const key of keysOf(ask)) {
        const line = this.#lines.get(key);
        if (line === undefined) this.#lines.set(key, { all: [ask], at: 0 });
        else line.all.push(ask);
      }
    }
  }

  /** Null: nothing like it was ever asked. `again`: it is the answer to an earlier call once more. */
  of(call: { fn: number; name: string; args: Json }, nowMs: number): { asked: Asked; again: boolean } | null {
    for (const key of keysOf(call)) {
      const line = this.#lines.get(key);
      if (line === undefined) continue;
      const found = take(line, nowMs);
      if (found !== null) return found;
      // What a stream gave is given once.
      if (isStream(call.name)) return null;
      const last = line.all.at(-1);
      if (last !== undefined) return { asked: last, again: true };
    }
    return null;
  }
}

/** The next one, or a later one that is nearer to now: with less going on, the tree asks less often. */
function take(line: Line, nowMs: number): { asked: Asked; again: boolean } | null {
  const { all } = line;
  if (!isStream(all[0]?.name ?? ''))
    for (let next = all[line.at + 1]; next !== undefined; next = all[line.at + 1]) {
      if (Math.abs(next.atMs - nowMs) >= Math.abs((all[line.at]?.atMs ?? 0) - nowMs)) break;
      line.at += 1;
    }
  const asked = all[line.at];
  if (asked === undefined) return null;
  line.at += 1;
  return { asked, again: false };
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
