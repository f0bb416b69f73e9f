/**
 * What becomes of a node's device plugins while faults rain: one goes and comes back, has sick devices or fewer, is slow,
 * refuses, never answers, registers again or with a version of its own; and nobody can listen for them.
 */

import { VERSION } from '../../machines/allocation/devices/rules.ts';
import { sameData } from '../../machines/sameData.ts';
import type { Clock } from '../../ports/ports.ts';
import { type DevicePluginMethod, healthy } from '../world/devicePlugins.ts';
import { hasCome, hasGone, type PluginTuning, pluginSocket } from '../world/machineDevices.ts';
import type { SimNode } from '../world/node.ts';
import { DEVICE_FOLDER } from '../world/paths.ts';
import type { SimRng } from '../world/rng.ts';
import { faultBursts, type Trouble } from './faultBursts.ts';

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

export function deviceTrouble(o: {
  node: SimNode;
  plugins: readonly PluginTuning[];
  rng: SimRng;
  clock: Pick<Clock, 'setTimeout' | 'monoMs'>;
  /** For the trace. */
  on(what: string): void;
}): Trouble {
  const { node, rng, clock } = o;
  const { devices } = node;
  const ordinary = { latencyMs: devices.latencyMs, fault: devices.fault, bindError: devices.bindError };
  /** Sockets of plugins that have left a call unanswered for good. */
  const hung = new Set<string>();
  let kills = 0;

  const isThere = (p: PluginTuning): boolean => hasCome(p, clock.monoMs()) && !hasGone(p, clock.monoMs());
  const socketOf = (p: PluginTuning): string => pluginSocket(DEVICE_FOLDER, p);
  const restart = (p: PluginTuning): void => {
    devices.die(socketOf(p));
    if (isThere(p)) devices.back(socketOf(p));
  };
  const restore = (p: PluginTuning): void => {
    Object.assign(devices, ordinary);
    const plugin = devices.sockets.get(socketOf(p));
    if (plugin === undefined || !isThere(p)) return;
    if (plugin.version !== VERSION) {
      plugin.version = VERSION;
      devices.register(socketOf(p));
    }
    if (plugin.down) devices.back(socketOf(p));
    const all = healthy(...p.devices);
    if (!sameData(plugin.devices, all)) devices.list(socketOf(p), all);
  };
  devices.onReport = ({ resource, error }) => {
    const p = o.plugins.find((one) => one.resource === resource);
    // What it is told of its version does not change by asking again.
    if (error === '' || p === undefined || devices.sockets.get(socketOf(p))?.version !== VERSION) return;
    clock.setTimeout(() => {
      if (isThere(p)) devices.register(socketOf(p));
    }, AGAIN_MS);
  };
  const wrong: Readonly<Record<Kind, (p: PluginTuning) => void>> = {
    away: (p) => devices.die(socketOf(p)),
    sick: (p) => {
      const all = rng.chance(0.3);
      const list = p.devices.map((id) => ({ id, healthy: !all && rng.chance(0.5), numaNodes: [] }));
      devices.list(socketOf(p), list);
    },
    fewer: (p) => devices.list(socketOf(p), healthy(...p.devices.slice(1))),
    slow: () => {
      devices.latencyMs = () => rng.between(0, SLOW_MS);
    },
    fails: () => {
      const method = rng.pick(METHODS) ?? 'Allocate';
      const probability = rng.chance(0.5) ? 1 : rng.next();
      devices.fault = (call) =>
        call.method === method && rng.chance(probability) ? 'rpc error: code = Unknown desc = injected failure' : undefined;
    },
    hangs: (p) => {
      // One that does not take calls is found out when it registers.
      const method = rng.chance(0.3) ? 'Connect' : (rng.pick(METHODS) ?? 'Allocate');
      const { latencyMs } = ordinary;
      for (const one of o.plugins) hung.add(socketOf(one));
      devices.latencyMs = (called) => (called === method ? Number.POSITIVE_INFINITY : latencyMs(called));
      if (method === 'Connect') devices.register(socketOf(p));
    },
    again: (p) => devices.register(socketOf(p)),
    oldVersion: (p) => {
      const plugin = devices.sockets.get(socketOf(p));
      if (plugin === undefined) return;
      plugin.version = 'v0';
      devices.register(socketOf(p));
    },
    deaf: () => {
      devices.bindError = 'bind: permission denied';
      if (kills < KILLS_MAX && node.daemon?.tree.kill(MANAGER, 'nemesis') === true) kills += 1;
    },
  };
  return faultBursts({
    rng,
    clock,
    everyMs: EVERY_MS,
    forMs: FOR_MS,
    strike() {
      const p = rng.pick(o.plugins);
      const kind = rng.pick(KINDS) ?? 'away';
      if (p !== undefined && isThere(p)) {
        o.on(`${p.resource} ${kind}`);
        wrong[kind](p);
      }
      return () => {
        if (p !== undefined) restore(p);
      };
    },
    // Those that are not gone for good are there afterwards.
    heal() {
      for (const p of o.plugins) {
        restore(p);
        // Nobody gives up a call that has no deadline: whoever waits for it is helped by its plugin's end alone.
        if (hung.has(socketOf(p)) && isThere(p)) restart(p);
      }
    },
  });
}
