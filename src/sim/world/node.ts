/** One simulated machine: disk, runtime, clock offset, and whatever daemon runs on it just now. The daemon is the production tree. */

import type { InspectionEvent } from 'xstate';
import { enforceKernelSettings } from '../../actors/kernelSettings.ts';
import { createNode, type Node } from '../../actors/node.ts';
import { documentsHere } from '../../actors/pods/sources/document.ts';
import type { SupervisionTree } from '../../actors/supervision/tree.ts';
import type { SupervisionEvent } from '../../actors/supervision/types.ts';
import { defaultNodeConfig } from '../../machines/config/defaults.ts';
import type { KubeletConfiguration } from '../../machines/config.ts';
import type { MailboxTap } from '../../machines/faults/types.ts';
import { type StatusView, view } from '../../machines/protocol.ts';
import { FAMILIES } from '../../machines/services/iptables/families.ts';
import { messageOf } from '../../machines/text/errors.ts';
import type { HostFs, Ports } from '../../ports/ports.ts';
import { md5Hex, sha256Hex } from '../globals.ts';
import { type BesideTuning, besideNode, type SimBeside } from './beside.ts';
import { type CgroupTuning, type SimCgroups, tunedCgroups } from './cgroupTrouble.ts';
import { CPUS, type CpuTuning, cpusConfig, cpusOfHost, kubeReservedOf } from './cpus.ts';
import type { SimDevicePlugins } from './devicePlugins.ts';
import { type SimDisk, simDisk } from './disk.ts';
import type { SimDrivers } from './drivers.ts';
import { addressOf, type CertificateTuning, type EdgeTuning, identityConfig, identityPorts, leaveFiles } from './identity.ts';
import { countingMetrics, simLogger } from './instruments.ts';
import { type SimIptables, simIptables } from './iptables.ts';
import { type SimKernelLog, simKernelLog } from './kernelLog.ts';
import { type KernelTuning, type SimKernelSettings, simKernelSettings } from './kernelSettings.ts';
import type { SimKube } from './kubeApi.ts';
import { type ShutdownTuning, type SimLogind, simLogind } from './logind.ts';
import { type DeviceTuning, devicesOf } from './machineDevices.ts';
import { type DriverTuning, driverFs, driversOf } from './machineDrivers.ts';
import { memoryConfig, memoryOfHost } from './memory.ts';
import { type SimMounts, simMounts } from './mounts.ts';
import { type SimNet, simNet } from './net.ts';
import { type Probed, simProber } from './prober.ts';
import { simProfiler } from './profiler.ts';
import type { SimRng } from './rng.ts';
import { type SimRuntime, simRuntime } from './runtime.ts';
import type { Power, SimTime } from './time.ts';

export const ROOT_DIR = '/var/lib/kubelet';
export const MANIFESTS = '/etc/kubernetes/manifests';
/** Its content is not looked at: the way to the API server is a port. */
const KUBECONFIG = '/etc/kubernetes/kubelet.conf';
/** Where a node has one manifest and no directory of them. */
export const ONE_MANIFEST = `${MANIFESTS}/pod.json`;
const POD_LOGS = '/var/log/pods';
const PODS_URL = 'http://pods.sim/list';
/** Below it is the content of claims. */
export const CLAIMED = '/srv/claimed';
const CLAIMED_DIRS = ['data0', 'data1'].map((name) => `${CLAIMED}/${name}`);
/** Through it the storage driver of a node registers itself, where it has one. */
export const DRIVER_SOCKET = `${ROOT_DIR}/plugins_registry/driver-reg.sock`;
/** Device plugins register at a socket in it, where the node can speak to any. */
export const DEVICE_FOLDER = `${ROOT_DIR}/device-plugins`;
/** 2 MiB each. */
const HUGE_PAGES = { path: '/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages', count: 128 };
/** Of the node at this place of a world. */
export function nodeName(index: number): string {
  return `n${index + 1}`;
}
/** Where the hollow runtime says that its images are. */
const IMAGES = '/var/lib/hollow';
const MEMORY_BYTES = 8 * 1024 ** 3;
/** An init system's wait before it starts a daemon again that exited 70. */
const RESTART_AFTER_MS = 2_000;

export type ImageTuning = Pick<
  KubeletConfiguration,
  'imageMinimumGCAge' | 'imageMaximumGCAge' | 'imageGCHighThresholdPercent' | 'imageGCLowThresholdPercent'
>;

/** Settings of a node that the seed chooses. */
export interface NodeTuning {
  /** Longest ordinary latency of a runtime call and of a disk operation. */
  callLatencyMs: number;
  diskLatencyMs: number;
  requestTimeoutMs: number;
  syncFrequencyMs: number;
  fileCheckMs: number;
  httpCheckMs: number;
  /** Pods also come over HTTP. */
  http: boolean;
  hints: boolean;
  /** Hints name no pod. */
  anonymousHints: boolean;
  /** Longest time in which an announced end is not shown yet. */
  lagMs: number;
  /** How often a server's address is taken when a daemon begins to listen. */
  portsTaken: number;
  /** A server that ends its listening says that it could not. */
  closesBadly: boolean;
  /** It belongs to a cluster. */
  api: boolean;
  /** It makes its own object in the API; else somebody else has. */
  registers: boolean;
  /** Its static pod path is one file. */
  oneManifest: boolean;
  /** How it hears of changed secrets and config maps. */
  objects: 'Watch' | 'Cache' | 'Get';
  /** Its eviction thresholds; null: none, and nobody who looks. */
  eviction: Pick<
    KubeletConfiguration,
    | 'evictionHard'
    | 'evictionSoft'
    | 'evictionSoftGracePeriod'
    | 'evictionMinimumReclaim'
    | 'evictionMaxPodGracePeriod'
    | 'evictionPressureTransitionPeriod'
  > | null;
  /** When it collects images. */
  images: ImageTuning;
  /** Certificates that it gets from its cluster; null: none. */
  certificates: CertificateTuning | null;
  /** Its API; null: not served. */
  edge: EdgeTuning | null;
  /** It hears its kernel. */
  kernelLog: boolean;
  /** Its containers are throttled before they reach their limits of memory, and may swap. */
  throttles: boolean;
  /** A storage driver is beside it; null: it cannot speak to any. */
  driver: DriverTuning | null;
  /** What else is beside it. */
  beside: BesideTuning;
  /** It keeps cgroups of its own; null: it does not. */
  cgroups: CgroupTuning | null;
  /** Device plugins are beside it; null: it cannot speak to any. */
  devices: DeviceTuning | null;
  /** It allocates CPUs; null: all containers run on all. */
  cpus: CpuTuning | null;
  /** It keeps its chains in the packet filter of the machine. */
  packetFilter: boolean;
  /** It relies on settings of its machine's kernel; null: nobody looks at those. */
  kernel: KernelTuning | null;
  /** Its pods are waited for when the machine goes down; null: they are not. */
  shutdown: ShutdownTuning | null;
}

/** Who is told what this node does. */
export interface NodeWatcher {
  supervision(node: SimNode, e: SupervisionEvent): void;
  statuses(node: SimNode, statuses: StatusView): void;
  log(node: SimNode, level: string, text: string): void;
  /** A daemon began; its tree has not started yet. */
  booted(node: SimNode): void;
  /** A daemon ended before its tree: its start was refused for these reasons. */
  refused(node: SimNode, problems: readonly string[]): void;
  exited(node: SimNode, why: string): void;
  /** Every step of every statechart; undefined where nobody measures. */
  readonly inspect?: ((e: InspectionEvent) => void) | undefined;
  /** Something that must not happen at all. */
  broken(node: SimNode, what: string): void;
}

export interface SimNode {
  readonly name: string;
  readonly index: number;
  readonly disk: SimDisk;
  readonly runtime: SimRuntime;
  readonly mounts: SimMounts;
  readonly net: SimNet;
  readonly kernelLog: SimKernelLog;
  readonly logind: SimLogind;
  readonly iptables: SimIptables;
  readonly kernelSettings: SimKernelSettings;
  readonly cgroups: SimCgroups;
  readonly devices: SimDevicePlugins;
  readonly drivers: SimDrivers;
  readonly beside: SimBeside;
  readonly tuning: NodeTuning;
  /** The API server of its cluster; undefined: it stands alone. */
  readonly kube: SimKube | undefined;
  /** Daemons so far. */
  readonly boots: number;
  /** Its power failed at least once. */
  readonly lostPower: boolean;
  /** The running daemon; undefined while there is none. */
  readonly daemon: { node: Node; tree: SupervisionTree; up: boolean } | undefined;
  /** What the HTTP pod source answers. */
  http: () => { status: number; body: string } | 'unreachable';
  /** What network probes of any pod find, after how many ms. */
  probed: Probed;
  /** Bytes of memory that seem to be left. */
  memoryAvailable: () => number;
  wallOffsetMs: number;
  /** Stands before the mailboxes of every daemon that boots from now on. */
  tap: MailboxTap | undefined;
  boot(): void;
  /** As `kill -9`, or with `power`, as a pulled plug: what runs is the runtime's, and for the caller to end. */
  kill(how: 'process' | 'power'): void;
  /** Orderly; resolves when the tree is down. */
  stop(): Promise<void>;
  /** Newest log lines and flight recorder of the latest daemon. */
  tail(lines: number): { log: string[]; recorder: string[] };
}

export interface SimNodeOptions {
  index: number;
  rng: SimRng;
  time: SimTime;
  tuning: NodeTuning;
  watcher: NodeWatcher;
  /** The API server of the cluster that this node belongs to; absent: it stands alone. */
  kube?: SimKube | undefined;
}

export function simNode(o: SimNodeOptions): SimNode {
  const { index, rng, time, tuning, watcher, kube } = o;
  const name = nodeName(index);
  const world: Power = { on: true };
  const wallOffset = { ms: 0 };
  const machineClock = time.clockFor(world, () => wallOffset.ms);
  const latency = rng.fork('latency');
  const disk = simDisk({ time, clock: machineClock });
  for (const dir of [MANIFESTS, ROOT_DIR, '/var/log', IMAGES, ...CLAIMED_DIRS]) disk.makeDir(dir);
  disk.put('/etc/hosts', '127.0.0.1 localhost\n');
  disk.put(HUGE_PAGES.path, `${HUGE_PAGES.count}\n`);
  leaveFiles(disk, { name, rng: rng.fork('files'), certificates: tuning.certificates });
  const runtime = simRuntime({
    ...(tuning.cgroups?.systemd === true ? { cgroupDriver: 'SYSTEMD' as const } : {}),
    clock: machineClock,
    rng: rng.fork('runtime'),
    latencyMs: () => latency.between(0, tuning.callLatencyMs),
  });
  const mounts = simMounts();
  disk.isMountPoint = (path) => mounts.table.some((m) => m.path === path);
  const net = simNet();
  const kernelLog = simKernelLog(machineClock);
  const logind = simLogind(machineClock);
  const iptables = simIptables();
  const kernelSettings = simKernelSettings();
  kernelSettings.reboot(tuning.kernel?.protect === true);
  const drivers = driversOf(tuning.driver, { disk, nodeId: name, socket: DRIVER_SOCKET, rng: rng.fork('driver-latency') });
  const beside = besideNode(tuning.beside, { disk, runtime, clock: machineClock, rng: rng.fork('beside') });
  const cgroups = tunedCgroups({ tuning: tuning.cgroups, runtime: runtime.hollow, clock: machineClock, rng: rng.fork('cgroups') });
  const devices = devicesOf(tuning.devices, { folder: DEVICE_FOLDER, clock: machineClock, rng: rng.fork('device-latency') });
  const logLines: string[] = [];
  let power: Power = { on: false };
  let boots = 0;
  let lostPower = false;
  let daemon: { node: Node; tree: SupervisionTree; up: boolean } | undefined;
  let last: Node | undefined;

  /** As binding does it: where a file is already, nobody can listen. */
  const makeSocket = (path: string): void => {
    if (disk.has(path)) throw new Error(`bind ${path}: address already in use`);
    disk.putSocket(path);
  };

  const portsFor = (mine: Power): Ports => {
    const clock = time.clockFor(mine, () => wallOffset.ms);
    const { fs, watchDir } = disk.mount(mine, clock);
    const own = rng.fork(`daemon-${boots}`);
    const chance = own.fork('jitter');
    const bytes = own.fork('entropy');
    return {
      clock,
      rng: { next: () => chance.next() },
      yield: time.yieldFor(mine),
      fs: fs satisfies HostFs,
      documents: documentsHere({ md5Hex }),
      sys: { watchDir, notify: () => false },
      net: net.connect(mine, { http: () => self.http(), taken: tuning.portsTaken, closesBadly: tuning.closesBadly }),
      prober: simProber(mine, clock, () => self.probed()),
      host: {
        hostname: () => name,
        bootId: () => `boot-${name}`,
        capacity: () => ({ memoryBytes: MEMORY_BYTES, cpus: tuning.cpus?.count ?? CPUS }),
        ...cpusOfHost(tuning.cpus),
        memory: () => ({ capacityBytes: MEMORY_BYTES, availableBytes: self.memoryAvailable() }),
        ...memoryOfHost(tuning.throttles),
        tasks: () => ({ current: 500, max: 32_768 }),
        addresses: () => [{ ip: addressOf({ index, rng: own, certificates: tuning.certificates }), family: 4, interface: 'eth0' }],
        cpuUsageMs: () => 0,
        rssBytes: () => 0,
      },
      entropy: { bytes: (count) => Uint8Array.from({ length: count }, () => bytes.int(256)), md5Hex, sha256Hex },
      cri: runtime.connect({ power: mine, clock, boot: boots }),
      ...(kube === undefined
        ? {}
        : identityPorts({ kube, disk, name, rng: own, certificates: tuning.certificates, daemon: { power: mine, clock } })),
      mounter: mounts.connect({ disk: { fs, emptyDir: (path) => disk.emptyDir(path) }, clock, power: mine }),
      ...(tuning.kernelLog ? { kernelLog: kernelLog.connect({ clock, power: mine }) } : {}),
      ...(tuning.packetFilter ? { iptables: iptables.connect({ clock, power: mine }) } : {}),
      ...(tuning.shutdown === null ? {} : { inhibitor: logind.connect({ clock, power: mine }) }),
      ...(tuning.cgroups === null ? {} : { cgroups: cgroups.connect({ clock, power: mine }) }),
      ...(tuning.devices === null ? {} : { devicePlugins: devices.connect({ clock, power: mine, makeSocket }) }),
      ...(tuning.driver === null ? {} : { csi: drivers.connect({ fs: driverFs(disk), mounts, clock: machineClock, power: mine }) }),
      ...beside.connect({ power: mine, clock, fs }),
      log: simLogger((level, text) => {
        if (!mine.on) return;
        logLines.push(`${time.monoMs.toFixed(0)} ${level} ${text}`);
        if (logLines.length > 400) logLines.splice(0, 200);
        watcher.log(self, level, text);
      }),
      metrics: countingMetrics(),
      profiler: simProfiler({ power: mine, clock }),
    };
  };

  const off = (why: string): void => {
    if (!power.on) return;
    power.on = false;
    daemon = undefined;
    watcher.exited(self, why);
    logind.daemonEnded();
  };

  /** As the step of the boot before the tree. */
  const settingsRefused = async (mine: Power): Promise<boolean> => {
    if (tuning.kernel === null) return false;
    const log = simLogger((level, text) => {
      if (mine.on) watcher.log(self, level, text);
    });
    const problems = await enforceKernelSettings(kernelSettings.connect({ power: mine }), { protect: tuning.kernel.protect, log });
    if (!mine.on || problems.length === 0) return !mine.on;
    watcher.refused(self, problems);
    off(`exit 1: ${problems.join('; ')}`);
    machineClock.setTimeout(() => self.boot(), RESTART_AFTER_MS);
    return true;
  };

  const run = async (mine: Power): Promise<void> => {
    if (await settingsRefused(mine)) return;
    const shown = identityConfig(tuning);
    const config = defaultNodeConfig({
      flags: {
        rootDir: ROOT_DIR,
        hostnameOverride: name,
        adminSocket: `${ROOT_DIR}/actorlet.sock`,
        kubeconfig: kube === undefined ? '' : KUBECONFIG,
        ...shown.flags,
      },
      config: {
        cgroupsPerQOS: tuning.cgroups !== null,
        staticPodPath: tuning.oneManifest ? ONE_MANIFEST : MANIFESTS,
        staticPodURL: tuning.http ? PODS_URL : '',
        podLogsDir: POD_LOGS,
        resolvConf: '',
        readOnlyPort: 10_255,
        runtimeRequestTimeout: tuning.requestTimeoutMs,
        syncFrequency: tuning.syncFrequencyMs,
        fileCheckFrequency: tuning.fileCheckMs,
        httpCheckFrequency: tuning.httpCheckMs,
        ...(tuning.eviction ?? { evictionHard: {} }),
        ...tuning.images,
        ...(tuning.cgroups === null ? {} : { podPidsLimit: tuning.cgroups.podPidsLimit, kubeReserved: kubeReservedOf(tuning) }),
        ...memoryConfig(tuning.throttles),
        ...(kube === undefined ? {} : { registerNode: tuning.registers, configMapAndSecretChangeDetectionStrategy: tuning.objects }),
        ...beside.config,
        ...shown.config,
        ...cpusConfig(tuning, beside.config),
        ...tuning.shutdown,
      },
    });
    const { inspect } = watcher;
    const node = await createNode(config, portsFor(mine), inspect === undefined ? {} : { inspect });
    if (!mine.on) return;
    last = node;
    // `Node` shows the contract; the supervision's tree has what leak checks need.
    const mineNow = { node, tree: node.tree as SupervisionTree, up: false };
    daemon = mineNow;
    if (self.tap !== undefined) mineNow.tree.tap(self.tap);
    node.tree.observe((e) => {
      if (mine.on) watcher.supervision(self, e);
    });
    node.tree.registry.watch(view.statuses, (statuses) => {
      if (mine.on) watcher.statuses(self, statuses);
    });
    watcher.booted(self);
    const crashed = (error: unknown): void => {
      if (!mine.on) return;
      off(`exit 70: ${messageOf(error)}`);
      machineClock.setTimeout(() => self.boot(), RESTART_AFTER_MS);
    };
    void node.tree.failed.then(crashed);
    node.start().then(
      () => {
        mineNow.up = true;
      },
      (error: unknown) => {
        if (!stopping.has(mine)) crashed(error);
      },
    );
  };
  const stopping = new Set<Power>();

  const self: SimNode = {
    name,
    index,
    disk,
    runtime,
    mounts,
    net,
    kernelLog,
    logind,
    iptables,
    kernelSettings,
    cgroups,
    devices,
    drivers,
    beside,
    tuning,
    kube,
    get boots() {
      return boots;
    },
    get lostPower() {
      return lostPower;
    },
    get daemon() {
      return daemon;
    },
    http: () => ({ status: 200, body: '{"apiVersion":"v1","kind":"PodList","items":[]}' }),
    probed: () => ({ kind: 'healthy', afterMs: 1 }),
    memoryAvailable: () => MEMORY_BYTES / 2,
    get wallOffsetMs() {
      return wallOffset.ms;
    },
    set wallOffsetMs(ms) {
      wallOffset.ms = ms;
    },
    tap: undefined,
    boot() {
      if (power.on) return;
      power = { on: true };
      boots += 1;
      run(power).catch((error: unknown) => watcher.broken(self, `the node cannot be made: ${String(error)}`));
    },
    kill(how) {
      if (!power.on) return;
      off(how === 'power' ? 'power failed' : 'killed');
      if (how !== 'power') return;
      lostPower = true;
      mounts.powerLoss(disk);
      drivers.powerLoss();
      cgroups.powerLoss();
      logind.reboot();
      for (const family of FAMILIES) iptables.flush(family);
      kernelSettings.reboot(tuning.kernel?.protect === true);
      disk.powerLoss(rng.fork(`power-${boots}`));
    },
    async stop() {
      const mine = power;
      const running = daemon;
      if (running === undefined) return;
      stopping.add(mine);
      await running.node.stop();
      if (mine.on) off('stopped');
    },
    tail: (lines) => ({ log: logLines.slice(-lines), recorder: last?.recorder(lines) ?? [] }),
  };
  disk.trouble.delayMs = () => latency.between(0, tuning.diskLatencyMs);
  runtime.trouble.noHints = !tuning.hints;
  runtime.trouble.anonymousHints = tuning.anonymousHints;
  runtime.trouble.lagMs = tuning.lagMs;
  return self;
}
