/** Who else acts in a world: the signer of its cluster, and callers of its nodes' API. They act from the first boot to the end. */
import type { Clock } from '../ports/ports.ts';
import { makeServiceAccount } from './nemesis/apiUser.ts';
import { type Asked, type Caller, caller } from './nemesis/caller.ts';
import { deviceTrouble } from './nemesis/deviceTrouble.ts';
import { drawInitialEvents } from './nemesis/draws/initialEvents.ts';
import { driverTrouble } from './nemesis/driverTrouble.ts';
import type { Trouble } from './nemesis/faultBursts.ts';
import { helpersOf, helperTrouble } from './nemesis/helperTrouble.ts';
import { type KernelVoice, kernelVoice } from './nemesis/kernelVoice.ts';
import { makeDriverObject } from './nemesis/objectBodies.ts';
import { shutdownTrouble } from './nemesis/shutdownTrouble.ts';
import type { SimCertificate } from './world/certificates.ts';
import { keptPairs } from './world/identity.ts';
import { type SimKube, simKube } from './world/kubeApi.ts';
import type { SimNode } from './world/node.ts';
import type { NodeTuning } from './world/nodeTuning.ts';
import type { SimRng } from './world/rng.ts';
import { type Signer, signer } from './world/signer.ts';

export interface Environment {
  /** All nodes were made and begin. */
  begin(): void;
  /** Faults begin, and the signer does as it likes. */
  misbehave(): void;
  heal(): void;
  /** Nobody calls any more. */
  end(): void;
  /** Monotonic ms since when the weather is fair; Infinity while it is not. */
  fairSinceMs(): number;
  signerTroubledAtMs(node: string): number;
  /** Undefined for a node whose API is not served. */
  callerOf(node: SimNode): Caller | undefined;
  /** Undefined for a node that does not hear its kernel. */
  kernelOf(node: SimNode): KernelVoice | undefined;
  /** What the signer did, by way. */
  readonly signed: ReadonlyMap<string, number>;
}

/** How many of the nodes whose API is served are profiled now and then. */
const PROFILED = 0.4;

export interface EnvironmentOptions {
  nodes: readonly SimNode[];
  kube: SimKube | undefined;
  clock: Clock;
  rng: SimRng;
  /** For the trace. */
  on(who: string, what: string): void;
  answered(node: SimNode, asked: Asked): void;
  shown(node: SimNode, certificate: SimCertificate): void;
  /** What runs on this node ends at once, as at a power failure. */
  halt(node: SimNode): void;
}

export function environment(o: EnvironmentOptions): Environment {
  const { kube, clock, nodes } = o;
  let fairSinceMs = clock.monoMs();
  const lives = new Map(nodes.flatMap((n) => (n.tuning.certificates === null ? [] : [[n.name, n.tuning.certificates.lifeMs] as const])));
  let signs: Signer | undefined;
  if (kube !== undefined) {
    signs = signer({
      kube,
      clock,
      rng: o.rng.fork('signer'),
      lifeMsOf: (node) => lives.get(node) ?? null,
      on: (node, what) => o.on(`${node} signer`, what),
    });
    kube.onShown = (certificate, name) => {
      const node = nodes.find((n) => n.name === name);
      if (node !== undefined) o.shown(node, certificate);
    };
  }
  const callers = new Map(
    nodes.flatMap((node) => {
      const { edge } = node.tuning;
      if (edge === null) return [];
      const on = (asked: Asked): void => {
        const { answer, account, way, method, path } = asked;
        const outcome = answer.kind === 'reply' ? String(answer.status) : answer.kind;
        o.on(`${node.name} caller`, `${method} ${path} ${way} ${account?.name ?? '-'}: ${outcome}`);
        o.answered(node, asked);
      };
      const queries = node.tuning.beside.journal ? o.rng.fork(`queries-${node.name}`) : null;
      const chances = o.rng.fork(`profiles-${node.name}`);
      const profiles = chances.chance(PROFILED) ? chances : null;
      const rng = o.rng.fork(`caller-${node.name}`);
      return [[node, caller({ node, everyMs: edge.everyMs, rng, queries, profiles, clock, on })] as const];
    }),
  );
  const kernels = new Map(
    nodes.flatMap((node) => {
      if (!node.tuning.kernelLog) return [];
      const on = (what: string): void => o.on(`${node.name} kernel`, what);
      return [[node, kernelVoice({ log: node.kernelLog, rng: o.rng.fork(`kernel-${node.name}`), clock, on })] as const];
    }),
  );
  const withDriver = nodes.filter((node) => node.tuning.driver !== null);
  if (kube !== undefined && withDriver.length > 0) makeDriverObject(kube);
  const drivers = withDriver.map((node): Trouble => {
    const on = (what: string): void => o.on(`${node.name} driver`, what);
    return driverTrouble({ node, rng: o.rng.fork(`driver-${node.name}`), clock, on });
  });
  const devices = nodes.flatMap((node): Trouble[] => {
    const { plugins = [] } = node.tuning.devices ?? {};
    const on = (what: string): void => o.on(`${node.name} devices`, what);
    return plugins.length === 0 ? [] : [deviceTrouble({ node, plugins, rng: o.rng.fork(`devices-${node.name}`), clock, on })];
  });
  const helpers = nodes
    .filter((node) => helpersOf(node).length > 0)
    .map((node) => {
      const on = (what: string): void => o.on(`${node.name} helper`, what);
      return helperTrouble({ node, rng: o.rng.fork(`helpers-${node.name}`), clock, on });
    });
  const shutdowns = nodes
    .filter((node) => node.tuning.shutdown !== null)
    .map((node) => {
      const on = (what: string): void => o.on(`${node.name} machine`, what);
      return shutdownTrouble({ node, rng: o.rng.fork(`machine-${node.name}`), clock, halt: o.halt, on });
    });
  const troubles = [...drivers, ...devices, ...helpers, ...shutdowns];
  return {
    begin() {
      for (const c of callers.values()) c.begin();
    },
    misbehave() {
      fairSinceMs = Number.POSITIVE_INFINITY;
      signs?.begin();
      for (const k of kernels.values()) k.begin();
      for (const t of troubles) t.begin();
    },
    heal() {
      fairSinceMs = clock.monoMs();
      signs?.heal();
      for (const k of kernels.values()) k.heal();
      for (const t of troubles) t.heal();
    },
    end() {
      for (const c of callers.values()) c.end();
    },
    fairSinceMs: () => fairSinceMs,
    signerTroubledAtMs: (node) => signs?.troubledAtMs(node) ?? Number.NEGATIVE_INFINITY,
    callerOf: (node) => callers.get(node),
    kernelOf: (node) => kernels.get(node),
    signed: signs?.counts ?? new Map(),
  };
}

/** How long certificates have to be watched, so that each of those that live shortly is renewed in fair weather. */
export function renewalMs(tuning: readonly NodeTuning[]): number {
  const lives = tuning.flatMap(({ certificates }) =>
    certificates === null || keptPairs(certificates).length === 0 ? [] : [certificates.lifeMs],
  );
  const short = lives.filter((ms) => ms <= WATCHED_LIFE_MS);
  return short.length === 0 ? 0 : 1.6 * Math.max(...short) + CARRIED_MS;
}
const WATCHED_LIFE_MS = 90_000;
/** What a failure from before may still wait for, or a stream that died. */
const CARRIED_MS = 100_000;

/** How often an API server gives tokens that are over before a node looks after what it gave its pods. */
const SHORT_TOKENS = 0.12;
const SHORT_TOKEN_SECONDS = 50;
/** How many API servers are older than their nodes, and what of a pod's status one of 1.20 drops. */
const OLD_SERVERS = 0.12;
const UNKNOWN_TO_OLD: ReadonlySet<string> = new Set(['hostIPs', 'resources', 'allocatedResources', 'volumeMounts', 'user', 'stopSignal']);

/** The API server of a world: it outlives everything else, and its clock is right. Names of pods end in the name of their node. */
export function apiServer(o: { rng: SimRng; clock: Clock }): SimKube {
  const latency = o.rng.fork('latency');
  const slowestMs = o.rng.pick([0, 5, 80] as const) ?? 0;
  const short = o.rng.fork('tokens').chance(SHORT_TOKENS);
  const tokenSecondsMax = short ? SHORT_TOKEN_SECONDS : undefined;
  const kube = simKube({ clock: o.clock, rng: o.rng, latencyMs: () => latency.between(0, slowestMs), tokenSecondsMax });
  if (o.rng.fork('age').chance(OLD_SERVERS)) kube.store.leavesOut = UNKNOWN_TO_OLD;
  kube.initialEvents = drawInitialEvents(o.rng.fork('initial-events'));
  makeServiceAccount(kube);
  return kube;
}
