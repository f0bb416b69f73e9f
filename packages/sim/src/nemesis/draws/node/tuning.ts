/** Draws the settings of one node. */
import type { NodeTuning } from '@actorlet/world/src/node/nodeTuning.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import { drawIdentity } from '../../workload/identity.ts';
import { drawBeside } from '../beside.ts';
import { drawClaims } from '../pods/claims.ts';
import { drawPodIdentities } from '../pods/identities.ts';
import { drawImageGc } from '../pods/images.ts';
import { drawCgroups } from './cgroups.ts';
import { drawCpus } from './cpus.ts';
import { drawDevices } from './devices.ts';
import { drawDriver } from './drivers.ts';
import { drawKernelSettings } from './kernelSettings.ts';
import { drawNetwork } from './network.ts';
import { drawPacketFilter } from './packetFilter.ts';
import { drawShutdown } from './shutdown.ts';

/** Quick and slow hardware, short and long configured periods. */
export function drawTuning(rng: SimRng): NodeTuning {
  const cpus = drawCpus(rng.fork('cpus-alone'));
  const tuning = {
    callLatencyMs: rng.pick([0, 2, 30, 300] as const) ?? 0,
    diskLatencyMs: rng.pick([0, 0, 1, 10] as const) ?? 0,
    requestTimeoutMs: rng.pick([4_000, 15_000, 120_000] as const) ?? 120_000,
    syncFrequencyMs: rng.pick([10_000, 60_000] as const) ?? 60_000,
    fileCheckMs: rng.pick([2_000, 20_000] as const) ?? 20_000,
    httpCheckMs: rng.pick([1_000, 5_000, 20_000] as const) ?? 5_000,
    http: rng.chance(0.3),
    hints: rng.chance(0.85),
    anonymousHints: rng.chance(0.45),
    lagMs: rng.pick([0, 20, 300] as const) ?? 0,
    portsTaken: rng.pick([0, 0, 0, 1, 4] as const) ?? 0,
    closesBadly: rng.chance(0.15),
    ...drawCluster(rng),
    images: drawImageGc(rng.fork('image-gc')),
    // Drawn apart, so that what stands above is what it was before these were there.
    oneManifest: rng.fork('one-manifest').chance(0.06),
    objects: rng.fork('objects').pick(['Watch', 'Watch', 'Cache', 'Get'] as const) ?? 'Watch',
    kernelLog: rng.fork('kernel-log').chance(0.2),
    cgroups: drawCgroups(rng.fork('cgroup')),
    cpus,
    throttles: rng.fork('throttles').chance(0.25),
    devices: drawDevices(rng.fork('peripherals'), cpus !== null && cpus.numa !== null && cpus.caches > 0 ? cpus.nodes : 0),
    shutdown: drawShutdown(rng.fork('machine-down')),
    packetFilter: drawPacketFilter(rng.fork('packet-filter')),
    kernel: drawKernelSettings(rng.fork('kernel-settings')),
    network: drawNetwork(rng.fork('network-disks')),
  };
  const looksAtDisks = tuning.eviction?.evictionHard['nodefs.available'] !== undefined;
  const splitDisks = looksAtDisks && rng.fork('split-disks').chance(SPLIT);
  return { ...tuning, splitDisks, claims: drawClaims(rng.fork('resource-claims'), tuning.api) };
}

function drawCluster(
  rng: SimRng,
): Pick<NodeTuning, 'api' | 'registers' | 'eviction' | 'certificates' | 'edge' | 'driver' | 'beside' | 'podIdentities'> {
  const api = rng.chance(0.4);
  const registers = rng.chance(0.8);
  const eviction = drawEviction(rng.fork('eviction'), api);
  const identity = drawIdentity(rng, api);
  const beside = drawBeside(rng.fork('beside'), { served: identity.edge !== null });
  const podIdentities = api && drawPodIdentities(rng.fork('pod-certificates'));
  return { api, registers, eviction, ...identity, driver: drawDriver(rng.fork('driver'), api), beside, podIdentities };
}

/** How often a node that looks at its disks has images on one of their own. */
const SPLIT = 0.5;
/** How often a node has eviction thresholds: only pods of the API are ever evicted. */
const EVICTS = { cluster: 0.5, alone: 0.05 } as const;

function drawEviction(rng: SimRng, api: boolean): NodeTuning['eviction'] {
  if (!rng.chance(api ? EVICTS.cluster : EVICTS.alone)) return null;
  const soft = rng.chance(0.4);
  return {
    evictionHard: {
      'memory.available': '100Mi',
      'pid.available': '10%',
      ...(rng.chance(0.4) ? { 'nodefs.available': '10%', 'imagefs.available': '15%' } : {}),
    },
    evictionSoft: soft ? { 'memory.available': '300Mi' } : {},
    evictionSoftGracePeriod: soft ? { 'memory.available': rng.pick(['1s', '15s', '1m'] as const) ?? '1s' } : {},
    evictionMinimumReclaim: rng.chance(0.3) ? { 'memory.available': '50Mi' } : {},
    evictionMaxPodGracePeriod: rng.pick([0, 2, 30] as const) ?? 0,
    evictionPressureTransitionPeriod: rng.pick([0, 5_000, 60_000] as const) ?? 0,
  };
}
