/**
 * A whole node in a virtual world: the production tree on virtual time, a file system in memory and the hollow runtime.
 * Runtime calls can be slowed, failed, lost with or without their effect; the daemon can be killed as `kill -9` does.
 * While it runs, every moment at which two containers of one pod and name run is noted in `violations`.
 */
import { deathBundles } from '@actorlet/deaths/src/extension.ts';
import { faultInjection } from '@actorlet/faults/src/extension.ts';
import {
  createHollowRuntime,
  type HollowContainerDump,
  type HollowOptions,
  type HollowRuntime,
} from '@actorlet/runtimes/src/hollow/index.ts';
import { shownPages } from '@actorlet/shown/src/extension.ts';
import { SimMounts } from '@actorlet/world/src/disk/mounts.ts';
import { type SimIptables, simIptables } from '@actorlet/world/src/host/iptables.ts';
import { type SimKernelLog, simKernelLog } from '@actorlet/world/src/host/kernelLog.ts';
import { SimLogind } from '@actorlet/world/src/host/logind.ts';
import { simKube } from '@actorlet/world/src/kube/kubeApi.ts';
import type { SimKube } from '@actorlet/world/src/kube/types.ts';
import { SimDevicePlugins } from '@actorlet/world/src/plugins/devicePlugins.ts';
import { type SimDra, simDra } from '@actorlet/world/src/plugins/dra.ts';
import { SimDrivers } from '@actorlet/world/src/plugins/drivers.ts';
import { simRng } from '@actorlet/world/src/rng.ts';
import { SimCgroups } from '@actorlet/world/src/runtime/cgroups.ts';
import { processesIn } from '@actorlet/world/src/runtime/processes.ts';
import { podList } from '../../src/actors/edge/answers/podList.ts';
import { createNode, type Node } from '../../src/actors/node.ts';
import { documentsHere } from '../../src/actors/pods/sources/document.ts';
import type { SupervisionTree, TreeOptions } from '../../src/actors/supervision/tree.ts';
import type { ActorState, SupervisionEvent } from '../../src/actors/supervision/types.ts';
import { createEntropy } from '../../src/boot/dependencies/clock.ts';
import type { CpuInfo } from '../../src/machines/allocation/cpus/topology.ts';
import type { NumaNode } from '../../src/machines/allocation/numaNode.ts';
import type { KubeletConfiguration, KubeletFlags, NodeConfig } from '../../src/machines/config/config.ts';
import { defaultNodeConfig } from '../../src/machines/config/defaults.ts';
import type { Pod } from '../../src/machines/kube/types.ts';
import { isWanted, type PodRecord, podsView } from '../../src/machines/pods/manager/messages.ts';
import { type StatusEntry, statusesView } from '../../src/machines/pods/status/messages.ts';
import { findActor } from '../../src/machines/supervision/actorState.ts';
import type { CriMethod, CriRequest, CriResponse } from '../../src/machines/wire/criCalls.ts';
import { childrenOf } from '../../src/machines/xstate/inside.ts';
import { dottedState } from '../../src/machines/xstate/words.ts';
import type { Certificates } from '../../src/ports/certificates.ts';
import type { Handling } from '../../src/ports/handling.ts';
import type { KubeApi } from '../../src/ports/kube.ts';
import type { PathKind } from '../../src/ports/machine/mounter.ts';
import { type Cri, CriError, type Metrics, type Ports } from '../../src/ports/ports.ts';
import { PlainAnswerError, type Prober } from '../../src/ports/prober.ts';
import type { PodResourcesAnswers } from '../../src/ports/sockets/podResources.ts';
import { collectingLogger, type LogLine, memoryMetrics, seededRng } from '../supervision/fakePorts.ts';
import { type MemFs, memFs } from './memFs.ts';
import { type VirtualTime, virtualTime } from './virtualTime.ts';

export const MANIFESTS = '/manifests';
/** Where the API server's certificate is. */
export const SERVING = { certFile: '/pki/tls.crt', keyFile: '/pki/tls.key' } as const;
export const ROOT = '/var/lib/kubelet';
const MEMORY_BYTES = 8 * 1024 ** 3;

/** What becomes of one runtime call. */
export type Fault =
  /** Answered with this gRPC code, without effect. */
  | { kind: 'refuse'; code: number; details: string }
  /** No answer within its time: outcome unknown. `effect` says whether it happened all the same. */
  | { kind: 'timeout'; effect: boolean; afterMs?: number };

export interface Faults {
  latencyMs: Partial<Record<CriMethod, number>>;
  /** Asked before each call; the first fault given applies. */
  fault: (method: CriMethod, req: unknown) => Fault | undefined;
  /** What the daemon is told in place of the true answer. */
  answer: (method: CriMethod, value: unknown) => unknown;
  /** Calls that were cancelled are still waited for, as by a runtime that does not notice. */
  deaf: boolean;
  /** Every call fails with UNAVAILABLE and the hint streams are cut. */
  away: boolean;
  /** Hints are dropped / delivered this many times. */
  hintCopies: number;
  /** Opening the hint stream fails with this code. */
  hintsRefused: number | undefined;
}

export interface VirtualNode extends AsyncDisposable {
  time: VirtualTime;
  fs: MemFs;
  runtime: HollowRuntime;
  readonly node: Node;
  readonly tree: SupervisionTree;
  lines: LogLine[];
  /** Supervision events of the present tree. */
  events: SupervisionEvent[];
  faults: Faults;
  /** What network probes find: called with the URL, `tcp HOST:PORT` or `grpc HOST:PORT SERVICE`, and answered after `afterMs`. */
  probes: { answer: (what: string) => number | 'refused' | 'plain'; afterMs: number; asked: { what: string; atMs: number }[] };
  /** The API server; the node belongs to it with option `cluster` only. */
  kube: SimKube;
  net: { getBody: () => Promise<{ status: number; body: Uint8Array }>; serve: (at: string) => Promise<void>; closeMs: number };
  /** Of the present daemon. */
  readonly metrics: Metrics;
  /** The machine's mounts, which outlive daemons. */
  mounts: SimMounts;
  /** The machine's CSI drivers; the node can speak to them with option `drivers` only. */
  drivers: SimDrivers;
  /** The machine's device plugins; the node can speak to them with option `devices` only. */
  devices: SimDevicePlugins;
  /** The machine's drivers of dynamic resources; the node can speak to them with option `dra` only. */
  dra: SimDra;
  /** What the node answers to monitoring agents, with option `devices` only; null while it does not listen. */
  readonly podResources: PodResourcesAnswers | null;
  /** What the machine's kernel says; the node reads it with option `kernelLog` only. */
  kernelLog: SimKernelLog;
  /** The machine's packet filter; the node keeps chains in it with option `iptables` only. */
  iptables: SimIptables;
  /** The machine's systemd-logind; the node asks it with a shutdownGracePeriod only. */
  logind: SimLogind;
  /** The machine's cgroups; the node keeps some of its own with option `cgroups` only. */
  cgroups: SimCgroups;
  /** Paths that are sockets or devices. */
  special: Map<string, PathKind>;
  violations: string[];
  /** Of the machine. */
  memory: { availableBytes: number };
  /** Calls that reached the runtime, in order. */
  calls: { method: CriMethod; req: unknown; signal: AbortSignal }[];

  write(name: string, manifest: object): void;
  /** Writes a manifest, and waits until its pod is Running. */
  run(name: string, manifest: object): Promise<void>;
  remove(name: string): void;
  uid(name: string): string;
  record(name: string): PodRecord | undefined;
  status(name: string): StatusEntry | undefined;
  pods(): Omit<Pod, 'kind' | 'apiVersion'>[];
  running(name?: string): HollowContainerDump[];
  containers(name: string): HollowContainerDump[];
  phase(name: string): string | undefined;

  workerPath(name: string): string;
  /** The state of an actor in words, '' when it is not up. Containers: `CONTAINER of POD` via {@link containerState}. */
  state(path: string): string;
  actor(path: string): ActorState | undefined;
  containerState(pod: string, container: string): string;
  /** States of the charts below an actor whose ids begin so, or match. */
  charts(path: string, id: string | RegExp): string[];

  /** Steps from timer to timer until it holds. Throws with what was wanted. */
  until(what: string, look: () => unknown, withinMs?: number): Promise<void>;
  advance(ms: number): Promise<void>;
  settle(): Promise<void>;
  kill(path: string): boolean;

  /** As `kill -9`: nothing of the present node hears or does anything from here on. */
  crash(): Promise<void>;
  boot(): Promise<void>;
  /** The daemon is killed and another one starts. */
  restart(): Promise<void>;
}

export interface VirtualNodeOptions {
  seed?: number;
  config?: Partial<KubeletConfiguration>;
  flags?: Partial<KubeletFlags>;
  hollow?: Partial<HollowOptions>;
  /** The clock of the runtime is so far ahead of the node's. Default 0. */
  runtimeAheadMs?: number;
  /** The node has a kubeconfig. Default false. */
  cluster?: boolean;
  /** What the node's own certificates are made with; `connect` gives another client of the API server. */
  certificates?: (connect: () => KubeApi) => Certificates;
  servers?: boolean;
  /** The node can speak to plugins. Default false. */
  drivers?: boolean;
  /** The node can speak to device plugins. Default false. */
  devices?: boolean;
  /** The node can speak to drivers of dynamic resources. Default false. */
  dra?: boolean;
  /** The node reads the log of its kernel. Default false. */
  kernelLog?: boolean;
  /** The node keeps chains in the packet filter. Default false. */
  iptables?: boolean;
  /** Of the machine. Default: four cores of a thread each. */
  cpus?: CpuInfo[];
  /** Default: one, with all memory. */
  numaNodes?: NumaNode[];
  /** `cgroupsPerQOS: true` was said. Default false. */
  cgroups?: boolean;
  /** Where a daemon counts. Default: in memory, with no word of types and labels. */
  metrics?: () => Metrics;
  /** What outlives the process: default none. */
  handling?: Handling;
  /** Manifests before the node starts. */
  manifests?: Record<string, object>;
  before?(h: VirtualNode): void;
  /** False: the tree is started but not waited for. */
  ready?: boolean;
  /** Every inspection event of every actor, from its first step on. */
  inspect?: TreeOptions['inspect'];
  /** Changes the ports before a daemon gets them. */
  ports?: (ports: Ports) => Ports;
  /** Stands between a daemon and its outside, as a recording of inputs does. */
  between?: (config: NodeConfig, ports: Ports) => { ports: Ports; wrap(node: Node): Node };
}

export async function virtualNode(o: VirtualNodeOptions = {}): Promise<VirtualNode> {
  const time = virtualTime();
  const rng = seededRng(o.seed ?? 1);
  const fs = memFs(time.clock);
  fs.makeDir(MANIFESTS);
  fs.makeDir('/etc');
  fs.put('/etc/hosts', '127.0.0.1 localhost\n');
  const runtimeClock = { ...time.clock, wallMs: () => time.clock.wallMs() + (o.runtimeAheadMs ?? 0) };
  const runtime = createHollowRuntime({ clock: runtimeClock, rng, ...o.hollow });
  const lines: LogLine[] = [];
  const violations: string[] = [];
  const memory = { availableBytes: MEMORY_BYTES / 2 };
  const calls: VirtualNode['calls'] = [];
  const faults: Faults = {
    latencyMs: {},
    fault: () => undefined,
    answer: (_, value) => value,
    deaf: false,
    away: false,
    hintCopies: 1,
    hintsRefused: undefined,
  };
  fs.makeDir('/pki');
  for (const file of Object.values(SERVING)) fs.put(file, 'not looked at by a net that is played');
  const net: VirtualNode['net'] = {
    getBody: () => Promise.resolve({ status: 200, body: new TextEncoder().encode('{"apiVersion":"v1","kind":"PodList","items":[]}') }),
    serve: () => Promise.resolve(),
    closeMs: 0,
  };
  const probes: VirtualNode['probes'] = { answer: () => 200, afterMs: 1, asked: [] };
  const kube = simKube({ clock: time.clock, rng: simRng(`kube-${o.seed ?? 1}`), latencyMs: () => 1 });
  watchForDuplicates(runtime, violations);
  const mounts = new SimMounts();
  fs.isMountPoint = (path) => mounts.table.some((m) => m.path === path);
  const special: VirtualNode['special'] = new Map();
  const drivers = new SimDrivers();
  const dra = simDra();
  const devices = new SimDevicePlugins();
  const kernelLog = simKernelLog(time.clock);
  const iptables = simIptables();
  const logind = new SimLogind(time.clock);
  const cgroups = new SimCgroups();
  cgroups.pidsIn = (path) => processesIn(runtime.dump(), path).map((p) => p.pid);

  let podResources: PodResourcesAnswers | null = null;
  let power: { on: boolean } = { on: false };
  let metrics = memoryMetrics();
  let built: Node | undefined;
  let events: SupervisionEvent[] = [];

  const build = async (): Promise<Node> => {
    const mine = { on: true };
    power = mine;
    const never = <T>() => new Promise<T>(() => {});
    const alive =
      <A extends unknown[]>(fn: (...a: A) => void) =>
      (...a: A) => {
        if (mine.on) fn(...a);
      };
    const connect = () =>
      kube.connect({ power: mine, clock: { ...time.clock, setTimeout: (fn, ms) => time.clock.setTimeout(alive(fn), ms) } });
    const cri = faultyCri(runtime, { time, faults, calls, power: mine });
    const ports: Ports = {
      ...(o.handling === undefined ? {} : { handling: o.handling }),
      clock: { ...time.clock, setTimeout: (fn, ms) => time.clock.setTimeout(alive(fn), ms) },
      rng,
      entropy: createEntropy(),
      documents: documentsHere(createEntropy()),
      yield: { defer: (fn) => time.yield.defer(alive(fn)) },
      fs: new Proxy(fs, {
        get(target, name: keyof MemFs) {
          const own: unknown = target[name];
          if (typeof own !== 'function') return own;
          // What was asked of the disk before the power went is done or not; nobody hears of it.
          return async (...args: unknown[]) => {
            if (!mine.on) return never();
            const result: unknown = await Reflect.apply(own, target, args);
            return mine.on ? result : never();
          };
        },
      }),
      sys: { watchDir: (path, onEvent, onEnd) => fs.watchDir(path, alive(onEvent), alive(onEnd)), notify: () => false },
      net: {
        httpGet: async () => net.getBody(),
        async serveHttp(at) {
          const where = 'port' in at ? `${at.host}:${at.port}` : at.socketPath;
          await net.serve(where);
          return {
            address: where,
            close: () => new Promise<void>((done) => (net.closeMs === 0 ? done() : void time.clock.setTimeout(alive(done), net.closeMs))),
          };
        },
      },
      prober: virtualProber(time, probes, mine),
      gzip: {
        compress: async (from, to) => {
          if (fs.has(to)) throw Object.assign(new Error(`EEXIST: ${to}`), { code: 'EEXIST' });
          fs.put(to, `compressed ${fs.textOf(from)}`);
        },
      },
      mounter: mounts.connect({ disk: { fs, special, emptyDir: emptyDir(fs) }, clock: time.clock, power: mine }),
      host: {
        hostname: () => 'n1',
        bootId: () => 'boot-1',
        capacity: () => ({ memoryBytes: MEMORY_BYTES, cpus: o.cpus?.length ?? 4 }),
        cpus: () => o.cpus ?? [0, 1, 2, 3].map((id) => ({ id, socket: 0, siblings: [id], node: 0 })),
        numaNodes: () => o.numaNodes ?? [{ id: 0, memoryBytes: MEMORY_BYTES, hugePages: [], distances: [10] }],
        memory: () => ({ capacityBytes: MEMORY_BYTES, availableBytes: memory.availableBytes }),
        tasks: () => ({ current: 500, max: 32_768 }),
        addresses: () => [{ ip: '192.0.2.1', family: 4, interface: 'eth0' }],
        cpuUsageMs: () => 0,
        rssBytes: () => 0,
      },
      cri,
      ...(o.cluster === true ? { kube: connect() } : {}),
      ...(o.dra === true ? { dra: dra.connect({ clock: time.clock, power: mine }) } : {}),
      ...(o.drivers === true ? { csi: drivers.connect({ fs, mounts, clock: time.clock, power: mine }) } : {}),
      ...(o.devices === true
        ? {
            devicePlugins: devices.connect({ clock: time.clock, power: mine, makeSocket: fs.makeSocket }),
            podResources: {
              async serve(address, answers) {
                podResources = answers;
                const close = async () => {
                  podResources = null;
                };
                return { address, close };
              },
            },
          }
        : {}),
      ...(o.kernelLog === true
        ? {
            kernelLog: kernelLog.connect({
              clock: { ...time.clock, setTimeout: (fn, ms) => time.clock.setTimeout(alive(fn), ms) },
              power: mine,
            }),
          }
        : {}),
      ...(o.iptables === true ? { iptables: iptables.connect({ clock: time.clock, power: mine }) } : {}),
      inhibitor: logind.connect({
        clock: { ...time.clock, setTimeout: (fn, ms) => time.clock.setTimeout(alive(fn), ms) },
        power: mine,
      }),
      ...(o.cgroups === true ? { cgroups: cgroups.connect({ clock: time.clock, power: mine }) } : {}),
      ...(o.certificates === undefined ? {} : { certificates: o.certificates(connect) }),
      log: collectingLogger(lines),
      metrics: o.metrics?.() ?? memoryMetrics(),
    };
    metrics = ports.metrics;
    const config = defaultNodeConfig({
      flags: {
        rootDir: ROOT,
        hostnameOverride: 'n1',
        adminSocket: '/admin.sock',
        kubeconfig: o.cluster === true ? '/kubeconfig' : '',
        ...o.flags,
      },
      config: {
        cgroupsPerQOS: o.cgroups === true,
        staticPodPath: MANIFESTS,
        podLogsDir: '/var/log/actorlet/pods',
        resolvConf: '',
        healthzPort: o.servers === true ? 10248 : 0,
        readOnlyPort: o.servers === true ? 10255 : 0,
        enableServer: o.servers === true,
        tlsCertFile: SERVING.certFile,
        tlsPrivateKeyFile: SERVING.keyFile,
        ...o.config,
      },
    });
    // It reads the disk, whose answers may need time to pass.
    let made: Node | undefined;
    let failed: unknown;
    const outside = o.ports?.(ports) ?? ports;
    const between = o.between?.(config, outside) ?? { ports: outside, wrap: (n: Node) => n };
    const making = createNode(config, between.ports, {
      extensions: [faultInjection, deathBundles, shownPages],
      ...(o.inspect === undefined ? {} : { inspect: o.inspect }),
    }).then(
      (n) => {
        made = between.wrap(n);
      },
      (error: unknown) => {
        failed = error;
      },
    );
    await self.until('the node is made', () => made !== undefined || failed !== undefined, 120_000);
    await making;
    if (made === undefined) throw failed;
    const node: Node = made;
    built = node;
    events = [];
    const kept = events;
    node.tree.observe((e) => {
      if (mine.on) kept.push(e);
    });
    let up = false;
    const starting = node.start().then(() => {
      up = true;
    });
    if (o.ready === false) starting.catch(() => {});
    else {
      await self.until('the tree starts', () => up, 120_000);
      await starting;
    }
    return node;
  };

  const present = (): Node => {
    if (built === undefined) throw new Error('no node');
    return built;
  };
  const self: VirtualNode = {
    time,
    fs,
    runtime,
    get node() {
      return present();
    },
    get tree() {
      return present().tree as SupervisionTree;
    },
    lines,
    get events() {
      return events;
    },
    faults,
    probes,
    kube,
    net,
    get metrics() {
      return metrics;
    },
    mounts,
    drivers,
    dra,
    devices,
    get podResources() {
      return podResources;
    },
    kernelLog,
    iptables,
    logind,
    cgroups,
    special,
    violations,
    memory,
    calls,
    write: (name, manifest) => fs.put(`${MANIFESTS}/${name}.json`, JSON.stringify(manifest)),
    remove: (name) => fs.drop(`${MANIFESTS}/${name}.json`),
    uid(name) {
      const uid = self.record(name)?.pod.metadata.uid;
      if (uid === undefined) throw new Error(`no pod ${name}`);
      return uid;
    },
    record(name) {
      const records = [...(present().tree.registry.read(podsView)?.value.records.values() ?? [])];
      const named = records.filter((r) => r.pod.metadata.name === `${name}-n1`);
      return named.find((r) => isWanted(r)) ?? named[0];
    },
    status(name) {
      const uid = self.record(name)?.pod.metadata.uid;
      return uid === undefined ? undefined : present().tree.registry.read(statusesView)?.value.get(uid);
    },
    pods() {
      const { registry } = present().tree;
      const pods = registry.read(podsView)?.value;
      return pods === undefined ? [] : (podList(pods, registry.read(statusesView)?.value).items ?? []);
    },
    running: (name) =>
      (name === undefined ? runtime.dump().containers : self.containers(name)).filter((c) => c.state === 'CONTAINER_RUNNING'),
    containers(name) {
      const { sandboxes, containers } = runtime.dump();
      const mine = new Set(sandboxes.filter((s) => s.name === `${name}-n1`).map((s) => s.id));
      return containers.filter((c) => mine.has(c.sandboxId));
    },
    phase: (name) => self.status(name)?.status.phase,
    workerPath: (name) => `node/pods/workers/${self.uid(name)}`,
    actor: (path) => findActor(present().tree.state(), path) as ActorState | undefined,
    state(path) {
      const snapshot = self.tree.actorAt(path)?.getSnapshot() as { value?: unknown } | undefined;
      return dottedState(snapshot?.value);
    },
    containerState(pod, container) {
      const record = self.record(pod);
      if (record === undefined) return '';
      return self.charts(`node/pods/workers/${record.pod.metadata.uid}`, new RegExp(`^container:${container}$`))[0] ?? '';
    },
    charts(path, id) {
      const ofActor = Object.entries(childrenOf(self.tree.actorAt(path) ?? null));
      const named = ofActor.filter(([name]) => (typeof id === 'string' ? name.startsWith(id) : id.test(name)));
      return named.map(([, child]) => dottedState((child?.getSnapshot() as { value?: unknown } | undefined)?.value));
    },
    async until(what, look, withinMs = 60_000) {
      const end = time.clock.monoMs() + withinMs;
      await time.settle();
      while (!look()) {
        if (time.clock.monoMs() >= end) throw new Error(`not within ${withinMs} virtual ms: ${what}`);
        await time.step(end);
      }
    },
    advance: (ms) => time.advance(ms),
    settle: () => time.settle(),
    kill: (path) => present().tree.kill(path, 'test'),
    async run(name, manifest) {
      self.write(name, manifest);
      await self.until(`${name} is Running`, () => self.phase(name) === 'Running');
    },
    async crash() {
      power.on = false;
      logind.daemonEnded();
      await time.settle();
    },
    async boot() {
      if (power.on) throw new Error('still running');
      await build();
    },
    async restart() {
      await self.crash();
      await self.boot();
    },
    async [Symbol.asyncDispose]() {
      power.on = false;
      await time.settle();
    },
  };
  for (const [name, manifest] of Object.entries(o.manifests ?? {})) self.write(name, manifest);
  o.before?.(self);
  await build();
  return self;
}

/** Answers as `probes.answer` says; a dead daemon hears nothing. */
function virtualProber(time: VirtualTime, probes: VirtualNode['probes'], power: { on: boolean }): Prober {
  const ask = (what: string, signal: AbortSignal) =>
    new Promise<number>((resolve, reject) => {
      probes.asked.push({ what, atMs: time.clock.monoMs() });
      const timer = time.clock.setTimeout(() => {
        if (!power.on) return;
        const answer = probes.answer(what);
        if (answer === 'refused') reject(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }));
        else if (answer === 'plain') reject(new PlainAnswerError('an answer without TLS'));
        else resolve(answer);
      }, probes.afterMs);
      signal.addEventListener('abort', () => {
        time.clock.clearTimeout(timer);
        if (power.on) reject(new Error('aborted'));
      });
    });
  return {
    httpGet: async (url, { signal }) => ({ status: await ask(url, signal), location: null, body: new Uint8Array(), bodyError: null }),
    async tcpDial({ host, port }, { signal }) {
      await ask(`tcp ${host}:${port}`, signal);
    },
    async grpcHealth({ host, port }, { service, signal }) {
      try {
        return { ok: true, status: (await ask(`grpc ${host}:${port} ${service}`, signal)) === 200 ? 1 : 2 };
      } catch (error) {
        return { ok: false, code: 14, details: error instanceof Error ? error.message : String(error) };
      }
    },
  };
}

function emptyDir(fs: MemFs): (path: string) => void {
  return (path) => {
    for (const p of fs.below(path)) fs.drop(p);
  };
}

/** Looks at every hint of the runtime's own stream: a start is announced in the very moment it happens. */
function watchForDuplicates(runtime: HollowRuntime, violations: string[]): void {
  const look = (): void => {
    const seen = new Map<string, string>();
    for (const c of runtime.dump().containers) {
      if (c.state !== 'CONTAINER_RUNNING') continue;
      const key = `${c.labels['io.kubernetes.pod.namespace']}/${c.labels['io.kubernetes.pod.name']} ${c.labels['io.kubernetes.pod.uid']} ${c.name}`;
      const other = seen.get(key);
      if (other !== undefined) violations.push(`two containers of ${key} run at once: ${other} and ${c.id}`);
      seen.set(key, c.id);
    }
  };
  void (async () => {
    for (;;) {
      const { stream } = await runtime.connect().hints(new AbortController().signal);
      try {
        for await (const hint of stream) if (hint.kind === 'started') look();
      } catch {
        // Cut by a scripted outage: open it again.
      }
    }
  })();
}

function faultyCri(
  runtime: HollowRuntime,
  o: { time: VirtualTime; faults: Faults; calls: VirtualNode['calls']; power: { on: boolean } },
): Cri {
  const { time, faults, power } = o;
  const client = runtime.connect();
  const wait = (ms: number) => new Promise<void>((wake) => void time.clock.setTimeout(wake, ms));
  const failed = (method: string, code: number, details: string) => new CriError({ method, code, outcome: 'failed', details });
  const deafly = new AbortController().signal;

  async function call<M extends CriMethod>(method: M, req: CriRequest<M>, opts: { timeoutMs: number | null; signal: AbortSignal }) {
    if (faults.away) throw failed(method, 14, 'connection refused');
    const fault = faults.fault(method, req);
    if (fault?.kind === 'refuse') throw failed(method, fault.code, fault.details);
    const latencyMs = faults.latencyMs[method] ?? 0;
    const signal = faults.deaf ? deafly : opts.signal;
    // The effect comes after the latency, whether or not anybody still waits for it.
    const effect = (async (): Promise<CriResponse<M>> => {
      if (latencyMs > 0) await wait(latencyMs);
      if (faults.away) throw failed(method, 14, 'connection lost');
      if (fault?.kind === 'timeout' && !fault.effect) return new Promise<CriResponse<M>>(() => {});
      o.calls.push({ method, req, signal: opts.signal });
      return client.call(method, req, { timeoutMs: null, signal: deafly });
    })();
    effect.catch(() => {});
    const timeoutMs = fault?.kind === 'timeout' ? (fault.afterMs ?? 1_000) : opts.timeoutMs;
    const held: Promise<CriResponse<M>> = fault?.kind === 'timeout' ? new Promise<CriResponse<M>>(() => {}) : effect;
    return ended(held, { method, timeoutMs, signal });
  }
  function ended<T>(work: Promise<T>, by: { method: string; timeoutMs: number | null; signal: AbortSignal }): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const unknown = (code: number, details: string) => reject(new CriError({ method: by.method, code, outcome: 'unknown', details }));
      const timer =
        by.timeoutMs === null ? undefined : time.clock.setTimeout(() => unknown(4, `no answer within ${by.timeoutMs} ms`), by.timeoutMs);
      const cancel = () => unknown(1, 'cancelled by the caller');
      if (by.signal.aborted) cancel();
      by.signal.addEventListener('abort', cancel, { once: true });
      work.then(resolve, reject).finally(() => {
        time.clock.clearTimeout(timer);
        by.signal.removeEventListener('abort', cancel);
      });
    });
  }
  return {
    call: (method, req, opts) => {
      const answer = call(method, req, opts);
      return new Promise((resolve, reject) => {
        answer.then(
          (v) => (power.on ? resolve(faults.answer(method, v) as typeof v) : undefined),
          (e: unknown) => (power.on ? reject(e) : undefined),
        );
      });
    },
    async hints(signal) {
      if (faults.away) throw failed('GetContainerEvents', 14, 'connection refused');
      if (faults.hintsRefused !== undefined) throw failed('GetContainerEvents', faults.hintsRefused, 'no hints here');
      const { via, stream } = await client.hints(signal);
      return {
        via,
        stream: (async function* () {
          for await (const hint of stream) {
            if (!power.on) return;
            for (let i = 0; i < faults.hintCopies; i++) yield hint;
          }
        })(),
      };
    },
    reconnect: () => client.reconnect(),
    close: () => client.close(),
  };
}

/** A pod manifest: annotations script the hollow runtime. */
export function pod(
  name: string,
  o: { life?: string; lives?: Record<string, string>; uid?: string; container?: object; spec?: object; inits?: object[] } = {},
): object {
  const annotations: Record<string, string> = {};
  if (o.life !== undefined) annotations['actorlet.dev/hollow'] = o.life;
  for (const [container, life] of Object.entries(o.lives ?? {})) annotations[`actorlet.dev/hollow.${container}`] = life;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, annotations, ...(o.uid === undefined ? {} : { uid: o.uid }) },
    spec: {
      ...(o.inits === undefined ? {} : { initContainers: o.inits.map((c, i) => ({ name: `init-${i}`, image: 'busybox:1', ...c })) }),
      containers: [{ name: 'main', image: 'busybox:1', ...o.container }],
      ...o.spec,
    },
  };
}
