/** Many nodes in one process, each the production tree on a machine of its own. */

import type { Scenario } from '@actorlet/faults/src/types.ts';
import type { SupervisionTree } from '@actorlet/kubelet/actors/supervision/tree.ts';
import type { ConfigTaint } from '@actorlet/kubelet/machines/config/config.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import type { ActorView } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import type { ReplyTo } from '@actorlet/kubelet/machines/supervision/address.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Listening } from '@actorlet/kubelet/ports/listening.ts';
import type { Rng } from '@actorlet/kubelet/ports/ports.ts';
import { type SimRng, simRng } from '@actorlet/world/src/rng.ts';
import { Adoption, type AdoptionOptions } from './adopt/adoption.ts';
import { Adopters } from './adopt/choice.ts';
import { Calls } from './calls.ts';
import { type FleetSpec, nodeOf } from './file.ts';
import { Front } from './front/front.ts';
import { Cloud, type CloudOptions } from './nodes/cloud.ts';
import { identityOf } from './nodes/machine.ts';
import type { Member } from './nodes/member.ts';
import { Members } from './nodes/members.ts';
import { type NodeAnswer, type NodeEvent, nodesAddr } from './nodes/messages.ts';
import { nodesSpec } from './nodes/node.ts';
import type { FleetOverview, NodeFacts, NodeOverview } from './overview.ts';
import { Leases } from './pace/leases.ts';
import { pacedPods } from './pace/pods.ts';
import { startsSpec } from './pace/starts.ts';
import { FleetTurns } from './pace/turns.ts';
import type { ClockSpec } from './spec/hardware/clocks.ts';
import type { Selection } from './spec/steps.ts';
import { NODES_MAX } from './spec/table.ts';
import { Storage } from './storage/storage.ts';
import type { ActiveFault } from './storage/volumes.ts';
import { fleetTree } from './tree.ts';
import type { FleetWorld, Shard } from './types.ts';
import { watchesAddr } from './watches/messages.ts';
import { SharedWatches } from './watches/shared.ts';
import { watchesSpec } from './watches/watches.ts';

/** A stop waits no longer for daemons: service managers kill after 30 s, and the next start takes over what a kill leaves, too. */
const STOP_MS = 20_000;
/** Nodes wait for their turn without a limit. */
const ASK_TIMEOUT_MS = 24 * 3_600_000;

export interface NodeTrouble {
  node: string;
  why: string;
}

const TLS_FLOOR = 'TLSv1.2';
const REQUEST_BYTES_MAX = 64 * 1024;

export class Fleet {
  readonly front: Front;
  readonly calls = new Calls();
  readonly tree: SupervisionTree;
  readonly #world: FleetWorld;
  readonly #members: Members;
  #serving: Promise<Listening[]> | undefined;
  readonly #chance: Rng;
  readonly #leases: Leases;
  readonly #o: Pick<CloudOptions, 'fleet' | 'groups' | 'shard'>;
  readonly #over = new AbortController();
  #ofCloud: Cloud | undefined;
  readonly #storage: Storage | undefined;
  #started = false;
  #stopping: Promise<NodeTrouble[]> | undefined;

  constructor(spec: FleetSpec, world: FleetWorld, shard: Shard = { index: 0, count: 1 }) {
    const rng = simRng(`fleet-${spec.seed}`);
    const chance = rng.fork('shares');
    this.#chance = { next: () => chance.next() };
    this.#world = world;
    this.#o = { fleet: spec.name, groups: spec.groups, shard };
    const address = `https://${world.address}:${world.serving?.port ?? 0}`;
    const nodeOfPod = (namespace: string, pod: string): string | undefined => this.#nodeOfPod(namespace, pod);
    this.front = new Front({ address, nodeOfPod, state: () => this.#state() });
    const turns = new FleetTurns({ clock: world.clock, yield: world.yield, late: () => this.#leases.late });
    const { clock, log } = world;
    const shared =
      world.sharedWatches === undefined
        ? undefined
        : new SharedWatches(this.calls.counting(world.sharedWatches), (event) => void this.tree.registry.send(watchesAddr, event));
    const connect: FleetWorld['connect'] = (node, disk) => {
      const own = this.calls.counting(world.connect(node, disk), (request) => this.#leases.done(node, request));
      return pacedPods(shared?.connect(own) ?? own, { turns, clock });
    };
    this.#leases = new Leases(clock);
    this.#members = new Members({ spec, world, rng, turns, front: this.front, connect });
    const places = spec.groups.flatMap((group) => Array.from({ length: group.count }, (_, index) => ({ group, ...nodeOf(group, index) })));
    for (const [position, place] of places.entries()) if (position % shard.count === shard.index) this.#members.add(place);
    const adoption = spec.adopt.length === 0 ? undefined : new Adoption(this.#adopting(spec, { shard, rng }));
    // Of several processes one plays the part of a driver that a cluster has once.
    this.#storage = spec.storage.length === 0 || shard.index > 0 ? undefined : this.#storing(spec, rng);
    const comes = adoption !== undefined || world.admin !== undefined;
    const nodes = comes ? NODES_MAX : this.#members.count;
    const children = [
      startsSpec({ leases: this.#leases, nodes }),
      ...(shared === undefined ? [] : [watchesSpec()]),
      nodesSpec({ member: (name) => this.#members.get(name), nodesMax: nodes, stopMs: STOP_MS, onEnd: (node) => this.#leases.gone(node) }),
      // It is stopped first: no node comes any more.
      ...(adoption === undefined ? [] : [adoption.spec()]),
      ...(this.#storage === undefined ? [] : [this.#storage.spec()]),
    ];
    const ofSupervision = rng.fork('supervision');
    // It does little, and nodes wait for it: it does not take turns with their trees.
    this.tree = fleetTree(children, { clock, log, yield: world.yield, rng: { next: () => ofSupervision.next() }, stopMs: STOP_MS });
  }

  /** @throws Error where nothing can ask the API server for nodes of others. */
  #adopting(spec: FleetSpec, { shard, rng }: { shard: Shard; rng: SimRng }): AdoptionOptions {
    const { admin, clock, log } = this.#world;
    if (admin === undefined) throw new Error('nodes are adopted by a fleet that may ask for all nodes');
    const members = this.#members;
    return {
      ...{ kube: admin, clock, log, registry: () => this.tree.registry },
      adopters: new Adopters(spec.adopt, { groups: spec.groups, rngOf: (rule) => rng.fork(`adopt ${rule}`) }),
      members: {
        has: (name) => members.get(name) !== undefined,
        isOwn: (name) => members.get(name)?.isAdopted === false,
        count: () => members.count,
        add: ({ name, providerID, group, shape }) => members.add({ name, providerID, group, adopted: { shape } }),
        drop: (name) => members.drop(name),
      },
      isOurs: (name) => Math.floor(simRng(`shard ${name}`).next() * shard.count) === shard.index,
      machineId: (name) => identityOf({ machine: {} }, { fleet: spec.name, name }).machineId,
    };
  }

  /** @throws Error where nothing can ask the API server for volumes. */
  #storing({ storage }: FleetSpec, rng: SimRng): Storage {
    const { admin: kube, clock } = this.#world;
    if (kube === undefined) throw new Error('volumes are made by a fleet that may ask for all of them');
    const own = rng.fork('storage');
    return new Storage({ storage, kube, clock, rng: { next: () => own.next() }, registry: () => this.tree.registry });
  }

  /** In the order of the file, then in that of their coming. */
  get members(): readonly Member[] {
    return this.#members.list;
  }

  /** @throws Error where nothing may change nodes. */
  get #cloud(): Cloud {
    const { admin: kube, clock } = this.#world;
    if (kube === undefined) throw new Error('nodes come and go in a fleet that may change all nodes');
    this.#ofCloud ??= new Cloud({
      ...{ ...this.#o, members: this.#members, kube, clock, signal: this.#over.signal },
      end: async (node) => {
        const { registry } = this.tree;
        const question = (replyTo: ReplyTo<NodeAnswer>): NodeEvent => ({ type: 'node.end', node, replyTo });
        await registry.ask<NodeEvent, NodeAnswer>(nodesAddr, question, { timeoutMs: ASK_TIMEOUT_MS });
      },
    });
    return this.#ofCloud;
  }

  #state(): ActorView {
    const own = this.tree.state();
    return { ...own, children: [...(this.#world.beside?.() ?? []), ...own.children] };
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
    return this.#members.get(name);
  }

  /** Before the start: machines whose process ended have these pods, by the names of their nodes. */
  hold(pods: ReadonlyMap<string, readonly Pod[]>): void {
    for (const m of this.members) m.hold(pods.get(m.name) ?? []);
  }

  /** Starts all daemons, some at a time, as there is time for them. Those that cannot be made are told. @throws as {@link serve}. */
  async start(): Promise<NodeTrouble[]> {
    await this.serve();
    return this.#ask(this.members, 'node.on');
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
    this.#over.abort();
    await this.tree.stop();
    await this.unserve();
    const late = this.members.filter((m) => m.busy);
    return late.map(({ name }) => ({ node: name, why: `it did not end within ${STOP_MS / 1_000} s` }));
  }

  /** What fails is told with its node. A fleet that stops fails nothing. */
  async #ask(members: readonly Member[], type: 'node.on' | 'node.off' | 'node.restart'): Promise<NodeTrouble[]> {
    if (this.#stopping !== undefined) return [];
    if (!this.#started) void this.tree.start();
    this.#started = true;
    const { registry } = this.tree;
    const told = members.map(async ({ name: node }): Promise<NodeTrouble[]> => {
      const question = (replyTo: ReplyTo<NodeAnswer>): NodeEvent => ({ type, node, replyTo });
      const answer = await registry.ask<NodeEvent, NodeAnswer>(nodesAddr, question, { timeoutMs: ASK_TIMEOUT_MS });
      const why = answer.kind === 'reply' ? answer.value : answer.reason;
      return why === null || this.#stopping !== undefined ? [] : [{ node, why }];
    });
    return (await Promise.all(told)).flat();
  }

  /** Ends what {@link serve} began. The rest of the fleet ends with {@link stop}, or with the process. */
  async unserve(): Promise<void> {
    const listening = await this.#serving?.catch(() => []);
    this.#serving = undefined;
    await Promise.all((listening ?? []).map((it) => it.close()));
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
  restart(members: readonly Member[]): Promise<NodeTrouble[]> {
    return this.#ask(members, 'node.restart');
  }

  /** As when their power fails, all at once: the API server hears nothing, and containers are gone. */
  async switchOff(members: readonly Member[]): Promise<NodeTrouble[]> {
    const troubles = await this.#ask(members, 'node.off');
    for (const m of members) m.losePower();
    return troubles;
  }

  /** After {@link switchOff}. */
  switchOn(members: readonly Member[]): Promise<NodeTrouble[]> {
    return this.#ask(members, 'node.on');
  }

  /** Daemons end, as after a crash that no init system mends: pods run on, and nothing is told any more. Until {@link back}. */
  away(members: readonly Member[]): Promise<NodeTrouble[]> {
    return this.#ask(members, 'node.off');
  }

  back(members: readonly Member[]): Promise<NodeTrouble[]> {
    return this.#ask(members, 'node.on');
  }

  /** New nodes of a group. @throws Error where there is no such group. */
  async add(group: string, count: number): Promise<{ names: string[]; troubles: NodeTrouble[] }> {
    const { names, troubles } = await this.#cloud.add(group, count);
    const added = names.flatMap((name) => this.#members.get(name) ?? []);
    return { names, troubles: [...troubles, ...(await this.#ask(added, 'node.on'))] };
  }

  /** Machines end, and their nodes are deleted. */
  remove(members: readonly Member[]): Promise<NodeTrouble[]> {
    return this.#cloud.remove(members.map((m) => m.name));
  }

  /** Nodes are told of their end by a taint and a condition. */
  notice(members: readonly Member[], of: { taint: ConfigTaint; noticeMs: number }): Promise<NodeTrouble[]> {
    return this.#cloud.notice(
      members.map((m) => m.name),
      of,
    );
  }

  /** Volumes are not attached, until {@link healVolumes}. @throws Error where no driver is played. */
  injectVolumes(fault: ActiveFault): void {
    if (this.#storage === undefined) throw new Error('spec.storage of the fleet file has no driver whose volumes these are');
    this.#storage.inject(fault);
  }

  healVolumes(name: string): void {
    this.#storage?.heal(name);
  }

  /** Null: as their groups say. */
  setClocks(members: readonly Member[], clock: ClockSpec | null): void {
    for (const m of members) m.setClock(clock);
  }

  /** Injects a fault scenario on each of these nodes. */
  async inject(members: readonly Member[], scenario: Scenario): Promise<NodeTrouble[]> {
    const told = members.map(async (m): Promise<NodeTrouble[]> => {
      const why = await m.inject(scenario);
      return why === null ? [] : [{ node: m.name, why }];
    });
    return (await Promise.all(told)).flat();
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
    const byReason: Record<string, number> = {};
    let [running, ready, pods, podsReady] = [0, 0, 0, 0];
    for (const m of this.members) {
      const { state } = m.overview();
      if (state === 'ready' || state === 'notReady') running += 1;
      if (state === 'ready') ready += 1;
      const count = m.pods();
      for (const [phase, of] of count.byPhase) byPhase[phase] = (byPhase[phase] ?? 0) + of;
      for (const [reason, of] of count.byReason) byReason[reason] = (byReason[reason] ?? 0) + of;
      pods += count.total;
      podsReady += count.ready;
    }
    return { nodes: { total: this.members.length, running, ready }, pods: { total: pods, ready: podsReady, byPhase, byReason } };
  }

  /** Seconds until pods were Ready, of all that were created since the fleet is there. */
  podSeconds(): Record<'podReady' | 'podStart', number[]> {
    const times = this.members.map((m) => m.times);
    const { podReady, podStart } = this.#members.past;
    return {
      podReady: [...podReady, ...times.flatMap((t) => t.createdSeconds)],
      podStart: [...podStart, ...times.flatMap((t) => t.seenSeconds)],
    };
  }

  /** Each node, in the order of the fleet. */
  nodes(): NodeOverview[] {
    return this.members.map((m) => m.overview());
  }

  /** What stays the same of each, in the same order. */
  facts(): NodeFacts[] {
    const { gitVersion } = this.#world.build;
    return this.members.map(({ name, group: { name: group, labels, version } }) => ({
      name,
      group,
      labels,
      version: version || gitVersion,
    }));
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
