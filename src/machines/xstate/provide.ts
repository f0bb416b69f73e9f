/** A machine declares its effects by name, and its actor provides them: contexts and inputs hold data. */
import { type AnyStateMachine, fromPromise, type PromiseActorLogic, StateMachine } from 'xstate';
import { reading, readingOf } from './facts.ts';

/** The place of a promise that the actor provides. */
export function unprovided<Output, Input = unknown>(): PromiseActorLogic<Output, Input> {
  return fromPromise<Output, Input>(() => Promise.reject(new Error('no effects were provided')));
}

/** Within `enqueueActions` of a setup, whose types do not know its other actions: an action that the actor provides. */
export function perform(enqueue: unknown, type: string, params: object): void {
  (enqueue as (action: { type: string; params: object }) => void)({ type, params });
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

/** Methods that a machine binds to itself when it is made. */
const BOUND = ['transition', 'getInitialSnapshot', 'getPersistedSnapshot', 'restoreSnapshot', 'start'] as const;

type Given<M extends AnyStateMachine> = Pick<NonNullable<Parameters<M['provide']>[0]>, 'actors' | 'actions'>;

/** The same machine with these actors and actions. `provide` would copy its states too: 120 KiB for a pod worker's. */
export function providing<M extends AnyStateMachine>(machine: M, given: Given<M>): M {
  const read = readingOf(machine);
  if (read !== null) return reading(providing(read.machine, given), read.read) as unknown as M;
  const { implementations } = machine;
  const { actors, actions } = given as { actors?: object; actions?: object };
  const made = Object.create(machine) as M;
  const bound = BOUND.map((name) => [name, StateMachine.prototype[name].bind(made)]);
  return Object.assign(made, Object.fromEntries(bound), {
    implementations: {
      ...implementations,
      actors: { ...implementations.actors, ...actors },
      actions: { ...implementations.actions, ...actions },
    },
  });
}

/** By the system of actors that a supervised actor and its children are. */
const effects = new WeakMap<object, object>();

/**
 * The same machine for one actor of many that share it: what is provided finds this actor's effects with {@link effectsOf}. A
 * pod's machine with implementations of its own would take 20 KiB.
 */
export function withEffects<M extends AnyStateMachine>(machine: M, own: object): M {
  type Initial = (scope: { system: object }, input: unknown) => unknown;
  const begin = machine.getInitialSnapshot.bind(machine) as unknown as Initial;
  const getInitialSnapshot: Initial = (scope, input) => {
    effects.set(scope.system, own);
    return begin(scope, input);
  };
  return Object.assign(Object.create(machine) as M, { getInitialSnapshot });
}

export function effectsOf<T extends object>(system: object): T {
  const own = effects.get(system);
  if (own === undefined) throw new Error('no effects were provided');
  return own as T;
}
