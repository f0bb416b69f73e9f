/**
 * The plugin watcher: which sockets there are, and a statechart for each. A watch on the folder is a hint, a look at it is the
 * truth. A socket that was made anew is another one: the old one's driver goes before the new one may register.
 */

import { assign, setup } from 'xstate';
import { messageOf } from '../../text/errors.ts';
import { names, projecting } from '../../xstate/projection.ts';
import { enqueuing, unprovided, unprovidedAction, unprovidedCallback } from '../../xstate/provide.ts';
import type { PluginsEvent, Registered } from './messages.ts';
import { type PluginSaid, pluginMachine } from './pluginMachine.ts';

/** Between looks at the folder, where no hint came. */
const LOOK_MS = 10_000;
/** After a hint: a socket is there before anybody listens on it. */
const HINT_MS = 100;

/** A socket, and what tells it from another of the same path. */
export interface FoundSocket {
  path: string;
  stamp: string;
}
export interface PluginsContext {
  sockets: ReadonlyMap<string, { stamp: string; child: string }>;
  again: boolean;
  lastId: number;
  error: string;
}
type Event = { type: 'folder.hint' } | PluginSaid | PluginsEvent;

const effects = setup({
  types: { context: {} as PluginsContext, events: {} as Event },
  actors: {
    plugin: pluginMachine,
    scan: unprovided<readonly FoundSocket[]>(),
    watch: unprovidedCallback<{ type: 'none' }>(),
  },
  actions: {
    sayGone: unprovidedAction<{ path: string }>(),
    tell: unprovidedAction<{ socket: string; plugin: Registered }>(),
  },
});

const deciding = effects.extend({
  actions: {
    compare: enqueuing(effects)(({ context, enqueue }, params: { found: readonly FoundSocket[] }) => {
      const found = new Map(params.found.map((s) => [s.path, s.stamp]));
      const sockets = new Map(context.sockets);
      for (const [path, { stamp, child }] of context.sockets) {
        if (found.get(path) === stamp) continue;
        enqueue.stopChild(child);
        enqueue({ type: 'sayGone', params: { path } });
        sockets.delete(path);
      }
      const fresh = [...found].filter(([path]) => !sockets.has(path));
      for (const [i, [path, stamp]] of fresh.entries()) {
        const child = `${path}#${context.lastId + i + 1}`;
        enqueue.spawnChild('plugin', { id: child, input: { socket: path } });
        sockets.set(path, { stamp, child });
      }
      enqueue.assign({ sockets, lastId: context.lastId + fresh.length, error: '' });
    }),
    renew: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'plugins.renew') return;
      for (const { child } of context.sockets.values()) enqueue.sendTo(child, { type: 'plugin.renew', name: event.driver });
    }),
    later: assign({ again: true }),
    noteFailure: assign((_, params: { error: unknown }) => ({
      error: messageOf(params.error),
    })),
  },
  guards: { again: ({ context }) => context.again },
});

export const pluginsMachine = deciding.createMachine({
  id: 'plugins',
  meta: projecting<PluginsContext>(({ sockets, again, error }) => ({ sockets: names(sockets.keys()), again, error })),
  context: () => ({ sockets: new Map(), again: false, lastId: 0, error: '' }),
  invoke: { src: 'watch' },
  initial: 'looking',
  on: {
    'folder.hint': { actions: ['later'] },
    'plugins.renew': { actions: ['renew'] },
    'plugin.registered': { actions: [{ type: 'tell', params: ({ event: { socket, plugin } }) => ({ socket, plugin }) }] },
  },
  states: {
    looking: {
      meta: { reason: 'Looking', message: 'for sockets of plugins' },
      entry: [assign({ again: false })],
      invoke: {
        src: 'scan',
        onDone: { target: 'watching', actions: [{ type: 'compare', params: ({ event }) => ({ found: event.output }) }] },
        onError: { target: 'watching', actions: [{ type: 'noteFailure', params: ({ event }) => ({ error: event.error }) }] },
      },
    },
    watching: {
      meta: {
        reason: ({ error }: PluginsContext) => (error === '' ? 'Watching' : 'FolderUnreadable'),
        message: ({ error, sockets }: PluginsContext) => (error === '' ? `${sockets.size} sockets` : error),
      },
      always: { guard: 'again', target: 'hinted' },
      after: { [LOOK_MS]: { target: 'looking' } },
      on: { 'folder.hint': { target: 'hinted' } },
    },
    hinted: {
      meta: { reason: 'Hinted', message: 'something changed among the sockets of plugins' },
      after: { [HINT_MS]: { target: 'looking' } },
    },
  },
});
