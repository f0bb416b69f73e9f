/** What the inspectors look at: one node, from outside its tree. */
import type { AnyActorRef, InspectionEvent } from 'xstate';
import type { ActorState, Registry, SupervisionEvent } from '../../machines/supervision/observed.ts';
import type { Clock, Logger } from '../../ports/ports.ts';
import type { History } from './history.ts';
import type { Recorder } from './recorder.ts';

interface InspectedTree {
  readonly registry: Registry;
  state(): ActorState;
  stateAt(path: string): ActorState | undefined;
  /** The same without its children. */
  rowAt(path: string): ActorState | undefined;
  /** Calls `fn` with the path of each actor of which something else may be shown once the present step is over. */
  touched(fn: (path: string) => void): Disposable;
  observe(fn: (e: SupervisionEvent) => void): Disposable;
  actorAt(path: string): AnyActorRef | null;
  /** The machine there, also of an actor that sleeps. */
  machineAt(path: string): object | null;
  inspect(path: string, fn: (e: InspectionEvent) => void): Disposable | null;
}

export interface Inspected {
  readonly tree: InspectedTree;
  readonly recorder: Recorder;
  readonly history: History;
  readonly clock: Clock;
  readonly log: Logger;
  readonly nodeName: string;
  readonly version: string;
  readonly startedAtMs: number;
  /** Faults at work; null: actors may not be killed, and no scenario injected. */
  readonly faults: { readonly size: number } | null;
}
