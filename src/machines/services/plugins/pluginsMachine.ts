/**
 * The plugin watcher: which sockets there are, and a statechart for each. A watch on the folder is a hint, a look at it is the
 * truth. A socket that was made anew is another one: the old one's driver goes before the new one may register.
 */

import { type AnyActorRef, assign, enqueueActions, fromCallback, fromPromise, setup } from 'xstate';
import { messageOf } from '../../text/errors.ts';
import { type Moment, reading } from '../../xstate/facts.ts';
import { names, projecting } from '../../xstate/projection.ts';
import { perform, providing, unprovided } from '../../xstate/provide.ts';
import type { Registered } from './messages.ts';
import { type PluginIo, type PluginSaid, pluginMachine, pluginWith } from './pluginMachine.ts';

/** Between looks at the folder, where no hint came. */
const LOOK_MS = 10_000;
/** After a hint: a socket is there before anybody listens on it. */
const HINT_MS = 100;

/** A socket, and what tells it from another of the same path. */
export interface FoundSocket {
  path: string;
  stamp: string;
}
export interface PluginsIo extends PluginIo {
  scan(signal: AbortSignal): Promise<readonly FoundSocket[]>;
  /** Hints until the function it gives is called. Never throws: without a watch the looks remain. */
  watch(hint: () => void): () => void;
  /** That socket has gone, and whoever registered through it. */
  gone(socket: string): void;
  registered(socket: string, plugin: Registered): void;
}
export interface PluginsContext {
  sockets: ReadonlyMap<string, { stamp: string; machine: AnyActorRef }>;
  again: boolean;
  lastId: number;
  error: string;
}
type Event = { type: 'folder.hint' } | PluginSaid;

export const pluginsMachine = setup({
  types: { context: {} as PluginsContext, events: {} as Event },
  actors: {
    plugin: pluginMachine,
    scan: unprovided<readonly FoundSocket[]>(),
    watch: fromCallback<{ type: 'none' }>(() => {}),
  },
  actions: {
    compare: enqueueActions(({ context, enqueue }, params: { found: readonly FoundSocket[] }) => {
      const found = new Map(params.found.map((s) => [s.path, s.stamp]));
      const sockets = new Map(context.sockets);
      for (const [path, { stamp, machine }] of context.sockets) {
        if (found.get(path) === stamp) continue;
        enqueue.stopChild(machine);
        perform(enqueue, 'sayGone', { path });
        sockets.delete(path);
      }
      const fresh = [...found].filter(([path]) => !sockets.has(path));
      enqueue.assign(({ spawn, context: { lastId } }) => {
        for (const [i, [path, stamp]] of fresh.entries()) {
          const machine = spawn('plugin', { id: `${path}#${lastId + i + 1}`, input: { socket: path } });
          sockets.set(path, { stamp, machine });
        }
        return { sockets, lastId: lastId + fresh.length, error: '' };
      });
    }),
    later: assign({ again: true }),
    noteFailure: assign((_, params: { error: unknown }) => ({
      error: messageOf(params.error),
    })),
    sayGone: (_, _params: { path: string }) => {},
    tell: (_) => {},
  },
  guards: { again: ({ context }) => context.again },
}).createMachine({
  id: 'plugins',
  meta: projecting<PluginsContext>(({ sockets, again, error }) => ({ sockets: names(sockets.keys()), again, error })),
  context: () => ({ sockets: new Map(), again: false, lastId: 0, error: '' }),
  invoke: { src: 'watch' },
  initial: 'looking',
  on: { 'folder.hint': { actions: ['later'] }, 'plugin.registered': { actions: ['tell'] } },
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

/** `moment`: comes with each event of a socket's statechart. */
export const pluginsWith = (io: PluginsIo, moment: () => Moment): typeof pluginsMachine =>
  providing(pluginsMachine, {
    actors: {
      plugin: reading(pluginWith(io), moment),
      scan: fromPromise(({ signal }) => io.scan(signal)),
      watch: fromCallback<{ type: 'none' }>(({ sendBack }) => io.watch(() => sendBack({ type: 'folder.hint' }))),
    },
    actions: {
      sayGone: (_, { path }) => io.gone(path),
      tell: ({ event }) => {
        if (event.type === 'plugin.registered') io.registered(event.socket, event.plugin);
      },
    },
  });
