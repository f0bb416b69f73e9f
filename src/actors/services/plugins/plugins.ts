/**
 * Plugins that register themselves through sockets below `plugins_registry`.
 *
 * State held: which sockets there are, and the drivers and device plugins behind them.
 * Lost on restart: all of it. Both stay published meanwhile, so nobody loses them.
 * Rebuilt from: the folder; each plugin is asked again who it is.
 */

import { DEVICE_PLUGIN } from '../../../machines/allocation/devices/rules.ts';
import { momentOf } from '../../../machines/facts.ts';
import { addr } from '../../../machines/protocol.ts';
import { type CsiDriver, driversView } from '../../../machines/services/plugins/messages.ts';
import { type FoundSocket, type PluginsIo, pluginsWith } from '../../../machines/services/plugins/pluginsMachine.ts';
import { type Admitted, admitDriver, describeDriver } from '../../../machines/services/plugins/rules.ts';
import { codeOf, messageOf } from '../../../machines/text/errors.ts';
import type { Csi } from '../../../ports/csi.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { WatchedDevices } from './devices.ts';

export interface PluginsOptions {
  rootDir: string;
}

/** Below the root directory. */
const FOLDER = 'plugins_registry';
const FOLDER_MODE = 0o755;
/** Deeper folders are not looked into, and no more than so many sockets: whoever may write here is trusted, and may err. */
const DEPTH_MAX = 4;
const SOCKETS_MAX = 256;
/** Resources and volumes 10. The first of these includes dialling. */
const INFO_TIMEOUT_MS = 10_000;
const NOTIFY_TIMEOUT_MS = 5_000;
const NODE_INFO_TIMEOUT_MS = 30_000;

export function pluginsSpec(o: PluginsOptions): ActorSpec {
  return {
    type: 'actor',
    id: 'plugins',
    start: (ctx) => ({ logic: pluginsWith(pluginsIo(ctx, `${o.rootDir}/${FOLDER}`), momentOf(ctx.ports)) }),
  };
}

function pluginsIo(ctx: ActorCtx, folder: string): PluginsIo {
  const { ports, log, registry } = ctx;
  const { csi, fs } = ports;
  const drivers = new Map<string, CsiDriver>(registry.read(driversView)?.value);
  /** Names taken, also of those that are still about to be registered. */
  const names = new Map([...drivers].map(([name, { socket, version }]) => [name, { socket, version }]));
  const deviceWatch = new WatchedDevices(ctx);
  let looked = false;
  const said = new Map<string, string>();
  const known = ports.metrics.gauge('plugin_manager_total_plugins', 'Plugins by the socket they registered through.', [
    'socket_path',
    'state',
  ]);
  const publish = () => ctx.publish(driversView, new Map(drivers));
  const release = (socket: string): string[] => {
    const held = [...names].filter(([, n]) => n.socket === socket).map(([name]) => name);
    for (const name of held) names.delete(name);
    return held;
  };
  const forget = (socket: string): void => {
    said.delete(socket);
    known.remove({ socket_path: socket, state: 'actual_state_of_world' });
    deviceWatch.gone(socket);
    const left = release(socket).filter((name) => drivers.delete(name));
    for (const name of left) log.info({ driver: name, socket }, 'CSI driver is gone: its socket was taken away');
    if (left.length > 0) publish();
  };
  return {
    async scan() {
      await fs.mkdirp(folder, FOLDER_MODE);
      const found = await socketsBelow(ctx, folder, 0);
      // Drivers that an earlier incarnation knew are known until a look shows that their socket has gone.
      if (!looked)
        for (const socket of [...[...drivers.values()].map((d) => d.socket), ...deviceWatch.sockets()])
          if (!found.some((s) => s.path === socket)) forget(socket);
      looked = true;
      return found.slice(0, SOCKETS_MAX);
    },
    watch: (hint) => watchFolder(ctx, folder, hint),
    async register(socket, signal) {
      if (csi === undefined) throw new Error('this node cannot speak to plugins');
      const info = await csi.getInfo(socket, { timeoutMs: INFO_TIMEOUT_MS, signal });
      const notify = (pluginRegistered: boolean, error: string) =>
        csi.notify(socket, { pluginRegistered, error }, { timeoutMs: NOTIFY_TIMEOUT_MS, signal });
      try {
        if (info.type === DEVICE_PLUGIN) {
          const plugin = await deviceWatch.reach(info, socket, signal);
          await notify(true, '');
          return plugin;
        }
        const admitted = admitDriver(info, socket, names);
        if (!admitted.ok) throw new Error(admitted.message);
        names.set(admitted.value.name, { socket, version: admitted.value.version });
        const driver = await nodeInfo(csi, admitted.value, signal);
        await notify(true, '');
        return { name: driver.name, driver };
      } catch (error) {
        if (signal.aborted) throw error;
        release(socket);
        const why = messageOf(error);
        await notify(false, why).catch((e: unknown) => log.debug({ socket, err: String(e) }, 'a plugin was not told that it failed'));
        throw error;
      }
    },
    registered(socket, plugin) {
      if ('device' in plugin) {
        said.delete(socket);
        known.set(1, { socket_path: socket, state: 'actual_state_of_world' });
        deviceWatch.registered(socket, plugin.device);
        return;
      }
      const { driver } = plugin;
      // Somebody with a higher version took the name while this one was being told.
      if (names.get(driver.name)?.socket !== socket) return;
      said.delete(socket);
      drivers.set(driver.name, driver);
      known.set(1, { socket_path: socket, state: 'actual_state_of_world' });
      const { name, endpoint, version, nodeId } = driver;
      log.info({ driver: name, endpoint, version, nodeId, socket }, 'CSI driver registered');
      publish();
      registry.send(addr.volumes, { type: 'volumes.retry' });
    },
    failed(socket, message) {
      if (said.get(socket) === message) return;
      said.set(socket, message);
      log.warn({ socket, err: message }, 'a plugin cannot be registered; it is tried again');
    },
    gone: forget,
  };
}

async function nodeInfo(csi: Csi, who: Admitted, signal: AbortSignal): Promise<CsiDriver> {
  const info = await csi.call(who.endpoint, 'NodeGetInfo', {}, { timeoutMs: NODE_INFO_TIMEOUT_MS, signal });
  const driver = describeDriver(who, info);
  if (!driver.ok) throw new Error(driver.message);
  return driver.value;
}

/** Names with a dot in front are not for us (trap 64). */
async function socketsBelow(ctx: ActorCtx, dir: string, depth: number): Promise<FoundSocket[]> {
  const { fs } = ctx.ports;
  const found: FoundSocket[] = [];
  for (const name of await listOrNone(ctx, dir)) {
    if (name.startsWith('.')) continue;
    const path = `${dir}/${name}`;
    try {
      const info = await fs.lstat(path);
      if (info.kind === 'dir' && depth < DEPTH_MAX) found.push(...(await socketsBelow(ctx, path, depth + 1)));
      // Neither file nor link: what is no socket is found out when it is dialled.
      else if (info.kind === 'other') found.push({ path, stamp: `${info.dev}:${info.ino}:${info.mtimeMs}` });
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }
  return found;
}
async function listOrNone(ctx: ActorCtx, dir: string): Promise<string[]> {
  try {
    return await ctx.ports.fs.readdir(dir);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}
function isMissing(error: unknown): boolean {
  return codeOf(error) === 'ENOENT';
}

/** Folders below are found by the looks in between. */
function watchFolder(ctx: ActorCtx, folder: string, hint: () => void): () => void {
  let open: Disposable | null = null;
  const { log, ports } = ctx;
  const failed = (error: unknown) => log.debug({ folder, err: String(error) }, 'no watch on the folder of plugins; it is looked at');
  const begin = async () => {
    await ports.fs.mkdirp(folder, FOLDER_MODE);
    if (over) return;
    open = ports.sys.watchDir(folder, hint, failed);
    hint();
  };
  let over = false;
  begin().catch(failed);
  return () => {
    over = true;
    open?.[Symbol.dispose]();
  };
}
