/**
 * Ports: the only ways from the tree to the outside, to time and to chance. Production gives real ones
 * (`src/boot/dependencies`), simulation and tests give fakes; no actor imports `node:` I/O, reads a clock or rolls
 * a die by itself. Every port method that can wait takes an `AbortSignal`, and every method may be slow or fail.
 */

import type { CpuInfo } from '../machines/allocation/cpus/topology.ts';
import type { NumaNode } from '../machines/allocation/numaNode.ts';
import type { HostAddress } from '../machines/api/node/nodeAddresses.ts';
import type { CredentialProvider } from '../machines/runtime/imagePuller/credentialProviders.ts';
import type { RuntimeHint } from '../machines/wire/cri.ts';
import type { CriMethod, CriRequest, CriResponse } from '../machines/wire/criCalls.ts';
import type { Certificates } from './certificates.ts';
import type { Entropy, Rng } from './chance.ts';
import type { Documents } from './documents.ts';
import type { Handling } from './handling.ts';
import type { KubeApi } from './kube.ts';
import type { Cgroups } from './machine/cgroups.ts';
import type { DebuggerPort } from './machine/debugger.ts';
import type { DiskUsage } from './machine/diskUsage.ts';
import type { Gzip } from './machine/gzip.ts';
import type { Inhibitor } from './machine/inhibitor.ts';
import type { InputRecorder } from './machine/inputRecorder.ts';
import type { Iptables } from './machine/iptables.ts';
import type { Journal } from './machine/journal.ts';
import type { KernelLog } from './machine/kernelLog.ts';
import type { Mounter } from './machine/mounter.ts';
import type { Observer } from './machine/observer.ts';
import type { Prober } from './prober.ts';
import type { Csi } from './sockets/csi.ts';
import type { DevicePlugins } from './sockets/devicePlugins.ts';
import type { Dra } from './sockets/dra.ts';
import type { Net } from './sockets/net.ts';
import type { PodResourcesPort } from './sockets/podResources.ts';
import type { PodsApiPort } from './sockets/podsApi.ts';

export type { Entropy, Rng };

export interface Clock {
  /** Wall time, milliseconds since the epoch; may jump. For time stamps people read. */
  wallMs(): number;
  /** Monotonic milliseconds from an arbitrary origin. For durations, back-off and restart intensity. */
  monoMs(): number;
  /** Same contract as xstate's clock; `id` is opaque. */
  setTimeout(fn: () => void, ms: number): unknown;
  clearTimeout(id: unknown): void;
}

export interface Yield {
  /** Runs `fn` after whatever I/O is ready now has had its turn (`setImmediate` in production). */
  defer(fn: () => void): void;
  /** To how many ms a turn of a tree with more to do grows with its wait for it; below 4 it does not grow. Default 32. */
  readonly turnMsMax?: number;
}

export interface FileInfo {
  kind: 'file' | 'dir' | 'symlink' | 'other';
  /** In bytes. The kernel says 4096 for every file below /sys and 0 below /proc and in cgroups, however long it is. */
  size: number;
  /** What it takes of the disk, in bytes: less than its size where it has holes. */
  diskBytes: number;
  /** How many names it has. */
  links: number;
  mode: number;
  mtimeMs: number;
  /** When anything about it changed last, by the system's own clock: nobody can set it. */
  ctimeMs: number;
  dev: number;
  ino: number;
}

/** A file that was opened once and stays the same file, whatever happens to its name. */
export interface ReadHandle {
  /** At most `bytesMax` bytes from `offset` on; none at the end of the file. */
  read(offset: number, bytesMax: number): Promise<Uint8Array>;
  stat(): Promise<FileInfo>;
  close(): Promise<void>;
}

/** File system of the host. Errors carry Node's `code` (`ENOENT`, ...). Paths are absolute. */
export interface HostFs {
  /**
   * Reads to the end, at most `bytesMax` bytes; fails with code `EFBIG` when more comes. The size from `stat` does not count.
   * Fails with `EINVAL` on a FIFO or socket. `own`: nobody but the daemon writes there, so on a link or device too.
   */
  readFile(path: string, opts: { bytesMax: number; own?: boolean }): Promise<Uint8Array>;
  /**
   * Reads the last `bytesMax` bytes of a regular file whose size `stat` knows: not below /proc, /sys or in a cgroup. `within` as
   * for openRead.
   */
  readTail(path: string, o: { bytesMax: number; within?: readonly string[] }): Promise<Uint8Array>;
  /**
   * Opens a regular file for reading (else code `EINVAL`). With `within`, the path and every link on it must stay below
   * one of these folders, or it fails with `EACCES`, whether there is anything outside or not.
   */
  openRead(path: string, o?: { within?: readonly string[] }): Promise<ReadHandle>;
  /**
   * The file has `mode` afterwards whatever the umask is, and whatever mode it had before. A link, FIFO, socket or device in its
   * place is removed first: nothing is written through it.
   */
  writeFile(path: string, data: string | Uint8Array, opts?: { mode?: number; fsync?: boolean; exclusive?: boolean }): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  fsyncDir(path: string): Promise<void>;
  /** With its parents, as far as they are missing. False: it was there. */
  mkdirp(path: string, mode: number): Promise<boolean>;
  /** Names only, sorted by code unit; with `max` so many at most, any of them. `within` as for openRead. */
  readdir(path: string, o?: { within?: readonly string[]; max?: number }): Promise<string[]>;
  /** Follows symlinks. */
  stat(path: string): Promise<FileInfo>;
  /** With `within` links on the way, too, must stay inside, as for openRead. */
  lstat(path: string, o?: { within?: readonly string[] }): Promise<FileInfo>;
  readlink(path: string): Promise<string>;
  symlink(target: string, path: string): Promise<void>;
  chmod(path: string, mode: number): Promise<void>;
  unlink(path: string): Promise<void>;
  rmdir(path: string): Promise<void>;
  /** `bytesFree` is with what is set aside for root; absent: as much as is available. */
  statfs(
    path: string,
  ): Promise<{ bytesTotal: number; bytesAvailable: number; bytesFree?: number; inodesTotal: number; inodesFree: number }>;
}

export interface FsEvent {
  kind: 'create' | 'modify' | 'delete';
  /** Base name inside the watched directory. */
  name: string;
}

/** System calls Node lacks. */
export interface Sys {
  /** inotify on a directory (create, close-write, chmod, move, delete). `onEnd` runs once if the watch breaks by itself. */
  watchDir(path: string, onEvent: (e: FsEvent) => void, onEnd: (error: Error) => void): Disposable;
  /** Datagram to NOTIFY_SOCKET; false when there is none. */
  notify(state: string): boolean;
}

/** A run of ids, for users and groups alike. */
export interface SubordinateIds {
  first: number;
  length: number;
}

/** What a node says about its machine; '' where the machine does not tell. */
export interface HostIdentity {
  machineId: string;
  systemUuid: string;
  kernelVersion: string;
  /** Whether the kernel enforces profiles of AppArmor. Default true. */
  appArmor?: boolean;
  osImage: string;
  /** Go's spelling: `linux`; `amd64`, `arm64`. */
  os: string;
  arch: string;
}

export interface MemoryControlOfHost {
  cgroupVersion: 1 | 2;
  /** The kernel counts swap by cgroup. */
  swapController: boolean;
  swapBytes: number;
}

export interface Host {
  hostname(): string;
  bootId(): string;
  /** Wall ms at which the machine started. Absent in worlds without a machine. */
  bootTimeMs?(): number;
  /** Absent in worlds without a machine. */
  identity?(): HostIdentity;
  /** This process runs in a user namespace: its root is a user of the machine (KEP-2033). Absent: it does not. */
  inUserNamespace?(): boolean;
  /**
   * Ids of the machine that pods with user namespaces may have: those of user `kubelet` in /etc/subuid. Null: nobody said any.
   * Absent in worlds without a machine.
   */
  subordinateIds?: SubordinateIds | null;
  /** The home of the user that this process runs as, '' = none, and where it was started. Absent in worlds without a machine. */
  folders?: { home: string; working: string };
  /** Bytes of memory and number of logical CPUs the node has. */
  capacity(): { memoryBytes: number; cpus: number };
  /** Time since the start of the machine that its CPUs had nothing to do, as a sum of all of them. Absent in worlds that do not tell. */
  idleMs?(): number;
  /** Processor time that everything used since the start of the machine. Absent in worlds that do not tell. */
  usedCpuNs?(): bigint | undefined;
  /** Memory as the kernel counts it just now; file pages that are easily reclaimed count as available. Throws; absent in worlds that do not tell. */
  memory?(): { capacityBytes: number; availableBytes: number };
  /** By what a container's memory can be held. Absent in worlds that do not tell: containers are told their limits alone. */
  memoryControl?(): MemoryControlOfHost;
  /** Processes and threads there are, and may be. Throws; absent in worlds that do not tell. */
  tasks?(): { current: number; max: number };
  /** Online CPUs and how they lie. Throws; absent in worlds that do not tell. */
  cpus?(): CpuInfo[];
  /** In ascending order. Throws; absent in worlds that do not tell. */
  numaNodes?(): NumaNode[];
  /** Every address of this machine that peers can reach, interface by interface, the loopback interface last. */
  addresses(): HostAddress[];
  /** Addresses of a name, from the machine's resolver; takes as long as that does. Rejects; absent in worlds without one. */
  lookup?(name: string): Promise<string[]>;
  cpuUsageMs(): number;
  rssBytes(): number;
}

/** What went wrong with a CRI call. `outcome: 'unknown'` means the call may or may not have had its effect. */
export class CriError extends Error {
  readonly method: string;
  /** gRPC status code (5 NotFound, 4 DeadlineExceeded, 14 Unavailable, 1 Cancelled, 12 Unimplemented). */
  readonly code: number;
  readonly outcome: 'failed' | 'unknown';
  /** The runtime's own words, without gRPC's wrapper. */
  readonly details: string;
  constructor(o: { method: string; code: number; outcome: 'failed' | 'unknown'; details: string }) {
    super(`CRI ${o.method}: ${o.details} (gRPC code ${o.code}, outcome ${o.outcome})`);
    this.name = 'CriError';
    this.method = o.method;
    this.code = o.code;
    this.outcome = o.outcome;
    this.details = o.details;
  }
}

/** One container runtime. Real: gRPC over a unix socket. Simulated: the hollow runtime. */
export interface Cri {
  /**
   * Rejects with {@link CriError}. `timeoutMs` null = no deadline (only the signal ends it). `traceparent`: W3C trace context
   * of the call's span, so that the runtime's spans join its trace; absent: the call is not traced.
   */
  call<M extends CriMethod>(
    method: M,
    req: CriRequest<M>,
    opts: { timeoutMs: number | null; signal: AbortSignal; traceparent?: string },
  ): Promise<CriResponse<M>>;
  /**
   * Lifecycle hints: CRI GetContainerEvents where the runtime has it, else containerd's event stream. Rejects with
   * {@link CriError} code 12 when the runtime has neither; the iterator ends or throws when the stream is lost.
   */
  hints(signal: AbortSignal): Promise<{ via: 'cri' | 'containerd'; stream: AsyncIterable<RuntimeHint> }>;
  /** Drops the channel; the next call dials again. */
  reconnect(): void;
  close(): void;
}

/** Where the daemon's own time and memory go, as V8 samples them on its main thread. One at a time; another rejects. */
export interface Profiler {
  /** What ran in the next `ms`: a `.cpuprofile` document (JSON). An aborted one rejects. */
  cpu(ms: number, signal: AbortSignal): Promise<string>;
  /** What was allocated in the next `ms` and is still held then: a `.heapprofile` document (JSON). */
  heap(ms: number, signal: AbortSignal): Promise<string>;
}

export interface Logger {
  debug(fields: object, msg: string): void;
  info(fields: object, msg: string): void;
  warn(fields: object, msg: string): void;
  error(fields: object, msg: string): void;
  child(bindings: object): Logger;
  /** Sets it for this logger, its parents and children from now on, as `--v`. Absent where it is fixed. */
  setVerbosity?(verbosity: number): void;
}

/** Metrics sink; one per node, no module state. Names and labels are the kubelet's own where they exist. */
export interface Metrics {
  counter(
    name: string,
    help: string,
    labels?: readonly string[],
  ): { inc(labels?: Record<string, string>, by?: number): void; remove(labels: Record<string, string>): void };
  gauge(
    name: string,
    help: string,
    labels?: readonly string[],
  ): { set(value: number, labels?: Record<string, string>): void; remove(labels: Record<string, string>): void };
  histogram(
    name: string,
    help: string,
    buckets: readonly number[],
    labels?: readonly string[],
  ): { observe(value: number, labels?: Record<string, string>): void; remove(labels: Record<string, string>): void };
  /** Called at each scrape, before rendering. A later `fn` with the same `key` replaces it: what a restarted actor needs. */
  onCollect(fn: () => void, key?: string): void;
  /** Prometheus text format; with `wanted` of those families only. */
  render(wanted?: (family: string) => boolean): Promise<string>;
}

/** Programs on the node that know credentials for registries. */
export interface CredentialPrograms {
  readonly providers: readonly CredentialProvider[];
  /** What it printed when it was given `input`. @throws Error without anything secret in it. */
  run(provider: CredentialProvider, input: string, o: { timeoutMs: number; signal: AbortSignal }): Promise<string>;
}

export interface Ports {
  readonly clock: Clock;
  readonly rng: Rng;
  readonly entropy: Entropy;
  readonly yield: Yield;
  readonly fs: HostFs;
  readonly documents: Documents;
  readonly sys: Sys;
  readonly net: Net;
  readonly prober: Prober;
  readonly host: Host;
  readonly cri: Cri;
  /** Absent where none are configured. */
  readonly credentialPrograms?: CredentialPrograms;
  /** Absent where nothing can be mounted: volumes that need it fail, saying so. */
  readonly mounter?: Mounter;
  /** Absent where the machine keeps none. */
  readonly journal?: Journal;
  /** Absent where no process can look: what volumes of this node's own use is not told. */
  readonly diskUsage?: DiskUsage;
  /** Absent where nothing compresses: logs that were rotated stay as they are. */
  readonly gzip?: Gzip;
  /** Absent where plugins beside this node cannot be spoken to: volumes of drivers fail, saying so. */
  readonly csi?: Csi;
  /** Absent where the node makes no cgroups. */
  readonly cgroups?: Cgroups;
  /** Absent where device plugins beside this node cannot be spoken to: there is no device manager. */
  readonly devicePlugins?: DevicePlugins;
  /** Absent where no driver of dynamic resources can be spoken to: pods with claims fail, saying so. */
  readonly dra?: Dra;
  /** Absent where nobody can ask which devices and CPUs containers hold. */
  readonly podResources?: PodResourcesPort;
  /** The socket at which agents list and watch the pods. */
  readonly podsApi?: PodsApiPort;
  /** Absent where there is no kernel to listen to. */
  readonly kernelLog?: KernelLog;
  /** Absent where the node delays no shutdown of its machine. */
  readonly inhibitor?: Inhibitor;
  /** Absent where the node keeps no chains in the packet filter of its host. */
  readonly iptables?: Iptables;
  /** Absent in standalone mode. */
  readonly kube?: KubeApi;
  /** Absent in standalone mode. */
  readonly certificates?: Certificates;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Absent where nothing outlives the process: nothing is set aside. */
  readonly handling?: Handling;
  /** Absent where there is no process to look at. */
  readonly profiler?: Profiler;
  /** Absent where there is no process to look into. */
  readonly debugger?: DebuggerPort;
  /** Absent where nothing can be recorded. */
  readonly inputRecorder?: InputRecorder;
  /** Absent where this program is the kubelet of its machine. */
  readonly observer?: Observer;
}
