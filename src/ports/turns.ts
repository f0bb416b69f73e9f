/**
 * One after the other for acts on the same thing: a pod's devices, say, or a file. With the port of files as
 * owner it outlives actors: a killed one's calls go on, and what it still writes, or renames, would come after what its
 * successor writes, and undo it. Such calls end with the process, and so does this.
 */
const turns = new WeakMap<object, Map<string, Promise<void>>>();

/** Does `work` when all that was begun under this owner and key before has ended, whatever came of it. */
export function inTurn<T>(owner: object, key: string, work: () => Promise<T>): Promise<T> {
  const keys = turns.get(owner) ?? new Map<string, Promise<void>>();
  turns.set(owner, keys);
  const mine = (keys.get(key) ?? Promise.resolve()).then(work);
  const over = mine.then(
    () => {},
    () => {},
  );
  keys.set(key, over);
  void over.then(() => {
    if (keys.get(key) === over) keys.delete(key);
  });
  return mine;
}

/**
 * At most so many at once of one key, in the order of the asking. The key is what may hang, so that what a dead server holds
 * up waits behind its like alone.
 */
export class AtOnce {
  readonly #max: number;
  readonly #keys = new Map<string, { running: number; waiting: (() => void)[] }>();

  constructor(max: number) {
    this.#max = max;
  }

  async run<T>(key: string, act: () => Promise<T>): Promise<T> {
    const turns = this.#keys.get(key) ?? { running: 0, waiting: [] };
    this.#keys.set(key, turns);
    if (turns.running === this.#max) await new Promise<void>((resolve) => turns.waiting.push(resolve));
    else turns.running += 1;
    try {
      return await act();
    } finally {
      const next = turns.waiting.shift();
      if (next !== undefined) next();
      else if (turns.running > 1) turns.running -= 1;
      else this.#keys.delete(key);
    }
  }
}

/** One at a time, and in rotation of those who ask: one that asks for much delays another by one piece of work. */
export class InRotation {
  readonly #waiting = new Map<string, (() => void)[]>();
  #busy = false;

  async run<T>(key: string, act: () => Promise<T>): Promise<T> {
    if (this.#busy) {
      await new Promise<void>((resolve) => {
        const mine = this.#waiting.get(key) ?? [];
        mine.push(resolve);
        this.#waiting.set(key, mine);
      });
    } else this.#busy = true;
    try {
      return await act();
    } finally {
      this.#next();
    }
  }

  #next(): void {
    const first = this.#waiting.entries().next().value;
    if (first === undefined) {
      this.#busy = false;
      return;
    }
    const [key, mine] = first;
    const go = mine.shift();
    // Behind the others.
    this.#waiting.delete(key);
    if (mine.length > 0) this.#waiting.set(key, mine);
    go?.();
  }
}
