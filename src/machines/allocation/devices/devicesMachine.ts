/**
 * The device manager: its records, the socket at which plugins register, and a statechart for each plugin. A plugin that was
 * reached takes the place of the one before it; what the former says after that is about nothing (trap 29).
 */

import { type AnyActorRef, assign, enqueueActions, fromCallback, fromPromise, setup } from 'xstate';
import { retryDelayMs } from '../../supervision/restartPolicy.ts';
import { messageOf } from '../../text/errors.ts';
import { factsOf } from '../../xstate/facts.ts';
import { names, projecting } from '../../xstate/projection.ts';
import { perform, providing, unprovided } from '../../xstate/provide.ts';
import {
  type EndpointInput,
  type EndpointIo,
  type EndpointKey,
  type EndpointSaid,
  endpointMachine,
  endpointWith,
} from './endpointMachine.ts';
import type { DevicesEvent, WatchedPlugin } from './messages.ts';
import type { PluginDevice, PluginOptions } from './types.ts';

/** Back-off of what cannot be read or listened at. */
const DEVICES_RETRY = { minMs: 1_000, maxMs: 60_000 } as const;

/** One that wants to register. `done`: with what is wrong, or null. */
export interface Registering {
  resource: string;
  endpoint: string;
  options: PluginOptions | null;
  done(error: string | null): void;
}
type AskEvent = Extract<DevicesEvent, { type: 'allocation.admit' | 'devices.start' }>;

/** What comes with each event. */
export interface DevicesFacts {
  /** Plugins in the folder of plugins, by socket. */
  readonly watched: ReadonlyMap<string, WatchedPlugin>;
}
export interface DevicesIo extends EndpointIo {
  /** Reads the records; the resources that they name. */
  load(signal: AbortSignal): Promise<readonly string[]>;
  /** Makes the folder clean and listens, until the function it gives is called. */
  serve(on: { open(): void; failed(error: string): void; register(who: Registering): void }): () => void;
  connected(key: EndpointKey): void;
  listed(key: EndpointKey, devices: readonly PluginDevice[]): void;
  stopped(key: EndpointKey, error: string): void;
  expired(key: EndpointKey): void;
  /** Answers in its own time. */
  ask(event: AskEvent): void;
  refuse(event: AskEvent, why: string): void;
  /** It is not let in after all. */
  forget(uid: string): void;
  failed(what: string, error: string): void;
}
interface Dialing {
  machine: AnyActorRef;
  resource: string;
  endpoint: string;
  /** Null: it did not ask. */
  done: Registering['done'] | null;
  /** Its socket in the folder of plugins; '' where it registered at ours. */
  socket: string;
}
export interface DevicesContext {
  /** The present plugin of each resource. */
  endpoints: ReadonlyMap<string, { id: number; machine: AnyActorRef; socket: string }>;
  dialing: ReadonlyMap<number, Dialing>;
  /** As last looked at, by socket. */
  watched: ReadonlyMap<string, WatchedPlugin>;
  lastId: number;
  error: string;
  attempts: number;
}
type Event =
  | DevicesEvent
  | EndpointSaid
  | { type: 'plugin.register'; who: Registering }
  | { type: 'socket.open' }
  | { type: 'socket.failed'; error: string };

type Place = Pick<DevicesContext, 'endpoints' | 'dialing' | 'lastId'>;
const text = (error: unknown): string => messageOf(error);
const isPresent = ({ endpoints }: DevicesContext, key: EndpointKey): boolean => endpoints.get(key.resource)?.id === key.id;

/** `done` null: it was found in the folder of plugins. */
type Dialed = Omit<Registering, 'done'> & Pick<Dialing, 'done'>;
type Spawn = (kind: 'endpoint', o: { id: string; input: EndpointInput }) => AnyActorRef;

function startDialing(spawn: Spawn, context: DevicesContext, { who, socket }: { who: Dialed; socket: string }): Place {
  const { resource, endpoint, options, done } = who;
  const lastId = context.lastId + 1;
  const input = { resource, id: lastId, endpoint, options, remembered: false };
  const machine = spawn('endpoint', { id: `${resource}#${lastId}`, input });
  return {
    endpoints: context.endpoints,
    dialing: new Map(context.dialing).set(lastId, { machine, resource, endpoint, done, socket }),
    lastId,
  };
}

export const devicesMachine = setup({
  types: { context: {} as DevicesContext, events: {} as Event },
  actors: {
    endpoint: endpointMachine,
    load: unprovided<readonly string[]>(),
    server: fromCallback<Event>(() => {}),
  },
  actions: {
    /** `former`: the plugin of that resource until now; null: there was none. */
    sayConnected: (_, _params: { key: EndpointKey; former: EndpointKey | null }) => {},
    sayListed: (_, _params: { key: EndpointKey; devices: readonly PluginDevice[] }) => {},
    sayStopped: (_, _params: { key: EndpointKey; error: string }) => {},
    sayExpired: (_, _params: { key: EndpointKey }) => {},
    sayFailed: (_, _params: { what: string; error: string }) => {},
    remember: enqueueActions(({ enqueue }, params: { resources: readonly string[] }) => {
      enqueue.assign(({ spawn, context }) => {
        const endpoints = new Map(context.endpoints);
        let { lastId } = context;
        for (const resource of params.resources) {
          lastId += 1;
          const input = { resource, id: lastId, endpoint: '', options: null, remembered: true };
          endpoints.set(resource, { id: lastId, machine: spawn('endpoint', { id: `${resource}#${lastId}`, input }), socket: '' });
        }
        return { endpoints, lastId };
      });
    }),
    dial: assign(({ spawn, context }, params: { who: Dialed; socket: string }): Place => startDialing(spawn, context, params)),
    settle: enqueueActions(({ context, enqueue }, params: { key: EndpointKey; error: string | null }) => {
      const { key, error } = params;
      const dialed = context.dialing.get(key.id);
      if (dialed === undefined) return;
      const dialing = new Map(context.dialing);
      dialing.delete(key.id);
      const endpoints = new Map(context.endpoints);
      if (error === null) {
        const former = endpoints.get(key.resource);
        // It is stopped before anything else is heard of it.
        if (former !== undefined) enqueue.stopChild(former.machine);
        const before = former === undefined ? null : { resource: key.resource, id: former.id };
        perform(enqueue, 'sayConnected', { key, former: before });
        endpoints.set(key.resource, { id: key.id, machine: dialed.machine, socket: dialed.socket });
      } else enqueue.stopChild(dialed.machine);
      enqueue.assign({ dialing, endpoints });
      const { done, resource, endpoint } = dialed;
      if (done !== null) enqueue(() => done(error));
      else if (error !== null) perform(enqueue, 'sayFailed', { what: `the plugin of ${resource} at ${endpoint} cannot be reached`, error });
    }),
    /** Sockets in the folder of plugins that came, went, or were made anew. */
    compareWatched: enqueueActions(({ context, event, enqueue }) => {
      const { watched } = factsOf<DevicesFacts>(event);
      for (const [socket, { resource, stamp }] of context.watched) {
        if (watched.get(socket)?.stamp === stamp) continue;
        const present = context.endpoints.get(resource);
        if (present?.socket === socket) enqueue.sendTo(present.machine, { type: 'plugin.ended', why: 'its socket was taken away' });
      }
      for (const [socket, { resource, endpoint, options, stamp }] of watched) {
        if (context.watched.get(socket)?.stamp === stamp) continue;
        const who = { resource, endpoint, options, done: null };
        enqueue.assign(({ spawn, context: now }) => startDialing(spawn, now, { who, socket }));
      }
      enqueue.assign({ watched });
    }),
    tell: enqueueActions(({ context, enqueue, event }) => {
      if (event.type === 'endpoint.listed' && isPresent(context, event.key))
        perform(enqueue, 'sayListed', { key: event.key, devices: event.devices });
      if (event.type === 'endpoint.stopped' && isPresent(context, event.key))
        perform(enqueue, 'sayStopped', { key: event.key, error: event.error });
      if (event.type === 'endpoint.expired' && isPresent(context, event.key)) {
        const endpoints = new Map(context.endpoints);
        const machine = endpoints.get(event.key.resource)?.machine;
        if (machine !== undefined) enqueue.stopChild(machine);
        endpoints.delete(event.key.resource);
        enqueue.assign({ endpoints });
        perform(enqueue, 'sayExpired', { key: event.key });
      }
    }),
    ask: (_) => {},
    refuse: (_) => {},
    forget: (_) => {},
    noteFailure: enqueueActions(({ context, enqueue }, params: { what: string; error: string }) => {
      enqueue.assign({ error: `${params.what}: ${params.error}`, attempts: context.attempts + 1 });
      perform(enqueue, 'sayFailed', params);
    }),
    noteSuccess: assign({ error: '', attempts: 0 }),
  },
  delays: { wait: ({ context }) => retryDelayMs(DEVICES_RETRY, context.attempts - 1) },
}).createMachine({
  id: 'devices',
  meta: projecting<DevicesContext>(({ endpoints, dialing, watched, error, attempts }) => ({
    plugins: names(endpoints.keys()),
    sockets: names(watched.keys()),
    ...{ dialing: dialing.size, error, attempts },
  })),
  context: () => ({
    endpoints: new Map(),
    dialing: new Map(),
    watched: new Map(),
    lastId: 0,
    error: '',
    attempts: 0,
  }),
  initial: 'loading',
  on: {
    'allocation.admit': { actions: ['ask'] },
    'allocation.forget': { actions: ['forget'] },
    'devices.start': { actions: ['ask'] },
    'devices.watched': { actions: ['compareWatched'] },
    'plugin.register': { actions: [{ type: 'dial', params: ({ event }) => ({ who: event.who, socket: '' }) }] },
    'endpoint.connected': { actions: [{ type: 'settle', params: ({ event }) => ({ key: event.key, error: null }) }] },
    'endpoint.failed': { actions: [{ type: 'settle', params: ({ event }) => ({ key: event.key, error: event.error }) }] },
    'endpoint.*': { actions: ['tell'] },
  },
  states: {
    loading: {
      meta: { reason: 'Loading', message: 'reading which devices pods were given before the daemon started' },
      on: {
        'allocation.admit': { actions: ['refuse'] },
        'allocation.forget': {},
        'devices.start': { actions: ['refuse'] },
        'devices.watched': {},
      },
      invoke: {
        src: 'load',
        onDone: {
          target: 'open',
          actions: ['noteSuccess', { type: 'remember', params: ({ event }) => ({ resources: event.output }) }, 'compareWatched'],
        },
        onError: {
          target: 'unread',
          actions: [
            { type: 'noteFailure', params: ({ event }) => ({ what: 'the records of devices cannot be read', error: text(event.error) }) },
          ],
        },
      },
    },
    unread: {
      meta: { reason: 'RecordsUnreadable', message: ({ error }: DevicesContext) => `${error}; pods with devices wait` },
      on: {
        'allocation.admit': { actions: ['refuse'] },
        'allocation.forget': {},
        'devices.start': { actions: ['refuse'] },
        'devices.watched': {},
      },
      after: { wait: { target: 'loading' } },
    },
    open: {
      initial: 'opening',
      invoke: { src: 'server' },
      on: {
        'socket.failed': {
          target: 'closed',
          actions: [{ type: 'noteFailure', params: ({ event }) => ({ what: 'device plugins cannot register', error: event.error }) }],
        },
      },
      states: {
        opening: {
          meta: { reason: 'Opening', message: 'making the socket at which device plugins register' },
          on: { 'socket.open': { target: 'serving', actions: ['noteSuccess'] } },
        },
        serving: {
          meta: {
            reason: 'Serving',
            message: ({ endpoints }: DevicesContext) =>
              endpoints.size === 0 ? 'no device plugin has registered' : `plugins of ${[...endpoints.keys()].sort().join(', ')}`,
          },
        },
      },
    },
    closed: {
      meta: { reason: 'SocketFailed', message: ({ error }: DevicesContext) => `${error}; it is tried again` },
      after: { wait: { target: 'open' } },
    },
  },
});

export const devicesWith = (io: DevicesIo): typeof devicesMachine =>
  providing(devicesMachine, {
    actors: {
      endpoint: endpointWith(io),
      load: fromPromise(({ signal }) => io.load(signal)),
      server: fromCallback<Event>(({ sendBack }) =>
        io.serve({
          open: () => sendBack({ type: 'socket.open' }),
          failed: (error) => sendBack({ type: 'socket.failed', error }),
          register: (who) => sendBack({ type: 'plugin.register', who }),
        }),
      ),
    },
    actions: {
      sayConnected: (_, { key, former }) => {
        if (former !== null) io.closed(former);
        io.connected(key);
      },
      sayListed: (_, { key, devices }) => io.listed(key, devices),
      sayStopped: (_, { key, error }) => io.stopped(key, error),
      sayExpired: (_, { key }) => io.expired(key),
      sayFailed: (_, { what, error }) => io.failed(what, error),
      ask: ({ event }) => {
        if (event.type === 'allocation.admit' || event.type === 'devices.start') io.ask(event);
      },
      refuse: ({ context: { error }, event }) => {
        if (event.type !== 'allocation.admit' && event.type !== 'devices.start') return;
        io.refuse(event, error === '' ? 'the records of devices are being read' : error);
      },
      forget: ({ event }) => {
        if (event.type === 'allocation.forget') io.forget(event.uid);
      },
    },
  });
