/** Other actors in a world: the signer of its cluster, and callers of its nodes' API. They act from the first boot to the end. */
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { SimCertificate } from '@actorlet/world/src/identity/certificates.ts';
import { keptPairs } from '@actorlet/world/src/identity/identity.ts';
import { type PodSigner, podSigner } from '@actorlet/world/src/identity/podSigner.ts';
import { Signer } from '@actorlet/world/src/identity/signer.ts';
import { simKube } from '@actorlet/world/src/kube/kubeApi.ts';
import type { SimKube } from '@actorlet/world/src/kube/types.ts';
import type { NodeTuning } from '@actorlet/world/src/node/nodeTuning.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import { type Asked, Caller } from './nemesis/caller.ts';
import { drawInitialEvents } from './nemesis/draws/initialEvents.ts';
import { deviceTrouble, pluginsOf } from './nemesis/trouble/deviceTrouble.ts';
import { draTrouble } from './nemesis/trouble/draTrouble.ts';
import { driverTrouble } from './nemesis/trouble/driverTrouble.ts';
import type { Trouble } from './nemesis/trouble/faultBursts.ts';
import { helpersOf, helperTrouble } from './nemesis/trouble/helperTrouble.ts';
import { type KernelVoice, kernelVoice } from './nemesis/trouble/kernelVoice.ts';
import { networkTrouble } from './nemesis/trouble/networkTrouble.ts';
import { shutdownTrouble } from './nemesis/trouble/shutdownTrouble.ts';
import { makeServiceAccount } from './nemesis/workload/apiUser.ts';
import { Attacher } from './nemesis/workload/attacher.ts';
import { ClaimScheduler } from './nemesis/workload/claimScheduler.ts';
import { makeDriverObject } from './nemesis/workload/objectBodies.ts';

/** How many of the nodes whose API is served are profiled now and then. */
const PROFILED = 0.4;

/** How many of the clusters with a driver attach its volumes. */
const ATTACHING = 0.4;

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

export class Environment {
  readonly #clock: Clock;
  readonly #signer: Signer | undefined;
  readonly #podSigner: PodSigner | undefined;
  readonly #callers: ReadonlyMap<SimNode, Caller>;
  readonly #kernels: ReadonlyMap<SimNode, KernelVoice>;
  readonly #scheduler: ClaimScheduler | undefined;
  readonly #attacher: Attacher | undefined;
  readonly #troubles: readonly Trouble[];
  #fairSinceMs: number;

  constructor(o: EnvironmentOptions) {
    this.#clock = o.clock;
    this.#fairSinceMs = o.clock.monoMs();
    this.#signer = o.kube === undefined ? undefined : signerOf(o, o.kube);
    this.#podSigner = podSignerOf(o);
    this.#callers = perNode(o.nodes, (node) => callerOf(o, node));
    this.#kernels = perNode(o.nodes, (node) => kernelOf(o, node));
    this.#attacher = attacherOf(o);
    if (o.kube !== undefined && o.nodes.some(hasDriver)) makeDriverObject(o.kube, { attachRequired: this.#attacher !== undefined });
    this.#scheduler = schedulerOf(o);
    this.#troubles = troublesOf(o);
  }

  /** All nodes were made and begin. */
  begin(): void {
    for (const c of this.#callers.values()) c.begin();
  }
  /** Faults begin, and the signer does as it likes. */
  misbehave(): void {
    this.#fairSinceMs = Number.POSITIVE_INFINITY;
    this.#signer?.begin();
    this.#scheduler?.begin();
    this.#attacher?.begin();
    this.#podSigner?.begin();
    for (const k of this.#kernels.values()) k.begin();
    for (const t of this.#troubles) t.begin();
  }
  heal(): void {
    this.#fairSinceMs = this.#clock.monoMs();
    this.#signer?.heal();
    this.#scheduler?.heal();
    this.#attacher?.heal();
    this.#podSigner?.heal();
    for (const k of this.#kernels.values()) k.heal();
    for (const t of this.#troubles) t.heal();
  }
  /** Nobody calls any more. */
  end(): void {
    for (const c of this.#callers.values()) c.end();
  }
  /** Monotonic ms since when the weather is fair; Infinity while it is not. */
  fairSinceMs(): number {
    return this.#fairSinceMs;
  }
  signerTroubledAtMs(node: string): number {
    return this.#signer?.troubledAtMs(node) ?? Number.NEGATIVE_INFINITY;
  }
  /** This claim was at some time reserved for this pod, both by UID. */
  wasReserved(claim: string, pod: string): boolean {
    return this.#scheduler?.wasReserved(claim, pod) === true;
  }
  /** The cluster has this volume of a driver attached to that node, by name. Undefined: it attaches none. */
  isAttached(node: string, handle: string): boolean | undefined {
    return this.#attacher?.isAttached(node, handle);
  }
  /** Undefined for a node whose API is not served. */
  callerOf(node: SimNode): Caller | undefined {
    return this.#callers.get(node);
  }
  /** Undefined for a node that does not hear its kernel. */
  kernelOf(node: SimNode): KernelVoice | undefined {
    return this.#kernels.get(node);
  }
  /** What the signer did, by way. */
  get signed(): ReadonlyMap<string, number> {
    return this.#signer?.counts ?? new Map();
  }
}

/** Nodes for which `make` gives nothing are left out. */
function perNode<T>(nodes: readonly SimNode[], make: (node: SimNode) => T | undefined): ReadonlyMap<SimNode, T> {
  const made = new Map<SimNode, T>();
  for (const node of nodes) {
    const one = make(node);
    if (one !== undefined) made.set(node, one);
  }
  return made;
}

function signerOf({ nodes, clock, rng, on, shown }: EnvironmentOptions, kube: SimKube): Signer {
  const named = (name: string) => nodes.find((n) => n.name === name);
  kube.onShown = (certificate, name) => {
    const node = named(name);
    if (node !== undefined) shown(node, certificate);
  };
  return new Signer({
    kube,
    clock,
    rng: rng.fork('signer'),
    lifeMsOf: (node) => named(node)?.tuning.certificates?.lifeMs ?? null,
    on: (node, what) => on(`${node} signer`, what),
  });
}

function podSignerOf({ nodes, kube, clock, rng, on }: EnvironmentOptions): PodSigner | undefined {
  if (kube === undefined || !nodes.some((n) => n.tuning.podIdentities)) return undefined;
  return podSigner({ kube, clock, rng: rng.fork('pod-signer'), on: (what) => on('pod signer', what) });
}

function callerOf({ rng, clock, on, answered }: EnvironmentOptions, node: SimNode): Caller | undefined {
  const { edge, beside } = node.tuning;
  if (edge === null) return undefined;
  const chances = rng.fork(`profiles-${node.name}`);
  return new Caller({
    node,
    everyMs: edge.everyMs,
    rng: rng.fork(`caller-${node.name}`),
    queries: beside.journal ? rng.fork(`queries-${node.name}`) : null,
    profiles: chances.chance(PROFILED) ? chances : null,
    clock,
    on(asked) {
      const { answer, account, way, method, path } = asked;
      const outcome = answer.kind === 'reply' ? String(answer.status) : answer.kind;
      on(`${node.name} caller`, `${method} ${path} ${way} ${account?.name ?? '-'}: ${outcome}`);
      answered(node, asked);
    },
  });
}

function kernelOf({ rng, clock, on }: EnvironmentOptions, node: SimNode): KernelVoice | undefined {
  if (!node.tuning.kernelLog) return undefined;
  const said = (what: string): void => on(`${node.name} kernel`, what);
  return kernelVoice({ log: node.kernelLog, rng: rng.fork(`kernel-${node.name}`), clock, on: said });
}

function schedulerOf({ kube, nodes, clock, rng }: EnvironmentOptions): ClaimScheduler | undefined {
  if (kube === undefined || !nodes.some(hasClaims)) return undefined;
  return new ClaimScheduler({ kube, nodes, clock, rng: rng.fork('scheduler') });
}

function attacherOf({ kube, nodes, clock, rng, on }: EnvironmentOptions): Attacher | undefined {
  const chances = rng.fork('attacher');
  if (kube === undefined || !nodes.some(hasDriver) || !chances.chance(ATTACHING)) return undefined;
  return new Attacher({ kube, nodes, clock, rng: chances, on: (node, what) => on(`${node} attacher`, what) });
}

const hasClaims = (node: SimNode): boolean => node.tuning.claims !== null;
const hasDriver = (node: SimNode): boolean => node.tuning.driver !== null;

/** Parts of nodes that misbehave among faults. `rng` names their chances, `who` their lines in the trace. */
const PARTS = [
  { who: 'driver', rng: 'driver', isOn: hasDriver, trouble: driverTrouble },
  { who: 'dra', rng: 'dra', isOn: hasClaims, trouble: draTrouble },
  { who: 'devices', rng: 'devices', isOn: (node: SimNode) => pluginsOf(node).length > 0, trouble: deviceTrouble },
  { who: 'helper', rng: 'helpers', isOn: (node: SimNode) => helpersOf(node).length > 0, trouble: helperTrouble },
  { who: 'network', rng: 'network', isOn: (node: SimNode) => node.tuning.network !== null, trouble: networkTrouble },
  { who: 'machine', rng: 'machine', isOn: (node: SimNode) => node.tuning.shutdown !== null, trouble: shutdownTrouble },
] as const;

function troublesOf({ nodes, rng, clock, halt, on }: EnvironmentOptions): Trouble[] {
  return PARTS.flatMap((part) =>
    nodes.filter(part.isOn).map((node) =>
      part.trouble({
        node,
        rng: rng.fork(`${part.rng}-${node.name}`),
        clock,
        halt,
        on: (what) => on(`${node.name} ${part.who}`, what),
      }),
    ),
  );
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
