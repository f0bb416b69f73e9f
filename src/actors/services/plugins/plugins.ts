/**
 * Plugins that register themselves through sockets below `plugins_registry`.
 *
 * State held: which sockets there are, and the drivers and device plugins behind them.
 * Lost on restart: all of it. Both stay published meanwhile, so nobody loses them.
 * Rebuilt from: the folder; each plugin is asked again who it is.
 */

import { fromCallback, fromPromise } from 'xstate';
import { DEVICE_PLUGIN } from '../../../machines/allocation/devices/rules.ts';
import { type PeerCall, peerViews } from '../../../machines/pod/peers/peers.ts';
import { DRA_PLUGIN } from '../../../machines/services/plugins/draRules.ts';
import type { CsiDriver, PluginsEvent, Registered } from '../../../machines/services/plugins/messages.ts';
import { pluginMachine } from '../../../machines/services/plugins/pluginMachine.ts';
import { type FoundSocket, pluginsMachine } from '../../../machines/services/plugins/pluginsMachine.ts';
import { type Admitted, describeDriver } from '../../../machines/services/plugins/rules.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import { momentOf } from '../../../machines/xstate/facts.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import { ifThere, listIfThere } from '../../../ports/ifThere.ts';
import type { Metrics } from '../../../ports/ports.ts';
import type { Csi } from '../../../ports/sockets/csi.ts';
import { type PeerCalls, peerCalls } from '../../foundation/client.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { WatchedDevices } from './devices.ts';
import { DraDrivers } from './dra.ts';
import { CsiDrivers } from './drivers.ts';

export interface PluginsOptions {
  rootDir: string;
}

/** Below the root directory. */
const FOLDER = 'plugins_registry';
const FOLDER_MODE = 0o755;
/** Deeper folders are not looked into, and no more than so many sockets: a plugin that may write here is trusted, and may err. */
const DEPTH_MAX = 4;
const SOCKETS_MAX = 256;
/** Resources and volumes 10. The first of these includes dialling. */
const INFO_TIMEOUT_MS = 10_000;
const NOTIFY_TIMEOUT_MS = 5_000;
/** From the reference: a driver may ask its cloud first, and one that is told of a failure ends. */
const NODE_INFO_TIMEOUT_MS = 120_000;

export function pluginsSpec(o: PluginsOptions): ActorSpec<PluginsEvent> {
  return {
    type: 'actor',
    id: 'plugins',
    start: (ctx) => {
      const folder = new FolderOfPlugins(ctx, `${o.rootDir}/${FOLDER}`);
      const plugin = provided(
        pluginMachine,
        {
          actors: {
            register: fromPromise<Registered, { socket: string }>(({ input, signal }) => folder.register(input.socket, signal)),
            renew: fromPromise<Registered, { socket: string }>(({ input, signal }) => folder.renew(input.socket, signal)),
          },
          actions: { sayFailed: (_, { socket, error }) => folder.failed(socket, error) },
        },
        momentOf(ctx.ports),
      );
      const logic = provided(pluginsMachine, {
        actors: {
          plugin,
          scan: fromPromise(() => folder.scan()),
          watch: fromCallback<{ type: 'none' }>(({ sendBack }) => folder.watch(() => sendBack({ type: 'folder.hint' }))),
        },
        actions: {
          sayGone: (_, { path }) => folder.gone(path),
          tell: (_, { socket, plugin: registered }) => folder.registered(socket, registered),
        },
      });
      return { logic };
    },
  };
}

class FolderOfPlugins {
  readonly #ctx: ActorCtx<PluginsEvent>;
  readonly #folder: string;
  readonly #drivers: CsiDrivers;
  readonly #devices: WatchedDevices;
  readonly #dra: DraDrivers;
  readonly #known: ReturnType<Metrics['gauge']>;
  /** By socket: why it could not be registered, as the log has it. */
  readonly #said = new Map<string, string>();
  readonly #calls: PeerCalls;
  #looked = false;

  constructor(ctx: ActorCtx<PluginsEvent>, folder: string) {
    this.#ctx = ctx;
    this.#folder = folder;
    this.#calls = peerCalls(ctx, peerViews.plugins);
    this.#drivers = new CsiDrivers(ctx);
    this.#devices = new WatchedDevices(ctx);
    this.#dra = new DraDrivers(ctx);
    this.#known = ctx.ports.metrics.gauge('plugin_manager_total_plugins', 'Plugins by the socket they registered through.', [
      'socket_path',
      'state',
    ]);
  }

  async scan(): Promise<readonly FoundSocket[]> {
    await this.#ctx.ports.fs.mkdirp(this.#folder, FOLDER_MODE);
    const found = await socketsBelow(this.#ctx, this.#folder, 0);
    // Drivers that an earlier incarnation knew are known until a look shows that their socket has gone.
    if (!this.#looked)
      for (const socket of [...this.#drivers.sockets(), ...this.#devices.sockets(), ...this.#dra.sockets()])
        if (!found.some((s) => s.path === socket)) this.gone(socket);
    this.#looked = true;
    return found.slice(0, SOCKETS_MAX);
  }

  /** Hints until the function it gives is called. Never throws: without a watch the looks remain. */
  watch(hint: () => void): () => void {
    return watchFolder(this.#ctx, this.#folder, hint);
  }

  /** Rejects with what is wrong; the plugin was told, where it listens. */
  register(socket: string, signal: AbortSignal): Promise<Registered> {
    // Its name is known once it has told it.
    const about = { ...registrationAt(socket) };
    return this.#calls.during(about, () => this.#register(socket, about, signal), { signal });
  }

  async #register(socket: string, about: PeerCall, signal: AbortSignal): Promise<Registered> {
    const { csi } = this.#ctx.ports;
    if (csi === undefined) throw new Error('this node cannot speak to plugins');
    const info = await csi.getInfo(socket, { timeoutMs: INFO_TIMEOUT_MS, signal });
    about.name = info.name;
    const notify = (pluginRegistered: boolean, error: string) =>
      csi.notify(socket, { pluginRegistered, error }, { timeoutMs: NOTIFY_TIMEOUT_MS, signal });
    try {
      if (info.type === DEVICE_PLUGIN) {
        const plugin = await this.#devices.reach(info, socket, signal);
        await notify(true, '');
        return plugin;
      }
      if (info.type === DRA_PLUGIN) {
        const plugin = this.#dra.admit(info, socket);
        await notify(true, '');
        return plugin;
      }
      const driver = await nodeInfo(csi, this.#drivers.admit(info, socket), signal);
      await notify(true, '');
      return { name: driver.name, driver };
    } catch (error) {
      if (signal.aborted) throw error;
      this.#drivers.release(socket);
      const why = messageOf(error);
      await notify(false, why).catch((e: unknown) =>
        this.#ctx.log.debug({ socket, err: String(e) }, 'a plugin was not told that it failed'),
      );
      throw error;
    }
  }

  /** Rejects where no driver of volumes is registered through that socket. */
  async renew(socket: string, signal: AbortSignal): Promise<Registered> {
    const { csi } = this.#ctx.ports;
    const known = this.#drivers.at(socket);
    if (csi === undefined || known === undefined) throw new Error(`no CSI driver is registered through ${socket}`);
    const about = { peer: `CSI driver ${known.name}`, name: known.name, call: 'NodeGetInfo' };
    const driver = await this.#calls.during(about, () => nodeInfo(csi, known, signal), { signal });
    return { name: driver.name, driver };
  }

  registered(socket: string, plugin: Registered): void {
    if ('device' in plugin) this.#devices.registered(socket, plugin.device);
    else if ('dra' in plugin) this.#dra.registered(socket, plugin.dra);
    else if (!this.#drivers.registered(socket, plugin.driver)) return;
    this.#said.delete(socket);
    this.#known.set(1, { socket_path: socket, state: 'actual_state_of_world' });
  }

  failed(socket: string, message: string): void {
    if (this.#said.get(socket) === message) return;
    this.#said.set(socket, message);
    this.#ctx.log.warn({ socket, err: message }, 'a plugin cannot be registered; it is tried again');
  }

  /** The socket has gone, and with it the plugin that registered through it. */
  gone(socket: string): void {
    const driver = this.#drivers.at(socket);
    if (driver !== undefined) this.#calls.forget(`CSI driver ${driver.name}`);
    this.#calls.settled(registrationAt(socket));
    this.#said.delete(socket);
    this.#known.remove({ socket_path: socket, state: 'actual_state_of_world' });
    this.#devices.gone(socket);
    this.#dra.gone(socket);
    this.#drivers.gone(socket);
  }
}

function registrationAt(socket: string): PeerCall {
  return { peer: `plugin at ${socket}`, name: '', call: 'registration' };
}

async function nodeInfo(csi: Csi, who: Admitted, signal: AbortSignal): Promise<CsiDriver> {
  const info = await csi.call(who.endpoint, 'NodeGetInfo', {}, { timeoutMs: NODE_INFO_TIMEOUT_MS, signal });
  const driver = describeDriver(who, info);
  if (!driver.ok) throw new Error(driver.message);
  return driver.value;
}

/** Names with a dot in front are not for us (trap 64). */
async function socketsBelow(ctx: Pick<ActorCtx, 'ports'>, dir: string, depth: number): Promise<FoundSocket[]> {
  const { fs } = ctx.ports;
  const found: FoundSocket[] = [];
  for (const name of await listIfThere(fs, dir)) {
    if (name.startsWith('.')) continue;
    const path = `${dir}/${name}`;
    const info = await ifThere(fs.lstat(path));
    if (info?.kind === 'dir' && depth < DEPTH_MAX) found.push(...(await socketsBelow(ctx, path, depth + 1)));
    // Neither file nor link: what is no socket is found out when it is dialled.
    else if (info?.kind === 'other') found.push({ path, stamp: `${info.dev}:${info.ino}:${info.mtimeMs}` });
  }
  return found;
}

/** Folders below are found by the looks in between. */
function watchFolder(ctx: Pick<ActorCtx, 'ports' | 'log'>, folder: string, hint: () => void): () => void {
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
