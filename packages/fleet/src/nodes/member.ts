/**
 * One node of a fleet: a machine that outlives its daemons, and the production tree on it. The machine is a disk in memory, a
 * hollow runtime, mounts that are only noted, and a network that answers every probe.
 */

import { deathBundles } from '@actorlet/deaths/src/extension.ts';
import { faultInjection } from '@actorlet/faults/src/extension.ts';
import type { InjectAnswer, InjectorEvent } from '@actorlet/faults/src/live.ts';
import { injectorAddr } from '@actorlet/faults/src/messages.ts';
import type { Scenario } from '@actorlet/faults/src/types.ts';
import { createNode, type Node } from '@actorlet/kubelet/actors/node.ts';
import { documentsHere } from '@actorlet/kubelet/actors/pods/sources/document.ts';
import { apiView } from '@actorlet/kubelet/machines/api/messages.ts';
import type { FeatureGates, NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import { isWanted, podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { CriMethod } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import type { Ports, Rng } from '@actorlet/kubelet/ports/ports.ts';
import type { DevicePlugins } from '@actorlet/kubelet/ports/sockets/devicePlugins.ts';
import { createHollowRuntime, type HollowOptions, type HollowRuntime } from '@actorlet/runtimes/src/hollow/index.ts';
import { shownPages } from '@actorlet/shown/src/extension.ts';
import { simDisk } from '@actorlet/world/src/disk/disk.ts';
import { SimMounts } from '@actorlet/world/src/disk/mounts.ts';
import { countingMetrics } from '@actorlet/world/src/node/instruments.ts';
import { simProber } from '@actorlet/world/src/node/prober.ts';
import { simRng } from '@actorlet/world/src/rng.ts';
import { answerTo, type ExecAnswer } from '../answers.ts';
import { advertise } from '../extended.ts';
import type { GroupSpec } from '../file.ts';
import type { NodeOverview } from '../overview.ts';
import { type PodCount, PodCounts } from '../pods/counts.ts';
import { heldOf } from '../pods/held.ts';
import { type CompiledRule, PodRules } from '../pods/rules.ts';
import { type PodsBeingMade, PodTimes } from '../pods/times.ts';
import { withProc } from '../proc.ts';
import { type Delay, drawn } from '../spec/delay.ts';
import { aheadMsOf, type ClockSpec } from '../spec/hardware/clocks.ts';
import type { StorageSpec } from '../spec/hardware/storage.ts';
import type { FleetWorld } from '../types.ts';
import { MachineClock } from './clock.ts';
import { configOf, LOGS_DIR, PKI, ROOT_DIR } from './config.ts';
import { driversOf, type MachineDrivers } from './drivers.ts';
import { bootIdOf, identityOf, withMachine } from './machine.ts';
import type { NodeNote } from './nodeMachine.ts';
import { publish } from './slices.ts';

const encoder = new TextEncoder();
const DIRS = [ROOT_DIR, '/var/log', LOGS_DIR, '/var/log/containers', '/etc/kubernetes/pki'];
const ANSWER_TIMEOUT_MS = 10_000;
/** A minute or two of a quiet node. What it keeps alive counts a thousand times: with 512 it was 6.6 KB for each pod. */
const RECORDER_ENTRIES = 96;

/** Nothing registers there. */
const NO_PLUGINS: DevicePlugins = {
  serve: () => Promise.resolve({ close() {} }),
  connect: () => Promise.reject(new Error('no device plugin listens here')),
};

export interface MemberOptions {
  name: string;
  /** Besides those of its group. */
  labels?: Readonly<Record<string, string>>;
  /** Of its provider; '': none. */
  providerID?: string;
  /** Others made its node. */
  isAdopted?: boolean;
  fleet: string;
  group: GroupSpec;
  /** Drivers on its machine. Default: none. */
  storage?: readonly StorageSpec[];
  /** Its own, from the seed of the fleet. */
  rng: Rng;
  world: FleetWorld;
  /** One table for all nodes. */
  gates: FeatureGates;
  /** Shared by the nodes of the group. */
  behaviour: Behaviour;
  making: PodsBeingMade;
}
/** What pods, images and statuses do on the nodes of one group. */
interface Behaviour {
  rules: readonly CompiledRule[];
  image: NonNullable<HollowOptions['image']>;
  /** Null: as a kubelet. */
  heartbeatMs: number | null;
}

export class Member {
  readonly name: string;
  readonly group: GroupSpec;
  /** Others made its node, and remove it. */
  readonly isAdopted: boolean;
  /** How often its daemon was started. */
  boots = 0;
  readonly #o: MemberOptions;
  readonly #clock: MachineClock;
  readonly #runtime: HollowRuntime;
  readonly #disk: ReturnType<typeof simDisk>;
  readonly #mounts = new SimMounts();
  /** Null: there are none. */
  readonly #drivers: MachineDrivers | null;
  readonly #podCounts = new PodCounts();
  readonly #config: NodeConfig;
  /** Of its pods. */
  readonly times: PodTimes;
  /** By uid: what the API server showed before its first daemon. */
  #found = new Map<string, Pod>();
  #followed: Disposable[] = [];
  /** How often the machine was switched on again. */
  #powered = 0;
  #node: Node | undefined;
  /** Settles when the daemon that is being made is made. */
  #building: Promise<Node> | undefined;
  #ending: Promise<void> | undefined;
  #on = true;
  #failure: string | null = null;
  #bootedMs = 0;
  #readyAfterMs: number | null = null;

  constructor(o: MemberOptions) {
    this.#o = o;
    this.name = o.name;
    this.group = o.group;
    this.isAdopted = o.isAdopted ?? false;
    const { clock, yield: turns } = o.world;
    this.times = new PodTimes(clock, o.making);
    this.#clock = new MachineClock(clock);
    this.setClock(o.group.clock);
    this.#runtime = createHollowRuntime(this.#runtimeOptions(o));
    this.#disk = simDisk({ time: { yieldFor: () => turns }, clock: this.#clock, lasting: true });
    this.#disk.isMountPoint = (path) => this.#mounts.table.some((m) => m.path === path);
    for (const dir of DIRS) this.#disk.makeDir(dir);
    this.#disk.put('/etc/hosts', '127.0.0.1 localhost\n');
    const machine = { node: o.name, disk: this.#disk, mounts: this.#mounts, clock };
    this.#drivers = driversOf({ ...machine, storage: o.storage ?? [], devices: o.group.devices });
    const { serving } = o.world;
    if (serving !== null) {
      this.#disk.put(PKI.cert, serving.cert);
      this.#disk.put(PKI.key, serving.key);
      this.#disk.put(PKI.ca, serving.clientCa);
    }
    this.#config = configOf(o);
  }

  #runtimeOptions({ world: { stream }, rng, group, behaviour }: MemberOptions): HollowOptions {
    const next = (): number => rng.next();
    const rules = new PodRules(behaviour.rules, next);
    const podOf = (uid: string): Pod | undefined =>
      this.#node?.tree.registry.read(podsView)?.value.records.get(uid)?.pod ?? this.#found.get(uid);
    const handlers = group.runtimeHandlers.map((name) => ({ name }));
    return {
      ...{ clock: this.#clock, rng, latencyMs: (method) => drawn(delayOf(group, method), next), image: behaviour.image },
      log: (path, line) => this.#log(path, line),
      exec: (container, cmd) => bytesOf(answerTo(container, cmd)),
      script: (container) => rules.lifeOf(container, podOf(container.pod.uid)),
      usage: (container) => rules.usageOf(container, podOf(container.pod.uid)),
      ...(handlers.length === 0 ? {} : { features: { runtimeHandlers: [{ name: '' }, ...handlers] } }),
      ...(stream === undefined ? {} : { stream }),
    };
  }

  /** Null: as its group says. The same draw for the same node. */
  setClock(clock: ClockSpec | null): void {
    const { fleet, group } = this.#o;
    this.#clock.aheadMs = aheadMsOf(clock ?? group.clock, simRng(`clock ${fleet} ${this.name}`).next);
  }

  /** Its machine is switched on. */
  get on(): boolean {
    return this.#on;
  }

  /** A daemon is made, runs, or ends on it. */
  get busy(): boolean {
    return (this.#node ?? this.#building ?? this.#ending) !== undefined;
  }

  /** What its actor knows of it. */
  note({ on = this.#on, failure = this.#failure }: NodeNote): void {
    this.#on = on;
    this.#failure = failure;
  }

  /** Undefined while its daemon is not running. */
  get node(): Node | undefined {
    return this.#node;
  }

  /** Before its first daemon: containers of these pods are as their statuses say. One that cannot be read begins anew. */
  hold(pods: readonly Pod[]): void {
    this.#found = new Map(pods.map((pod) => [pod.metadata.uid, pod]));
    const held = pods.flatMap((pod) => heldOf(pod, LOGS_DIR) ?? []);
    for (const { pod, why } of this.#runtime.hold(held)) {
      const { namespace, name } = pod.config.metadata;
      this.#o.world.log.warn({ node: this.name, pod: `${namespace}/${name}`, error: why }, 'containers of a pod begin anew');
    }
    this.#found.clear();
  }

  /**
   * Makes its daemon and starts it, when the one before has ended: two on one machine would both write its files and its node. With the
   * signal it ends where it is. @throws where the daemon cannot be made, or does not start.
   */
  async make(signal: AbortSignal): Promise<void> {
    await this.end();
    if (signal.aborted) return;
    this.boots += 1;
    this.#bootedMs = this.#o.world.clock.monoMs();
    this.#readyAfterMs = null;
    const { world, group, name } = this.#o;
    const ports = this.#ports();
    const build = group.version === '' ? world.build : { ...world.build, gitVersion: group.version };
    this.#building = createNode(this.#config, ports, {
      build,
      recorderEntries: RECORDER_ENTRIES,
      extensions: [faultInjection, deathBundles, shownPages],
    });
    const node = await this.#building;
    if (signal.aborted) return;
    this.#building = undefined;
    this.#node = node;
    const { registry } = node.tree;
    this.#followed.push(this.times.follow(registry));
    if (ports.kube !== undefined && Object.keys(group.extended).length > 0) {
      this.#followed.push(advertise(registry, { name, extended: group.extended, kube: ports.kube, clock: world.clock, log: world.log }));
    }
    if (ports.kube !== undefined && group.devices.length > 0)
      this.#followed.push(publish(registry, { name, devices: group.devices, kube: ports.kube, clock: world.clock, log: world.log }));
    await node.start();
  }

  /** Rejects when its daemon fails. */
  async fails(): Promise<never> {
    const node = this.#node;
    throw node === undefined ? new Error('the node has no daemon') : await node.tree.failed;
  }

  /** Its daemon ends, also one that is being made. Pods run on. */
  end(): Promise<void> {
    this.#ending ??= this.#end().finally(() => {
      this.#ending = undefined;
    });
    return this.#ending;
  }

  /** The machine loses its power when its daemon has ended: its containers are gone. */
  losePower(): void {
    this.#powered += 1;
    this.#drivers?.powerLoss();
    for (const c of this.#runtime.dump().containers) this.#runtime.exit(c.id, { exitCode: 137 });
  }

  /** @returns why not, or null. */
  async inject(scenario: Scenario): Promise<string | null> {
    const node = this.#node;
    if (node === undefined) return 'its daemon is not running';
    const answer = await node.tree.registry.ask<InjectorEvent, InjectAnswer>(
      injectorAddr,
      (replyTo) => ({ type: 'faults.inject', scenario, replyTo }),
      { timeoutMs: ANSWER_TIMEOUT_MS },
    );
    if (answer.kind !== 'reply') return answer.reason;
    return answer.value.ok ? null : answer.value.message;
  }

  /** As it is now. */
  overview(): NodeOverview {
    const { name, group } = this;
    const registry = this.#node?.tree.registry;
    const ready = isReady(registry?.read(apiView.nodeObject)?.value.object);
    if (ready) this.#readyAfterMs ??= this.#o.world.clock.monoMs() - this.#bootedMs;
    const down = this.#failure === null ? 'off' : 'failed';
    const state = registry === undefined ? down : ready ? 'ready' : 'notReady';
    return { name, group: group.name, state, pods: this.pods().total, readyAfterMs: this.#readyAfterMs };
  }

  /** Its pods by phase, as their statuses are now. */
  pods(): PodCount {
    return this.#podCounts.of(this.#node?.tree.registry);
  }

  /** Null: it has no such pod. `leaving`: it is on its way out, and another node may have its successor. */
  podNamed(namespace: string, name: string): 'there' | 'leaving' | null {
    let found: 'leaving' | null = null;
    for (const record of this.#node?.tree.registry.read(podsView)?.value.records.values() ?? []) {
      const { metadata } = record.pod;
      if (metadata.name !== name || metadata.namespace !== namespace) continue;
      if (isWanted(record)) return 'there';
      found = 'leaving';
    }
    return found;
  }

  /** As a CRI runtime writes the logs of containers. */
  #log(path: string, { atMs, stream, text }: { atMs: number; stream: string; text: string }): void {
    this.#disk.opened(path)?.append(encoder.encode(`${new Date(atMs).toISOString()} ${stream} F ${text}\n`));
  }

  async #end(): Promise<void> {
    // What it throws is told where it is made.
    await this.#building?.catch(() => undefined);
    this.#building = undefined;
    const node = this.#node;
    this.#node = undefined;
    this.#unfollow();
    await node?.stop();
  }

  #unfollow(): void {
    for (const it of this.#followed.splice(0)) it[Symbol.dispose]();
  }

  #ports(): Ports {
    const { world, group, name, fleet } = this.#o;
    const clock = this.#clock;
    const identity = identityOf(group, { fleet, name });
    const power = { on: true };
    const { fs: disk, watchDir } = this.#disk.mount(power, clock);
    const fs = withProc(withMachine(disk, group), {
      clock,
      cpus: group.cpus,
      memoryBytes: group.memoryBytes,
      used: () => this.#runtime.used(),
    });
    return {
      clock,
      rng: this.#o.rng,
      entropy: world.entropy,
      documents: documentsHere(world.entropy),
      yield: world.yield,
      fs,
      sys: { watchDir, notify: () => false },
      net: world.net,
      prober: simProber(power, clock, () => ({ kind: 'healthy', afterMs: 0 })),
      host: {
        hostname: () => name,
        identity: () => identity,
        bootId: () => bootIdOf({ fleet, name, powered: this.#powered }),
        capacity: () => ({ memoryBytes: group.memoryBytes, cpus: group.cpus }),
        addresses: () => [{ ip: world.address, family: 4, interface: 'eth0' }],
        cpuUsageMs: () => 0,
        rssBytes: () => 0,
      },
      cri: this.#runtime.connect(),
      mounter: this.#mounts.connect({ disk: { fs, emptyDir: (path) => this.#disk.emptyDir(path) }, clock, power }),
      kube: world.connect(name, fs),
      ...(world.certificates === undefined ? {} : { certificates: world.certificates }),
      // The device manager knows that what an administrator counts is no plugin's.
      ...(Object.keys(group.extended).length === 0 ? {} : { devicePlugins: NO_PLUGINS }),
      ...(this.#drivers === null ? {} : this.#drivers.connect()),
      log: world.nodeLog(name),
      metrics: countingMetrics(),
    };
  }
}

function isReady(object: unknown): boolean {
  if (!isRecord(object) || !isRecord(object.status) || !Array.isArray(object.status.conditions)) return false;
  return object.status.conditions.some((c) => isRecord(c) && c.type === 'Ready' && c.status === 'True');
}

function bytesOf(answer: ExecAnswer | undefined) {
  if (answer === undefined) return undefined;
  return { exitCode: answer.exitCode, stdout: encoder.encode(answer.stdout), stderr: encoder.encode(answer.stderr) };
}

const DELAYED: Partial<Record<CriMethod, keyof GroupSpec['delays']>> = {
  RunPodSandbox: 'sandbox',
  PullImage: 'pull',
  StartContainer: 'start',
};

function delayOf(group: GroupSpec, method: CriMethod): Delay | undefined {
  const kind = DELAYED[method];
  return kind === undefined ? undefined : group.delays[kind];
}
