/** Settings of a simulated node. */

import type { CpuSet } from '@actorlet/kubelet/machines/allocation/cpuSet.ts';
import type { KubeletConfiguration } from '@actorlet/kubelet/machines/config/config.ts';
import type { BesideTuning } from '../beside/beside.ts';

import type { KernelTuning } from '../host/kernelSettings.ts';
import type { ShutdownTuning } from '../host/logind.ts';
import type { CertificateTuning, EdgeTuning } from '../identity/identity.ts';
import type { DeviceTuning } from '../plugins/machineDevices.ts';
import type { DraTuning } from '../plugins/machineDra.ts';
import type { DriverTuning } from '../plugins/machineDrivers.ts';
import type { CgroupTuning } from '../runtime/cgroupTrouble.ts';

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
  /** Its images lie on a disk of their own, and writable layers on that of the node. */
  splitDisks: boolean;
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
  /** Drivers of dynamic resources are beside it; null: it cannot speak to any. */
  claims: DraTuning | null;
  /** It allocates CPUs; null: all containers run on all. */
  cpus: CpuTuning | null;
  /** It keeps its chains in the packet filter of the machine. */
  packetFilter: boolean;
  /** It relies on settings of its machine's kernel; null: nobody looks at those. */
  kernel: KernelTuning | null;
  /** Its pods have volumes of NFS servers; null: none has. */
  network: NetworkTuning | null;
  /** Its pods have certificates and trust anchors. */
  podIdentities: boolean;
  /** Its pods are waited for when the machine goes down; null: they are not. */
  shutdown: ShutdownTuning | null;
}

export interface NetworkTuning {
  /** Containers wait for their writes while their server is dead: no signal ends them. */
  writes: boolean;
}

export interface CpuTuning {
  count: number;
  /** Threads of each core: 1 or 2. Those of one core are half of all apart, as kernels number them. */
  threads: number;
  sockets: number;
  /** NUMA nodes, as many in each socket, one after the other. */
  nodes: number;
  /** Last-level caches, as many in each NUMA node; 0: the kernel tells of none. */
  caches: number;
  /** Nobody gets these alone. */
  reserved: CpuSet;
  /** Reserved by an amount of kubeReserved, and not by their numbers: then it is CPU 0. */
  byAmount: boolean;
  options: readonly CpuOption[];
  /** cpuManagerReconcilePeriod. */
  everyMs: number;
  /** What is allocated is aligned; null: topology manager policy none. `memory`: policy Static of memory, too. */
  numa: { policy: 'best-effort' | 'restricted' | 'single-numa-node'; scope: 'container' | 'pod'; memory: boolean } | null;
}
export type CpuOption =
  | 'full-pcpus-only'
  | 'distribute-cpus-across-cores'
  | 'distribute-cpus-across-numa'
  | 'align-by-socket'
  | 'prefer-align-cpus-by-uncorecache'
  | 'strict-cpu-reservation';
