/** Nodes with device plugins, one in six, pods that ask for devices there, and faults aimed at who hands them out. */

import { DEVICE_FOLDER } from '@actorlet/world/src/paths.ts';
import { DEVICE_DOMAIN, type DeviceTuning, type PluginTuning } from '@actorlet/world/src/plugins/machineDevices.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { Add } from '../../entries.ts';
import type { DrawnContainer, PodDraw } from '../pods/podDraw.ts';

const DEVICES = 1 / 6;
const ALIGNED_DEVICES = 1 / 2;
/** Devices of a plugin that names no NUMA node for them. */
const UNPLACED = 0.15;
const NAMES = ['gpu', 'nic'] as const;
const PLUGINS_MAX = 2;
const PER_PLUGIN_MAX = 4;
const LATENCIES_MS = [0, 5, 200] as const;
/** Share of plugins that are not there from the beginning, or go for good; within a world's first minutes. */
const LATE = 0.15;
const GONE = 0.2;
const YOUNG_MS = { min: 4_000, max: 60_000 } as const;

/** `nodes`: NUMA nodes that devices are near to; none where nothing is aligned. */
export function drawDevices(rng: SimRng, nodes: number): DeviceTuning | null {
  if (!rng.chance(nodes > 0 ? ALIGNED_DEVICES : DEVICES)) return null;
  const near = rng.fork('near');
  const names = rng.chance(0.5) ? [...NAMES] : [...NAMES].reverse();
  const plugins = names.slice(0, 1 + rng.int(PLUGINS_MAX)).map((name): PluginTuning => {
    const goes = rng.chance(GONE);
    const comesAtMs = rng.chance(LATE) ? rng.between(1_000, YOUNG_MS.max / 2) : 0;
    const devices = Array.from({ length: PER_PLUGIN_MAX - Math.floor(PER_PLUGIN_MAX * rng.next() ** 2) }, (_, i) => `${name}-${i}`);
    return {
      resource: `${DEVICE_DOMAIN}${name}`,
      devices,
      near: nodes === 0 ? {} : Object.fromEntries(devices.map((id) => [id, near.chance(UNPLACED) ? [] : [near.int(nodes)]])),
      // A plugin that is never there again could prepare nothing any more.
      options: { preStartRequired: !goes && rng.chance(0.6), getPreferredAllocationAvailable: rng.chance(0.5) },
      comesAtMs,
      goesAtMs: goes ? comesAtMs + rng.between(YOUNG_MS.min, YOUNG_MS.max) : null,
    };
  });
  return { plugins, latencyMs: rng.pick(LATENCIES_MS) ?? 0 };
}

/** Share of the pods of such a node. */
const ASKING = 0.65;
/** Chance that a pod asks for what no plugin of the node has; below, for more than any has. */
const STRANGE = 0.04;
const TOO_MANY = { chance: 0.06, count: 9 } as const;
const TWO = 0.2;
/** Other containers of the same pod ask, too. */
const OTHERS = 0.1;
/** Chance that a pod which is to end asks for so much cpu: no node has it. */
const UNFIT = { chance: 0.25, cpu: '64' } as const;

/** `resources`: of the node's plugins. */
export function drawDeviceRequests(resources: readonly string[]): PodDraw {
  return (rng, { pod, manifest: { spec } }) => {
    if (!rng.chance(ASKING)) return {};
    const ask = (container: DrawnContainer): void => {
      const resource = rng.chance(STRANGE) ? `${DEVICE_DOMAIN}tape` : (rng.pick(resources) ?? '');
      const count = rng.chance(TOO_MANY.chance) ? TOO_MANY.count : rng.chance(TWO) ? 2 : 1;
      const { requests, limits } = container.resources ?? {};
      const asked = { [resource]: String(count) };
      container.resources = { requests: { ...requests, ...asked }, limits: { ...limits, ...asked } };
    };
    const chosen = rng.pick(spec.containers);
    if (chosen === undefined) return {};
    ask(chosen);
    for (const c of [...(spec.initContainers ?? []), ...spec.containers]) if (c !== chosen && rng.chance(OTHERS)) ask(c);
    // Nobody asks for more than he may have.
    if (pod.fate === 'ends' && rng.chance(UNFIT.chance) && chosen.resources?.limits?.cpu === undefined)
      chosen.resources = { ...chosen.resources, requests: { ...chosen.resources?.requests, cpu: UNFIT.cpu } };
    return {};
  };
}

const MANAGER = 'node/allocation/devices';
/** Fewer than its supervisor forgives in a minute. */
const KILLS_MAX = 3;

/** The device manager is killed, its folder cannot be read or written for a while, and the power fails. */
export function drawDeviceFaults(rng: SimRng, o: { spanMs: number }, add: Add): void {
  const kill = (at: number): void => add(at, { kind: 'actor.kill', probability: 1, select: { actors: [MANAGER] }, pick: 'one' });
  const paths = [DEVICE_FOLDER, `${DEVICE_FOLDER}/**`];
  for (let left = rng.int(KILLS_MAX); left > 0; left--) kill(rng.next() * o.spanMs);
  if (rng.chance(0.4)) {
    const at = rng.next() * o.spanMs;
    const forMs = Math.round(rng.between(500, 15_000));
    add(at, { kind: 'disk.error', probability: 1, select: { ops: ['read'], paths }, code: 'EIO' }, forMs);
    kill(at + 50);
  }
  if (rng.chance(0.5)) {
    const at = rng.next() * o.spanMs;
    const ops = rng.chance(0.5) ? (['rename'] as const) : (['write'] as const);
    add(at, { kind: 'disk.error', probability: rng.next(), select: { ops, paths }, code: 'EIO' }, Math.round(rng.between(500, 15_000)));
  }
  if (rng.chance(0.3)) add(rng.next() * o.spanMs, { kind: 'node.kill', probability: 1, select: {}, action: 'power', downMs: 500 });
  if (rng.chance(0.3)) add(rng.next() * o.spanMs, { kind: 'node.kill', probability: 1, select: {}, action: 'process', downMs: 500 });
}
