/** What the supervision and tools read of an actor that xstate's types do not show: every such field is named here. */

import type { AnyActorLogic, AnyActorRef, AnyTransitionDefinition, InspectionEvent } from 'xstate';
import { NOTE } from './kind.ts';

/** A state that an actor is in. */
interface ActiveState {
  readonly id: string;
  readonly path: readonly string[];
  readonly meta?: { readonly reason?: unknown; readonly message?: unknown };
}

/** The states that a machine is in, of all depths; none for what is no machine. */
export function activeStates(snapshot: unknown): readonly ActiveState[] {
  return (snapshot as { _nodes?: readonly ActiveState[] } | null | undefined)?._nodes ?? [];
}

export function logicOf(ref: object): object | null {
  return (ref as { logic?: object }).logic ?? null;
}

/** The machine of an actor without what is its own: as it was defined; null: it is no machine. */
export function sharedMachine(ref: AnyActorRef): object | null {
  return (logicOf(ref) as { root?: { machine?: object } } | null)?.root?.machine ?? null;
}

export function parentOf(ref: AnyActorRef): AnyActorRef | undefined {
  return (ref as { _parent?: AnyActorRef })._parent;
}

/** Children that are alive, by their ids. */
export function childrenOf(ref: AnyActorRef | null): Readonly<Record<string, AnyActorRef | undefined>> {
  const snapshot: unknown = ref?.getSnapshot();
  return (snapshot as { children?: Record<string, AnyActorRef | undefined> } | null | undefined)?.children ?? {};
}

/** The transitions that a microstep took: the same objects as in the definition of the machine. */
export function takenIn(e: InspectionEvent): readonly AnyTransitionDefinition[] {
  return e.type === '@xstate.microstep' ? e._transitions : [];
}

interface Invoking {
  readonly invoke: readonly { readonly id: string; readonly src: unknown }[];
}

/** The name of the source that a state invokes as `id`. xstate numbers invocations by state: `0.podWorker.syncing.inspecting`. */
export function invokedAs(ref: AnyActorRef, id: string): string | undefined {
  const states = (logicOf(ref) as { idMap?: ReadonlyMap<string, Invoking> } | null)?.idMap;
  const found = states?.get(id.replace(/^\d+\./, ''))?.invoke.find((i) => i.id === id);
  return typeof found?.src === 'string' ? found.src : undefined;
}

/** The same logic. `note` hears the type of each event before the logic takes it: also of timers and of invoked actors. */
export function noting<L extends AnyActorLogic>(logic: L, note: (type: string) => void): L {
  if (NOTE in logic) return Object.assign(logic, { [NOTE]: note });
  const step = logic.transition.bind(logic);
  const transition: AnyActorLogic['transition'] = (snapshot, event: { type: string }, scope) => {
    note(event.type);
    return step(snapshot, event, scope);
  };
  return Object.assign(Object.create(logic) as L, { transition });
}
