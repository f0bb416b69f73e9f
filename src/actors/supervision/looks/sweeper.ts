/** Wires the shape that all reclaiming actors have. */
import { fromPromise } from 'xstate';
import { sweeperMachine } from '../../../machines/reclaim/sweeperMachine.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import type { Clock } from '../../../ports/ports.ts';
import { lookout } from './lookout.ts';

export interface Sweeping {
  /** Answers what it did, one short sentence, or '' for nothing. `urgent`: it was asked for so. */
  sweep(signal: AbortSignal, o: { urgent: boolean }): Promise<string>;
  /** A periodic sweep may find something. Absent: that cannot be told before it looks. */
  due?(): boolean;
}

export function sweeperLogic(clock: Clock, of: Sweeping) {
  return provided(sweeperMachine, {
    actors: {
      sweep: fromPromise<string, { urgent: boolean }>(({ input, signal }) => of.sweep(signal, input)),
      lookout: lookout(clock, () => of.due?.() ?? true),
    },
  });
}
