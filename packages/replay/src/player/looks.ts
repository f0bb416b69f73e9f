/** How the clock moves while the tree looks at it, within one input. */

/** From the tree's look number `look` at the clock on, since the last input, it stands `ms` after where it stood. */
export interface Look {
  readonly look: number;
  readonly ms: number;
}

export class Looks {
  #left: readonly Look[] = [];
  #looked = 0;

  /** Those that were not looked at yet, all together. */
  get restMs(): number {
    return this.#left.reduce((sum, { ms }) => sum + ms, 0);
  }

  /** An input comes. */
  begin(looks: readonly Look[]): void {
    this.#left = looks;
    this.#looked = 0;
  }

  /** The tree looks: how far the clock moves. */
  next(): number {
    this.#looked += 1;
    let moved = 0;
    for (; this.#left[0] !== undefined && this.#left[0].look <= this.#looked; this.#left = this.#left.slice(1)) moved += this.#left[0].ms;
    return moved;
  }
}
