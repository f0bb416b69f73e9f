/** A machine declares its effects by name, and its actor provides them: contexts and inputs hold data. */
import {
  type AnyStateMachine,
  type CallbackActorLogic,
  type EventObject,
  fromCallback,
  fromPromise,
  type NonReducibleUnknown,
  type PromiseActorLogic,
  StateMachine,
} from 'xstate';
import { type Read, reading, readingOf } from './facts.ts';
import { kindOf, oneOf } from './kind.ts';
import type { Reader, Ready, Wired } from './setup.ts';

const NOT_PROVIDED = 'no effects were provided';

/** The place of a promise that the actor provides. */
export function unprovided<Output, Input = NonReducibleUnknown>(): PromiseActorLogic<Output, Input> {
  return fromPromise<Output, Input>(() => Promise.reject(new Error(NOT_PROVIDED)));
}

/** The place of a callback that the actor provides. It answers with events, so it has no output. */
export function unprovidedCallback<E extends EventObject = { type: 'none' }, Input = NonReducibleUnknown>(): CallbackActorLogic<E, Input> {
  return fromCallback<E, Input>(() => {
    throw new Error(NOT_PROVIDED);
  });
}

/** The place of an action that the actor provides. All that it needs comes in its params. */
export function unprovidedAction<Params = undefined>(): (args: object, params: Params) => void {
  return () => {
    throw new Error(NOT_PROVIDED);
  };
}

/** `enqueueActions` of a setup, for actions with params: it knows the actions that were declared there. */
export function enqueuing<A>(effects: { enqueueActions: (collect: (args: A, params: undefined) => void) => object }) {
  const { enqueueActions } = effects;
  return <P>(collect: (args: A, params: P) => void) =>
    enqueueActions(collect as (args: A, params: undefined) => void) as (args: object, params: P) => void;
}

/** For an action, which sees the snapshot before its step: `then` gets the one that the step leads to, after all effects of it. */
export function afterStep<S>(
  actor: { subscribe(next: (snapshot: S) => void): { unsubscribe(): void } },
  then: (snapshot: S) => void,
): void {
  const once = actor.subscribe((snapshot) => {
    once.unsubscribe();
    then(snapshot);
  });
}

type Implementations<M extends AnyStateMachine> = NonNullable<Parameters<M['provide']>[0]>;
type ActorsOf<M extends AnyStateMachine> = NonNullable<Implementations<M>['actors']>;
/** What an actor gives to its machine. A child that needs facts is wired itself. */
export interface Given<M extends AnyStateMachine> {
  readonly actors?: { readonly [K in keyof ActorsOf<M>]: Wired<ActorsOf<M>[K]> & Ready };
  readonly actions?: Implementations<M>['actions'];
}

/**
 * The same machine with these actors and actions, and with the reader of its facts if it needs any. It shares the states of
 * `machine`; xstate's `provide` would copy them, which are 120 KiB for a pod worker's.
 */
export function provided<M extends AnyStateMachine>(machine: M, given: Given<M>, ...reader: Reader<M>): Wired<M> {
  return read(implemented(machine, given), reader);
}

function read<M extends AnyStateMachine>(machine: M, [facts]: readonly Read[]): Wired<M> {
  return (facts === undefined ? machine : reading(machine, facts)) as Wired<M>;
}

/** The effects of the actor that a child, a promise or an action belongs to. */
export type Own<Io> = (of: { readonly system: object }) => Io;

/**
 * For many actors of one machine: `wire` is called once, and the function that it answers with adds the effects of one actor.
 * What is provided finds them by its actor's system. An actor has one small object of its own, no machine: implementations of its own
 * would take 20 KiB, and an object that others inherit from has a hidden class to itself.
 */
export function providedForMany<M extends AnyStateMachine, Io extends object>(
  machine: M,
  wire: (own: Own<Io>) => Given<M>,
): (io: Io, ...reader: Reader<M>) => Wired<M> {
  const all = new WeakMap<object, Io>();
  const shared = implemented(
    machine,
    wire(({ system }) => {
      const io = all.get(system);
      if (io === undefined) throw new Error(NOT_PROVIDED);
      return io;
    }),
  );
  const kind = kindOf(shared, (system, io) => all.set(system, io as Io));
  return (io, ...reader) => {
    const [facts]: readonly Read[] = reader;
    return oneOf(kind, io, facts ?? null) as Wired<M>;
  };
}

/** Methods that a machine binds to itself when it is made. */
const BOUND = ['transition', 'getInitialSnapshot', 'getPersistedSnapshot', 'restoreSnapshot', 'start'] as const;

function implemented<M extends AnyStateMachine>(machine: M, given: { actors?: object | undefined; actions?: object | undefined }): M {
  const read = readingOf(machine);
  if (read !== null) return reading(implemented(read.machine, given), read.read) as unknown as M;
  const { implementations } = machine;
  const made = Object.create(machine) as M;
  const bound = BOUND.map((name) => [name, StateMachine.prototype[name].bind(made)]);
  return Object.assign(made, Object.fromEntries(bound), {
    implementations: {
      ...implementations,
      actors: { ...implementations.actors, ...given.actors },
      actions: { ...implementations.actions, ...given.actions },
    },
  });
}
