/** Wires the shape that all reclaiming actors have. */
import { fromPromise } from 'xstate';
import { sweeperMachine } from '../../../machines/reclaim/sweeperMachine.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import type { Clock } from '../../../ports/ports.ts';
import { lookout } from './lookout.ts';

export interface Sweeping {
  /** Answers what it did, one short sentence, or '' for nothing. */
  sweep(signal: AbortSignal): Promise<string>;
  /** A periodic sweep may find something. Absent: that cannot be told before it looks. */
  due?(): boolean;
}

export function sweeperLogic(clock: Clock, of: Sweeping) {
  return provided(sweeperMachine, {
    actors: { sweep: fromPromise<string>(({ signal }) => of.sweep(signal)), lookout: lookout(clock, () => of.due?.() ?? true) },
  });
}
