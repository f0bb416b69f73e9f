/**
 * One run of a lifecycle hook as a statechart (pod lifecycle 5.13): a sleep is a timer, everything else is asked of the
 * outside. How long it may take is a state's `after`; to stop this actor ends the hook.
 */

import { assign, setup } from 'xstate';
import type { Container, LifecycleHandler } from '../../../kube/podTable.ts';
import type { Pod } from '../../../kube/types.ts';
import { messageOf } from '../../../text/errors.ts';
import { podName, projecting } from '../../../xstate/projection.ts';
import { unprovided } from '../../../xstate/provide.ts';

export interface HookJob {
  which: 'postStart' | 'preStop';
  handler: LifecycleHandler;
  pod: Pod;
  container: Container;
  containerId: string;
  /** Where an HTTP hook goes that names no host: the first one. */
  podIPs: readonly string[];
}

/** What came of asking. `away`: nobody was there to ask, or went away meanwhile: the hook is run again, once or more in all. */
export type HookAnswer = HookOutcome | { kind: 'away'; why: string };

export type HookOutcome =
  | { kind: 'done' }
  /** `why` tells nothing of what the container said, `output` does: an event shows the first only. */
  | { kind: 'failed'; why: string; output: string };

/** What a hook asks of the outside. The promise honours the signal. */
export interface HookIo {
  runHook(input: HookInput, signal: AbortSignal): Promise<HookAnswer>;
}

export interface HookInput {
  job: HookJob;
  /** Longest time it may take, milliseconds; null: as long as it likes. */
  limitMs: number | null;
}

/** A hook that nobody could be asked to run is tried again after this, milliseconds. */
const AWAY_RETRY_MS = 1_000;
/** Longest delay of a timer: 24 days, as good as no limit. */
const TIMER_MS_MAX = 2 ** 31 - 1;

interface Context extends HookInput {
  sleepMs: number;
  outcome: HookOutcome;
}

function hookFailure(error: unknown): HookOutcome {
  return { kind: 'failed', why: messageOf(error), output: '' };
}

export const hookMachine = setup({
  types: { context: {} as Context, input: {} as HookInput, output: {} as HookOutcome },
  actors: { runHook: unprovided<HookAnswer, HookInput>() },
  delays: {
    sleep: ({ context }) => Math.min(context.sleepMs, context.limitMs ?? TIMER_MS_MAX),
    limit: ({ context }) => context.limitMs ?? TIMER_MS_MAX,
  },
  actions: {
    timeOut: assign(({ context }) => ({
      outcome: { kind: 'failed' as const, why: `it did not end within ${Math.round((context.limitMs ?? 0) / 1000)} s`, output: '' },
    })),
  },
  guards: {
    sleeps: ({ context }) => context.job.handler.sleep !== undefined,
    tooLong: ({ context }) => context.limitMs !== null && context.sleepMs > context.limitMs,
  },
}).createMachine({
  id: 'hook',
  meta: projecting<Context>(({ job, limitMs, sleepMs, outcome }) => ({
    ...{ pod: podName(job.pod), container: job.container.name, which: job.which, limitMs, sleepMs },
    outcome: outcome.kind === 'failed' ? outcome.why : outcome.kind,
  })),
  context: ({ input }) => ({ ...input, sleepMs: (input.job.handler.sleep?.seconds ?? 0) * 1000, outcome: { kind: 'done' } }),
  initial: 'choosing',
  output: ({ context }) => context.outcome,
  states: {
    choosing: { always: [{ guard: 'sleeps', target: 'sleeping' }, { target: 'asking' }] },
    sleeping: {
      meta: { reason: 'HookSleeping', message: 'a lifecycle hook sleeps' },
      after: { sleep: [{ guard: 'tooLong', target: 'ended', actions: ['timeOut'] }, { target: 'ended' }] },
    },
    asking: {
      after: { limit: { target: 'ended', actions: ['timeOut'] } },
      initial: 'running',
      states: {
        running: {
          meta: { reason: 'HookRunning', message: 'a lifecycle hook runs' },
          invoke: {
            src: 'runHook',
            input: ({ context: { job, limitMs } }) => ({ job, limitMs }),
            onDone: [
              { guard: ({ event }) => event.output.kind === 'away', target: 'away' },
              {
                target: '#hook.ended',
                actions: [assign(({ context, event }) => ({ outcome: event.output.kind === 'away' ? context.outcome : event.output }))],
              },
            ],
            onError: { target: '#hook.ended', actions: [assign(({ event }) => ({ outcome: hookFailure(event.error) }))] },
          },
        },
        away: {
          meta: { reason: 'RuntimeUnavailable', message: 'nobody could be asked to run a lifecycle hook; it is tried again' },
          after: { [AWAY_RETRY_MS]: { target: 'running' } },
        },
      },
    },
    ended: { type: 'final' },
  },
});
