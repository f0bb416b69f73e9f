/**
 * Draws a run from its seed: which kinds of fault are on at all (a swarm of different weathers finds more than one
 * average weather), how many, when, and what the operator does meanwhile.
 */

import type { Scenario } from '@actorlet/faults/src/types.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import { attacks } from './attack/attacks.ts';
import type { DrawOptions } from './drawOptions.ts';
import { bursts, removals } from './draws/bursts.ts';
import { initialEventsTrouble } from './draws/initialEvents.ts';
import { cpuTrouble } from './draws/node/cpus.ts';
import { drawDeviceFaults } from './draws/node/devices.ts';
import { kernelSettingsTrouble } from './draws/node/kernelSettings.ts';
import { nodeWatchTrouble } from './draws/node/nodeWatch.ts';
import { packetFilterTrouble } from './draws/node/packetFilter.ts';
import { shortages, untold } from './draws/node/shortages.ts';
import { askedRestarts } from './draws/pods/askedRestarts.ts';
import { claimLife } from './draws/pods/claims.ts';
import { imageTrouble, oneDiskShort } from './draws/pods/images.ts';
import { meetings } from './draws/pods/meetings.ts';
import { drawWeather } from './draws/weather.ts';
import { type Add, adder, type Drawn, inOrder, promptAdder } from './entries.ts';
import type { Fault } from './faults.ts';
import { identityTrouble } from './workload/identity.ts';
import { workload } from './workload/workload.ts';

/** How often a world that was not told otherwise has two nodes, which only a mix-up of state between nodes can make worse than one. */
const TWO_NODES = 0.15;

/** What was not asked for: from the scenario, from the seed, or as documented. A schedule of its own is for the first node. */
export function drawSize(
  rng: SimRng,
  o: SizeAsked,
): { seed: number; minutes: number; pods: number; nodes: number; restMinutesMax: number } {
  const { durationMs, simulation } = o.scenario ?? {};
  const drawn = o.schedule === undefined && o.scenario === undefined && rng.chance(TWO_NODES) ? 2 : 1;
  return {
    seed: o.seed,
    minutes: o.minutes ?? (durationMs === undefined ? 2 : durationMs / 60_000),
    pods: o.pods ?? simulation?.pods ?? 8,
    nodes: o.nodes ?? simulation?.nodes ?? drawn,
    restMinutesMax: o.restMinutesMax ?? 20,
  };
}
export interface SizeAsked {
  seed: number;
  minutes?: number;
  pods?: number;
  nodes?: number;
  restMinutesMax?: number;
  scenario?: Scenario;
  schedule?: readonly Fault[];
}

/** The whole schedule, oldest first. */
export function drawSchedule(rng: SimRng, o: DrawOptions): Fault[] {
  const drawn: Drawn[] = [];
  const met: Drawn[] = [];
  for (let node = 0; node < o.nodes; node++) drawNode(rng.fork(`node-${node}`), placeOf(o, node), { drawn, met });
  return inOrder(drawn, met);
}

/** A name under which the seeds that tests hold draw no restart: what each of them was kept for is still in it. */
const ASKED_RESTARTS = 'asked-restarts-15701';

/** The options as one node has them. */
function placeOf(o: DrawOptions, node: number) {
  const { certificates = false, edge = false, serving = false } = o.identity?.[node] ?? {};
  return {
    minutes: o.minutes,
    spanMs: o.minutes * 60_000,
    faults: o.faults,
    pods: o.pods,
    node,
    http: o.http[node] === true,
    api: o.api[node] === true,
    evicts: o.evicts?.[node] === true,
    splitDisks: o.splitDisks?.[node] === true,
    oneManifest: o.oneManifest?.[node] === true,
    driver: o.drivers?.[node] === true,
    network: o.network?.[node] === true,
    podIdentities: o.podIdentities?.[node] === true,
    packetFilter: o.packetFilters?.[node] === true,
    kernel: o.kernels?.[node] === true,
    devices: o.devices?.[node] ?? [],
    claims: o.claims?.[node] === true,
    cpus: o.cpus?.[node] ?? null,
    certificates,
    edge,
    serving,
  };
}

/** Draws that came later have steps of their own, or go to `met`: the entries before them keep their numbers and chances. */
function drawNode(rng: SimRng, place: ReturnType<typeof placeOf>, { drawn, met }: { drawn: Drawn[]; met: Drawn[] }): void {
  const { api, evicts, cpus, devices, spanMs } = place;
  const add = adder(drawn, rng, place.node);
  const prompt = promptAdder(met, place.node);
  const apart = (steps: string): Add => adder(drawn, rng.fork(steps), place.node);
  drawWeather(rng, place, add);
  if (evicts) shortages(rng.fork('shortages'), place, apart('shortage-steps'));
  identityTrouble(rng.fork('identity'), place, apart('identity-steps'));
  if (api) untold(rng.fork('untold'), place, apart('untold-steps'));
  imageTrouble(rng.fork('image-trouble'), place, apart('image-steps'));
  if (place.splitDisks) oneDiskShort(rng.fork('one-disk'), place, apart('one-disk-steps'));
  bursts(rng.fork('bursts'), place, add);
  if (cpus !== null) cpuTrouble(rng.fork('cpu-trouble'), { spanMs, cpus }, apart('cpu-steps'));
  removals(rng.fork('removals'), place, apart('removal-steps'));
  attacks(rng.fork('fronts'), place, apart('front-steps'));
  workload(rng.fork('workload'), place, add);
  if (devices.length > 0) drawDeviceFaults(rng.fork('devices'), place, prompt);
  meetings(rng.fork('meetings'), place, prompt);
  if (api) nodeWatchTrouble(rng.fork('node-watch'), place, prompt);
  if (place.packetFilter) packetFilterTrouble(rng.fork('packet-filter'), place, prompt);
  if (place.kernel) kernelSettingsTrouble(rng.fork('kernel-settings'), place, prompt);
  if (api) initialEventsTrouble(rng.fork('initial-events'), place, prompt);
  if (place.claims) claimLife(rng.fork('resource-claims'), place, prompt);
  if (place.node === 0) askedRestarts(rng.fork(ASKED_RESTARTS), place, prompt);
}
