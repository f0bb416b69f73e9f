/** A bounded queue between a pushing stream and one pulling reader; overflow ends it, because a lost hint is a lost stream. */

interface Waiter<T> {
  resolve(r: IteratorResult<T>): void;
  reject(e: Error): void;
}

export class HintQueue<T> implements AsyncIterable<T> {
  #items: T[] = [];
  #waiter: Waiter<T> | undefined;
  #end: { error: Error | undefined } | undefined;
  readonly #itemsMax: number;
  readonly #onReturn: () => void;

  constructor(itemsMax: number, onReturn: () => void) {
    this.#itemsMax = itemsMax;
    this.#onReturn = onReturn;
  }

  /** False when the queue is full or ended: the caller should end the stream. */
  push(item: T): boolean {
    if (this.#end !== undefined) return false;
    if (this.#waiter !== undefined) {
      const waiter = this.#waiter;
      this.#waiter = undefined;
      waiter.resolve({ done: false, value: item });
      return true;
    }
    if (this.#items.length >= this.#itemsMax) return false;
    this.#items.push(item);
    return true;
  }

  /** After what is queued, the reader sees the end (or the error). */
  end(error?: Error): void {
    if (this.#end !== undefined) return;
    this.#end = { error };
    const waiter = this.#waiter;
    this.#waiter = undefined;
    if (waiter === undefined) return;
    if (error === undefined) waiter.resolve({ done: true, value: undefined });
    else waiter.reject(error);
  }

  [Symbol.asyncIterator](): AsyncIterator<T> {
    return {
      next: () => {
        const item = this.#items.shift();
        if (item !== undefined) return Promise.resolve({ done: false, value: item });
        if (this.#end !== undefined) {
          return this.#end.error === undefined ? Promise.resolve({ done: true, value: undefined }) : Promise.reject(this.#end.error);
        }
        return new Promise((resolve, reject) => {
          this.#waiter = { resolve, reject };
        });
      },
      return: () => {
        this.#onReturn();
        this.end();
        return Promise.resolve({ done: true, value: undefined });
      },
    };
  }
}
