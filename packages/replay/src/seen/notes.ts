/** Lines of a recording that tell who does something, and what a digest is of. A replay says with them what differs. */
import { SPELLED } from '../border.ts';
import type { Json } from '../entries.ts';
import { BODIES_MAX, type Lines } from '../lines.ts';
import { saidOf } from './said.ts';
import { type By, type WhoActs, Whose } from './whose.ts';

export class Notes {
  readonly whose: Whose;
  readonly #lines: Lines;
  /** The last one that is written. */
  #by: By = { path: '', event: '' };
  /** Digests of what is written. */
  readonly #said = new Set<string>();

  constructor(lines: Lines, who: WhoActs | undefined) {
    this.whose = new Whose(who);
    this.#lines = lines;
  }

  /** Before the line of what is done: by whom, where that is another one than before. */
  does(): void {
    const { by } = this.whose;
    if (by.path === this.#by.path && by.event === this.#by.event) return;
    this.#by = by;
    this.#lines.write(JSON.stringify(['by', by.path, by.event]));
  }

  /** Before the line that names the digest: what it is of, once. */
  says(digest: string, json: Json): void {
    this.does();
    if (digest === SPELLED || this.#said.has(digest)) return;
    if (this.#said.size >= BODIES_MAX) this.#said.clear();
    this.#said.add(digest);
    this.#lines.write(`["said","${digest}",${this.#lines.value(saidOf(json, this.#lines.digest))}]`);
  }
}
