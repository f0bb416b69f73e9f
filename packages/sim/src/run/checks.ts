/** Asks the checkers of a run about all that happens, and keeps the first broken invariant. */

import type { SimNode } from '@actorlet/world/src/node/types.ts';
import type { CallSeen } from '@actorlet/world/src/runtime/types.ts';
import { allCheckers } from '../invariants/all.ts';
import type { Checker, Scene } from '../invariants/checker.ts';
import type { Violation } from '../result.ts';

type Question = Exclude<keyof Checker, 'name' | 'settled' | 'exited'>;
type About<K extends Question> = Required<Checker>[K] extends (s: Scene, ...about: infer A) => unknown ? A : never;

export interface ChecksOptions {
  sceneOf(node: SimNode): Scene;
  /** When and where a violation is found. */
  now(): Pick<Violation, 'atSeconds' | 'phase'>;
}

export class Checks {
  readonly #o: ChecksOptions;
  readonly #checkers = allCheckers();
  /** The checkers that answer a question: most answer few, and a run asks some hundred thousand. */
  readonly #answering = new Map<Question, Checker[]>();
  #violation: Violation | null = null;

  constructor(o: ChecksOptions) {
    this.#o = o;
  }

  get violation(): Violation | null {
    return this.#violation;
  }

  /** Nothing is broken so far. */
  get hold(): boolean {
    return this.#violation === null;
  }

  fail(invariant: string, what: string): void {
    this.#violation ??= { invariant, what, ...this.#o.now() };
  }

  ask<K extends Question>(question: K, node: SimNode, ...about: About<K>): void {
    if (!this.hold) return;
    const asked = this.#answering.get(question) ?? this.#checkers.filter((c) => c[question] !== undefined);
    this.#answering.set(question, asked);
    const scene = this.#o.sceneOf(node);
    for (const c of asked) {
      // The compiler does not see that the method of this name takes what this name is about.
      const method = c[question] as ((s: Scene, ...about: About<K>) => string | undefined) | undefined;
      const what = method?.call(c, scene, ...about);
      if (what !== undefined) this.fail(c.name, what);
    }
  }

  settled(node: SimNode, call: CallSeen, outcome: 'done' | 'failed' | 'unknown'): void {
    for (const c of this.#checkers) c.settled?.(this.#o.sceneOf(node), call, outcome);
  }

  exited(node: SimNode): void {
    for (const c of this.#checkers) c.exited?.(this.#o.sceneOf(node));
  }
}
