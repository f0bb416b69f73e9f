/**
 * What xstate leaves running after a throw: the children of an actor that went to `error`, at any depth, and the dispose
 * function of a callback actor that threw in a receiver. {@link supervisable} makes one xstate root clean up both.
 *
 * Each root has its own actor system; its register and unregister functions are the only place that sees every actor
 * of it begin and end without the cost of inspection (three events for every message). They are not public API, so their
 * absence is an error at once, not a silent leak; the version of xstate is pinned by the lock file.
 */
import type { AnyActorRef } from 'xstate';

interface SystemInternals {
  _register(sessionId: string, ref: ActorInternals): string;
  _unregister(ref: ActorInternals): void;
  _relay(source: unknown, target: unknown, event: unknown): void;
}
interface ActorInternals {
  _parent?: ActorInternals;
  _stop(): unknown;
  getSnapshot(): { status: string };
  logic: { config?: unknown; start?: unknown; transition(snapshot: unknown, event: { type: string }, scope: { self: unknown }): unknown };
}

/** The actors of one system that are alive. */
export interface Alive {
  /** The root included. */
  count(): number;
  /** Whether one below the root is no machine: a promise, a callback or a stream is work, and no snapshot holds it. */
  working(): boolean;
}

/**
 * Call between `createActor` and `start`. `around`: runs each step of the system, also what a promise that has settled leads to, which
 * nothing else sees begin.
 */
export function supervisable(root: AnyActorRef, around: (step: () => void) => void): Alive {
  const system = root.system as unknown as SystemInternals;
  if (typeof system._register !== 'function' || typeof system._unregister !== 'function' || typeof system._relay !== 'function') {
    throw new Error('this version of xstate has no actor system hooks; orphans of crashed actors could not be stopped');
  }
  const alive = new Set<ActorInternals>();
  const register = system._register.bind(system);
  const unregister = system._unregister.bind(system);
  const relay = system._relay.bind(system);
  system._relay = (source, target, event) => around(() => relay(source, target, event));
  system._register = (sessionId, ref) => {
    alive.add(ref);
    return register(sessionId, ref);
  };
  system._unregister = (ref) => {
    alive.delete(ref);
    unregister(ref);
    if (ref.getSnapshot().status === 'error') disposeCallback(ref);
    // After an orderly end nothing is left here: a machine stops its children before it unregisters.
    for (const other of alive) if (other._parent === ref) other._stop();
  };
  return {
    count: () => alive.size,
    working: () => {
      for (const ref of alive) if (ref._parent !== undefined && !('root' in ref.logic)) return true;
      return false;
    },
  };
}

/** Runs the dispose function of a callback or observable actor that threw; xstate runs it on stop only. */
function disposeCallback(ref: ActorInternals): void {
  const { logic } = ref;
  if (typeof logic.config !== 'function' || typeof logic.start !== 'function') return;
  try {
    logic.transition(ref.getSnapshot(), { type: 'xstate.stop' }, { self: ref });
  } catch {
    // Already disposed of, or dispose itself throws: the actor's own error is the one that is reported.
  }
}
