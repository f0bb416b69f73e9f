/** Whose doing something is: the actor whose step began it, else the one that gave the outside the function that is called. */
import { eventName } from '@actorlet/kubelet/actors/supervision/nodes/snapshots.ts';
import type { Acting } from '@actorlet/kubelet/actors/supervision/scheduler.ts';

/** `event`: the one that the actor took last. */
export interface By {
  readonly path: string;
  readonly event: string;
}

/** How actors are known beyond their steps. */
export interface WhoActs {
  /** For the tree. */
  readonly acting: Acting;
  /** The actor whose step began what runs now. */
  now(): By | undefined;
  /** What runs from here on is of no actor. */
  leave(): void;
}

const NOBODY: By = { path: '', event: '' };
/** Functions of the tree whose giver is remembered; the oldest one goes. Most are given at the start. */
const GIVEN_MAX = 4_096;

export class Whose {
  readonly #who: WhoActs | undefined;
  readonly #given = new Map<number, By>();
  #input: By = NOBODY;

  /** @param who Absent: it is not asked whose anything is. */
  constructor(who: WhoActs | undefined) {
    this.#who = who;
  }

  /** Now. */
  get by(): By {
    const now = this.#who?.now();
    return now === undefined || now.path === '' ? this.#input : { path: now.path, event: eventName(now.event, null) };
  }

  /** An input comes. */
  begins(): void {
    this.#input = NOBODY;
    this.#who?.leave();
  }

  /** The outside was given function number `fn`. */
  gave(fn: number): void {
    const { by } = this;
    if (by.path === '') return;
    this.#given.set(fn, by);
    if (this.#given.size > GIVEN_MAX) this.#given.delete(this.#given.keys().next().value ?? 0);
  }

  /** The outside calls it. */
  calls(fn: number): void {
    this.#input = this.#given.get(fn) ?? NOBODY;
  }
}
