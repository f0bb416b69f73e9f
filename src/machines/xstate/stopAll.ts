/** Stops many children in one step. Stopped one by one, each copies the list of all: a pod may have tens of thousands. */
import { type AnyActorRef, type AnyMachineSnapshot, stopChild } from 'xstate';

interface BuiltIn {
  execute(scope: unknown, child: AnyActorRef): void;
}

/** An action as {@link stopChild} makes one. */
export function stopAll(ids: Iterable<string>): () => void {
  return Object.assign(() => {}, {
    type: 'xstate.stopChild',
    resolve(_: unknown, snapshot: AnyMachineSnapshot) {
      const stopped = [...ids].flatMap((id) => snapshot.children[id] ?? []);
      if (stopped.length === 0) return [snapshot, stopped, undefined];
      const children = { ...snapshot.children };
      for (const { id } of stopped) delete children[id];
      return [{ ...snapshot, children }, stopped, undefined];
    },
    execute(scope: unknown, stopped: readonly AnyActorRef[]) {
      for (const child of stopped) (stopChild(child) as unknown as BuiltIn).execute(scope, child);
    },
  });
}
