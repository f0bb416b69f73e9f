/**
 * Device plugins of a simulated machine: they outlive daemons, and register again when the daemon makes its socket anew, as
 * real ones do. What they are asked is noted; what they answer names the devices.
 */

import type {
  ContainerResponse,
  PluginDevice,
  PluginOptions,
  RegisterRequest,
} from '@actorlet/kubelet/machines/allocation/devices/types.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { DevicePlugins, PluginCall, PluginConnection } from '@actorlet/kubelet/ports/sockets/devicePlugins.ts';

interface SimDevicePlugin {
  resource: string;
  version: string;
  options: PluginOptions;
  devices: readonly PluginDevice[];
  /** Nobody answers on its socket. */
  down: boolean;
  /** Registers whenever the daemon's socket is made. */
  registers: boolean;
  /** Devices that it would rather give, first. */
  prefers: readonly string[];
}
export type DevicePluginMethod = 'Options' | 'Preferred' | 'Allocate' | 'PreStart';
interface DevicePluginCall {
  resource: string;
  method: DevicePluginMethod;
  ids: readonly string[];
}

interface Daemon {
  clock: Clock;
  power: { on: boolean };
  makeSocket(path: string): void;
}

export const healthy = (...ids: string[]): PluginDevice[] => ids.map((id) => ({ id, healthy: true, numaNodes: [] }));

interface Stream {
  socket: string;
  power: { on: boolean };
  devices(devices: readonly PluginDevice[]): void;
  end(why: string): void;
}

export class SimDevicePlugins {
  /** By the path of the socket. */
  readonly sockets = new Map<string, SimDevicePlugin>();
  readonly calls: DevicePluginCall[] = [];
  /** Calls among these that were answered and not refused. */
  readonly answered: DevicePluginCall[] = [];
  /** What plugins were told of their registration, in order; '' = registered. */
  readonly told: { resource: string; error: string }[] = [];
  /** A plugin hears what became of its registration. */
  onReport: (told: { resource: string; error: string }) => void = () => {};
  /** Until a call is answered; Infinity: never. */
  latencyMs: (method: DevicePluginMethod | 'Register' | 'Connect') => number = () => 1;
  /** What a call fails with. */
  fault: (call: DevicePluginCall) => string | undefined = () => undefined;
  /** Binding the daemon's socket fails with this. */
  bindError: string | undefined = undefined;
  readonly #streams = new Set<Stream>();
  /** The daemon's socket: what registering there does. */
  #server: { folder: string; register(request: RegisterRequest): void } | null = null;

  add(socket: string, o: Partial<SimDevicePlugin> & { resource: string }): SimDevicePlugin {
    const plugin: SimDevicePlugin = {
      version: 'v1beta1',
      options: { preStartRequired: false, getPreferredAllocationAvailable: false },
      devices: [],
      down: false,
      registers: true,
      prefers: [],
      ...o,
    };
    this.sockets.set(socket, plugin);
    return plugin;
  }

  /** It tells anew which devices there are. */
  list(socket: string, devices: readonly PluginDevice[]): void {
    const plugin = this.sockets.get(socket);
    if (plugin === undefined) throw new Error(`no device plugin at ${socket}`);
    plugin.devices = devices;
    for (const s of [...this.#streams].filter((x) => x.power.on)) if (s.socket === socket) s.devices(devices);
  }

  /** Its process ends: streams and calls with it. */
  die(socket: string): void {
    const plugin = this.sockets.get(socket);
    if (plugin !== undefined) plugin.down = true;
    for (const s of [...this.#streams].filter((x) => x.socket === socket)) {
      this.#streams.delete(s);
      if (s.power.on) s.end('rpc error: code = Unavailable desc = Connection dropped');
    }
  }

  /** Its process is there again, and registers where it does so. */
  back(socket: string): void {
    const plugin = this.sockets.get(socket);
    if (plugin === undefined) return;
    plugin.down = false;
    if (plugin.registers) this.register(socket);
  }

  /** Registers at the daemon's socket, if somebody listens there. */
  register(socket: string): void {
    const plugin = this.sockets.get(socket);
    if (plugin === undefined || plugin.down || this.#server === null) return;
    const { version, options, resource } = plugin;
    // A name; one that is elsewhere is refused for it.
    const { folder } = this.#server;
    const endpoint = socket.startsWith(`${folder}/`) ? socket.slice(folder.length + 1) : socket;
    this.#server.register({ version, endpoint, resourceName: resource, options });
  }

  /** `makeSocket`: in the file system of the machine. */
  connect({ clock, power, makeSocket }: Daemon): DevicePlugins {
    return {
      serve: async (socketPath, register) => {
        if (this.bindError !== undefined) throw new Error(this.bindError);
        makeSocket(socketPath);
        return this.#serve(socketPath, { clock, power, register });
      },
      connect: async (endpoint, { timeoutMs, signal }) => {
        const reach = { timeoutMs, signal };
        return answered({ clock, power, latencyMs: this.latencyMs('Connect'), call: reach }, () => {
          const plugin = this.sockets.get(endpoint);
          if (plugin === undefined || plugin.down) throw new Error(`failed to dial device plugin at ${endpoint}`);
          return connectionTo(this, { endpoint, plugin, streams: this.#streams, clock, power });
        });
      },
    };
  }

  #serve(
    socketPath: string,
    daemon: Pick<Daemon, 'clock' | 'power'> & { register: Parameters<DevicePlugins['serve']>[1] },
  ): { close(): void } {
    const { clock, power } = daemon;
    const tell = (resource: string, error: string): void => {
      if (!power.on) return;
      const told = { resource, error };
      this.told.push(told);
      this.onReport(told);
    };
    const mine = {
      folder: socketPath.slice(0, socketPath.lastIndexOf('/')),
      register: (request: RegisterRequest): void => {
        if (!power.on) return;
        clock.setTimeout(() => {
          if (!power.on || this.#server !== mine) return;
          daemon.register(request).then(
            () => tell(request.resourceName, ''),
            (error: unknown) => tell(request.resourceName, messageOf(error)),
          );
        }, this.latencyMs('Register'));
      },
    };
    this.#server = mine;
    for (const [socket, plugin] of this.sockets) if (plugin.registers) this.register(socket);
    return {
      close: () => {
        if (this.#server === mine) this.#server = null;
      },
    };
  }
}

/** The answer, the deadline or the signal, whichever is first; the dead hear nothing. */
function answered<T>(o: { clock: Clock; power: { on: boolean }; latencyMs: number; call: PluginCall }, work: () => T): Promise<T> {
  const { clock, power, latencyMs, call } = o;
  return new Promise<T>((resolve, reject) => {
    let over = false;
    const timers: unknown[] = [];
    const end = (fn: () => void): void => {
      if (over) return;
      over = true;
      for (const timer of timers) clock.clearTimeout(timer);
      call.signal.removeEventListener('abort', cancel);
      if (power.on) fn();
    };
    const cancel = () => end(() => reject(new Error('rpc error: code = Canceled desc = context canceled')));
    if (call.signal.aborted) return cancel();
    call.signal.addEventListener('abort', cancel, { once: true });
    const late = () => end(() => reject(new Error('rpc error: code = DeadlineExceeded desc = context deadline exceeded')));
    if (call.timeoutMs !== null) timers.push(clock.setTimeout(late, call.timeoutMs));
    if (!Number.isFinite(latencyMs)) return;
    const answer = () =>
      end(() => {
        try {
          resolve(work());
        } catch (error) {
          reject(error);
        }
      });
    timers.push(clock.setTimeout(answer, latencyMs));
  });
}

function connectionTo(
  self: SimDevicePlugins,
  o: { endpoint: string; plugin: SimDevicePlugin; streams: Set<Stream>; clock: Clock; power: { on: boolean } },
): PluginConnection {
  const { endpoint, plugin, streams, clock, power } = o;
  const closed = new AbortController();
  const ask = <T>(method: DevicePluginMethod, of: { ids: readonly string[]; call: PluginCall }, work: () => T): Promise<T> => {
    const call = { timeoutMs: of.call.timeoutMs, signal: AbortSignal.any([of.call.signal, closed.signal]) };
    return answered({ clock, power, latencyMs: self.latencyMs(method), call }, () => {
      if (plugin.down) throw new Error('rpc error: code = Unavailable desc = Connection dropped');
      const seen = { resource: plugin.resource, method, ids: of.ids };
      self.calls.push(seen);
      const fault = self.fault(seen);
      if (fault !== undefined) throw new Error(fault);
      self.answered.push(seen);
      return work();
    });
  };
  return {
    options: (call) => ask('Options', { ids: [], call }, () => plugin.options),
    listAndWatch(on) {
      const stream: Stream = { socket: endpoint, power, ...on };
      if (plugin.down) {
        clock.setTimeout(() => on.end('rpc error: code = Unavailable desc = Connection dropped'), 1);
        return () => {};
      }
      streams.add(stream);
      clock.setTimeout(() => {
        if (streams.has(stream)) on.devices(plugin.devices);
      }, 1);
      return () => void streams.delete(stream);
    },
    preferred: ({ available, mustInclude, size }, call) =>
      ask('Preferred', { ids: available, call }, () =>
        [...mustInclude, ...plugin.prefers.filter((id) => available.includes(id) && !mustInclude.includes(id))].slice(0, size),
      ),
    allocate: (ids, call) => ask('Allocate', { ids, call }, () => responseFor(plugin.resource, ids)),
    preStart: (ids, call) => ask('PreStart', { ids, call }, () => {}),
    close: () => closed.abort(),
  };
}

/** What a plugin answers about these devices, always. */
export function responseFor(resource: string, ids: readonly string[]): ContainerResponse {
  const name = resource.slice(resource.indexOf('/') + 1);
  return {
    envs: { [`${name.toUpperCase()}_IDS`]: ids.join(',') },
    mounts: [{ containerPath: `/opt/${name}`, hostPath: `/host/${name}`, readOnly: true }],
    devices: ids.map((id) => ({ containerPath: `/dev/${id}`, hostPath: `/dev/${id}`, permissions: 'rw' })),
    annotations: { [`devices.example.com/${name}`]: ids.join(',') },
    cdiDevices: ids.map((id) => `${resource}=${id}`),
  };
}
