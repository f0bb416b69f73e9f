/**
 * Draws a run from its seed: which kinds of fault are on at all (a swarm of different weathers finds more than one
 * average weather), how many, when, and what the operator does meanwhile.
 */

import type { CriMethod } from '../../machines/cri.ts';
import { FAULT_KINDS } from '../../machines/faults/kinds.ts';
import type { FaultSpec, Scenario } from '../../machines/faults/types.ts';
import { LIMITS_EVERY_MS } from '../../machines/reclaim/eviction/evictionMachine.ts';
import type { CpuTuning } from '../world/cpus.ts';
import type { NodeTuning } from '../world/nodeTuning.ts';
import { MANIFESTS, ROOT_DIR } from '../world/paths.ts';
import type { SimRng } from '../world/rng.ts';
import { attacks } from './attacks.ts';
import { drawBeside } from './draws/beside.ts';
import { drawCgroups } from './draws/cgroups.ts';
import { cpuTrouble, drawCpus } from './draws/cpus.ts';
import { drawDeviceFaults, drawDevices } from './draws/devices.ts';
import { drawDriver } from './draws/drivers.ts';
import { drawImageGc, imageTrouble } from './draws/images.ts';
import { initialEventsTrouble } from './draws/initialEvents.ts';
import { drawKernelSettings, kernelSettingsTrouble } from './draws/kernelSettings.ts';
import { meetings } from './draws/meetings.ts';
import { nodeWatchTrouble } from './draws/nodeWatch.ts';
import { drawPacketFilter, packetFilterTrouble } from './draws/packetFilter.ts';
import { drawShutdown } from './draws/shutdown.ts';
import { type Add, adder, type Drawn, inOrder, promptAdder } from './entries.ts';
import type { Fault, FaultKind } from './faults.ts';
import { drawIdentity, identityTrouble } from './identity.ts';
import { workload } from './workload.ts';

const METHODS: readonly CriMethod[] = [
  'RunPodSandbox',
  'StopPodSandbox',
  'RemovePodSandbox',
  'CreateContainer',
  'StartContainer',
  'StopContainer',
  'RemoveContainer',
  'ListContainers',
  'ListPodSandbox',
  'ContainerStatus',
  'PodSandboxStatus',
  'PullImage',
  'ImageStatus',
  'Status',
  'Version',
  'ExecSync',
];
const API_RESOURCES = ['pods', 'pods/status', 'nodes', 'nodes/status', 'leases', 'events', 'services'] as const;
const CODES = [2, 13, 14, 8] as const;

const WORKERS = 'node/pods/workers/*';
/** Actors whose mailboxes may be slow. */
const SLOW = [
  'node/runtime/cri',
  'node/runtime/pleg',
  'node/runtime/imagePuller',
  'node/pods/status',
  'node/pods/podManager',
  'node/pods/workers',
  // Twice, so that seeds keep their meaning: admission was an actor of its own.
  'node/pods/podManager',
  'node/pods/config',
  'node/foundation/*',
  'node/reclaim/*',
  'node/services/probes',
  'node/services/volumes',
] as const;
/**
 * Messages that the design lets go missing or come out of order, because whatever they announce is found again by
 * looking: hints and dirty marks (the next listing, a worker's own look at the runtime), wishes to do now what is done
 * periodically anyway, and events for people. Everything else is said once, and a mailbox that is not full keeps it: the
 * drawn faults slow such messages down, and never lose them.
 */
const LOSABLE = ['pod.dirty', 'pods.dirty', 'cri.check', 'gc.run', 'housekeeping.run', 'event.record'] as const;

/** How likely a kind is on in a run, and how many a minute there are then. */
const KINDS = {
  cri: { on: 0.7, perMinute: 8 },
  hints: { on: 0.5, perMinute: 3 },
  'hints.cut': { on: 0.4, perMinute: 2 },
  'runtime.down': { on: 0.3, perMinute: 1 },
  'network.down': { on: 0.2, perMinute: 0.7 },
  'disk.full': { on: 0.25, perMinute: 1 },
  'disk.slow': { on: 0.25, perMinute: 1 },
  'disk.error': { on: 0.25, perMinute: 1.5 },
  'disk.deaf': { on: 0.25, perMinute: 1 },
  'watch.break': { on: 0.25, perMinute: 1 },
  'http.down': { on: 0.4, perMinute: 1 },
  'api.call': { on: 0.7, perMinute: 6 },
  'api.partition': { on: 0.3, perMinute: 1 },
  'api.watch': { on: 0.4, perMinute: 2 },
  'clock.jump': { on: 0.3, perMinute: 1 },
  'pressure.disk': { on: 0.2, perMinute: 0.7 },
  mailbox: { on: 0.5, perMinute: 3 },
  'actor.kill': { on: 0.5, perMinute: 4 },
  'node.kill': { on: 0.4, perMinute: 1.2 },
  'node.stop': { on: 0.2, perMinute: 0.5 },
  'container.exit': { on: 0.5, perMinute: 4 },
  'sandbox.stop': { on: 0.25, perMinute: 1 },
} as const satisfies Partial<Record<FaultKind, { on: number; perMinute: number }>>;

function act(rng: SimRng, kind: keyof typeof KINDS): FaultSpec {
  const always = { probability: 1, select: {} };
  const some = { probability: rng.chance(0.3) ? 1 : rng.next(), select: {} };
  switch (kind) {
    case 'cri': {
      const method = rng.chance(0.2) ? undefined : rng.pick(METHODS);
      return {
        kind,
        ...some,
        select: method === undefined ? {} : { methods: [method] },
        action:
          rng.pick(['delay', 'delay', 'error', 'error', 'lost-without-effect', 'lost-with-effect', 'late-effect'] as const) ?? 'delay',
        delayMs: Math.round(rng.chance(0.7) ? rng.between(1, 2_000) : rng.between(1_000, 20_000)),
        code: rng.pick(CODES) ?? 2,
      };
    }
    case 'hints':
      return {
        kind,
        ...some,
        action: rng.pick(['drop', 'duplicate', 'reorder', 'delay'] as const) ?? 'drop',
        delayMs: Math.round(rng.between(10, 5_000)),
      };
    case 'hints.cut':
    case 'watch.break':
    case 'runtime.down':
    case 'network.down':
    case 'disk.full':
    case 'disk.deaf':
    case 'sandbox.stop':
      return { kind, ...always };
    case 'disk.slow':
      return { kind, ...always, delayMs: Math.round(rng.between(5, 800)) };
    case 'disk.error': {
      const rename = rng.chance(0.4);
      return {
        kind,
        probability: rng.next(),
        select: rename ? { ops: ['rename'] } : {},
        code: rng.pick(rename ? (['EIO', 'EXDEV', 'EACCES'] as const) : (['EIO', 'ENOSPC', 'EROFS'] as const)) ?? 'EIO',
      };
    }
    case 'http.down':
      return { kind, ...always, action: rng.pick(['unreachable', 'error', 'garbage'] as const) ?? 'error' };
    case 'api.call':
      return {
        kind,
        ...some,
        select: rng.chance(0.4) ? {} : { resources: [rng.pick(API_RESOURCES) ?? 'pods'] },
        action: rng.pick(['delay', 'error', 'error', 'lost-without-effect', 'lost-with-effect', 'late-effect'] as const) ?? 'delay',
        delayMs: Math.round(rng.between(10, 12_000)),
        status: rng.pick([403, 409, 410, 422, 429, 500, 503] as const) ?? 500,
      };
    case 'api.partition':
      return { kind, ...always };
    case 'api.watch':
      return {
        kind,
        delayMs: 0,
        ...some,
        select: rng.chance(0.5) ? {} : { resources: [rng.pick(['pods', 'nodes', 'services'] as const) ?? 'pods'] },
        action: rng.pick(['silence', 'truncate', 'close'] as const) ?? 'close',
      };
    case 'clock.jump':
      return {
        kind,
        ...always,
        byMs: Math.round((rng.chance(0.5) ? 1 : -1) * (rng.chance(0.5) ? rng.between(10, 5_000) : rng.between(5_000, 7_200_000))),
      };
    case 'pressure.disk':
      return { kind, ...always, availableBytes: rng.int(2 * 1024 ** 3) };
    case 'mailbox':
      return drawMailbox(rng, some.probability);
    case 'actor.kill':
      return { kind, probability: 1, select: rng.chance(0.5) ? { actors: [WORKERS] } : {}, pick: 'one' };
    case 'node.kill':
      return { kind, ...always, action: rng.chance(0.7) ? 'process' : 'power', downMs: Math.round(rng.between(0, 8_000)) };
    case 'node.stop':
      return { kind, ...always, downMs: Math.round(rng.between(0, 5_000)) };
    case 'container.exit':
      return { kind, ...always, exitCode: rng.pick([0, 1, 137] as const) ?? 1, reason: rng.chance(0.2) ? 'OOMKilled' : '' };
  }
}

function drawMailbox(rng: SimRng, probability: number): FaultSpec {
  const action = rng.pick(['delay', 'delay', 'drop', 'reorder'] as const) ?? 'delay';
  const kind = 'mailbox' as const;
  if (action !== 'delay') {
    const events = rng.chance(0.3) ? [...LOSABLE] : [rng.pick(LOSABLE) ?? 'pods.dirty'];
    return { kind, action, probability, delayMs: 0, select: { events } };
  }
  const actors = [rng.pick(SLOW) ?? 'node/pods/workers'];
  return {
    kind,
    action,
    probability,
    delayMs: Math.round(rng.chance(0.7) ? rng.between(1, 500) : rng.between(500, 4_000)),
    select: { actors },
  };
}

/** Settings of one node: quick and slow hardware, short and long configured periods. */
export function drawTuning(rng: SimRng): NodeTuning {
  return {
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
    cpus: drawCpus(rng.fork('cpus-alone')),
    throttles: rng.fork('throttles').chance(0.25),
    devices: drawDevices(rng.fork('peripherals')),
    shutdown: drawShutdown(rng.fork('machine-down')),
    packetFilter: drawPacketFilter(rng.fork('packet-filter')),
    kernel: drawKernelSettings(rng.fork('kernel-settings')),
  };
}

function drawCluster(rng: SimRng): Pick<NodeTuning, 'api' | 'registers' | 'eviction' | 'certificates' | 'edge' | 'driver' | 'beside'> {
  const api = rng.chance(0.4);
  const registers = rng.chance(0.8);
  const eviction = drawEviction(rng.fork('eviction'), api);
  const identity = drawIdentity(rng, api);
  const beside = drawBeside(rng.fork('beside'), { served: identity.edge !== null });
  return { api, registers, eviction, ...identity, driver: drawDriver(rng.fork('driver'), api), beside };
}

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

export interface DrawOptions {
  minutes: number;
  /** About how many faults a node gets, workload not counted. Absent: as the kinds that are on have it. */
  faults?: number;
  pods: number;
  nodes: number;
  /** Per node: pods may also come over HTTP. */
  http: readonly boolean[];
  /** Per node: it belongs to a cluster, and pods may come from the API. */
  api: readonly boolean[];
  /** Per node: it has eviction thresholds. */
  evicts?: readonly boolean[];
  /** Per node: it gets certificates from its cluster, what it serves with among them, and its API is served. */
  identity?: readonly { certificates: boolean; edge: boolean; serving?: boolean }[];
  /** Per node: its static pod path is one file. */
  oneManifest?: readonly boolean[];
  /** Per node: a storage driver is beside it. */
  drivers?: readonly boolean[];
  /** Per node: resources of its device plugins. */
  devices?: readonly (readonly string[])[];
  /** Per node: it keeps chains in the packet filter. */
  packetFilters?: readonly boolean[];
  /** Per node: it relies on kernel settings. */
  kernels?: readonly boolean[];
  /** Per node: what CPUs it allocates; null: none. */
  cpus?: readonly (CpuTuning | null)[];
}

/** The whole schedule, oldest first. */
export function drawSchedule(rng: SimRng, o: DrawOptions): Fault[] {
  const spanMs = o.minutes * 60_000;
  const drawn: Drawn[] = [];
  const met: Drawn[] = [];
  for (let node = 0; node < o.nodes; node++) {
    const mine = rng.fork(`node-${node}`);
    const add = adder(drawn, mine, node);
    const weathers = (Object.keys(KINDS) as (keyof typeof KINDS)[]).flatMap((kind) => {
      const { on, perMinute } = KINDS[kind];
      const weather = mine.fork(kind);
      if (!weather.chance(on) || (kind === 'http.down' && o.http[node] !== true)) return [];
      if (kind.startsWith('api.') && o.api[node] !== true) return [];
      return [{ kind, weather, count: Math.max(1, Math.round(weather.between(0.3, 2) * perMinute * o.minutes)) }];
    });
    const wanted = o.faults === undefined ? 1 : o.faults / Math.max(1, sum(weathers.map((w) => w.count)));
    for (const { kind, weather, count } of weathers) {
      for (let i = 0; i < Math.round(count * wanted); i++) {
        const forMs = Math.round(weather.chance(0.5) ? weather.between(100, 3_000) : weather.between(1_000, 25_000));
        add(weather.next() * spanMs, act(weather, kind), FAULT_KINDS[kind].lasts ? forMs : 0);
      }
    }
    if (o.evicts?.[node] === true) shortages(mine.fork('shortages'), { spanMs }, adder(drawn, mine.fork('shortage-steps'), node));
    const { certificates = false, edge = false, serving = false } = o.identity?.[node] ?? {};
    identityTrouble(mine.fork('identity'), { spanMs, certificates, edge }, adder(drawn, mine.fork('identity-steps'), node));
    if (o.api[node] === true) untold(mine.fork('untold'), { spanMs }, adder(drawn, mine.fork('untold-steps'), node));
    imageTrouble(mine.fork('image-trouble'), { spanMs, evicts: o.evicts?.[node] === true }, adder(drawn, mine.fork('image-steps'), node));
    bursts(mine.fork('bursts'), { spanMs }, add);
    const cpus = o.cpus?.[node] ?? null;
    if (cpus !== null) cpuTrouble(mine.fork('cpu-trouble'), { spanMs, cpus }, adder(drawn, mine.fork('cpu-steps'), node));
    removals(mine.fork('removals'), { spanMs }, adder(drawn, mine.fork('removal-steps'), node));
    attacks(mine.fork('fronts'), { spanMs, node, api: o.api[node] === true }, adder(drawn, mine.fork('front-steps'), node));
    const kinds = { http: o.http[node] === true, api: o.api[node] === true, driver: o.drivers?.[node] === true, cpus };
    const devices = o.devices?.[node] ?? [];
    workload(mine.fork('workload'), { spanMs, pods: o.pods, ...kinds, devices, node }, add);
    if (devices.length > 0) drawDeviceFaults(mine.fork('devices'), { spanMs }, promptAdder(met, node));
    const has = { api: o.api[node] === true, evicts: o.evicts?.[node] === true, oneManifest: o.oneManifest?.[node] === true };
    meetings(mine.fork('meetings'), { spanMs, node, pods: o.pods, edge, serving, ...has }, promptAdder(met, node));
    if (has.api) nodeWatchTrouble(mine.fork('node-watch'), { spanMs }, promptAdder(met, node));
    if (o.packetFilters?.[node] === true) packetFilterTrouble(mine.fork('packet-filter'), { spanMs }, promptAdder(met, node));
    if (o.kernels?.[node] === true) kernelSettingsTrouble(mine.fork('kernel-settings'), { spanMs }, promptAdder(met, node));
    if (has.api) initialEventsTrouble(mine.fork('initial-events'), { spanMs }, promptAdder(met, node));
  }
  return inOrder(drawn, met);
}

/**
 * Memory runs short, by a little or by much, for as long as a few looks of the eviction manager; at times its question
 * about usage is not answered well, or its victim is slow to stop.
 */
function shortages(rng: SimRng, o: { spanMs: number }, add: Add): void {
  for (let i = rng.int(4); i > 0; i--) {
    const availableBytes = rng.int(rng.chance(0.5) ? 100 * MIB : 400 * MIB);
    const at = rng.next() * o.spanMs;
    const forMs = Math.round(rng.between(1_000, 40_000));
    add(at, { kind: 'pressure.memory', probability: 1, select: {}, availableBytes }, forMs);
    const hinder = (method: CriMethod, action: 'error' | 'delay', delayMs: number): void =>
      add(at, { kind: 'cri', probability: 1, select: { methods: [method] }, action, code: 2, delayMs }, forMs);
    if (rng.chance(0.2)) hinder('ListContainerStats', 'error', 0);
    else if (rng.chance(0.3)) hinder('ListContainerStats', 'delay', 9_000);
    if (rng.chance(0.15)) hinder('StopContainer', 'delay', 40_000);
  }
}
const MIB = 1024 ** 2;

/** The runtime does not say what containers wrote, for longer than it is between two looks at that. */
function untold(rng: SimRng, o: { spanMs: number }, add: Add): void {
  if (!rng.chance(0.2)) return;
  const select = { methods: ['ListContainerStats'] as const };
  add(rng.next() * 0.3 * o.spanMs, { kind: 'cri', probability: 1, select, action: 'error', code: 13, delayMs: 0 }, LIMITS_EVERY_MS + 5_000);
}

/** Actors that die again and again until their supervisors give up, some of them within one call of somebody. */
const OFTEN_KILLED = [
  'node/edge/admin',
  'node/edge/healthz',
  'node/runtime/cri',
  'node/runtime/cri',
  'node/runtime/pleg',
  'node/pods/podManager',
  'node/pods/config',
  'node/pods/sources/file',
  'node/reclaim/containerGc',
] as const;

/** One thing that goes wrong over and over: what a single blow leaves standing gives up, calms down or waits. */
function bursts(rng: SimRng, o: { spanMs: number }, add: Add): void {
  if (rng.chance(0.25)) {
    const path = rng.pick(OFTEN_KILLED) ?? 'node/runtime/cri';
    const count = path.startsWith('node/edge/') ? 30 : 4 + rng.int(12);
    let at = rng.next() * o.spanMs * 0.6;
    for (let i = 0; i < count; i++) {
      add(at, { kind: 'actor.kill', probability: 1, select: { actors: [path] }, pick: 'one' });
      at += rng.between(50, 2_500);
    }
  }
  if (rng.chance(0.1)) {
    let at = rng.next() * o.spanMs * 0.4;
    for (let i = 0; i < 40; i++) {
      add(at, { kind: 'sandbox.stop', probability: 1, select: {} });
      at += rng.between(100, 900);
    }
  }
  if (rng.chance(0.15)) {
    const forMs = Math.round(rng.between(1_000, 30_000));
    const at = rng.next() * o.spanMs;
    const path = rng.pick([MANIFESTS, MANIFESTS, `${ROOT_DIR}/pods`] as const) ?? MANIFESTS;
    add(at, { kind: 'disk.error', probability: 1, select: { ops: ['read'], paths: [path] }, code: 'EACCES' }, forMs);
    if (rng.chance(0.5)) add(at + 50, { kind: 'node.kill', probability: 1, select: {}, action: 'process', downMs: 100 });
  }
}

/** Somebody tidies up in the runtime: a container is gone, and its name is free again for what was asked for before. */
function removals(rng: SimRng, o: { spanMs: number }, add: Add): void {
  if (!rng.chance(0.2)) return;
  for (let left = 1 + rng.int(3); left > 0; left--) add(rng.next() * o.spanMs, { kind: 'container.remove', probability: 1, select: {} });
}

function sum(counts: readonly number[]): number {
  return counts.reduce((a, b) => a + b, 0);
}
