/**
 * The watches that all nodes of a process share, one for each kind of object that a node watches.
 *
 * State held: the open watch.
 * Lost on restart: that. It is opened again.
 * Rebuilt from: the version that it came to, which `upstream.ts` keeps with the nodes that read it.
 */
import type { ActorSpec, DynamicSpec } from '@actorlet/kubelet/actors/supervision/types.ts';
import { provided } from '@actorlet/kubelet/machines/xstate/provide.ts';
import { fromPromise } from 'xstate';
import type { WatchEvent, Watched, WatchOutcome } from './messages.ts';
import { upstreamMachine } from './upstreamMachine.ts';

/** Objects that pods name have a watch each. */
const WAITING_MAX = 100_000;

export function watchesSpec(): DynamicSpec<WatchEvent> {
  return {
    type: 'dynamic',
    id: 'watches',
    mailbox: { capacity: WAITING_MAX },
    route: (e) => e.key,
    starts: (e) => e.type === 'watch.open',
    // The last reader of a watch that has ended.
    unknown: () => {},
    child: (key, first) => {
      if (first.type !== 'watch.open') throw new Error(`the watch of ${key} was not opened`);
      return watchSpec(key, first.upstream);
    },
    release: (e) => e.type === 'watch.open',
  };
}

function watchSpec(key: string, upstream: Watched): ActorSpec<WatchEvent> {
  return {
    type: 'actor',
    id: key,
    restart: 'transient',
    backoff: { minMs: 1_000, maxMs: 10_000 },
    // Of this life: the watch outlasts the promise that opened it.
    start: ({ signal }) => ({
      logic: provided(upstreamMachine, {
        actors: {
          open: fromPromise<WatchOutcome>(() => upstream.open(signal)),
          read: fromPromise<WatchOutcome>(() => upstream.read(signal)),
        },
      }),
      input: { key },
    }),
  };
}
