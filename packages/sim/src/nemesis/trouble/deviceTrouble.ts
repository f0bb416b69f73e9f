/**
 * What becomes of a node's device plugins while faults rain: one goes and comes back, has sick devices or fewer, is slow,
 * refuses, never answers, registers again or with a version of its own; and nobody can listen for them.
 */

import { VERSION } from '@actorlet/kubelet/machines/allocation/devices/rules.ts';
import { sameData } from '@actorlet/kubelet/machines/data/sameData.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { DEVICE_FOLDER } from '@actorlet/world/src/paths.ts';
import type { DevicePluginMethod, SimDevicePlugins } from '@actorlet/world/src/plugins/devicePlugins.ts';
import { hasCome, hasGone, listedDevices, type PluginTuning, pluginSocket } from '@actorlet/world/src/plugins/machineDevices.ts';
import { faultBursts, type Trouble, type TroubleOptions } from './faultBursts.ts';

const KINDS = ['away', 'away', 'sick', 'sick', 'fewer', 'slow', 'fails', 'fails', 'hangs', 'again', 'oldVersion', 'deaf'] as const;
type Kind = (typeof KINDS)[number];
const METHODS: readonly DevicePluginMethod[] = ['Allocate', 'Allocate', 'Preferred', 'PreStart'];
/** Between two kinds of trouble, and how long each lasts. */
const EVERY_MS = { min: 500, max: 6_000 } as const;
const FOR_MS = { min: 500, max: 15_000 } as const;
const SLOW_MS = 8_000;
/** A plugin that could not register tries again after this. */
const AGAIN_MS = 3_000;
const MANAGER = 'node/allocation/devices';
/** The manager is killed for want of its socket so often at the most: its supervisor forgives more. */
const KILLS_MAX = 2;

export function pluginsOf({ tuning }: Pick<SimNode, 'tuning'>): readonly PluginTuning[] {
  return tuning.devices?.plugins ?? [];
}

export function deviceTrouble(o: TroubleOptions): Trouble {
  const plugins = new TroubledPlugins(o);
  return faultBursts({
    rng: o.rng,
    clock: o.clock,
    everyMs: EVERY_MS,
    forMs: FOR_MS,
    strike: () => plugins.strike(),
    heal: () => plugins.heal(),
  });
}

class TroubledPlugins {
  readonly #o: TroubleOptions;
  readonly #plugins: readonly PluginTuning[];
  readonly #devices: SimDevicePlugins;
  readonly #ordinary: Pick<SimDevicePlugins, 'latencyMs' | 'fault' | 'bindError'>;
  /** Sockets of plugins that have left a call unanswered for good. */
  readonly #hung = new Set<string>();
  #kills = 0;

  constructor(o: TroubleOptions) {
    const { devices } = o.node;
    this.#o = o;
    this.#plugins = pluginsOf(o.node);
    this.#devices = devices;
    this.#ordinary = { latencyMs: devices.latencyMs, fault: devices.fault, bindError: devices.bindError };
    devices.onReport = ({ resource, error }) => this.#heed(resource, error);
  }

  /** Begins one kind of trouble for one plugin; the result ends it. */
  strike(): () => void {
    const p = this.#o.rng.pick(this.#plugins);
    const kind = this.#o.rng.pick(KINDS) ?? 'away';
    if (p !== undefined && this.#isThere(p)) {
      this.#o.on(`${p.resource} ${kind}`);
      this.#wrong[kind](p);
    }
    return () => {
      if (p !== undefined) this.#restore(p);
    };
  }

  /** Plugins that are not gone for good are there afterwards. */
  heal(): void {
    for (const p of this.#plugins) {
      this.#restore(p);
      // Nobody gives up a call that has no deadline: only the end of its plugin ends it.
      if (this.#hung.has(socketOf(p)) && this.#isThere(p)) this.#restart(p);
    }
  }

  readonly #wrong: Readonly<Record<Kind, (p: PluginTuning) => void>> = {
    away: (p) => this.#devices.die(socketOf(p)),
    sick: (p) => this.#sicken(p),
    fewer: (p) => this.#devices.list(socketOf(p), listedDevices(p, p.devices.slice(1))),
    slow: () => {
      this.#devices.latencyMs = () => this.#o.rng.between(0, SLOW_MS);
    },
    fails: () => this.#fail(),
    hangs: (p) => this.#hang(p),
    again: (p) => this.#devices.register(socketOf(p)),
    oldVersion: (p) => this.#offer(p, 'v0'),
    deaf: () => this.#deafen(),
  };

  #sicken(p: PluginTuning): void {
    const { rng } = this.#o;
    const all = rng.chance(0.3);
    const list = listedDevices(p).map((device) => ({ ...device, healthy: !all && rng.chance(0.5) }));
    this.#devices.list(socketOf(p), list);
  }
  #fail(): void {
    const { rng } = this.#o;
    const method = rng.pick(METHODS) ?? 'Allocate';
    const probability = rng.chance(0.5) ? 1 : rng.next();
    this.#devices.fault = (call) =>
      call.method === method && rng.chance(probability) ? 'rpc error: code = Unknown desc = injected failure' : undefined;
  }
  #hang(p: PluginTuning): void {
    const { rng } = this.#o;
    // A plugin that does not take calls is found out when it registers.
    const method = rng.chance(0.3) ? 'Connect' : (rng.pick(METHODS) ?? 'Allocate');
    const { latencyMs } = this.#ordinary;
    for (const one of this.#plugins) this.#hung.add(socketOf(one));
    this.#devices.latencyMs = (called) => (called === method ? Number.POSITIVE_INFINITY : latencyMs(called));
    if (method === 'Connect') this.#devices.register(socketOf(p));
  }
  #deafen(): void {
    this.#devices.bindError = 'bind: permission denied';
    if (this.#kills < KILLS_MAX && this.#o.node.daemon?.tree.kill(MANAGER, 'nemesis') === true) this.#kills += 1;
  }

  /** Registers it, where it is there, as of this version. */
  #offer(p: PluginTuning, version: string): void {
    const plugin = this.#devices.sockets.get(socketOf(p));
    if (plugin === undefined) return;
    plugin.version = version;
    this.#devices.register(socketOf(p));
  }
  #restart(p: PluginTuning): void {
    this.#devices.die(socketOf(p));
    if (this.#isThere(p)) this.#devices.back(socketOf(p));
  }
  #restore(p: PluginTuning): void {
    Object.assign(this.#devices, this.#ordinary);
    const plugin = this.#devices.sockets.get(socketOf(p));
    if (plugin === undefined || !this.#isThere(p)) return;
    if (plugin.version !== VERSION) this.#offer(p, VERSION);
    if (plugin.down) this.#devices.back(socketOf(p));
    const all = listedDevices(p);
    if (!sameData(plugin.devices, all)) this.#devices.list(socketOf(p), all);
  }
  /** A plugin whose registration failed comes again. */
  #heed(resource: string, error: string): void {
    const p = this.#plugins.find((one) => one.resource === resource);
    // A refused version stays refused: the plugin does not ask again.
    if (error === '' || p === undefined || this.#devices.sockets.get(socketOf(p))?.version !== VERSION) return;
    this.#o.clock.setTimeout(() => {
      if (this.#isThere(p)) this.#devices.register(socketOf(p));
    }, AGAIN_MS);
  }
  #isThere(p: PluginTuning): boolean {
    const nowMs = this.#o.clock.monoMs();
    return hasCome(p, nowMs) && !hasGone(p, nowMs);
  }
}

function socketOf(p: PluginTuning): string {
  return pluginSocket(DEVICE_FOLDER, p);
}
