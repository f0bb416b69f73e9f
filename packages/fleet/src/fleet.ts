/** Many nodes in one process, each the production tree on a machine of its own. */

import { createFeatureGates } from '@actorlet/kubelet/machines/config/gates.ts';
import type { Scenario } from '@actorlet/kubelet/machines/faults/types.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Listening } from '@actorlet/kubelet/ports/listening.ts';
import type { Rng } from '@actorlet/kubelet/ports/ports.ts';
import { simRng } from '@actorlet/world/src/rng.ts';
import { Calls } from './calls.ts';
import { type FleetSpec, nodeNameOf } from './file.ts';
import { Front } from './front/front.ts';
import { Member } from './member.ts';
import type { FleetOverview, NodeOverview } from './overview.ts';
import { Leases } from './pace/leases.ts';
import { pacedPods } from './pace/pods.ts';
import { FleetTurns } from './pace/turns.ts';
import { imagesOf } from './pods/images.ts';
import { compiledRules } from './pods/rules.ts';
import type { Selection } from './spec/steps.ts';
import type { FleetWorld, Shard } from './types.ts';
import { SharedWatches } from './watches/shared.ts';

/** Nodes that start, stop or restart at the same time: each needs an answer of the API server. */
const AT_ONCE = 50;
/** A stop waits no longer for daemons: service managers kill after 30 s, and the next start takes over what a kill leaves, too. */
const STOP_MS = 20_000;

export interface NodeTrouble {
  node: string;
  why: string;
}

const TLS_FLOOR = 'TLSv1.2';
const REQUEST_BYTES_MAX = 64 * 1024;

export class Fleet {
  readonly members: readonly Member[];
  readonly front: Front;
  readonly calls = new Calls();
  readonly #world: FleetWorld;
  readonly #byName: ReadonlyMap<string, Member>;
  #serving: Promise<Listening[]> | undefined;
  readonly #chance: Rng;
  readonly #leases: Leases;
  #stopping: Promise<NodeTrouble[]> | undefined;

  constructor(spec: FleetSpec, world: FleetWorld, shard: Shard = { index: 0, count: 1 }) {
    const rng = simRng(`fleet-${spec.seed}`);
    const chance = rng.fork('shares');
    this.#chance = { next: () => chance.next() };
    const { gates } = createFeatureGates({});
    this.#world = world;
    const address = `https://${world.address}:${world.serving?.port ?? 0}`;
    this.front = new Front({ address, nodeOfPod: (namespace, pod) => this.#nodeOfPod(namespace, pod) });
    const turns = new FleetTurns(world);
    const { clock, log } = world;
    const shared = world.sharedWatches === undefined ? undefined : new SharedWatches(this.calls.counting(world.sharedWatches), clock);
    const connect: FleetWorld['connect'] = (node, disk) => {
      const own = this.calls.counting(world.connect(node, disk), (request) => this.#leases.done(node, request));
      return pacedPods(shared?.connect(own) ?? own, { turns, clock });
    };
    this.#leases = new Leases({
      clock,
      onWait: (running) =>
        log.warn({ running }, 'this machine, or the API server, is too busy for more nodes: they wait until leases are in time'),
    });
    const places = spec.groups.flatMap((group) => {
      const { heartbeatMs } = spec;
      const behaviour = { rules: compiledRules(spec.pods, group.name), image: imagesOf(spec.images, group.bytesPerSecond), heartbeatMs };
      return Array.from({ length: group.count }, (_, index) => ({ group, behaviour, index }));
    });
    this.members = places
      .filter((_, position) => position % shard.count === shard.index)
      .map(({ group, behaviour, index }) => {
        const name = nodeNameOf(group.nodeName, index);
        const own = rng.fork(name);
        return new Member({
          name,
          fleet: spec.name,
          group,
          behaviour,
          making: turns,
          rng: { next: () => own.next() },
          world: {
            ...world,
            yield: turns,
            net: this.front.of(name, world.net),
            connect,
          },
          gates,
        });
      });
    this.#byName = new Map(this.members.map((m) => [m.name, m]));
  }

  /** A pod that was deleted by force may still be leaving its node when its successor runs on another one. */
  #nodeOfPod(namespace: string, pod: string): string | undefined {
    let leaving: string | undefined;
    for (const m of this.members) {
      const found = m.podNamed(namespace, pod);
      if (found === 'there') return m.name;
      if (found === 'leaving') leaving ??= m.name;
    }
    return leaving;
  }

  /** Undefined: none of this fleet. */
  member(name: string): Member | undefined {
    return this.#byName.get(name);
  }

  /** Before the start: machines whose process ended have these pods, by the names of their nodes. */
  hold(pods: ReadonlyMap<string, readonly Pod[]>): void {
    for (const m of this.members) m.hold(pods.get(m.name) ?? []);
  }

  /** Starts all daemons, some at a time, as there is time for them. Those that cannot be made are told. @throws as {@link serve}. */
  async start(): Promise<NodeTrouble[]> {
    await this.serve();
    return this.#each(this.members, async (m) => {
      await this.#leases.inTime();
      await m.boot();
    });
  }

  /**
   * Stops all daemons, for good; nodes and pods stay in the API, as when machines are switched off. Daemons that have not ended after
   * 20 s are told, and end on their own.
   */
  stop(): Promise<NodeTrouble[]> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<NodeTrouble[]> {
    this.#leases.end();
    // All at once: what waits for its turn to stop must not start meanwhile.
    for (const m of this.members) m.stayOff();
    const left = new Set(this.members);
    const ending = each(this.members, async (m) => {
      await m.stop();
      left.delete(m);
    });
    const { clock } = this.#world;
    let timer: unknown;
    const late = new Promise<NodeTrouble[]>((resolve) => {
      const why = `it did not end within ${STOP_MS / 1_000} s`;
      timer = clock.setTimeout(() => resolve([...left].map(({ name }) => ({ node: name, why }))), STOP_MS);
    });
    const troubles = await Promise.race([ending, late]);
    clock.clearTimeout(timer);
    const listening = await this.#serving?.catch(() => []);
    this.#serving = undefined;
    await Promise.all((listening ?? []).map((it) => it.close()));
    return troubles;
  }

  /** As {@link each}, until the fleet stops. */
  #each(members: readonly Member[], act: (m: Member) => Promise<void>): Promise<NodeTrouble[]> {
    return each(members, async (m) => {
      if (this.#stopping === undefined) await act(m);
    });
  }

  /** Listens on the socket and the port of all nodes, once. @throws Error that says what to choose where one of them is taken. */
  async serve(): Promise<void> {
    this.#serving ??= this.#listen();
    await this.#serving;
  }

  async #listen(): Promise<Listening[]> {
    const { serving, net, socketPath } = this.#world;
    const listening: Listening[] = [];
    try {
      if (socketPath !== '') {
        const socket = net.serveHttp({ socketPath, mode: 0o600 }, this.front.handleAdmin);
        listening.push(await socket.catch(hinted("give each fleet a --socket PATH of its own, or '' for none")));
      }
      if (serving !== null) listening.push(await this.#port(serving).catch(hinted('give each fleet a --port of its own, or 0 for none')));
      return listening;
    } catch (error) {
      for (const it of listening) await it.close();
      throw error;
    }
  }

  #port(serving: NonNullable<FleetWorld['serving']>): Promise<Listening> {
    const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
    const material = { cert: bytes(serving.cert), key: bytes(serving.key), clientCa: bytes(serving.clientCa) };
    const tls = { material, minVersion: TLS_FLOOR, ciphers: '', renew: () => {} } as const;
    const at = { host: '0.0.0.0', port: serving.port, tls, bodyBytesMax: REQUEST_BYTES_MAX };
    return this.#world.net.serveHttp(at, this.front.handle);
  }

  /** As a restart of the daemons' units, all at once: pods run on. */
  async restart(members: readonly Member[]): Promise<NodeTrouble[]> {
    const told = await Promise.all(members.map((m) => this.#each([m], (one) => one.restart())));
    return told.flat();
  }

  /** As when their power fails, all at once. */
  async switchOff(members: readonly Member[]): Promise<NodeTrouble[]> {
    return this.#each(members, async (m) => {
      await m.switchOff();
      this.#leases.gone(m.name);
    });
  }

  /** After {@link switchOff}. */
  async switchOn(members: readonly Member[]): Promise<NodeTrouble[]> {
    return this.#each(members, (m) => m.switchOn());
  }

  /** Injects a fault scenario on each of these nodes. */
  async inject(members: readonly Member[], scenario: Scenario): Promise<NodeTrouble[]> {
    const refused: NodeTrouble[] = [];
    const failed = await this.#each(members, async (m) => {
      const why = await m.inject(scenario);
      if (why !== null) refused.push({ node: m.name, why });
    });
    return [...failed, ...refused];
  }

  /** The same members in the same order for the same seed. */
  select({ groups, share }: Selection): Member[] {
    const eligible = this.members.filter((m) => groups === undefined || groups.includes(m.group.name));
    if (share >= 1) return eligible;
    const left = [...eligible];
    const wanted = Math.round(eligible.length * share);
    return Array.from({ length: wanted }, () => left.splice(Math.floor(this.#chance.next() * left.length), 1)).flat();
  }

  overview(): FleetOverview {
    const byPhase: Record<string, number> = {};
    let [running, ready, pods, podsReady] = [0, 0, 0, 0];
    for (const m of this.members) {
      const { state } = m.overview();
      if (state !== 'off') running += 1;
      if (state === 'ready') ready += 1;
      const count = m.pods();
      for (const [phase, of] of count.byPhase) byPhase[phase] = (byPhase[phase] ?? 0) + of;
      pods += count.total;
      podsReady += count.ready;
    }
    return { nodes: { total: this.members.length, running, ready }, pods: { total: pods, ready: podsReady, byPhase } };
  }

  /** Seconds until pods were Ready, of all that were created since the fleet is there. */
  podSeconds(): Record<'podReady' | 'podStart', number[]> {
    const times = this.members.map((m) => m.times);
    return { podReady: times.flatMap((t) => t.createdSeconds), podStart: times.flatMap((t) => t.seenSeconds) };
  }

  /** Each node, in the order of the fleet. */
  nodes(): NodeOverview[] {
    return this.members.map((m) => m.overview());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

function hinted(hint: string) {
  return (error: unknown): never => {
    throw new Error(`${messageOf(error)}; ${hint}`, { cause: error });
  };
}

/** @throws never: what fails is told with its node. */
async function each(members: readonly Member[], act: (m: Member) => Promise<void>): Promise<NodeTrouble[]> {
  const troubles: NodeTrouble[] = [];
  const left = [...members].reverse();
  const work = async (): Promise<void> => {
    for (let m = left.pop(); m !== undefined; m = left.pop()) {
      const { name } = m;
      await act(m).catch((error: unknown) => troubles.push({ node: name, why: messageOf(error) }));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return troubles;
}
