/**
 * What a machine must know of its environment at the moment of a step: the time, a number for jitter, views of other actors. `setupWith`
 * makes a machine whose guards, assigns, delays and params ask for them with `facts()`. Where the machine is wired (`provided`), it gets
 * the function that reads them, once a step. An action gets them as params: at a start it runs after the step.
 */
import type { AnyStateMachine } from 'xstate';

/** The facts that most machines need. The same for everything that one event leads to. */
export interface Moment {
  readonly wallMs: number;
  readonly monoMs: number;
  /** In [0, 1), for jitter. */
  readonly random: number;
}
export interface MomentSource {
  readonly clock: { wallMs(): number; monoMs(): number };
  readonly rng: { next(): number };
}

/** Looks when something asks for the first time: most events need no facts. */
export class LazyMoment implements Moment {
  readonly #from: MomentSource;
  #wallMs: number | undefined;
  #monoMs: number | undefined;
  #random: number | undefined;

  constructor(from: MomentSource) {
    this.#from = from;
  }
  get wallMs(): number {
    this.#wallMs ??= this.#from.clock.wallMs();
    return this.#wallMs;
  }
  get monoMs(): number {
    this.#monoMs ??= this.#from.clock.monoMs();
    return this.#monoMs;
  }
  get random(): number {
    this.#random ??= this.#from.rng.next();
    return this.#random;
  }
}

export const momentOf = (from: MomentSource) => (): Moment => new LazyMoment(from);

/** A step never waits, so one is taken at a time. What it starts takes its first step within it. */
let current: object | null = null;

/** Takes a step with these facts. */
export function withFacts<T>(facts: object, step: () => T): T {
  const outer = current;
  current = facts;
  try {
    return step();
  } finally {
    current = outer;
  }
}

/** Facts of the step that is being taken. */
export function factsOfStep(): object {
  if (current === null) throw new Error('facts were asked for outside of a step of a machine that was wired with a reader');
  return current;
}

/**
 * Reads facts of type `F`. `before`: the snapshot that the step begins with, where a machine asks for the states of its children.
 * Without both for the first step, or for a person who looks.
 */
export type Read<F extends object = object> = (event?: object, before?: object) => F;

export const READING = Symbol('reading');

/** The same machine, which takes each step with what `read` gives for the event: getters, where looking is an effect. */
export function reading<M extends AnyStateMachine>(machine: M, read: Read): M {
  type Transition = (snapshot: unknown, event: object, scope: unknown) => unknown;
  type Initial = (scope: unknown, input: unknown) => unknown;
  const step = machine.transition as unknown as Transition;
  const begin = machine.getInitialSnapshot as unknown as Initial;
  const transition: Transition = (snapshot, event, scope) => withFacts(read(event, snapshot as object), () => step(snapshot, event, scope));
  const getInitialSnapshot: Initial = (scope, input) => withFacts(read(), () => begin(scope, input));
  return Object.assign(Object.create(machine) as M, { transition, getInitialSnapshot, [READING]: { machine, read } });
}

/** The machine before it got its reader, and the reader; null for every other machine. For tests and tools. */
export function readingOf(machine: object): { machine: AnyStateMachine; read: Read } | null {
  return (machine as { [READING]?: { machine: AnyStateMachine; read: Read } })[READING] ?? null;
}
