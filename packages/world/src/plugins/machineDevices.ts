/** The device plugins beside a simulated machine: which there are, when they come, and when one goes for good. Of its own chance. */

import type { PluginDevice, PluginOptions } from '@actorlet/kubelet/machines/allocation/devices/types.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { SimRng } from '../rng.ts';
import { SimDevicePlugins } from './devicePlugins.ts';

/** Every resource of plugins of the simulation is under it. */
export const DEVICE_DOMAIN = 'example.com/';

export interface PluginTuning {
  resource: string;
  /** Its devices. No two plugins of all nodes have the same. */
  devices: readonly string[];
  /** NUMA nodes by device; absent: near to none in particular. */
  near: Readonly<Record<string, readonly number[]>>;
  options: PluginOptions;
  /** Monotonic ms of the world at which it is first there. */
  comesAtMs: number;
  /** ... from which on it is not there, and never again; null: it stays. */
  goesAtMs: number | null;
}
export interface DeviceTuning {
  plugins: readonly PluginTuning[];
  /** Longest ordinary latency of a call. */
  latencyMs: number;
}

/** Path of a plugin's socket in the folder of the daemon's own. */
export function pluginSocket(folder: string, { resource }: Pick<PluginTuning, 'resource'>): string {
  return `${folder}/${resource.slice(DEVICE_DOMAIN.length)}.sock`;
}
/** These devices, healthy, as the plugin lists them. */
export function listedDevices({ devices, near }: PluginTuning, ids = devices): PluginDevice[] {
  return ids.map((id) => ({ id, healthy: true, numaNodes: near[id] ?? [] }));
}
export function hasCome(plugin: PluginTuning, nowMs: number): boolean {
  return nowMs >= plugin.comesAtMs;
}
export function hasGone({ goesAtMs }: PluginTuning, nowMs: number): boolean {
  return goesAtMs !== null && nowMs >= goesAtMs;
}

/** `folder`: where the daemon makes its socket. Null: there are none. */
export function devicesOf(tuning: DeviceTuning | null, o: { folder: string; clock: Clock; rng: SimRng }): SimDevicePlugins {
  const devices = new SimDevicePlugins();
  if (tuning === null) return devices;
  const options = o.rng.fork('options');
  devices.latencyMs = (method) => (method === 'Options' ? options : o.rng).between(0, tuning.latencyMs);
  for (const plugin of tuning.plugins) {
    const { resource, options, comesAtMs, goesAtMs } = plugin;
    const socket = pluginSocket(o.folder, plugin);
    const there = comesAtMs === 0;
    // What it would rather give is not what would be given anyway.
    const prefers = [...plugin.devices].reverse();
    const made = devices.add(socket, { resource, options, devices: listedDevices(plugin), prefers, down: !there, registers: there });
    if (!there) {
      o.clock.setTimeout(() => {
        made.registers = true;
        devices.back(socket);
      }, comesAtMs);
    }
    if (goesAtMs !== null) o.clock.setTimeout(() => devices.die(socket), goesAtMs);
  }
  return devices;
}
