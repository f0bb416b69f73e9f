/** Wires the shape that all reclaiming actors have. */
import { fromPromise } from 'xstate';
import { type SweeperInput, sweeperMachine } from '../../../machines/reclaim/sweeperMachine.ts';
import type { Message } from '../../../machines/supervision/address.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import type { Clock } from '../../../ports/ports.ts';
import type { ActorCtx, ActorSpec } from '../types.ts';
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

/** An actor of that shape. `sweeping`: of one incarnation. */
export function specOfSweeper<E extends Message>(
  o: SweeperInput & Pick<ActorSpec<E>, 'id' | 'mailbox'>,
  sweeping: (ctx: ActorCtx<E>) => Sweeping,
): ActorSpec<E> {
  const { everyMs, quietMs, ...more } = o;
  return {
    type: 'actor',
    ...more,
    backoff: { minMs: 1_000, maxMs: 30_000, jitter: 0.1 },
    start: (ctx) => ({ logic: sweeperLogic(ctx.ports.clock, sweeping(ctx)), input: { everyMs, quietMs } }),
  };
}
