/** One thing that a CSI driver of a fleet has to do: it takes its time, may hang or fail, and is tried again. */
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { projecting } from '@actorlet/kubelet/machines/xstate/projection.ts';
import { unprovided } from '@actorlet/kubelet/machines/xstate/provide.ts';
import { assign, setup } from 'xstate';
import type { Task, TaskEvent, TaskOutcome } from './messages.ts';

/** As external provisioners and attachers wait from one try to the next, but no longer than this. */
const AGAIN_MIN_MS = 1_000;
const AGAIN_MAX_MS = 30_000;
const LOOK_EVERY_MS = 1_000;

interface TaskContext {
  task: Task;
  /** In a row. */
  failures: number;
  why: string | null;
}
type Done = { event: { output: TaskOutcome } };
const outcome = { type: 'is', params: ({ event }: Done) => ({ outcome: event.output }) } as const;
const is = (what: TaskOutcome['what']) => ({ type: 'was', params: ({ event }: Done) => ({ outcome: event.output, what }) }) as const;
const failed = { type: 'fail', params: ({ event }: { event: { error: unknown } }) => ({ why: messageOf(event.error) }) } as const;

export const taskMachine = setup({
  types: { context: {} as TaskContext, input: {} as { task: Task }, events: {} as TaskEvent },
  actors: {
    /** Rejects where the API server does not take it. */
    act: unprovided<TaskOutcome, { task: Task }>(),
  },
  actions: {
    is: assign(({ context }, { outcome: of }: { outcome: TaskOutcome }) => {
      if (of.what === 'failed') return { why: of.why, failures: context.failures + 1 };
      return { why: of.what === 'hangs' ? of.fault : null, failures: 0 };
    }),
    fail: assign(({ context }, { why }: { why: string }) => ({ why, failures: context.failures + 1 })),
  },
  guards: { was: (_, { outcome: of, what }: { outcome: TaskOutcome; what: TaskOutcome['what'] }) => of.what === what },
  delays: {
    duration: ({ context }) => context.task.afterMs,
    again: ({ context }) => Math.min(AGAIN_MAX_MS, AGAIN_MIN_MS * 2 ** Math.max(0, context.failures - 1)),
  },
}).createMachine({
  id: 'task',
  meta: projecting<TaskContext>(({ task: { kind, object }, failures, why }) => ({ kind, object, failures, why })),
  context: ({ input }) => ({ ...input, failures: 0, why: null }),
  initial: 'under way',
  on: { 'task.gone': { target: '.done' } },
  states: {
    'under way': {
      meta: { reason: 'UnderWay', message: ({ task }: TaskContext) => `${task.kind} takes ${task.afterMs / 1_000} s` },
      after: { duration: { target: 'writing' } },
    },
    writing: {
      meta: { reason: 'Writing', message: 'the API server is told' },
      invoke: {
        src: 'act',
        input: ({ context }) => ({ task: context.task }),
        onDone: [
          { guard: is('done'), target: 'done' },
          { guard: is('hangs'), target: 'hanging', actions: [outcome] },
          { target: 'failed', actions: [outcome] },
        ],
        onError: { target: 'failed', actions: [failed] },
      },
    },
    hanging: {
      meta: { reason: 'Hangs', message: ({ why }: TaskContext) => `the fault ${why} holds it` },
      after: { [LOOK_EVERY_MS]: { target: 'writing' } },
    },
    failed: {
      meta: { reason: 'Failed', message: ({ why }: TaskContext) => why ?? '' },
      after: { again: { target: 'writing' } },
    },
    done: { type: 'final' },
  },
});
