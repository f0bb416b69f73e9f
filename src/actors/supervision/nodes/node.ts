/** What a supervisor sees of each of its children, whatever its type. */
import type { AnyActorRef } from 'xstate';
import type { ActorState, ExitReason } from '../types.ts';

/** Given to a child by its supervisor. Each call is posted, never run in the caller's stack. */
export interface Owner {
  started(id: string, incarnation: number): void;
  ready(id: string, incarnation: number): void;
  /** `counts: false`: the crash is held against a mailbox item. */
  exited(id: string, incarnation: number, exit: { reason: ExitReason; counts: boolean }): void;
  /** Held crashes count after all. */
  counted(id: string, atMs: readonly number[]): void;
}

export interface TreeNode {
  readonly id: string;
  readonly path: string;
  /** Incarnations used so far. */
  readonly incarnation: number;
  /** Starts that incarnation; failures are reported as exits. */
  start(incarnation: number): void;
  /** Orderly; its exit is reported when it is gone. Does nothing when it is not running. */
  stop(): void;
  /** Ends this node and all below at once, without reporting anything but its own exit. Names what it cut off. */
  kill(reason: ExitReason): string[];
  /** The actor ended for good: nobody will answer here, unless it is started again. */
  retire(): void;
  /** `deep` false: without its children. Default true. */
  state(lifecycle: string, deep?: boolean): ActorState;
  /** The state of the actor at `path`, this node's or one below; looks at nobody beside the way there. */
  stateAt(path: string, lifecycle: string, deep?: boolean): ActorState | undefined;
  find(path: string): TreeNode | null;
  /** Kills the incarnation at `path`, this node's or one below. */
  killPath(path: string, by: string): boolean;
  /** The live xstate actor at `path`, for inspection. */
  actorAt(path: string): AnyActorRef | null;
  /** Its machine while it sleeps; null: it does not. */
  sleepingMachineAt(path: string): object | null;
  /** xstate actors alive below, for leak checks. */
  aliveActors(): number;
}
