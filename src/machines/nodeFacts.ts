/** Facts of this node that several managers decide by. */

/** Facts of this node that pod decisions need; immutable. */
/** A host whose kernel has SELinux, and a policy. */
interface SelinuxFacts {
  /** Label of files of containers, of four parts: `system_u:object_r:container_file_t:s0`. */
  fileLabel: string;
  /** Gate SELinuxMount: volumes of every access mode are mounted with a label. */
  allModes: boolean;
}

export interface NodeFacts {
  /** Absent: no SELinux. */
  selinux?: SelinuxFacts;
  /** Gate LocalStorageCapacityIsolationFSQuotaMonitoring: file systems count what emptyDirs hold. */
  projectQuotas?: boolean;
  nodeName: string;
  /** With an external cloud and without --node-ip those of the Node object; none while it has none. */
  hostIPs: string[];
  /** Of a pod with addresses of both families: by --node-ip alone, not by what the node's name or its cloud says. Absent: IPv4. */
  ipv6First?: boolean;
  rootDir: string;
  podLogsDir: string;
  containerLogsDir: string;
  clusterDomain: string;
  clusterDNS: string[];
  /** The host's resolver configuration as it was at the start; null when there was none. */
  hostDns: { servers: string[]; searches: string[]; options: string[] } | null;
  /** Its file, which each new sandbox reads again; absent or '': none. */
  resolvConf?: string;
  hostsFile: string;
  memoryCapacityBytes: number;
  /** Absent in worlds that do not tell: containers are told their limits alone. */
  memoryControl?: MemoryControl;
  capacity: Record<string, string>;
  /** What pods may use of the capacity. */
  allocatable: Record<string, string>;
  cpuCFSQuota: boolean;
  cpuCFSQuotaPeriodMs: number;
  seccompDefault: boolean;
  /** Where the kernel counts how often each CPU was too hot: hidden from containers. Absent: nowhere. */
  thermalFolders?: readonly string[];
  /** Ids that a pod with a user namespace of its own gets; default 65536. */
  userNamespaceIds?: number;
  /** Ids of the host for user namespaces of pods; absent: all beyond the host's own. */
  subordinateIds?: { first: number; length: number };
  hugePageSizes: string[];
  /** Name of the cgroup that holds all pods; absent: this node makes none of its own. */
  kubepods?: readonly string[];
  /** Gate PodAndContainerStatsFromCRI: what a pod uses is asked of the runtime. Default false. */
  statsFromCri?: boolean;
  /** cgroupRoot, what all cgroups of this node are below; default the root of the hierarchies. */
  cgroupRoot?: string;
  /** What the runtime said, or else the configuration; absent until the runtime was asked. */
  readonly cgroupDriver?: GroupDriver | undefined;
  runtimeName: string;
  /** Names of the runtime's handlers that can make mounts below a mount read-only, too. Absent: none. */
  readonly recursiveReadOnly?: readonly string[] | undefined;
  maxRestartBackoffMs: number;
}

export type GroupDriver = 'cgroupfs' | 'systemd';

/** Facts of the host about memory, and what the configuration asks for. */
export interface MemoryControl {
  cgroupVersion: 1 | 2;
  /** The kernel counts swap by cgroup: without that nobody can be kept from it, and nothing is said of it. */
  swapController: boolean;
  /** All swap of the host, in bytes. */
  swapBytes: number;
  /** `memorySwap.swapBehavior`. */
  limitedSwap: boolean;
  /** `memoryThrottlingFactor`, above 0 and at most 1; null where the gate MemoryQoS is off. */
  throttlingFactor: number | null;
  /** `memoryReservationPolicy: TieredReservation`, with that gate. */
  floors: boolean;
  /** A container that is out of memory dies as a whole: not with `singleProcessOOMKill`. */
  groupOom: boolean;
}

export type NodePressure = (typeof NODE_PRESSURES)[number];
export const NODE_PRESSURES = ['MemoryPressure', 'DiskPressure', 'PIDPressure'] as const;

/** What does not change while the node runs. */
export interface NodeIdentity {
  name: string;
  hostname: string;
  labels: Readonly<Record<string, string>>;
  taints: readonly { key: string; value: string; effect: string }[];
  schedulable: boolean;
  providerID: string;
  externalCloud: boolean;
  /** For the cloud's controller, which checks them: the addresses that were named, joined by commas; '' none. */
  providedIPs: string;
  controllerAttachDetach: boolean;
  /** Go's spelling: `linux`, `amd64`. */
  os: string;
  arch: string;
}
