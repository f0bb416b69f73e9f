/**
 * A list and a watch of one kind of objects, which begin anew when the watch breaks.
 *
 * State held: where the watch came to, and which objects there were.
 * Lost on restart: nothing: the {@link ListWatch} outlasts its actor.
 * Rebuilt from: the API server.
 */
import type { ActorSpec } from '@actorlet/kubelet/actors/supervision/types.ts';
import { provided } from '@actorlet/kubelet/machines/xstate/provide.ts';
import { fromPromise } from 'xstate';
import type { ListWatch } from './listWatch.ts';
import type { WatchEvent, WatchOutcome } from './messages.ts';
import { upstreamMachine } from './upstreamMachine.ts';

/** `key`: what is watched, for people. */
export function listWatchSpec(id: string, key: string, watch: Pick<ListWatch, 'list' | 'read'>): ActorSpec<WatchEvent> {
  return {
    type: 'actor',
    id,
    backoff: { minMs: 1_000, maxMs: 10_000 },
    start: ({ signal }) => ({
      logic: provided(upstreamMachine, {
        actors: {
          open: fromPromise<WatchOutcome>(() => watch.list(signal)),
          read: fromPromise<WatchOutcome>(() => watch.read(signal)),
        },
      }),
      input: { key },
    }),
  };
}
