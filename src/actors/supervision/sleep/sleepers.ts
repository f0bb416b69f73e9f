/** Which children of one dynamic supervisor rest, which sleep, and when a timer of a sleeper is due: one wheel for all of them. */

import { isPowerOfTwo, toError } from '../errors.ts';
import type { TreeServices } from '../services.ts';
import type { ActorCtx, Passivation } from '../types.ts';
import { type OnWheel, Wheel } from './wheel.ts';

/** A child, as far as its sleep goes. */
export interface Sleeper extends OnWheel {
  readonly path: string;
  readonly spec: { readonly passivate?: Passivation };
  readonly isUp: boolean;
  readonly isAsleep: boolean;
  readonly dueAtMonoMs: number | null;
  /** Falls asleep if it rested since the last look. */
  rests(): boolean;
  look(ctx: ActorCtx): number | null;
  wake(): void;
}

interface Of {
  /** Of the supervisor; null: it has ended. */
  ctx(): ActorCtx<never> | null;
  /** Nobody falls asleep while messages wait: one may be for it. */
  hasMail(): boolean;
}

export class Sleepers<C extends Sleeper> {
  readonly #path: string;
  readonly #services: TreeServices;
  readonly #of: Of;
  readonly #wheel: Wheel<C>;
  #failures = 0;

  constructor(path: string, services: TreeServices, of: Of) {
    this.#path = path;
    this.#services = services;
    this.#of = of;
    this.#wheel = new Wheel(services.ports.clock, (due, now) => services.scheduler.post(path, () => this.#due(due, now)));
  }

  /** It is up: looked at from now on, if it ever sleeps. */
  watch(child: C): void {
    const { passivate } = child.spec;
    if (passivate === undefined) return;
    const now = this.#services.ports.clock.monoMs();
    this.#wheel.set(child, now + passivate.afterMs, now);
  }

  forget(child: C): void {
    this.#wheel.delete(child);
  }

  /** What it kept is tried once: if it cannot start with it, it has crashed, and starts without. */
  wake(child: C): void {
    this.#wheel.delete(child);
    child.wake();
  }

  #due(children: readonly C[], now: number): void {
    for (const child of children) {
      // Woken, ended or set anew since.
      if (child.slot !== null) continue;
      if (child.isAsleep) this.#timer(child, now);
      else if (child.isUp) this.#look(child, now);
    }
  }

  #look(child: C, now: number): void {
    let sleeps = false;
    try {
      sleeps = !this.#of.hasMail() && child.rests();
    } catch (thrown) {
      this.#complain(child, thrown, 'it stays awake');
    }
    if (!sleeps) this.#wheel.set(child, now + (child.spec.passivate?.afterMs ?? 0), now);
    else if (child.dueAtMonoMs !== null) this.#wheel.set(child, child.dueAtMonoMs, now);
  }

  #timer(child: C, now: number): void {
    let next: number | null = null;
    try {
      const ctx = this.#of.ctx();
      next = ctx === null ? null : child.look(ctx as ActorCtx);
    } catch (thrown) {
      this.#complain(child, thrown, 'it is woken');
    }
    if (next === null) this.wake(child);
    else this.#wheel.set(child, next, now);
  }

  #complain(child: C, thrown: unknown, then: string): void {
    this.#failures += 1;
    if (!isPowerOfTwo(this.#failures)) return;
    this.#services.log.error(
      { actor: child.path, by: this.#path, failures: this.#failures, err: toError(thrown) },
      `what the actor does to sleep threw; ${then}`,
    );
  }
}
