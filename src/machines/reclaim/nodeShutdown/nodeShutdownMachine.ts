/**
 * The node shutdown manager as a statechart. One region keeps the session with logind, the other ends pods, group by group,
 * while the machine goes down. The first writes `goingDown`, the second follows it. Sessions, files and pods are given with `provide`.
 */

import { assign, setup } from 'xstate';
import { retryDelayMs } from '../../supervision/restartPolicy.ts';
import { messageOf } from '../../text/errors.ts';
import { projecting, some } from '../../xstate/projection.ts';
import { unprovided, unprovidedAction, unprovidedCallback } from '../../xstate/provide.ts';
import { type ShutdownGroup, totalMs } from './groups.ts';
import type { ShutdownState } from './stateFile.ts';

/** Wait before the next session with logind: doubles from the first to the second. */
const RECONNECT_MIN_MS = 1_000;
const RECONNECT_MAX_MS = 60_000;
/** logind answers from memory; it reads its configuration again within seconds. */
const OPEN_WITHIN_MS = 60_000;
/** Between two looks at the pods that are ending. */
const LOOK_EVERY_MS = 250;
/** Between two looks whether pods that the node ended begin again. */
const REVIVE_EVERY_MS = 1_000;
/** A disk that takes longer for the state file delays no pod. */
const STORE_WITHIN_MS = 5_000;

export type NodeShutdownMachineEvent = { type: 'logind.shutdown'; active: boolean } | { type: 'logind.lost'; why: string };

/** What logind says at the beginning of a session. */
export interface Opened {
  shuttingDown: boolean;
  /** This node has the lock. */
  held: boolean;
}
export interface NodeShutdownInput {
  /** Lowest priority first; at least one. */
  groups: readonly ShutdownGroup[];
  /** The incarnation before saw the machine going down. */
  goingDown: boolean;
}
/** When the present shutdown began. */
export interface Since {
  startedWallMs: number;
  startedMonoMs: number;
}
/** What a look at the pods of a group finds. */
export interface Look {
  monoMs: number;
  /** Every source of pods has delivered: a pod that is not known does not run. */
  known: boolean;
  /** Pods of this group and of those before it that have not ended. */
  remaining: number;
}
interface Context extends NodeShutdownInput, Since {
  /** The node still believes what the incarnation before told it, also where logind says otherwise by now. */
  toldBefore: boolean;
  held: boolean;
  failures: number;
  why: string;
  /** From the file: a shutdown that the daemon before did not finish. Null: none. */
  unfinishedMs: number | null;
  group: number;
  /** Null before the first look at the group. */
  groupSinceMs: number | null;
}

function isOver({ known, remaining }: Look): boolean {
  return known && remaining === 0;
}
function windowIsOver({ groups, group, groupSinceMs, startedMonoMs }: Context, { monoMs }: Look): boolean {
  const periodMs = (groups[group]?.periodSeconds ?? 0) * 1000;
  return monoMs - (groupSinceMs ?? monoMs) >= periodMs || monoMs - startedMonoMs >= totalMs(groups);
}

const store = unprovided<void, { startedMs: number; over: boolean }>();

export const nodeShutdownMachine = setup({
  types: { context: {} as Context, input: {} as NodeShutdownInput, events: {} as NodeShutdownMachineEvent },
  actors: {
    /** Begins a session with logind. */
    open: unprovided<Opened>(),
    /** Tells what is heard in the session that was opened last, and ends it in the end. */
    watch: unprovidedCallback<NodeShutdownMachineEvent>(),
    /** What the file says; never rejects. */
    load: unprovided<ShutdownState>(),
    /** Says that the machine is going down, and since when. Never rejects. */
    begin: unprovided<Since, { unfinishedMs: number | null }>(),
    /** Asks pods up to this group to end, and counts them. Never rejects. */
    look: unprovided<Look, { group: number; startedMonoMs: number }>(),
    /** Asks for a new life of static pods that a shutdown ended, and counts those that have not begun it. Never rejects. */
    revive: unprovided<number>(),
    /** Never rejects. */
    store,
  },
  actions: {
    fail: assign(({ context }, p: { why: string }) => ({ failures: context.failures + 1, why: p.why })),
    lost: unprovidedAction<{ why: string }>(),
    cancelled: unprovidedAction(),
    late: unprovidedAction<{ group: number }>(),
    release: unprovidedAction(),
    openGroup: assign(({ context }, p: { look: Look }) => ({ groupSinceMs: context.groupSinceMs ?? p.look.monoMs })),
  },
  guards: {
    goingDown: ({ context }) => context.goingDown,
    believed: ({ context }) => context.goingDown || context.toldBefore,
    cancelled: ({ context }) => !context.goingDown,
    isOver: (_, p: { look: Look }) => isOver(p.look),
    windowIsOver: ({ context }, p: { look: Look }) => windowIsOver(context, p.look),
    isLastGroup: ({ context }) => context.group >= context.groups.length - 1,
  },
  delays: {
    reconnect: ({ context }) => retryDelayMs({ minMs: RECONNECT_MIN_MS, maxMs: RECONNECT_MAX_MS }, context.failures - 1),
  },
}).createMachine({
  id: 'nodeShutdown',
  meta: projecting<Context>(({ groups, goingDown, held, failures, why, unfinishedMs, group }) => ({
    groups: some(groups, ({ priority, periodSeconds }) => `priority ${priority}: ${periodSeconds} s`),
    ...{ goingDown, held, failures, why, unfinishedMs, group },
  })),
  context: ({ input }) => ({
    ...input,
    toldBefore: input.goingDown,
    held: false,
    failures: 0,
    why: '',
    unfinishedMs: null,
    startedWallMs: 0,
    startedMonoMs: 0,
    group: 0,
    groupSinceMs: null,
  }),
  type: 'parallel',
  // While the machine is not going down, the session with logind gives the reason.
  states: {
    pods: {
      initial: 'loading',
      states: {
        loading: {
          invoke: {
            src: 'load',
            onDone: {
              target: 'reviving',
              actions: [assign(({ event }) => ({ unfinishedMs: event.output.endedMs === null ? event.output.startedMs : null }))],
            },
          },
          after: { [STORE_WITHIN_MS]: { target: 'reviving' } },
        },
        /** After a cancelled shutdown, and at the start: an earlier incarnation may have ended in the middle of it. */
        reviving: {
          meta: { reason: 'RevivingPods', message: 'static pods that a cancelled shutdown ended begin again' },
          always: { guard: 'believed', target: 'shutdown' },
          invoke: { src: 'revive', onDone: [{ guard: ({ event }) => event.output === 0, target: 'waiting' }, {}] },
          after: { [REVIVE_EVERY_MS]: { target: 'reviving', reenter: true } },
        },
        waiting: {
          always: { guard: 'goingDown', target: 'shutdown' },
        },
        shutdown: {
          initial: 'beginning',
          states: {
            beginning: {
              invoke: {
                src: 'begin',
                input: ({ context }) => ({ unfinishedMs: context.unfinishedMs }),
                onDone: { target: 'recording', actions: [assign(({ event }) => ({ ...event.output, group: 0, groupSinceMs: null }))] },
              },
            },
            recording: {
              meta: { reason: 'ShutdownBegins', message: 'the machine is going down: its beginning is written to the state file' },
              invoke: {
                src: 'store',
                input: ({ context }) => ({ startedMs: context.startedWallMs, over: false }),
                onDone: { target: 'looking' },
              },
              after: { [STORE_WITHIN_MS]: { target: 'looking' } },
            },
            looking: {
              always: { guard: 'cancelled', target: 'restoring' },
              invoke: {
                src: 'look',
                input: ({ context: { group, startedMonoMs } }) => ({ group, startedMonoMs }),
                onDone: [
                  { guard: { type: 'isOver', params: ({ event }) => ({ look: event.output }) }, target: 'groupOver' },
                  {
                    guard: { type: 'windowIsOver', params: ({ event }) => ({ look: event.output }) },
                    target: 'groupOver',
                    actions: [{ type: 'late', params: ({ context }) => ({ group: context.group }) }],
                  },
                  { target: 'ending', actions: [{ type: 'openGroup', params: ({ event }) => ({ look: event.output }) }] },
                ],
              },
            },
            ending: {
              meta: {
                reason: 'ShuttingDown',
                message: ({ groups, group }: Context) =>
                  `the machine is going down: pods with a priority from ${groups[group]?.priority ?? 0} on have ${groups[group]?.periodSeconds ?? 0} s to end`,
              },
              always: { guard: 'cancelled', target: 'restoring' },
              after: { [LOOK_EVERY_MS]: { target: 'looking' } },
            },
            groupOver: {
              always: [
                { guard: 'isLastGroup', target: 'finishing' },
                { target: 'looking', actions: [assign(({ context }) => ({ group: context.group + 1, groupSinceMs: null }))] },
              ],
            },
            finishing: {
              meta: { reason: 'ShutdownEnds', message: 'pods have ended: that is written to the state file' },
              invoke: {
                src: 'store',
                input: ({ context }) => ({ startedMs: context.startedWallMs, over: true }),
                onDone: [{ guard: 'cancelled', target: 'restoring' }, { target: 'released' }],
              },
              after: { [STORE_WITHIN_MS]: [{ guard: 'cancelled', target: 'restoring' }, { target: 'released' }] },
            },
            released: {
              meta: { reason: 'ShutdownReleased', message: 'the machine goes down at any moment: this node does not delay it any more' },
              entry: ['release', assign({ held: false })],
              always: { guard: 'cancelled', target: 'restoring' },
            },
            restoring: {
              meta: { reason: 'ShutdownCancelled', message: 'the shutdown was cancelled: the node admits pods again' },
              entry: ['cancelled', assign({ unfinishedMs: null, toldBefore: false })],
              invoke: {
                src: 'store',
                input: ({ context }) => ({ startedMs: context.startedWallMs, over: true }),
                onDone: { target: '#nodeShutdown.pods.reviving' },
              },
              after: { [STORE_WITHIN_MS]: { target: '#nodeShutdown.pods.reviving' } },
            },
          },
        },
      },
    },
    logind: {
      initial: 'opening',
      states: {
        opening: {
          meta: { reason: 'Connecting', message: 'asking systemd-logind over D-Bus for a lock that delays a shutdown' },
          invoke: {
            src: 'open',
            onDone: {
              target: 'watching',
              actions: [assign(({ event: { output } }) => ({ goingDown: output.shuttingDown, held: output.held, failures: 0, why: '' }))],
            },
            onError: { target: 'backingOff', actions: [{ type: 'fail', params: ({ event }) => ({ why: messageOf(event.error) }) }] },
          },
          after: {
            [OPEN_WITHIN_MS]: {
              target: 'backingOff',
              actions: [{ type: 'fail', params: { why: `no answer within ${OPEN_WITHIN_MS / 1000} s` } }],
            },
          },
        },
        watching: {
          meta: {
            reason: 'Watching',
            message: ({ held }: Context) =>
              held ? 'systemd-logind announces a shutdown, and waits for this node' : 'systemd-logind announces a shutdown',
          },
          invoke: { src: 'watch' },
          on: {
            'logind.shutdown': [
              { guard: ({ event }) => event.active, actions: [assign({ goingDown: true, unfinishedMs: null })] },
              // The lock is taken again: it was dropped, or the next shutdown would not wait.
              { target: 'opening', actions: [assign({ goingDown: false })] },
            ],
            'logind.lost': { target: 'backingOff', actions: [{ type: 'fail', params: ({ event }) => ({ why: event.why }) }] },
          },
        },
        backingOff: {
          meta: {
            reason: 'LogindAway',
            message: ({ why }: Context) => `a shutdown of the machine does not wait for pods before systemd-logind can be reached: ${why}`,
          },
          entry: [assign({ held: false }), { type: 'lost', params: ({ context }) => ({ why: context.why }) }],
          after: { reconnect: { target: 'opening' } },
        },
      },
    },
  },
});
