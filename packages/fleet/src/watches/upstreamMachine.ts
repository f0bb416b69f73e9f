/** One watch at the API server, which begins anew when it breaks. */
import { projecting } from '@actorlet/kubelet/machines/xstate/projection.ts';
import { unprovided } from '@actorlet/kubelet/machines/xstate/provide.ts';
import { assign, setup } from 'xstate';
import type { WatchEvent, WatchOutcome } from './messages.ts';

const AGAIN_MS = 1_000;

interface UpstreamContext extends WatchOutcome {
  key: string;
}
type Done = { event: { output: WatchOutcome } };
const broke = { type: 'broke', params: ({ event }: Done) => event.output } as const;
const take = { type: 'take', params: ({ event }: Done) => event.output } as const;

export const upstreamMachine = setup({
  types: { context: {} as UpstreamContext, input: {} as { key: string }, events: {} as WatchEvent },
  actors: {
    /** Resolves when the API server sends what changes. */
    open: unprovided<WatchOutcome>(),
    /** Resolves when the watch has ended. */
    read: unprovided<WatchOutcome>(),
  },
  actions: { take: assign((_, { failure }: WatchOutcome) => ({ failure })) },
  guards: { broke: (_, { failure }: WatchOutcome) => failure !== null },
}).createMachine({
  id: 'upstream',
  meta: projecting<UpstreamContext>(({ key, failure }) => ({ key, failure })),
  context: ({ input }) => ({ ...input, failure: null }),
  initial: 'opening',
  on: { 'watch.close': { target: '.closed' } },
  states: {
    opening: {
      meta: { reason: 'Opening', message: 'asking the API server for the watch' },
      invoke: {
        src: 'open',
        onDone: [
          { guard: broke, target: 'waiting', actions: [take] },
          { target: 'reading', actions: [take] },
        ],
      },
    },
    reading: {
      meta: { reason: 'Reading', message: 'what changes goes to the nodes' },
      invoke: {
        src: 'read',
        onDone: [
          { guard: broke, target: 'waiting', actions: [take] },
          { target: 'opening', actions: [take] },
        ],
      },
    },
    waiting: {
      meta: { reason: 'Waiting', message: ({ failure }: UpstreamContext) => failure ?? '' },
      after: { [AGAIN_MS]: { target: 'opening' } },
    },
    closed: { type: 'final' },
  },
});
