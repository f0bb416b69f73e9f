/** The DevicePlugins port: the socket at which device plugins register, and connections to theirs. */
import type { ContainerResponse, PluginDevice, PluginOptions, RegisterRequest } from '../../machines/allocation/devices/types.ts';

export interface PluginCall {
  /** Null: for as long as the signal lets it. */
  timeoutMs: number | null;
  signal: AbortSignal;
}

/** A plugin that was reached. Every method rejects with an Error in the words of the reference. */
export interface PluginConnection {
  options(call: PluginCall): Promise<PluginOptions>;
  /** Each list replaces the one before. `onEnd` runs once, with what ended it, unless the returned function was called before. */
  listAndWatch(on: { devices(devices: readonly PluginDevice[]): void; end(why: string): void }): () => void;
  /** Devices that the plugin would rather give: `size` in all. */
  preferred(
    request: { available: readonly string[]; mustInclude: readonly string[]; size: number },
    call: PluginCall,
  ): Promise<readonly string[]>;
  allocate(ids: readonly string[], call: PluginCall): Promise<ContainerResponse>;
  preStart(ids: readonly string[], call: PluginCall): Promise<void>;
  close(): void;
}

export interface DevicePlugins {
  /**
   * Listens at this path, where nothing may be. What `register` rejects with is what the plugin is told. Rejects with the
   * error of binding. A close that is under way at the same path is waited for.
   */
  serve(socketPath: string, register: (request: RegisterRequest) => Promise<void>): Promise<{ close(): void }>;
  /** Reaches the plugin that listens at this path, or rejects when nobody does within the time. */
  connect(endpoint: string, call: { timeoutMs: number; signal: AbortSignal }): Promise<PluginConnection>;
}
