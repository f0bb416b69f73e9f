/**
 * Which nodes start now: some at a time, and hardly any while leases are late. Nodes that start take time from those that run: a
 * machine that is given more of them than it can hold would make all of them NotReady, and none would come back.
 */
import { projecting } from '@actorlet/kubelet/machines/xstate/projection.ts';
import { enqueuing, unprovidedAction } from '@actorlet/kubelet/machines/xstate/provide.ts';
import { setupWith } from '@actorlet/kubelet/machines/xstate/setup.ts';
import { assign } from 'xstate';
import type { StartsEvent } from './messages.ts';

/** Nodes that start at the same time: each needs answers of the API server. */
const AT_ONCE = 50;
const LOOK_EVERY_MS = 1_000;
/** A node starts that often all the same: leases may be late for another reason. */
const STARTS_EVERY_MS = 60_000;

export interface StartsFacts {
  readonly monoMs: number;
  /** Too many leases were written too long ago. */
  readonly late: boolean;
}
interface StartsContext {
  /** In the order in which they asked. */
  queue: readonly string[];
  starting: readonly string[];
  /** When the last one got its turn, monotonic ms; null: none has. */
  startedMs: number | null;
}

type Ask = Extract<StartsEvent, { type: 'turn.ask' }>;
type Over = Extract<StartsEvent, { type: 'turn.over' }>;
const keep = { type: 'keep', params: ({ event }: { event: Ask }) => event } as const;
const take = { type: 'take', params: ({ event }: { event: Ask }) => ({ node: event.node }) } as const;
const drop = { type: 'drop', params: ({ event }: { event: Over }) => ({ node: event.node }) } as const;
const forget = { type: 'forget', params: ({ event }: { event: Over }) => ({ node: event.node }) } as const;

const { setup, facts } = setupWith<StartsFacts>();
const effects = setup({
  types: { context: {} as StartsContext, events: {} as StartsEvent },
  actions: {
    /** Keeps where the turn of a node goes. */
    keep: unprovidedAction<Ask>(),
    drop: unprovidedAction<{ node: string }>(),
    give: unprovidedAction<{ nodes: readonly string[] }>(),
    /** Says that nodes wait for leases. */
    say: unprovidedAction(),
    take: assign(({ context: { queue } }, { node }: { node: string }) => ({ queue: [...queue.filter((n) => n !== node), node] })),
    forget: assign(({ context: { queue, starting } }, { node }: { node: string }) => ({
      queue: queue.filter((n) => n !== node),
      starting: starting.filter((n) => n !== node),
    })),
  },
});
const deciding = effects.extend({
  actions: {
    /** The turn of the first ones in the queue, at most so many. */
    begin: enqueuing(effects)(({ context: { queue, starting }, enqueue }, { max }: { max: number }) => {
      const count = Math.min(max, AT_ONCE - starting.length);
      const nodes = queue.slice(0, Math.max(0, count));
      if (nodes.length === 0) return;
      enqueue.assign({ queue: queue.slice(nodes.length), starting: [...starting, ...nodes], startedMs: facts().monoMs });
      enqueue({ type: 'give', params: { nodes } });
    }),
  },
  guards: {
    late: ({ context }) => context.queue.length > 0 && facts().late,
    due: ({ context: { queue, startedMs } }) =>
      queue.length > 0 && facts().late && facts().monoMs - (startedMs ?? Number.NEGATIVE_INFINITY) >= STARTS_EVERY_MS,
  },
});

export const startsMachine = deciding.createMachine({
  id: 'starts',
  meta: projecting<StartsContext>(({ queue, starting, startedMs }) => ({ waiting: queue.length, starting: starting.length, startedMs })),
  context: { queue: [], starting: [], startedMs: null },
  initial: 'inTime',
  states: {
    inTime: {
      meta: { reason: 'InTime', message: words },
      on: {
        'turn.ask': { target: 'choosing', actions: [keep, take] },
        'turn.over': { target: 'choosing', actions: [drop, forget] },
      },
    },
    choosing: {
      always: [
        { guard: 'due', target: 'late', actions: ['say', { type: 'begin', params: { max: 1 } }] },
        { guard: 'late', target: 'late', actions: ['say'] },
        { target: 'inTime', actions: [{ type: 'begin', params: { max: AT_ONCE } }] },
      ],
    },
    late: {
      meta: { reason: 'LeasesLate', message: words },
      after: { [LOOK_EVERY_MS]: { target: 'looking' } },
      on: {
        'turn.ask': { actions: [keep, take] },
        'turn.over': { actions: [drop, forget] },
      },
    },
    looking: {
      always: [
        { guard: 'due', target: 'late', actions: [{ type: 'begin', params: { max: 1 } }] },
        { guard: 'late', target: 'late' },
        { target: 'inTime', actions: [{ type: 'begin', params: { max: AT_ONCE } }] },
      ],
    },
  },
});

function words({ queue, starting }: StartsContext): string {
  return `${starting.length} nodes start, ${queue.length} wait for their turn`;
}
