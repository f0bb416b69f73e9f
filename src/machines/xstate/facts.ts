/**
 * What a machine must know of its environment at the moment of an event: the time, a number for jitter, views of other
 * actors. {@link reading} makes a machine that gets one record of facts with each event. Its guards, assigns and delays read
 * them with {@link factsOf}, so they stay functions of context and event.
 */
import type { AnyStateMachine } from 'xstate';

const FACTS = Symbol('facts');
const READING = Symbol('reading');

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

/** Without an event: for the first input, or for a person who looks. */
type Read = (event?: object) => object;

export const momentOf = (from: MomentSource) => (): Moment => new LazyMoment(from);

/** The same machine, whose events and first input carry what `read` gives for the event: getters, where looking is an effect. Costs about 0.1 microseconds an event. */
export function reading<M extends AnyStateMachine>(machine: M, read: Read): M {
  type Transition = (snapshot: unknown, event: object, scope: unknown) => unknown;
  type Initial = (scope: unknown, input: object | undefined) => unknown;
  const step = machine.transition.bind(machine) as unknown as Transition;
  const begin = machine.getInitialSnapshot.bind(machine) as unknown as Initial;
  const transition: Transition = (snapshot, event, scope) => step(snapshot, { ...event, [FACTS]: read(event) }, scope);
  const getInitialSnapshot: Initial = (scope, input) => begin(scope, withFacts(input ?? {}, read()));
  const provide = (implementations: Parameters<M['provide']>[0]) => reading(machine.provide(implementations), read);
  return Object.assign(Object.create(machine) as M, { transition, getInitialSnapshot, provide, [READING]: { machine, read } });
}

/** A copy that carries `facts`. Hidden: a context that is spread from an input does not keep them. */
export function withFacts<T extends object>(carrier: T, facts: object): T {
  return Object.defineProperty({ ...carrier }, FACTS, { value: facts });
}

/** Of an event, or of the input in a context factory. An event that a machine raises carries none: see {@link carrying}. */
export function factsOf<F = Moment>(carrier: object | undefined): F {
  const facts = factsIn(carrier) ?? factsIn((carrier as { input?: object } | undefined)?.input);
  if (facts === undefined) throw new Error(`no facts came with ${(carrier as { type?: string } | undefined)?.type ?? 'the input'}`);
  return facts as F;
}

/** `raised`, with the facts of the event that led to it. */
export function carrying<E extends object>(event: object, raised: E): E {
  const facts = factsIn(event) ?? factsIn((event as { input?: object }).input);
  return facts === undefined ? raised : withFacts(raised, facts);
}

function factsIn(carrier: object | undefined): object | undefined {
  return (carrier as { [FACTS]?: object } | undefined)?.[FACTS];
}

/** The machine that `reading` was given, and how it reads; null for every other machine. For tests and tools. */
export function readingOf(machine: object): { machine: AnyStateMachine; read: Read } | null {
  return (machine as { [READING]?: { machine: AnyStateMachine; read: Read } })[READING] ?? null;
}
