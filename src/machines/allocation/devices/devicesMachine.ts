/**
 * The device manager: its records, the socket at which plugins register, and a statechart for each plugin. A plugin that was
 * reached takes the place of the one before it; what the former says after that is about nothing (trap 29).
 */

import { assign } from 'xstate';
import { retryDelayMs } from '../../supervision/restartPolicy.ts';
import { messageOf } from '../../text/errors.ts';
import { names, projecting } from '../../xstate/projection.ts';
import { unprovided, unprovidedAction, unprovidedCallback } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
import { type EndpointEvent, type EndpointInput, type EndpointKey, type EndpointSaid, endpointMachine } from './endpointMachine.ts';
import { type DevicesEvent, SOCKET_FAILED, type WatchedPlugin } from './messages.ts';
import type { PluginDevice, PluginOptions } from './types.ts';

/** Back-off of what cannot be read or listened at. */
const DEVICES_RETRY = { minMs: 1_000, maxMs: 60_000 } as const;

/** A plugin that wants to register. */
export interface Registering {
  resource: string;
  endpoint: string;
  options: PluginOptions | null;
}
export type AskEvent = Extract<DevicesEvent, { type: 'allocation.admit' | 'allocation.hints' | 'devices.start' }>;

/** What comes with each event. */
export interface DevicesFacts {
  /** Plugins in the folder of plugins, by socket. */
  readonly watched: ReadonlyMap<string, WatchedPlugin>;
}
interface Dialing {
  resource: string;
  endpoint: string;
  /** Number of its registration; null: it was found in the folder of plugins. */
  ask: number | null;
  /** Its socket in the folder of plugins; '' where it registered at ours. */
  socket: string;
}
export interface DevicesContext {
  /** The present plugin of each resource, by the number of its statechart. */
  endpoints: ReadonlyMap<string, { id: number; socket: string }>;
  /** By the number of the statechart. */
  dialing: ReadonlyMap<number, Dialing>;
  /** As last looked at, by socket. */
  watched: ReadonlyMap<string, WatchedPlugin>;
  lastId: number;
  error: string;
  attempts: number;
}
export type RegistrationEvent =
  | { type: 'plugin.register'; ask: number; who: Registering }
  | { type: 'socket.open' }
  | { type: 'socket.failed'; error: string };
type Event = DevicesEvent | EndpointSaid | RegistrationEvent;

const NO_REGISTRATION = 'device plugins cannot register';
const unread = (error: unknown) => ({ what: 'the records of devices cannot be read', error: messageOf(error) });

function without<K, V>(map: ReadonlyMap<K, V>, key: K): Map<K, V> {
  return new Map([...map].filter(([k]) => k !== key));
}
const childOf = ({ resource, id }: EndpointKey): string => `${resource}#${id}`;
const whyRefused = ({ error }: DevicesContext): string => (error === '' ? 'the records of devices are being read' : error);
type Refused = { context: DevicesContext; event: AskEvent };
const refusal = { type: 'refuse', params: ({ context, event }: Refused) => ({ event, why: whyRefused(context) }) } as const;
/** While the records are not read. */
const notYet = {
  'allocation.admit': { actions: [refusal] },
  'allocation.forget': {},
  'allocation.hints': { actions: [refusal] },
  'devices.start': { actions: [refusal] },
  'devices.watched': {},
} as const;

const { setup, facts } = setupWith<DevicesFacts>();
const effects = setup({
  types: { context: {} as DevicesContext, events: {} as Event },
  actors: {
    endpoint: endpointMachine,
    /** The resources that the records name. */
    load: unprovided<readonly string[]>(),
    /** Makes the folder clean and listens. */
    server: unprovidedCallback<RegistrationEvent>(),
  },
  actions: {
    /** `former`: the plugin of that resource until now; null: there was none. */
    sayConnected: unprovidedAction<{ key: EndpointKey; former: EndpointKey | null }>(),
    sayListed: unprovidedAction<{ key: EndpointKey; devices: readonly PluginDevice[] }>(),
    sayStopped: unprovidedAction<{ key: EndpointKey; error: string }>(),
    sayExpired: unprovidedAction<{ key: EndpointKey }>(),
    sayFailed: unprovidedAction<{ what: string; error: string }>(),
    /** What a registration came to; null: it is registered. */
    replyTo: unprovidedAction<{ ask: number; error: string | null }>(),
    /** Answers in its own time. */
    ask: unprovidedAction<AskEvent>(),
    refuse: unprovidedAction<{ event: AskEvent; why: string }>(),
    /** The pod is not admitted after all. */
    forget: unprovidedAction<{ uid: string }>(),
  },
});

type Enqueue = Parameters<Parameters<typeof effects.enqueueActions>[0]>[0]['enqueue'];

/** Spawns the statechart of a plugin that is to be reached. */
function dial(
  enqueue: Enqueue,
  place: Pick<DevicesContext, 'dialing' | 'lastId'>,
  { who, ...how }: { who: Registering; ask: number | null; socket: string },
) {
  const { resource, endpoint, options } = who;
  const id = place.lastId + 1;
  const input: EndpointInput = { resource, id, endpoint, options, remembered: false };
  enqueue.spawnChild('endpoint', { id: childOf({ resource, id }), input });
  return { dialing: new Map(place.dialing).set(id, { resource, endpoint, ...how }), lastId: id };
}

export const devicesMachine = effects
  .extend({
    actions: {
      remember: assign(({ context, spawn }, { resources }: { resources: readonly string[] }) => {
        const endpoints = new Map(context.endpoints);
        let { lastId } = context;
        for (const resource of resources) {
          lastId += 1;
          const input: EndpointInput = { resource, id: lastId, endpoint: '', options: null, remembered: true };
          spawn('endpoint', { id: childOf({ resource, id: lastId }), input });
          endpoints.set(resource, { id: lastId, socket: '' });
        }
        return { endpoints, lastId };
      }),
      register: effects.enqueueActions(({ context, event, enqueue }) => {
        if (event.type === 'plugin.register') enqueue.assign(dial(enqueue, context, { who: event.who, ask: event.ask, socket: '' }));
      }),
      /** It takes the place of the plugin before it, which is stopped before anything else is heard of it. */
      connect: effects.enqueueActions(({ context, event, enqueue }) => {
        if (event.type !== 'endpoint.connected') return;
        const { key } = event;
        const dialed = context.dialing.get(key.id);
        if (dialed === undefined) return;
        const former = context.endpoints.get(key.resource);
        const before = former === undefined ? null : { resource: key.resource, id: former.id };
        if (before !== null) enqueue.stopChild(childOf(before));
        enqueue({ type: 'sayConnected', params: { key, former: before } });
        enqueue.assign({
          dialing: without(context.dialing, key.id),
          endpoints: new Map(context.endpoints).set(key.resource, { id: key.id, socket: dialed.socket }),
        });
        if (dialed.ask !== null) enqueue({ type: 'replyTo', params: { ask: dialed.ask, error: null } });
      }),
      giveUp: effects.enqueueActions(({ context, event, enqueue }) => {
        if (event.type !== 'endpoint.failed') return;
        const { key, error } = event;
        const dialed = context.dialing.get(key.id);
        if (dialed === undefined) return;
        const { ask, resource, endpoint } = dialed;
        enqueue.stopChild(childOf(key));
        enqueue.assign({ dialing: without(context.dialing, key.id) });
        if (ask !== null) enqueue({ type: 'replyTo', params: { ask, error } });
        else enqueue({ type: 'sayFailed', params: { what: `the plugin of ${resource} at ${endpoint} cannot be reached`, error } });
      }),
      expire: effects.enqueueActions(({ context, event, enqueue }) => {
        if (event.type !== 'endpoint.expired') return;
        enqueue.stopChild(childOf(event.key));
        enqueue.assign({ endpoints: without(context.endpoints, event.key.resource) });
      }),
      /** Sockets in the folder of plugins that came, went, or were made anew. */
      compareWatched: effects.enqueueActions(({ context, enqueue }) => {
        const { watched } = facts();
        for (const [socket, { resource, stamp }] of context.watched) {
          if (watched.get(socket)?.stamp === stamp) continue;
          const present = context.endpoints.get(resource);
          if (present?.socket !== socket) continue;
          const ended: EndpointEvent = { type: 'plugin.ended', why: 'its socket was taken away' };
          enqueue.sendTo(childOf({ resource, id: present.id }), ended);
        }
        let place: Pick<DevicesContext, 'dialing' | 'lastId'> = context;
        for (const [socket, { resource, endpoint, options, stamp }] of watched) {
          if (context.watched.get(socket)?.stamp === stamp) continue;
          place = dial(enqueue, place, { who: { resource, endpoint, options }, ask: null, socket });
        }
        enqueue.assign({ watched, dialing: place.dialing, lastId: place.lastId });
      }),
      noteFailure: assign(({ context }, { what, error }: { what: string; error: string }) => ({
        error: `${what}: ${error}`,
        attempts: context.attempts + 1,
      })),
      noteSuccess: assign({ error: '', attempts: 0 }),
    },
    guards: {
      /** A plugin that another one replaced is heard no more. */
      isPresent: ({ context }, { key }: { key: EndpointKey }) => context.endpoints.get(key.resource)?.id === key.id,
    },
    delays: { wait: ({ context }) => retryDelayMs(DEVICES_RETRY, context.attempts - 1) },
  })
  .createMachine({
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
      'allocation.admit': { actions: [{ type: 'ask', params: ({ event }) => event }] },
      'allocation.forget': { actions: [{ type: 'forget', params: ({ event }) => ({ uid: event.uid }) }] },
      'allocation.hints': { actions: [{ type: 'ask', params: ({ event }) => event }] },
      'devices.start': { actions: [{ type: 'ask', params: ({ event }) => event }] },
      'devices.watched': { actions: ['compareWatched'] },
      'plugin.register': { actions: ['register'] },
      'endpoint.connected': { actions: ['connect'] },
      'endpoint.failed': { actions: ['giveUp'] },
      'endpoint.listed': {
        guard: { type: 'isPresent', params: ({ event }) => event },
        actions: [{ type: 'sayListed', params: ({ event }) => event }],
      },
      'endpoint.stopped': {
        guard: { type: 'isPresent', params: ({ event }) => event },
        actions: [{ type: 'sayStopped', params: ({ event }) => event }],
      },
      'endpoint.expired': {
        guard: { type: 'isPresent', params: ({ event }) => event },
        actions: ['expire', { type: 'sayExpired', params: ({ event }) => event }],
      },
    },
    states: {
      loading: {
        meta: { reason: 'Loading', message: 'reading which devices pods were given before the daemon started' },
        on: notYet,
        invoke: {
          src: 'load',
          onDone: {
            target: 'open',
            actions: ['noteSuccess', { type: 'remember', params: ({ event }) => ({ resources: event.output }) }, 'compareWatched'],
          },
          onError: {
            target: 'unread',
            actions: [
              { type: 'noteFailure', params: ({ event }) => unread(event.error) },
              { type: 'sayFailed', params: ({ event }) => unread(event.error) },
            ],
          },
        },
      },
      unread: {
        meta: { reason: 'RecordsUnreadable', message: ({ error }: DevicesContext) => `${error}; pods with devices wait` },
        on: notYet,
        after: { wait: { target: 'loading' } },
      },
      open: {
        initial: 'opening',
        invoke: { src: 'server' },
        on: {
          'socket.failed': {
            target: 'closed',
            actions: [
              { type: 'noteFailure', params: ({ event }) => ({ what: NO_REGISTRATION, error: event.error }) },
              { type: 'sayFailed', params: ({ event }) => ({ what: NO_REGISTRATION, error: event.error }) },
            ],
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
        meta: { reason: SOCKET_FAILED, message: ({ error }: DevicesContext) => `${error}; it is tried again` },
        after: { wait: { target: 'open' } },
      },
    },
  });
