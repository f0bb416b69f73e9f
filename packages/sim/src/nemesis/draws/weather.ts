/** Kinds of fault that are on or off for a whole run, and the single faults of each kind. */

import { FAULT_KINDS } from '@actorlet/faults/src/kinds.ts';
import type { FaultKind, FaultSpec } from '@actorlet/faults/src/types.ts';
import type { CriMethod } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { Add } from '../entries.ts';

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

/** A kind of fault, while it is on. */
interface Weather {
  /** How likely it is on in a run. */
  on: number;
  /** How many a minute there are then. */
  perMinute: number;
  /** Draws one of them. `probability`: for a fault that lasts and hits some calls only. */
  draw(rng: SimRng, probability: number): FaultSpec;
}

const ALWAYS = { probability: 1, select: {} } as const;
/** Kinds of which every fault is the same. */
type Plain = 'hints.cut' | 'watch.break' | 'runtime.down' | 'network.down' | 'disk.full' | 'disk.deaf' | 'sandbox.stop' | 'api.partition';

function plain(kind: Plain): Pick<Weather, 'draw'> {
  return { draw: () => ({ kind, ...ALWAYS }) };
}

const KINDS = {
  cri: { on: 0.7, perMinute: 8, draw: drawCall },
  hints: {
    on: 0.5,
    perMinute: 3,
    draw: (rng, probability) => ({
      kind: 'hints',
      probability,
      select: {},
      action: rng.pick(['drop', 'duplicate', 'reorder', 'delay'] as const) ?? 'drop',
      delayMs: Math.round(rng.between(10, 5_000)),
    }),
  },
  'hints.cut': { on: 0.4, perMinute: 2, ...plain('hints.cut') },
  'runtime.down': { on: 0.3, perMinute: 1, ...plain('runtime.down') },
  'network.down': { on: 0.2, perMinute: 0.7, ...plain('network.down') },
  'disk.full': { on: 0.25, perMinute: 1, ...plain('disk.full') },
  'disk.slow': {
    on: 0.25,
    perMinute: 1,
    draw: (rng) => ({ kind: 'disk.slow', ...ALWAYS, delayMs: Math.round(rng.between(5, 800)) }),
  },
  'disk.error': { on: 0.25, perMinute: 1.5, draw: drawDiskError },
  'disk.deaf': { on: 0.25, perMinute: 1, ...plain('disk.deaf') },
  'watch.break': { on: 0.25, perMinute: 1, ...plain('watch.break') },
  'http.down': {
    on: 0.4,
    perMinute: 1,
    draw: (rng) => ({ kind: 'http.down', ...ALWAYS, action: rng.pick(['unreachable', 'error', 'garbage'] as const) ?? 'error' }),
  },
  'api.call': { on: 0.7, perMinute: 6, draw: drawApiCall },
  'api.partition': { on: 0.3, perMinute: 1, ...plain('api.partition') },
  'api.watch': {
    on: 0.4,
    perMinute: 2,
    draw: (rng, probability) => ({
      kind: 'api.watch',
      delayMs: 0,
      probability,
      select: rng.chance(0.5) ? {} : { resources: [rng.pick(['pods', 'nodes', 'services'] as const) ?? 'pods'] },
      action: rng.pick(['silence', 'truncate', 'close'] as const) ?? 'close',
    }),
  },
  'clock.jump': {
    on: 0.3,
    perMinute: 1,
    draw(rng) {
      const sign = rng.chance(0.5) ? 1 : -1;
      const byMs = rng.chance(0.5) ? rng.between(10, 5_000) : rng.between(5_000, 7_200_000);
      return { kind: 'clock.jump', ...ALWAYS, byMs: Math.round(sign * byMs) };
    },
  },
  'pressure.disk': {
    on: 0.2,
    perMinute: 0.7,
    draw: (rng) => ({ kind: 'pressure.disk', ...ALWAYS, availableBytes: rng.int(2 * 1024 ** 3) }),
  },
  mailbox: { on: 0.5, perMinute: 3, draw: drawMailbox },
  'actor.kill': {
    on: 0.5,
    perMinute: 4,
    draw: (rng) => ({ kind: 'actor.kill', probability: 1, select: rng.chance(0.5) ? { actors: [WORKERS] } : {}, pick: 'one' }),
  },
  'node.kill': {
    on: 0.4,
    perMinute: 1.2,
    draw: (rng) => ({
      kind: 'node.kill',
      ...ALWAYS,
      action: rng.chance(0.7) ? 'process' : 'power',
      downMs: Math.round(rng.between(0, 8_000)),
    }),
  },
  'node.stop': {
    on: 0.2,
    perMinute: 0.5,
    draw: (rng) => ({ kind: 'node.stop', ...ALWAYS, downMs: Math.round(rng.between(0, 5_000)) }),
  },
  'container.exit': {
    on: 0.5,
    perMinute: 4,
    draw: (rng) => ({
      kind: 'container.exit',
      ...ALWAYS,
      exitCode: rng.pick([0, 1, 137] as const) ?? 1,
      reason: rng.chance(0.2) ? 'OOMKilled' : '',
    }),
  },
  'sandbox.stop': { on: 0.25, perMinute: 1, ...plain('sandbox.stop') },
} as const satisfies Partial<Record<FaultKind, Weather>>;
type Kind = keyof typeof KINDS;

function drawCall(rng: SimRng, probability: number): FaultSpec {
  const method = rng.chance(0.2) ? undefined : rng.pick(METHODS);
  return {
    kind: 'cri',
    probability,
    select: method === undefined ? {} : { methods: [method] },
    action: rng.pick(['delay', 'delay', 'error', 'error', 'lost-without-effect', 'lost-with-effect', 'late-effect'] as const) ?? 'delay',
    delayMs: Math.round(rng.chance(0.7) ? rng.between(1, 2_000) : rng.between(1_000, 20_000)),
    code: rng.pick(CODES) ?? 2,
  };
}

function drawDiskError(rng: SimRng): FaultSpec {
  const rename = rng.chance(0.4);
  return {
    kind: 'disk.error',
    probability: rng.next(),
    select: rename ? { ops: ['rename'] } : {},
    code: rng.pick(rename ? (['EIO', 'EXDEV', 'EACCES'] as const) : (['EIO', 'ENOSPC', 'EROFS'] as const)) ?? 'EIO',
  };
}

function drawApiCall(rng: SimRng, probability: number): FaultSpec {
  return {
    kind: 'api.call',
    probability,
    select: rng.chance(0.4) ? {} : { resources: [rng.pick(API_RESOURCES) ?? 'pods'] },
    action: rng.pick(['delay', 'error', 'error', 'lost-without-effect', 'lost-with-effect', 'late-effect'] as const) ?? 'delay',
    delayMs: Math.round(rng.between(10, 12_000)),
    status: rng.pick([403, 409, 410, 422, 429, 500, 503] as const) ?? 500,
  };
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

interface WeatherOptions {
  minutes: number;
  spanMs: number;
  /** About how many faults are drawn. Undefined: as the kinds that are on have it. */
  faults: number | undefined;
  http: boolean;
  api: boolean;
}

/** The faults of the kinds that are on. Each kind draws from a fork of `rng`. */
export function drawWeather(rng: SimRng, o: WeatherOptions, add: Add): void {
  const isPossible = (kind: Kind): boolean => (kind !== 'http.down' || o.http) && (!kind.startsWith('api.') || o.api);
  const on = (Object.keys(KINDS) as Kind[]).flatMap((kind) => {
    const mine = rng.fork(kind);
    if (!mine.chance(KINDS[kind].on) || !isPossible(kind)) return [];
    return [{ kind, mine, count: Math.max(1, Math.round(mine.between(0.3, 2) * KINDS[kind].perMinute * o.minutes)) }];
  });
  const total = on.reduce((sum, { count }) => sum + count, 0);
  const wanted = o.faults === undefined ? 1 : o.faults / Math.max(1, total);
  for (const { kind, mine, count } of on) {
    for (let i = 0; i < Math.round(count * wanted); i++) {
      const forMs = Math.round(mine.chance(0.5) ? mine.between(100, 3_000) : mine.between(1_000, 25_000));
      const at = mine.next() * o.spanMs;
      add(at, drawOne(mine, kind), FAULT_KINDS[kind].lasts ? forMs : 0);
    }
  }
}

function drawOne(rng: SimRng, kind: Kind): FaultSpec {
  const probability = rng.chance(0.3) ? 1 : rng.next();
  return KINDS[kind].draw(rng, probability);
}
