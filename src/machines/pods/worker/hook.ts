/**
 * One run of a lifecycle hook as a statechart (pod lifecycle 5.13): a sleep is a timer, everything else is asked of the
 * outside. How long it may take is a state's `after`; whoever stops this actor ends the hook.
 */
import { assign, fromPromise, setup } from 'xstate';
import type { Container, LifecycleHandler, Pod } from '../../k8s.ts';

export interface HookJob {
  which: 'postStart' | 'preStop';
  handler: LifecycleHandler;
  pod: Pod;
  container: Container;
  containerId: string;
  /** Where an HTTP hook goes that names no host: the first one. */
  podIPs: readonly string[];
}

export type HookOutcome =
  | { kind: 'done' }
  /** `why` tells nothing of what the container said, `output` does: an event shows the first only. */
  | { kind: 'failed'; why: string; output: string };

/** What a hook asks of the outside. The promise honours the signal. */
export interface HookIo {
  runHook(job: HookJob, signal: AbortSignal): Promise<HookOutcome>;
}

export interface HookInput {
  io: HookIo;
  job: HookJob;
  /** Longest time it may take, milliseconds; null: as long as it likes. */
  limitMs: number | null;
}

/** Longest delay of a timer: 24 days, as good as no limit. */
const TIMER_MS_MAX = 2 ** 31 - 1;

interface Context extends HookInput {
  sleepMs: number;
  outcome: HookOutcome;
}

export function hookFailure(error: unknown): HookOutcome {
  return { kind: 'failed', why: error instanceof Error ? error.message : String(error), output: '' };
}

export const hookMachine = setup({
  types: { context: {} as Context, input: {} as HookInput, output: {} as HookOutcome },
  actors: {
    runHook: fromPromise(({ input, signal }: { input: { io: HookIo; job: HookJob }; signal: AbortSignal }) =>
      input.io.runHook(input.job, signal),
    ),
  },
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
  context: ({ input }) => ({ ...input, sleepMs: (input.job.handler.sleep?.seconds ?? 0) * 1000, outcome: { kind: 'done' } }),
  initial: 'choosing',
  output: ({ context }) => context.outcome,
  states: {
    choosing: { always: [{ guard: 'sleeps', target: 'sleeping' }, { target: 'running' }] },
    sleeping: {
      meta: { reason: 'HookSleeping', message: 'a lifecycle hook sleeps' },
      after: { sleep: [{ guard: 'tooLong', target: 'ended', actions: ['timeOut'] }, { target: 'ended' }] },
    },
    running: {
      meta: { reason: 'HookRunning', message: 'a lifecycle hook runs' },
      after: { limit: { target: 'ended', actions: ['timeOut'] } },
      invoke: {
        src: 'runHook',
        input: ({ context }) => ({ io: context.io, job: context.job }),
        onDone: { target: 'ended', actions: [assign(({ event }) => ({ outcome: event.output }))] },
        onError: { target: 'ended', actions: [assign(({ event }) => ({ outcome: hookFailure(event.error) }))] },
      },
    },
    ended: { type: 'final' },
  },
});
