/**
 * The device manager: its records, the socket at which plugins register, and a chart for each plugin. A plugin that was
 * reached takes the place of the one before it; what the former says after that is about nothing (trap 29).
 */

import { type AnyActorRef, assign, enqueueActions, fromCallback, fromPromise, setup } from 'xstate';
import { factsOf } from '../../facts.ts';
import { names, projecting } from '../../projection.ts';
import { type EndpointInput, type EndpointIo, type EndpointKey, type EndpointSaid, endpointMachine } from './endpointMachine.ts';
import type { DevicesEvent, WatchedPlugin } from './messages.ts';
import type { PluginDevice, PluginOptions } from './types.ts';

/** Back-off of what cannot be read or listened at. */
export const DEVICES_RETRY = { minMs: 1_000, maxMs: 60_000 } as const;

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
  chart: AnyActorRef;
  done(error: string | null): void;
  /** Its socket in the folder of plugins; '' where it registered at ours. */
  socket: string;
}
export interface DevicesContext {
  io: DevicesIo;
  /** The present plugin of each resource. */
  endpoints: ReadonlyMap<string, { id: number; chart: AnyActorRef; socket: string }>;
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
const text = (error: unknown): string => (error instanceof Error ? error.message : String(error));
const isPresent = ({ endpoints }: DevicesContext, key: EndpointKey): boolean => endpoints.get(key.resource)?.id === key.id;

type Spawn = (kind: 'endpoint', o: { id: string; input: EndpointInput }) => AnyActorRef;

function startDialing(spawn: Spawn, context: DevicesContext, { who, socket }: { who: Registering; socket: string }): Place {
  const { resource, endpoint, options, done } = who;
  const lastId = context.lastId + 1;
  const input = { resource, id: lastId, endpoint, options, remembered: false, io: context.io };
  const chart = spawn('endpoint', { id: `${resource}#${lastId}`, input });
  return { endpoints: context.endpoints, dialing: new Map(context.dialing).set(lastId, { chart, done, socket }), lastId };
}

export const devicesMachine = setup({
  types: { context: {} as DevicesContext, events: {} as Event, input: {} as { io: DevicesIo } },
  actors: {
    endpoint: endpointMachine,
    load: fromPromise(({ input, signal }: { input: { io: DevicesIo }; signal: AbortSignal }) => input.io.load(signal)),
    server: fromCallback<Event, { io: DevicesIo }>(({ input, sendBack }) =>
      input.io.serve({
        open: () => sendBack({ type: 'socket.open' }),
        failed: (error) => sendBack({ type: 'socket.failed', error }),
        register: (who) => sendBack({ type: 'plugin.register', who }),
      }),
    ),
  },
  actions: {
    remember: enqueueActions(({ enqueue }, params: { resources: readonly string[] }) => {
      enqueue.assign(({ spawn, context }) => {
        const endpoints = new Map(context.endpoints);
        let { lastId } = context;
        for (const resource of params.resources) {
          lastId += 1;
          const input = { resource, id: lastId, endpoint: '', options: null, remembered: true, io: context.io };
          endpoints.set(resource, { id: lastId, chart: spawn('endpoint', { id: `${resource}#${lastId}`, input }), socket: '' });
        }
        return { endpoints, lastId };
      });
    }),
    dial: assign(({ spawn, context }, params: { who: Registering; socket: string }): Place => startDialing(spawn, context, params)),
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
        if (former !== undefined) enqueue.stopChild(former.chart);
        enqueue(() => {
          if (former !== undefined) context.io.closed({ resource: key.resource, id: former.id });
          context.io.connected(key);
        });
        endpoints.set(key.resource, { id: key.id, chart: dialed.chart, socket: dialed.socket });
      } else enqueue.stopChild(dialed.chart);
      enqueue.assign({ dialing, endpoints });
      enqueue(() => dialed.done(error));
    }),
    /** Sockets in the folder of plugins that came, went, or were made anew. */
    compareWatched: enqueueActions(({ context, event, enqueue }) => {
      const { watched } = factsOf<DevicesFacts>(event);
      for (const [socket, { resource, stamp }] of context.watched) {
        if (watched.get(socket)?.stamp === stamp) continue;
        const present = context.endpoints.get(resource);
        if (present?.socket === socket) enqueue.sendTo(present.chart, { type: 'plugin.ended', why: 'its socket was taken away' });
      }
      for (const [socket, { resource, endpoint, options, stamp }] of watched) {
        if (context.watched.get(socket)?.stamp === stamp) continue;
        const done = (error: string | null) => {
          if (error !== null) context.io.failed(`the plugin of ${resource} at ${endpoint} cannot be reached`, error);
        };
        const who = { resource, endpoint, options, done };
        enqueue.assign(({ spawn, context: now }) => startDialing(spawn, now, { who, socket }));
      }
      enqueue.assign({ watched });
    }),
    tell: enqueueActions(({ context, enqueue, event }) => {
      const { io } = context;
      if (event.type === 'endpoint.listed' && isPresent(context, event.key)) enqueue(() => io.listed(event.key, event.devices));
      if (event.type === 'endpoint.stopped' && isPresent(context, event.key)) enqueue(() => io.stopped(event.key, event.error));
      if (event.type === 'endpoint.expired' && isPresent(context, event.key)) {
        const endpoints = new Map(context.endpoints);
        const chart = endpoints.get(event.key.resource)?.chart;
        if (chart !== undefined) enqueue.stopChild(chart);
        endpoints.delete(event.key.resource);
        enqueue.assign({ endpoints });
        enqueue(() => io.expired(event.key));
      }
    }),
    ask: ({ context, event }) => {
      if (event.type === 'allocation.admit' || event.type === 'devices.start') context.io.ask(event);
    },
    refuse: ({ context, event }) => {
      if (event.type !== 'allocation.admit' && event.type !== 'devices.start') return;
      context.io.refuse(event, context.error === '' ? 'the records of devices are being read' : context.error);
    },
    forget: ({ context, event }) => {
      if (event.type === 'allocation.forget') context.io.forget(event.uid);
    },
    noteFailure: enqueueActions(({ context, enqueue }, params: { what: string; error: string }) => {
      enqueue.assign({ error: `${params.what}: ${params.error}`, attempts: context.attempts + 1 });
      enqueue(() => context.io.failed(params.what, params.error));
    }),
    noteSuccess: assign({ error: '', attempts: 0 }),
  },
  delays: { wait: ({ context }) => Math.min(DEVICES_RETRY.minMs * 2 ** Math.min(context.attempts - 1, 16), DEVICES_RETRY.maxMs) },
}).createMachine({
  id: 'devices',
  meta: projecting<DevicesContext>(({ endpoints, dialing, watched, error, attempts }) => ({
    plugins: names(endpoints.keys()),
    sockets: names(watched.keys()),
    ...{ dialing: dialing.size, error, attempts },
  })),
  context: ({ input }) => ({
    io: input.io,
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
        input: ({ context }) => ({ io: context.io }),
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
      invoke: { src: 'server', input: ({ context }) => ({ io: context.io }) },
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
