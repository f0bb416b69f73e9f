/** What every part of one tree shares. One per `createTree`; nothing of it is global. */
import type { InspectionEvent } from 'xstate';
import type { Message } from '../../machines/supervision/address.ts';
import type { Logger, Ports } from '../../ports/ports.ts';
import type { DeadLetters } from './mailbox/deadLetters.ts';
import type { SupervisionMetrics } from './metrics.ts';
import type { Observers } from './observers.ts';
import type { RegistryCore } from './registry.ts';
import type { Scheduler } from './scheduler.ts';

export interface TreeServices {
  readonly ports: Ports;
  readonly log: Logger;
  readonly scheduler: Scheduler;
  readonly observers: Observers;
  readonly deadLetters: DeadLetters;
  readonly registry: RegistryCore;
  readonly metrics: SupervisionMetrics;
  /** What a message is about, by its id; null: nothing, or several things. */
  readonly subjectOf: (message: Message) => string | null;
  /** Runs a step in the name of its subject. */
  readonly around: (subject: string, step: () => void) => void;
  /** Raw inspection of every statechart from its first step on; benchmarks give it, a daemon never does. */
  readonly inspect: ((e: InspectionEvent) => void) | undefined;
}
