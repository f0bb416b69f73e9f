/**
 * Fan-out of supervision events to inspectors. The only place where an observer is called: what it throws stays here, since a
 * throw that reached xstate would wedge the actor for ever.
 */

import type { Logger } from '../../ports/ports.ts';
import { isPowerOfTwo, toError } from './errors.ts';
import type { SupervisionEvent } from './types.ts';

export type Observer = (e: SupervisionEvent) => void;

export class Observers {
  #list: readonly Observer[] = [];
  #failures = 0;
  #touched: readonly ((path: string) => void)[] = [];
  readonly #log: Logger;

  constructor(log: Logger, initial: readonly Observer[] = []) {
    this.#log = log;
    this.#list = [...initial];
  }

  /** False when nobody listens: the caller may then skip building the event. */
  get any(): boolean {
    return this.#list.length > 0;
  }

  add(fn: Observer): Disposable {
    // Wrapped so that the same function added twice is two observers, each with its own disposer.
    const own: Observer = (e) => fn(e);
    this.#list = [...this.#list, own];
    return {
      [Symbol.dispose]: () => {
        this.#list = this.#list.filter((o) => o !== own);
      },
    };
  }

  emit(event: SupervisionEvent): void {
    for (const fn of this.#list) this.guard(() => fn(event), event.kind);
  }

  /** Called after each change of what is shown of an actor. */
  watch(fn: (path: string) => void): Disposable {
    const own = (path: string) => fn(path);
    this.#touched = [...this.#touched, own];
    return {
      [Symbol.dispose]: () => {
        this.#touched = this.#touched.filter((o) => o !== own);
      },
    };
  }
  /** What is shown of the actor at `path` may be something else now. */
  touch(path: string): void {
    for (const fn of this.#touched) this.guard(() => fn(path), 'a change');
  }

  /** Runs anything given by an observer; never throws. */
  guard(fn: () => void, about: string): void {
    try {
      fn();
    } catch (thrown) {
      this.#failures += 1;
      if (!isPowerOfTwo(this.#failures)) return;
      this.#log.error({ about, failures: this.#failures, err: toError(thrown) }, 'an observer threw; the actors are not affected');
    }
  }
}
