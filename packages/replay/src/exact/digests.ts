/** Digests of what the tree says. Where names were replaced after the recording, those of then. */
import { isSpelled, SPELLED, shortDigest } from '../border.ts';
import type { Json, Outcome } from '../entries.ts';
import type { PlayerInput } from '../player/watch.ts';

export class SaidDigests {
  readonly #o: PlayerInput;
  readonly #then: ReadonlyMap<string, string>;

  constructor(o: PlayerInput) {
    this.#o = o;
    this.#then = new Map(Object.entries(o.header.digests ?? {}));
  }

  of(json: Json): string {
    return this.#asThen('md5Hex', json, shortDigest(this.#o.entropy.md5Hex, json));
  }

  /** Of a call, as a recording has it. */
  ofArguments(args: Json): string {
    return isSpelled(args) ? SPELLED : this.of(args);
  }

  /** That the tree asks for. */
  ofText(by: 'md5Hex' | 'sha256Hex', text: string | Uint8Array): string {
    const digest = this.#o.entropy[by](text);
    return typeof text === 'string' ? this.#asThen(by, text, digest) : digest;
  }

  #asThen(by: 'md5Hex' | 'sha256Hex', json: Json, digest: string): string {
    this.#o.watch?.digested?.(by, json, digest);
    return this.#then.get(digest) ?? digest;
  }
}

/** Where a recording was cut down under other names, the digest of what was said is not known. */
export function sameArguments(then: Outcome, now: Outcome): boolean {
  if (then[2] === '') return then[4] === now[4];
  return then[2] === now[2] && (then[2] !== SPELLED || then[4] === now[4]);
}
