/** What the inspectors look at: one node, from outside its tree. */
import type { AnyActorRef, InspectionEvent } from 'xstate';
import type { Clock, Logger } from '../actors/kernel/ports.ts';
import type { ActorState, KernelEvent, Registry } from '../actors/kernel/types.ts';
import type { History } from './history.ts';
import type { Recorder } from './recorder.ts';

export interface InspectedTree {
  readonly registry: Registry;
  state(): ActorState;
  observe(fn: (e: KernelEvent) => void): Disposable;
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
