/** What was known under each key, and from when on. Pure. */

interface Mark<V> {
  readonly atMs: number;
  /** Counts all marks. */
  readonly seq: number;
  /** `seq` of the mark with which the key came. */
  readonly came: number;
  /** Null: from here on it is gone. */
  readonly read: (() => V) | null;
}

export class Marks<V> {
  readonly #byChange: boolean;
  readonly #marks = new Map<string, Mark<V>[]>();
  #seq = 0;
  /** A clock that was set back does not undo what was. */
  #nowMs = Number.NEGATIVE_INFINITY;

  /** `byChange`: keys are in the order in which they changed last. Default: in that in which they came. */
  constructor(byChange = false) {
    this.#byChange = byChange;
  }

  put(key: string, atMs: number, read: (() => V) | null): void {
    this.#nowMs = Math.max(this.#nowMs, atMs);
    this.#seq += 1;
    const marks = this.#marks.get(key) ?? [];
    this.#marks.set(key, marks);
    const last = marks.at(-1);
    const stays = !this.#byChange && last !== undefined && last.read !== null;
    marks.push({ atMs: this.#nowMs, seq: this.#seq, came: stays ? last.came : this.#seq, read });
  }

  /** From then on there is nothing. */
  end(atMs: number): void {
    for (const [key, marks] of this.#marks) if (marks.at(-1)?.read !== null) this.put(key, atMs, null);
  }

  of(key: string): readonly Mark<V>[] {
    return this.#marks.get(key) ?? [];
  }

  partAt(key: string, atMs: number): V | undefined {
    return this.#markAt(this.#marks.get(key) ?? [], atMs)?.read?.();
  }

  /** All keys that there are at that moment, in order. */
  at(atMs: number): ReadonlyMap<string, V> {
    const there = [...this.#marks].flatMap(([key, marks]) => {
      const mark = this.#markAt(marks, atMs);
      return mark === undefined || mark.read === null ? [] : [{ key, came: mark.came, read: mark.read }];
    });
    there.sort((a, b) => a.came - b.came);
    return new Map(there.map(({ key, read }) => [key, read()]));
  }

  #markAt(marks: readonly Mark<V>[], atMs: number): Mark<V> | undefined {
    let [low, high] = [0, marks.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((marks[middle]?.atMs ?? 0) <= atMs) low = middle + 1;
      else high = middle;
    }
    return marks[low - 1];
  }
}
