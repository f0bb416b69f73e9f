/** What is due, by its time. */

export interface Due {
  readonly atMs: number;
  readonly order: number;
  readonly seq: number;
  /** Null once cleared. */
  run: (() => void) | null;
}

export class DueQueue {
  readonly #all: Due[] = [];
  #seq = 0;

  /** Of no place yet. */
  make(atMs: number, order: number, run: () => void): Due {
    return { atMs, order, seq: this.#seq++, run };
  }

  push(due: Due): Due {
    let from = 0;
    let to = this.#all.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      const other = this.#all[middle];
      if (other !== undefined && isBefore(other, due)) from = middle + 1;
      else to = middle;
    }
    this.#all.splice(from, 0, due);
    return due;
  }

  /** The next one, with what it does; null: nothing is due up to then. */
  take(untilMs: number): { due: Due; run: () => void } | null {
    for (let [next] = this.#all; next !== undefined && next.atMs <= untilMs; [next] = this.#all) {
      this.#all.shift();
      if (next.run !== null) return { due: next, run: next.run };
    }
    return null;
  }
}

function isBefore(a: Due, b: Due): boolean {
  if (a.atMs !== b.atMs) return a.atMs < b.atMs;
  return a.order === b.order ? a.seq < b.seq : a.order < b.order;
}
