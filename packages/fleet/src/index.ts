/**
 * A fleet of nodes as a library: `import { startFleet } from 'actorlet/fleet'`.
 *
 * ```ts
 * await using fleet = await startFleet({ nodes: 20, api: 'local' });
 * await fleet.ready();
 * await fleet.apply(manifest);
 * await fleet.expect({ objects: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }, condition: 'Available', atLeast: 1 });
 * ```
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { scenarioErrorText } from '@actorlet/faults/src/read/decode.ts';
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { adopt, removeNodes } from './boot/adopt.ts';
import { claimed, clusterOf } from './boot/alone.ts';
import { limited } from './boot/api/limited.ts';
import { claimFolder } from './boot/plane/claim.ts';
import { removeLeft } from './boot/plane/left.ts';
import { TEMPORARY } from './boot/streams.ts';
import { type FleetSurroundings, surroundingsOf } from './boot/surroundings.ts';
import { quietLog } from './boot/world.ts';
import { decodeFleet, type FleetSpec, plainFleet, STORAGE_NEEDS, wrongPlain } from './file.ts';
import { Fleet, type NodeTrouble } from './fleet.ts';
import type { FleetOverview, NodeOverview } from './overview.ts';
import type { ProgramName } from './plane/messages.ts';
import type { ApiHit } from './proxy/trouble.ts';
import { Cluster } from './run/cluster.ts';
import { apiFaultOf, clockOf, lookUntilDecided, manifestsOf, scenarioOf, specOf, volumeFaultOf } from './run/given.ts';
import type { ApiFaultOf, ClockOf, FleetExpectation, Manifest, ObjectsOf, VolumeFaultOf } from './run/words.ts';

export type { ApiFaultOf, ApiHit, ClockOf, FleetExpectation, FleetOverview, KubeObject, Manifest, NodeOverview, ObjectsOf, VolumeFaultOf };

export interface StartFleetOptions {
  /** So many equal nodes; or `file`. */
  nodes?: number;
  /** Text of a fleet file, in YAML. Its steps and expectations are not carried out. */
  file?: string;
  /**
   * `embedded`: a small API server of this process. `local`: a real control plane, whose programs come from KUBEBUILDER_ASSETS. Else the
   * path of the kubeconfig of the cluster that the nodes join.
   */
  api?: 'embedded' | 'local' | (string & {});
  /** As `api`, which is the path of a kubeconfig then. */
  kubeconfig?: string;
  /** Of `api: 'local'`: a folder that is gone on with, the port of the API server, further flags of its programs. */
  controlPlane?: { data?: string; port?: number; flags?: Partial<Record<ProgramName, readonly string[]>> };
  /** Value of the label `actorlet.dev/fleet` of the nodes. Default `fleet`. */
  name?: string;
  /** What names of nodes begin with. Default `fleet`. */
  prefix?: string;
  /** Default 1. */
  seed?: number;
  /** TCP port of the APIs of all nodes. Default 0: none. */
  port?: number;
  /** One watch of each kind for all nodes. Default false. */
  shareWatches?: boolean;
  /** Each node asks as `system:node:NAME`. Default false. */
  asNodes?: boolean;
  /** Path of a kubeconfig with which each node asks for a client certificate of its own. Default: that of `kubeconfig` is used. */
  bootstrapKubeconfig?: string;
  /** `kubeconfig` leads through a proxy, where clients meet the faults of `injectApi`. Default false. */
  proxy?: boolean;
  /** Removes the nodes from the API at the end. Default true. */
  cleanup?: boolean;
  /** Is given what the command prints: versions of the programs, programs that ended. Default: nobody is told. */
  onOutput?(text: string): void;
}

export interface RunningFleet extends AsyncDisposable {
  /** Path of a kubeconfig of the API server, for clients and for the controller under test. */
  readonly kubeconfig: string;
  overview(): FleetOverview;
  nodes(): NodeOverview[];
  /** Requests of the nodes to the API server so far, by verb and resource: `PATCH pods/status`. */
  calls(): Record<string, number>;
  /** Once all nodes are Ready, and pods can be created. @throws Error after `timeoutMs` (default 60 s), with how many there are. */
  ready(timeoutMs?: number): Promise<void>;
  /** Creates objects, or changes them to what the manifest says: YAML text, or objects. Of a definition of a custom resource it waits until it is served. */
  apply(manifest: Manifest): Promise<void>;
  remove(manifest: Manifest): Promise<void>;
  /** Those that are there. */
  objects(of: ObjectsOf): Promise<KubeObject[]>;
  /** Injects a fault scenario (YAML text, or an object) into nodes of these names; default: into all. */
  inject(scenario: string | object, names?: readonly string[]): Promise<void>;
  /** A fault for clients of the API server that came by the proxy: once it has taken effect. @throws Error without `proxy`. */
  injectApi(fault: ApiFaultOf): Promise<void>;
  /** What such faults did so far, request by request: the first thousand. */
  apiHits(): readonly ApiHit[];
  /** Waits as an expectation of a fleet file does. Gives what was there in the end. @throws Error where it is not met in time. */
  expect(expectation: FleetExpectation): Promise<number>;
  /** Restarts the daemons of nodes of these names; default: of all. Pods run on. */
  restart(names?: readonly string[]): Promise<void>;
  /** As when the power of these nodes fails, and comes back. */
  switchOff(names: readonly string[]): Promise<void>;
  switchOn(names: readonly string[]): Promise<void>;
  /** The clocks of these nodes are apart; null: they are as the file says. Default: of all nodes. */
  setClocks(clock: ClockOf | null, names?: readonly string[]): void;
  /** Volumes of the drivers in `spec.storage` of `file` are not attached: to these nodes, or to any. Null: that is over. @throws Error without such drivers. */
  injectVolumes(fault: VolumeFaultOf | null, names?: readonly string[]): void;
  /** Adds nodes to a group of the file, as an autoscaler does; gives their names. Of `nodes`: the group has the name of `prefix`. */
  addNodes(group: string, count?: number): Promise<string[]>;
  /** Ends the machines of these nodes, and deletes the nodes. */
  removeNodes(names: readonly string[]): Promise<void>;
  /** Ends all daemons, within 20 s, and removes the nodes unless `cleanup` is false. @throws Error with how many are left. */
  stop(): Promise<void>;
}

const LOOK_EVERY_MS = 100;
const CLEAN_UP_MS = 600_000;
const READY_MS = 60_000;
/** Name of the fault of volumes that a caller injects. */
const GIVEN = 'given';

/**
 * Starts all daemons. Nodes that an earlier fleet of that name left are taken over, with their pods. @throws Error that names what is
 * wrong with the file, the kubeconfig, the programs of the control plane, the port or a node, or the nodes that are somebody else's.
 */
export async function startFleet(o: StartFleetOptions): Promise<RunningFleet> {
  const spec = fleetOf(o);
  const around = await aroundOf(o, spec);
  const running = new Running(new Fleet(spec, around.world), { spec, around, cleanup: o.cleanup ?? true });
  try {
    await running.start();
    return running;
  } catch (error) {
    await running.stop();
    throw error;
  }
}

/** @throws Error that names the option, or the line of the file. */
function fleetOf(o: StartFleetOptions): FleetSpec {
  const { name = 'fleet', prefix = 'fleet', seed = 1 } = o;
  if ((o.nodes === undefined) === (o.file === undefined)) throw new Error('startFleet: give nodes or file');
  const plain = { name, prefix, seed, nodes: o.nodes ?? 0 };
  const wrong = o.file === undefined ? Object.entries(wrongPlain(plain)) : [];
  if (wrong.length > 0) throw new Error(`startFleet: ${wrong.map(([option, why]) => `${option} ${why}`).join('; ')}`);
  const decoded = o.file === undefined ? { ok: true as const, value: plainFleet(plain) } : decodeFleet(o.file);
  if (!decoded.ok) throw new Error(decoded.errors.map((e) => scenarioErrorText('fleet file', e)).join('\n'));
  if (decoded.value.storage.length > 0 && o.api === 'embedded') throw new Error(`fleet file: ${STORAGE_NEEDS}`);
  if (decoded.value.stages.length > 0) throw new Error('fleet file: spec.stages names files, which only `actorlet fleet FILE` reads');
  return decoded.value;
}

async function aroundOf(o: StartFleetOptions, { seed }: FleetSpec): Promise<FleetSurroundings> {
  if (o.api !== undefined && o.kubeconfig !== undefined)
    throw new Error('startFleet: api stands beside kubeconfig: one of them says which');
  const api = o.api ?? o.kubeconfig;
  if (!api) throw new Error("startFleet: api must be 'embedded', 'local' or the path of a kubeconfig");
  const own = api === 'embedded' || api === 'local';
  const writes = own || o.proxy === true;
  if (o.controlPlane !== undefined && api !== 'local') throw new Error("startFleet: controlPlane belongs to api: 'local'");
  const { data = '', port = 0, flags } = o.controlPlane ?? {};
  const dir = writes ? await mkdtemp(join(tmpdir(), TEMPORARY)) : '';
  const claim = writes ? await claimFolder(dir) : null;
  if (writes) await removeLeft(TEMPORARY);
  const forget = async (): Promise<void> => {
    claim?.[Symbol.dispose]();
    if (writes) await rm(dir, { recursive: true, force: true });
  };
  try {
    const around = await surroundingsOf({
      ...{ api: own ? api : 'cluster', kubeconfig: own ? '' : api, ownKubeconfig: join(dir, 'kubeconfig') },
      ...{ port: o.port ?? 0, address: '', socket: '', seed, log: quietLog },
      ...{ asNodes: o.asNodes ?? false, shareWatches: o.shareWatches ?? false, bootstrapKubeconfig: o.bootstrapKubeconfig ?? '' },
      plane: { data, port, ...(flags === undefined ? {} : { flags }) },
      proxied: o.proxy ?? false,
      say: (text) => o.onOutput?.(text),
      signal: new AbortController().signal,
    });
    return { ...around, close: () => around.close().finally(forget) };
  } catch (error) {
    await forget();
    throw error;
  }
}

class Running implements RunningFleet {
  readonly kubeconfig: string;
  readonly #fleet: Fleet;
  readonly #o: { spec: FleetSpec; around: FleetSurroundings; cleanup: boolean };
  readonly #cluster: Cluster;
  readonly #over = new AbortController();
  #isWelcome: Promise<void> | undefined;
  #faults = 0;
  readonly #fromMs: number;
  #adopted = false;
  #claim: Disposable | undefined;
  #stopping: Promise<void> | undefined;

  constructor(fleet: Fleet, o: { spec: FleetSpec; around: FleetSurroundings; cleanup: boolean }) {
    this.#fleet = fleet;
    this.#o = o;
    this.kubeconfig = o.around.kubeconfig;
    const { admin, clock } = o.around.world;
    this.#fromMs = clock.monoMs();
    this.#cluster = new Cluster(admin, { limited, clock, signal: this.#over.signal, welcome: () => this.#welcome() });
  }

  async start(): Promise<void> {
    const { spec, around } = this.#o;
    const { admin } = around.world;
    const cluster = await clusterOf(admin, this.#over.signal);
    this.#claim = await claimed({ server: admin.server, cluster, fleet: spec.name, shard: { index: 0, count: 1 } });
    await adopt(this.#fleet, spec.name, { kube: admin, signal: this.#over.signal });
    this.#adopted = true;
    await around.announce();
    throwFirst(await this.#fleet.start(), 'started');
  }

  overview(): FleetOverview {
    return this.#fleet.overview();
  }
  nodes(): NodeOverview[] {
    return this.#fleet.nodes();
  }
  calls(): Record<string, number> {
    return Object.fromEntries(this.#fleet.calls.byKind);
  }

  async ready(timeoutMs = READY_MS): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    await this.#welcome();
    for (;;) {
      const { nodes } = this.overview();
      if (nodes.ready === nodes.total) return;
      if (performance.now() > deadline) throw new Error(`${nodes.ready} of ${nodes.total} nodes are Ready after ${timeoutMs} ms`);
      await wait(LOOK_EVERY_MS);
    }
  }

  async apply(manifest: Manifest): Promise<void> {
    for (const object of manifestsOf(manifest)) await this.#cluster.apply(object);
  }
  async remove(manifest: Manifest): Promise<void> {
    for (const object of manifestsOf(manifest)) await this.#cluster.remove(object);
  }
  objects({ apiVersion = 'v1', ...of }: ObjectsOf): Promise<KubeObject[]> {
    return this.#cluster.list({ apiVersion, ...of });
  }

  async inject(scenario: string | object, names?: readonly string[]): Promise<void> {
    throwFirst(await this.#fleet.inject(this.#members(names), scenarioOf(scenario)), 'given the fault');
  }

  async injectApi(fault: ApiFaultOf): Promise<void> {
    const { name, api } = apiFaultOf(fault);
    this.#faults += 1;
    await this.#proxy().inject(`${name}-${this.#faults}`, api);
  }
  apiHits(): readonly ApiHit[] {
    return this.#proxy()
      .trouble.hits()
      .map((hit) => ({ ...hit, atMs: hit.atMs - this.#fromMs }));
  }

  #proxy() {
    const { proxy } = this.#o.around;
    if (proxy === undefined) throw new Error('startFleet: faults for clients need proxy: true');
    return proxy;
  }

  async expect(expectation: FleetExpectation): Promise<number> {
    const { clock } = this.#o.around.world;
    return await lookUntilDecided(specOf(expectation), {
      fleet: this.#fleet,
      clients: this.#o.around.proxy?.calls,
      cluster: this.#cluster,
      clock,
    });
  }

  async restart(names?: readonly string[]): Promise<void> {
    throwFirst(await this.#fleet.restart(this.#members(names)), 'started again');
  }
  async switchOff(names: readonly string[]): Promise<void> {
    throwFirst(await this.#fleet.switchOff(this.#members(names)), 'switched off');
  }
  async switchOn(names: readonly string[]): Promise<void> {
    throwFirst(await this.#fleet.switchOn(this.#members(names)), 'started');
  }

  setClocks(clock: ClockOf | null, names?: readonly string[]): void {
    this.#fleet.setClocks(this.#members(names), clock === null ? null : clockOf(clock));
  }

  injectVolumes(fault: VolumeFaultOf | null, names?: readonly string[]): void {
    if (fault === null) this.#fleet.healVolumes(GIVEN);
    else {
      const nodes = names === undefined ? null : new Set(this.#members(names).map((m) => m.name));
      this.#fleet.injectVolumes({ name: GIVEN, nodes, fault: volumeFaultOf(fault) });
    }
  }

  async addNodes(group: string, count = 1): Promise<string[]> {
    const { names, troubles } = await this.#fleet.add(group, count);
    throwFirst(troubles, 'added');
    return names;
  }
  async removeNodes(names: readonly string[]): Promise<void> {
    throwFirst(await this.#fleet.remove(this.#members(names)), 'removed');
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #stop(): Promise<void> {
    const { around, cleanup } = this.#o;
    const names = this.#fleet.members.filter((m) => !m.isAdopted).map((m) => m.name);
    try {
      await this.#fleet.stop();
      if (cleanup && this.#adopted && around.outlives) {
        await removeNodes(names, { kube: around.world.admin, signal: AbortSignal.timeout(CLEAN_UP_MS) });
      }
    } finally {
      this.#over.abort();
      await around.close();
      this.#claim?.[Symbol.dispose]();
    }
  }

  #welcome(): Promise<void> {
    this.#isWelcome ??= this.#o.around.podsWelcome();
    return this.#isWelcome;
  }

  /** @throws Error with a name that no node has. */
  #members(names: readonly string[] | undefined) {
    const stranger = names?.find((name) => this.#fleet.member(name) === undefined);
    if (stranger !== undefined) throw new Error(`this fleet has no node ${stranger}`);
    return this.#fleet.members.filter((m) => names?.includes(m.name) !== false);
  }
}

function throwFirst([trouble]: readonly NodeTrouble[], what: string): void {
  if (trouble !== undefined) throw new Error(`the node ${trouble.node} could not be ${what}: ${trouble.why}`);
}
