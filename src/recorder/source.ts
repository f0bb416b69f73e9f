/** What the inspectors look at: one node, from outside its tree. */
import type { AnyActorRef, InspectionEvent } from 'xstate';
import type { ActorState, Registry, SupervisionEvent } from '../actors/supervision/types.ts';
import type { Clock, Logger } from '../ports/ports.ts';
import type { History } from './history.ts';
import type { Recorder } from './recorder.ts';

interface InspectedTree {
  readonly registry: Registry;
  state(): ActorState;
  /** State of one actor. */
  stateAt(path: string): ActorState | undefined;
  observe(fn: (e: SupervisionEvent) => void): Disposable;
  actorAt(path: string): AnyActorRef | null;
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
  /** Whether actors may be killed and scenarios injected. */
  readonly faultInjection: boolean;
}
