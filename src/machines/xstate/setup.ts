/** xstate's `setup` for a machine that needs facts ({@link Moment}): its type says which, so wiring it with other ones does not compile. */
import {
  type AnyEventObject,
  type EventObject,
  type MachineContext,
  type MetaObject,
  type NonReducibleUnknown,
  type ParameterizedObject,
  type SetupReturn,
  setup,
  type UnknownActorLogic,
} from 'xstate';
import { factsOfStep, type Moment, type Read } from './facts.ts';

declare const NEEDS: unique symbol;
/** The machine `M`, which cannot start before it is wired with a reader of `F`. */
type Needing<F extends object, M> = M & { readonly [NEEDS]: { readonly machine: M; readonly facts: (facts: F) => void } };
/** The type of a machine once it is wired. */
export type Wired<M> = M extends { readonly [NEEDS]: { readonly machine: infer S } } ? S : M;
/** What takes no machine that still needs facts. */
export interface Ready {
  readonly [NEEDS]?: undefined;
}
/** The last argument of the wiring: a reader where the machine needs facts, nothing where it needs none. */
export type Reader<M> = M extends { readonly [NEEDS]: { readonly facts: (facts: infer F extends object) => void } } ? [read: Read<F>] : [];

/** xstate's `setup`, for a machine that needs the facts `F`, and how its functions get them. */
export function setupWith<F extends object = Moment>() {
  return { setup: needing<F>(), facts: (): F => factsOfStep() as F };
}

type Params = Record<string, ParameterizedObject['params'] | undefined>;

/** `setup` itself. Its machines carry in their type what they need. */
function needing<F extends object>() {
  const marked = <A extends unknown[], M>(create: (...args: A) => M) => create as (...args: A) => Needing<F, M>;
  const then =
    <A extends unknown[], B, R>(first: (...args: A) => B, second: (made: B) => R) =>
    (...args: A): R =>
      second(first(...args));
  const last = <
    C extends MachineContext,
    E extends AnyEventObject,
    Actors extends Record<string, UnknownActorLogic>,
    Children extends Record<string, string>,
    Actions extends Params,
    Guards extends Params,
    Delay extends string,
    Tag extends string,
    I,
    O extends NonReducibleUnknown,
    Emitted extends EventObject,
    Meta extends MetaObject,
    TMeta extends MetaObject,
  >(
    made: SetupReturn<C, E, Actors, Children, Actions, Guards, Delay, Tag, I, O, Emitted, Meta, TMeta>,
  ) => ({ ...made, createMachine: marked(made.createMachine) });
  const first = <
    C extends MachineContext,
    E extends AnyEventObject,
    Actors extends Record<string, UnknownActorLogic>,
    Children extends Record<string, string>,
    Actions extends Params,
    Guards extends Params,
    Delay extends string,
    Tag extends string,
    I,
    O extends NonReducibleUnknown,
    Emitted extends EventObject,
    Meta extends MetaObject,
    TMeta extends MetaObject,
  >(
    made: SetupReturn<C, E, Actors, Children, Actions, Guards, Delay, Tag, I, O, Emitted, Meta, TMeta>,
  ) => ({ ...last(made), extend: then(made.extend, last) });
  return then(setup, first);
}
