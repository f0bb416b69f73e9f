/** Device plugins that registered through the folder of plugins: the device manager is told of them by a view. */
import { devicesAddr, type WatchedPlugin, watchedPluginsView } from '../../../machines/allocation/devices/messages.ts';
import { admitWatchedPlugin } from '../../../machines/allocation/devices/rules.ts';
import type { Registered } from '../../../machines/services/plugins/messages.ts';
import type { PluginInfo } from '../../../machines/wire/csi.ts';
import type { ActorCtx } from '../../supervision/types.ts';

/** From the reference, for a plugin that registers at our own socket as well. */
const DIAL_TIMEOUT_MS = 10_000;
const OPTIONS_TIMEOUT_MS = 10_000;

export class WatchedDevices {
  private readonly ctx: Pick<ActorCtx, 'ports' | 'registry' | 'log' | 'publish' | 'incarnation'>;
  private count = 0;
  private readonly plugins: Map<string, WatchedPlugin>;

  constructor(ctx: Pick<ActorCtx, 'ports' | 'registry' | 'log' | 'publish' | 'incarnation'>) {
    this.ctx = ctx;
    this.plugins = new Map(ctx.registry.read(watchedPluginsView)?.value);
  }

  sockets(): string[] {
    return [...this.plugins.keys()];
  }

  /** What the plugin is, once it was reached where it serves. Rejects with what is wrong. */
  async reach(info: PluginInfo, socket: string, signal: AbortSignal): Promise<Registered> {
    const { devicePlugins } = this.ctx.ports;
    if (devicePlugins === undefined) throw new Error(`no handler registered for plugin type "${info.type}" at socket ${socket}`);
    const admitted = admitWatchedPlugin(info, socket);
    if (!admitted.ok) throw new Error(admitted.message);
    const { resource, endpoint } = admitted.value;
    const connection = await devicePlugins.connect(endpoint, { timeoutMs: DIAL_TIMEOUT_MS, signal });
    try {
      const options = await connection.options({ timeoutMs: OPTIONS_TIMEOUT_MS, signal });
      this.count += 1;
      const stamp = `${this.ctx.incarnation}.${this.count}`;
      return { name: resource, device: { resource, endpoint, options, stamp } };
    } finally {
      connection.close();
    }
  }

  registered(socket: string, device: WatchedPlugin): void {
    this.ctx.log.info({ ...device, socket }, 'device plugin found in the folder of plugins');
    this.plugins.set(socket, device);
    this.tell();
  }

  gone(socket: string): void {
    if (this.plugins.delete(socket)) this.tell();
  }

  private tell(): void {
    this.ctx.publish(watchedPluginsView, new Map(this.plugins));
    this.ctx.registry.send(devicesAddr, { type: 'devices.watched' });
  }
}
