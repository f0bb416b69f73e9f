/**
 * State held: which devices there are, who holds which, connections to plugins.
 * Lost on restart: connections and how devices are; plugins register again when the socket is made anew, those that came
 * through the folder of plugins are reached again.
 * Rebuilt from: `<root-dir>/device-plugins/kubelet_internal_checkpoint`, the plugins.
 */

import { fromCallback, fromPromise } from 'xstate';
import {
  type AskEvent,
  type DevicesFacts,
  devicesMachine,
  type Registering,
  type RegistrationEvent,
} from '../../../machines/allocation/devices/devicesMachine.ts';
import {
  type EndpointEvent,
  type EndpointInput,
  type EndpointKey,
  endpointMachine,
} from '../../../machines/allocation/devices/endpointMachine.ts';
import { podsWithOtherHealth } from '../../../machines/allocation/devices/held.ts';
import { connected, expired, listed, nodeDevices, remembered, stopped } from '../../../machines/allocation/devices/inventory.ts';
import { type DevicesEvent, devicesAddr, devicesView, watchedPluginsView } from '../../../machines/allocation/devices/messages.ts';
import { admitPlugin, DEVICES_MAX, RESOURCES_MAX, tooMany } from '../../../machines/allocation/devices/rules.ts';
import type { DeviceLedger, PluginDevice, PluginOptions, RegisterRequest } from '../../../machines/allocation/devices/types.ts';
import { apiAddr } from '../../../machines/api/messages.ts';
import { peerViews } from '../../../machines/pod/peers/peers.ts';
import { workersAddr } from '../../../machines/pods/workers/messages.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import type { Ports } from '../../../ports/ports.ts';
import type { DevicePlugins, PluginConnection } from '../../../ports/sockets/devicePlugins.ts';
import { type PeerCalls, peerCalls } from '../../foundation/client.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { newestOnly } from '../newest.ts';
import { DeviceAllocator, pluginCall } from './allocator.ts';
import { DeviceRecords } from './records.ts';

export interface DevicesOptions {
  rootDir: string;
  /** There is an API server, whose node shows what there is. */
  cluster: boolean;
  /** The machine's NUMA nodes. */
  nodes: readonly number[];
}

/** Below the root directory. */
const FOLDER = 'device-plugins';
const SOCKET = 'kubelet.sock';
/** How long a plugin may take to be reached, from the reference. */
const DIAL_TIMEOUT_MS = 10_000;
const OPTIONS_TIMEOUT_MS = 10_000;
/** Of a name that no plugin may register. */
const RESOURCE_CHARS_MAX = 100;
/** The record is read before pods are judged; a disk that takes longer holds up nobody else. */
const READY_TIMEOUT_MS = 60_000;

export function devicesSpec(o: DevicesOptions): ActorSpec<DevicesEvent> {
  return {
    type: 'actor',
    id: devicesAddr.path.split('/').at(-1) ?? 'devices',
    mailbox: { capacity: 4096 },
    ready: { when: (snapshot) => !(snapshot as { matches(state: string): boolean }).matches('loading'), timeoutMs: READY_TIMEOUT_MS },
    start: (ctx) => {
      const { devicePlugins } = ctx.ports;
      if (devicePlugins === undefined) throw new Error('this node cannot speak to device plugins');
      const facts = (): DevicesFacts => ({ watched: ctx.registry.read(watchedPluginsView)?.value ?? new Map() });
      return { logic: logicOf(new DeviceManager(ctx, o, devicePlugins), facts) };
    },
  };
}

function logicOf(manager: DeviceManager, facts: () => DevicesFacts) {
  const endpoint = provided(endpointMachine, {
    actors: {
      dial: fromPromise<void, EndpointInput>(({ input, signal }) => manager.dial(input, signal)),
      watch: fromCallback<EndpointEvent, EndpointInput>(({ input, sendBack }) => manager.watch(input, sendBack)),
    },
    actions: { close: (_, { key }) => manager.closed(key) },
  });
  return provided(
    devicesMachine,
    {
      actors: {
        endpoint,
        load: fromPromise(() => manager.load()),
        server: fromCallback<RegistrationEvent>(({ sendBack }) => manager.serve(sendBack)),
      },
      actions: {
        sayConnected: (_, { key, former }) => {
          if (former !== null) manager.closed(former);
          manager.connected(key);
        },
        sayListed: (_, { key, devices }) => manager.listed(key, devices),
        sayStopped: (_, { key, error }) => manager.stopped(key, error),
        sayExpired: (_, { key }) => manager.expired(key),
        sayFailed: (_, { what, error }) => manager.failed(what, error),
        replyTo: (_, { ask, error }) => manager.registered(ask, error),
        ask: (_, event) => manager.ask(event),
        refuse: (_, { event, why }) => event.replyTo.refuse(why),
        forget: (_, { uid }) => manager.forget(uid),
      },
    },
    facts,
  );
}

class DeviceManager {
  private readonly ctx: ActorCtx<DevicesEvent>;
  private readonly port: DevicePlugins;
  private readonly folder: string;
  private readonly cluster: boolean;
  private readonly records: DeviceRecords;
  private readonly allocator: DeviceAllocator;
  /** Pods with a container that got no devices so far. */
  private readonly refused = new Set<string>();
  private readonly calls: PeerCalls;
  private readonly registrations: ReturnType<Ports['metrics']['counter']>;
  /** By the number of the plugin's statechart. */
  private readonly connections = new Map<number, { connection: PluginConnection; options: PluginOptions }>();
  /** Resources that are being reached, by the number of the plugin's statechart. */
  private readonly reaching = new Map<number, string>();
  /** Plugins that wait for what their registration comes to, by its number. */
  private readonly registering = new Map<number, { resource: string; done(error: string | null): void }>();
  private lastRegistration = 0;
  private readonly refusals: ReturnType<Ports['metrics']['counter']>;
  private recreated = false;

  constructor(ctx: ActorCtx<DevicesEvent>, { rootDir, cluster, nodes }: DevicesOptions, port: DevicePlugins) {
    this.ctx = ctx;
    this.port = port;
    this.cluster = cluster;
    this.folder = `${rootDir}/${FOLDER}`;
    this.records = new DeviceRecords(ctx, this.folder);
    this.calls = peerCalls(ctx, peerViews.devices);
    this.allocator = new DeviceAllocator(ctx, {
      nodes,
      calls: this.calls,
      persist: (ledger) => this.records.save(ledger),
      changed: () => this.publish(),
    });
    this.registrations = ctx.ports.metrics.counter(
      'kubelet_device_plugin_registration_total',
      'Cumulative number of device plugin registrations. Broken down by resource name.',
      ['resource_name'],
    );
    this.refusals = ctx.ports.metrics.counter(
      'actorlet_device_plugins_refused_total',
      'Registrations of device plugins that were refused because this node has too many of them.',
    );
    ctx.signal.addEventListener('abort', () => this.closeAll(), { once: true });
  }

  async load(): Promise<readonly string[]> {
    const found = await this.records.read();
    // Also of a manager before this one in the same daemon.
    const before = this.ctx.registry.read(devicesView)?.value;
    this.recreated = found === null || before?.recreated === true;
    const { allocations = [], resources = [] } = found ?? {};
    const gone = new Set(
      Object.entries(before?.capacity ?? {}).flatMap(([name, n]) => (n === '0' && !resources.includes(name) ? [name] : [])),
    );
    this.allocator.ledger = { allocations, gone, resources: remembered(resources) };
    // From now on there is a record, so that others' resources on this node are not taken for stale ones again.
    if (found === null) this.take(this.allocator.ledger);
    else this.publish();
    this.allocator.keepTidy();
    return resources;
  }

  /** Until the function it gives is called. */
  serve(send: (event: RegistrationEvent) => void): () => void {
    let over = false;
    let server: { close(): void } | null = null;
    const begin = async () => {
      await this.records.clear();
      if (over) return;
      server = await this.port.serve(`${this.folder}/${SOCKET}`, (request) => this.register(request, send));
      if (over) server.close();
      else send({ type: 'socket.open' });
    };
    begin().catch((error: unknown) => {
      if (!over) send({ type: 'socket.failed', error: messageOf(error) });
    });
    return () => {
      over = true;
      server?.close();
    };
  }

  private register(request: RegisterRequest, send: (event: RegistrationEvent) => void): Promise<void> {
    const admitted = admitPlugin(request, this.folder);
    if (!admitted.ok) {
      this.ctx.log.warn({ resource: request.resourceName, err: admitted.message }, 'a device plugin may not register');
      this.calls.failed(pluginCall(request.resourceName.slice(0, RESOURCE_CHARS_MAX), 'Register'), admitted.message);
      return Promise.reject(new Error(admitted.message));
    }
    if (this.registering.size >= RESOURCES_MAX) {
      this.refusals.inc();
      return Promise.reject(new Error(`${this.registering.size} device plugins are registering: try again later`));
    }
    // What it says of its options is not heard: the kubelet asks every plugin, and one that cannot answer does not register.
    const who: Registering = { ...admitted.value, options: null };
    this.lastRegistration += 1;
    const ask = this.lastRegistration;
    return new Promise<void>((resolve, reject) => {
      const done = (error: string | null): void => (error === null ? resolve() : reject(new Error(error)));
      this.registering.set(ask, { resource: who.resource, done });
      send({ type: 'plugin.register', ask, who });
    });
  }

  registered(ask: number, error: string | null): void {
    const asked = this.registering.get(ask);
    if (asked === undefined) return;
    this.registering.delete(ask);
    // A series for each name that ever asked would have no end.
    if (error === null) this.registrations.inc({ resource_name: asked.resource });
    asked.done(error);
  }

  async dial(input: EndpointInput, signal: AbortSignal): Promise<void> {
    const { resources, gone } = this.allocator.ledger;
    const refusal = tooMany(input.resource, new Set([...resources.keys(), ...gone, ...this.reaching.values()]));
    if (refusal !== null) {
      this.refusals.inc();
      this.calls.failed(pluginCall(input.resource, 'Register'), refusal);
      throw new Error(refusal);
    }
    this.reaching.set(input.id, input.resource);
    try {
      await this.calls.during(pluginCall(input.resource, 'Register'), () => this.reach(input, signal), { signal });
    } finally {
      this.reaching.delete(input.id);
    }
  }

  private async reach(input: EndpointInput, signal: AbortSignal): Promise<void> {
    const connection = await this.port.connect(input.endpoint, { timeoutMs: DIAL_TIMEOUT_MS, signal });
    try {
      const options = input.options ?? (await this.optionsOf(connection, signal));
      signal.throwIfAborted();
      this.connections.set(input.id, { connection, options });
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  private async optionsOf(connection: PluginConnection, signal: AbortSignal): Promise<PluginOptions> {
    try {
      return await connection.options({ timeoutMs: OPTIONS_TIMEOUT_MS, signal });
    } catch (error) {
      throw new Error(`failed to get device plugin options: ${messageOf(error)}`, { cause: error });
    }
  }

  watch({ id, resource }: EndpointKey, send: (event: EndpointEvent) => void): () => void {
    const held = this.connections.get(id);
    if (held === undefined) throw new Error('a device plugin is watched that was not reached');
    const newest = newestOnly<readonly PluginDevice[]>(this.ctx.ports, (devices) => {
      const many = { resource, devices: devices.length, taken: DEVICES_MAX };
      if (devices.length > DEVICES_MAX) this.ctx.log.warn(many, 'a device plugin names too many devices: the first are taken');
      send({ type: 'plugin.listed', devices: devices.slice(0, DEVICES_MAX) });
    });
    const end = held.connection.listAndWatch({ devices: newest.put, end: (why) => send({ type: 'plugin.ended', why }) });
    return () => {
      newest.drop();
      end();
    };
  }

  closed({ id, resource }: EndpointKey): void {
    const held = this.connections.get(id);
    if (held === undefined) return;
    this.connections.delete(id);
    if (this.allocator.plugins.get(resource) === held) this.allocator.plugins.delete(resource);
    held.connection.close();
  }

  connected({ id, resource }: EndpointKey): void {
    const held = this.connections.get(id);
    if (held !== undefined) {
      this.allocator.plugins.set(resource, held);
      this.allocator.options.set(resource, held.options);
    }
    this.ctx.log.info({ resource, ...held?.options }, 'device plugin registered');
    this.calls.settled(pluginCall(resource, 'ListAndWatch'));
    this.take(connected(this.allocator.ledger, resource));
    this.wake(`the device plugin of ${resource} has registered`);
  }

  listed({ resource }: EndpointKey, devices: Parameters<typeof listed>[2]): void {
    this.take(listed(this.allocator.ledger, resource, devices));
    this.wake(`the device plugin of ${resource} told of its devices`);
  }

  /** Containers that got no devices ask again. */
  private wake(why: string): void {
    for (const uid of this.refused) this.ctx.registry.send(workersAddr, { type: 'pod.dirty', uid, why, awaited: true });
    this.refused.clear();
  }

  stopped({ resource }: EndpointKey, error: string): void {
    this.ctx.log.warn({ resource, err: error }, 'device plugin is gone: its devices count as unhealthy until it registers again');
    this.calls.failed(pluginCall(resource, 'ListAndWatch'), error);
    this.take(stopped(this.allocator.ledger, resource));
  }

  expired({ resource }: EndpointKey): void {
    this.ctx.log.warn({ resource }, 'device plugin did not come back: there is nothing of its resource on this node');
    this.calls.forget(pluginCall(resource, '').peer);
    this.take(expired(this.allocator.ledger, resource));
  }

  forget(uid: string): void {
    this.refused.delete(uid);
    this.allocator.forget(uid);
  }

  ask(event: AskEvent): void {
    if (event.type === 'allocation.admit') {
      const { pod, active, affinity, replyTo } = event;
      const near = affinity === undefined ? {} : { affinity };
      this.allocator
        .admit(pod, { active, ...near, signal: replyTo.signal })
        .then(replyTo, (error: unknown) => replyTo.refuse(messageOf(error)));
    } else if (event.type === 'allocation.hints') {
      event.replyTo(this.allocator.hints(event.pod, event));
    } else {
      const { pod, container, replyTo } = event;
      this.allocator.start(pod, { container, signal: replyTo.signal }).then(
        (share) => {
          if (!share.ok) this.refused.add(pod.metadata.uid);
          replyTo(share);
        },
        (error: unknown) => replyTo.refuse(messageOf(error)),
      );
    }
  }

  failed(what: string, error: string): void {
    this.ctx.log.warn({ folder: this.folder, err: error }, what);
  }

  private take(ledger: DeviceLedger): void {
    this.allocator.change(ledger);
    this.allocator.saveSoon();
  }

  private publish(): void {
    const before = this.ctx.registry.read(devicesView)?.value;
    const { ledger } = this.allocator;
    const shown = { ...nodeDevices(ledger), recreated: this.recreated };
    const { ledger: ledgerBefore, ...shownBefore } = before ?? {};
    const isSame = JSON.stringify(shownBefore) === JSON.stringify(shown);
    if (isSame && ledgerBefore === ledger) return;
    this.ctx.publish(devicesView, { ...shown, ledger });
    for (const uid of ledgerBefore === undefined ? [] : podsWithOtherHealth(ledgerBefore, ledger))
      this.ctx.registry.send(workersAddr, { type: 'pod.dirty', uid, why: 'health of its devices changed' });
    if (this.cluster && !isSame) this.ctx.registry.send(apiAddr.nodeStatus, { type: 'node.report', why: 'devices of plugins changed' });
  }

  private closeAll(): void {
    for (const { connection } of this.connections.values()) connection.close();
    this.connections.clear();
    this.allocator.plugins.clear();
  }
}
