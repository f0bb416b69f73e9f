/**
 * State held: which devices there are, who holds which, connections to plugins.
 * Lost on restart: connections and how devices are; plugins register again when the socket is made anew, those that came
 * through the folder of plugins are reached again.
 * Rebuilt from: `<root-dir>/device-plugins/kubelet_internal_checkpoint`, the plugins.
 */

import { type DevicesFacts, type DevicesIo, devicesWith, type Registering } from '../../../machines/allocation/devices/devicesMachine.ts';
import type { EndpointKey } from '../../../machines/allocation/devices/endpointMachine.ts';
import { connected, expired, listed, nodeDevices, remembered, stopped } from '../../../machines/allocation/devices/inventory.ts';
import { type DevicesEvent, devicesAddr, devicesView, watchedPluginsView } from '../../../machines/allocation/devices/messages.ts';
import { admitPlugin, DEVICES_MAX, RESOURCES_MAX, tooMany } from '../../../machines/allocation/devices/rules.ts';
import type { DeviceLedger, PluginDevice, PluginOptions, RegisterRequest } from '../../../machines/allocation/devices/types.ts';
import { apiAddr } from '../../../machines/api/messages.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import { reading } from '../../../machines/xstate/facts.ts';
import type { Ports } from '../../../ports/ports.ts';
import type { DevicePlugins, PluginConnection } from '../../../ports/sockets/devicePlugins.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { DeviceAllocator } from './allocator.ts';
import { newestOnly } from './newest.ts';
import { DeviceRecords } from './records.ts';

export interface DevicesOptions {
  rootDir: string;
  /** There is an API server, whose node shows what there is. */
  cluster: boolean;
}

/** Below the root directory. */
const FOLDER = 'device-plugins';
const SOCKET = 'kubelet.sock';
/** Of the reference: how long a plugin may take to be reached. */
const DIAL_TIMEOUT_MS = 10_000;
const OPTIONS_TIMEOUT_MS = 10_000;
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
      return { logic: reading(devicesWith(new DeviceManager(ctx, o, devicePlugins)), facts) };
    },
  };
}

class DeviceManager implements DevicesIo {
  private readonly ctx: ActorCtx<DevicesEvent>;
  private readonly port: DevicePlugins;
  private readonly folder: string;
  private readonly cluster: boolean;
  private readonly records: DeviceRecords;
  private readonly allocator: DeviceAllocator;
  private readonly registrations: ReturnType<Ports['metrics']['counter']>;
  /** By the number of the plugin's statechart. */
  private readonly connections = new Map<number, { connection: PluginConnection; options: PluginOptions }>();
  /** Resources that are being reached, by the number of the plugin's statechart. */
  private readonly reaching = new Map<number, string>();
  private registering = 0;
  private readonly refusals: ReturnType<Ports['metrics']['counter']>;
  private recreated = false;

  constructor(ctx: ActorCtx<DevicesEvent>, { rootDir, cluster }: DevicesOptions, port: DevicePlugins) {
    this.ctx = ctx;
    this.port = port;
    this.cluster = cluster;
    this.folder = `${rootDir}/${FOLDER}`;
    this.records = new DeviceRecords(ctx, this.folder);
    this.allocator = new DeviceAllocator(ctx, { persist: (ledger) => this.records.save(ledger), changed: () => this.publish() });
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
    return resources;
  }

  serve(on: { open(): void; failed(error: string): void; register(who: Registering): void }): () => void {
    let over = false;
    let server: { close(): void } | null = null;
    const begin = async () => {
      await this.records.clear();
      if (over) return;
      server = await this.port.serve(`${this.folder}/${SOCKET}`, (request) => this.register(request, on.register));
      if (over) server.close();
      else on.open();
    };
    begin().catch((error: unknown) => {
      if (!over) on.failed(messageOf(error));
    });
    return () => {
      over = true;
      server?.close();
    };
  }

  private register(request: RegisterRequest, to: (who: Registering) => void): Promise<void> {
    const admitted = admitPlugin(request, this.folder);
    if (!admitted.ok) {
      this.ctx.log.warn({ resource: request.resourceName, err: admitted.message }, 'a device plugin may not register');
      return Promise.reject(new Error(admitted.message));
    }
    this.registrations.inc({ resource_name: admitted.value.resource });
    if (this.registering >= RESOURCES_MAX) {
      this.refusals.inc();
      return Promise.reject(new Error(`${this.registering} device plugins are registering: try again later`));
    }
    const options = request.options ?? { preStartRequired: false, getPreferredAllocationAvailable: false };
    this.registering += 1;
    return new Promise<void>((resolve, reject) => {
      to({ ...admitted.value, options, done: (error) => (error === null ? resolve() : reject(new Error(error))) });
    }).finally(() => {
      this.registering -= 1;
    });
  }

  async dial(key: EndpointKey, o: { endpoint: string; options: PluginOptions | null }, signal: AbortSignal): Promise<void> {
    const { resources, gone } = this.allocator.ledger;
    const refusal = tooMany(key.resource, new Set([...resources.keys(), ...gone, ...this.reaching.values()]));
    if (refusal !== null) {
      this.refusals.inc();
      throw new Error(refusal);
    }
    this.reaching.set(key.id, key.resource);
    try {
      await this.reach(key, o, signal);
    } finally {
      this.reaching.delete(key.id);
    }
  }

  private async reach(key: EndpointKey, o: { endpoint: string; options: PluginOptions | null }, signal: AbortSignal): Promise<void> {
    const connection = await this.port.connect(o.endpoint, { timeoutMs: DIAL_TIMEOUT_MS, signal });
    try {
      const options = o.options ?? (await connection.options({ timeoutMs: OPTIONS_TIMEOUT_MS, signal }));
      signal.throwIfAborted();
      this.connections.set(key.id, { connection, options });
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  watch({ id, resource }: EndpointKey, on: Parameters<PluginConnection['listAndWatch']>[0]): () => void {
    const held = this.connections.get(id);
    if (held === undefined) throw new Error('a device plugin is watched that was not reached');
    const newest = newestOnly<readonly PluginDevice[]>(this.ctx.ports, (devices) => {
      if (devices.length > DEVICES_MAX)
        this.ctx.log.warn(
          { resource, devices: devices.length, taken: DEVICES_MAX },
          'a device plugin names too many devices: the first are taken',
        );
      on.devices(devices.slice(0, DEVICES_MAX));
    });
    const end = held.connection.listAndWatch({ devices: newest.put, end: on.end });
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
    this.take(connected(this.allocator.ledger, resource));
  }

  listed({ resource }: EndpointKey, devices: Parameters<typeof listed>[2]): void {
    this.take(listed(this.allocator.ledger, resource, devices));
  }

  stopped({ resource }: EndpointKey, error: string): void {
    this.ctx.log.warn({ resource, err: error }, 'device plugin is gone: its devices count as unhealthy until it registers again');
    this.take(stopped(this.allocator.ledger, resource));
  }

  expired({ resource }: EndpointKey): void {
    this.ctx.log.warn({ resource }, 'device plugin did not come back: there is nothing of its resource on this node');
    this.take(expired(this.allocator.ledger, resource));
  }

  forget(uid: string): void {
    this.allocator.forget(uid);
  }

  ask(event: Parameters<DevicesIo['ask']>[0]): void {
    if (event.type === 'allocation.admit') {
      const { pod, active, replyTo } = event;
      this.allocator.admit(pod, { active, signal: replyTo.signal }).then(replyTo, (error: unknown) => replyTo.refuse(messageOf(error)));
    } else {
      const { pod, container, replyTo } = event;
      this.allocator.start(pod, { container, signal: replyTo.signal }).then(replyTo, (error: unknown) => replyTo.refuse(messageOf(error)));
    }
  }

  refuse({ replyTo }: Parameters<DevicesIo['refuse']>[0], why: string): void {
    replyTo.refuse(why);
  }

  failed(what: string, error: string): void {
    this.ctx.log.warn({ folder: this.folder, err: error }, what);
  }

  private take(ledger: DeviceLedger): void {
    this.allocator.change(ledger);
    void this.allocator.save().then((unsaved) => {
      if (unsaved !== null && !this.ctx.signal.aborted) this.ctx.log.warn({ folder: this.folder }, unsaved);
    });
  }

  private publish(): void {
    const before = this.ctx.registry.read(devicesView)?.value;
    const { ledger } = this.allocator;
    const shown = { ...nodeDevices(ledger), recreated: this.recreated };
    const { ledger: ledgerBefore, ...shownBefore } = before ?? {};
    const isSame = JSON.stringify(shownBefore) === JSON.stringify(shown);
    if (isSame && ledgerBefore === ledger) return;
    this.ctx.publish(devicesView, { ...shown, ledger });
    if (this.cluster && !isSame) this.ctx.registry.send(apiAddr.nodeStatus, { type: 'node.report', why: 'devices of plugins changed' });
  }

  private closeAll(): void {
    for (const { connection } of this.connections.values()) connection.close();
    this.connections.clear();
    this.allocator.plugins.clear();
  }
}
