/**
 * CRI `runtime.v1` messages as plain data, in the shape that `process/protoFile.ts`
 * gives: lower camel case, enums by name, 64-bit integers as decimal strings (nanosecond times exceed 2^53), empty
 * repeated fields as `[]`, empty maps as `{}`, absent messages as `null` (responses) or missing (requests).
 * This is the wire between the node and any runtime, real or simulated; numbers live in `proto/`.
 */

type NamespaceMode = 'POD' | 'CONTAINER' | 'NODE' | 'TARGET';
export type PodSandboxState = 'SANDBOX_READY' | 'SANDBOX_NOTREADY';
export type CriContainerState = 'CONTAINER_CREATED' | 'CONTAINER_RUNNING' | 'CONTAINER_EXITED' | 'CONTAINER_UNKNOWN';
/** Nanoseconds since the epoch, decimal. `'0'` means never. */
export type Nanos = string;
export type StringMap = Record<string, string>;

export interface Int64Value {
  value: string | number;
}
export interface NamespaceOption {
  network?: NamespaceMode;
  pid?: NamespaceMode;
  ipc?: NamespaceMode;
  targetId?: string;
  usernsOptions?: UserNamespace;
}
/** One contiguous run of ids: which ids of the host those of a container are. */
export interface IdMapping {
  hostId: number;
  containerId: number;
  length: number;
}
export interface UserNamespace {
  mode: 'POD' | 'NODE';
  uids: IdMapping[];
  gids: IdMapping[];
}
export type SupplementalGroupsPolicy = 'Merge' | 'Strict';
export interface SecurityProfile {
  profileType: 'RuntimeDefault' | 'Unconfined' | 'Localhost';
  localhostRef?: string;
}
export interface SELinuxOption {
  user?: string;
  role?: string;
  type?: string;
  level?: string;
}
export interface LinuxSandboxSecurityContext {
  namespaceOptions?: NamespaceOption;
  selinuxOptions?: SELinuxOption;
  runAsUser?: Int64Value;
  runAsGroup?: Int64Value;
  readonlyRootfs?: boolean;
  supplementalGroups?: (string | number)[];
  supplementalGroupsPolicy?: SupplementalGroupsPolicy;
  privileged?: boolean;
  seccomp?: SecurityProfile;
  apparmor?: SecurityProfile;
}
export interface LinuxContainerResources {
  cpuPeriod?: string | number;
  cpuQuota?: string | number;
  cpuShares?: string | number;
  memoryLimitInBytes?: string | number;
  oomScoreAdj?: string | number;
  cpusetCpus?: string;
  cpusetMems?: string;
  hugepageLimits?: { pageSize: string; limit: string | number }[];
  unified?: StringMap;
  /** Memory and swap together, of cgroup v1 alone. */
  memorySwapLimitInBytes?: string | number;
}
interface LinuxPodSandboxConfig {
  cgroupParent?: string;
  securityContext?: LinuxSandboxSecurityContext;
  sysctls?: StringMap;
  overhead?: LinuxContainerResources;
  resources?: LinuxContainerResources;
}
export interface PodSandboxMetadata {
  name: string;
  uid: string;
  namespace: string;
  attempt: number;
}
export interface PortMapping {
  protocol: 'TCP' | 'UDP' | 'SCTP';
  containerPort: number;
  hostPort: number;
  hostIp: string;
}
export interface DNSConfig {
  servers: string[];
  searches: string[];
  options: string[];
}
export interface PodSandboxConfig {
  metadata: PodSandboxMetadata;
  hostname?: string;
  logDirectory?: string;
  dnsConfig?: DNSConfig;
  portMappings?: PortMapping[];
  labels?: StringMap;
  annotations?: StringMap;
  linux?: LinuxPodSandboxConfig;
}
export interface PodSandbox {
  id: string;
  metadata: PodSandboxMetadata | null;
  state: PodSandboxState;
  createdAt: Nanos;
  labels: StringMap;
  annotations: StringMap;
  runtimeHandler: string;
}
export interface PodSandboxStatus extends PodSandbox {
  network: { ip: string; additionalIps: { ip: string }[] } | null;
  linux: { namespaces: { options: NamespaceOption | null } | null } | null;
}
export interface ImageSpec {
  image: string;
  annotations?: StringMap;
  userSpecifiedImage?: string;
  runtimeHandler?: string;
}
export interface KeyValue {
  key: string;
  value: string;
}
export interface Mount {
  containerPath: string;
  hostPath: string;
  readonly?: boolean;
  selinuxRelabel?: boolean;
  propagation?: 'PROPAGATION_PRIVATE' | 'PROPAGATION_HOST_TO_CONTAINER' | 'PROPAGATION_BIDIRECTIONAL';
  /** Mounts below it, too. */
  recursiveReadOnly?: boolean;
  /** Instead of a host path, which is '' then. */
  image?: ImageSpec;
  imageSubPath?: string;
  uidMappings?: IdMapping[];
  gidMappings?: IdMapping[];
}
export interface Device {
  containerPath: string;
  hostPath: string;
  permissions: string;
}
export interface LinuxContainerSecurityContext {
  capabilities?: { addCapabilities: string[]; dropCapabilities: string[] };
  privileged?: boolean;
  namespaceOptions?: NamespaceOption;
  selinuxOptions?: SELinuxOption;
  runAsUser?: Int64Value;
  runAsUsername?: string;
  runAsGroup?: Int64Value;
  readonlyRootfs?: boolean;
  supplementalGroups?: (string | number)[];
  supplementalGroupsPolicy?: SupplementalGroupsPolicy;
  noNewPrivs?: boolean;
  maskedPaths?: string[];
  readonlyPaths?: string[];
  seccomp?: SecurityProfile;
  apparmor?: SecurityProfile;
}
export interface ContainerMetadata {
  name: string;
  attempt: number;
}
export interface ContainerConfig {
  metadata: ContainerMetadata;
  image: ImageSpec;
  command?: string[];
  args?: string[];
  workingDir?: string;
  envs?: KeyValue[];
  mounts?: Mount[];
  devices?: Device[];
  CDIDevices?: { name: string }[];
  labels?: StringMap;
  annotations?: StringMap;
  logPath?: string;
  stdin?: boolean;
  stdinOnce?: boolean;
  tty?: boolean;
  linux?: { resources?: LinuxContainerResources; securityContext?: LinuxContainerSecurityContext };
  /** Signal name of the CRI enum (`SIGUSR1`), absent for the image's own. */
  stopSignal?: string;
}
export interface CriContainer {
  id: string;
  podSandboxId: string;
  metadata: ContainerMetadata | null;
  image: ImageSpec | null;
  imageRef: string;
  state: CriContainerState;
  createdAt: Nanos;
  labels: StringMap;
  annotations: StringMap;
}
export interface CriContainerStatus {
  id: string;
  metadata: ContainerMetadata | null;
  state: CriContainerState;
  createdAt: Nanos;
  startedAt: Nanos;
  finishedAt: Nanos;
  exitCode: number;
  image: ImageSpec | null;
  imageRef: string;
  reason: string;
  message: string;
  labels: StringMap;
  annotations: StringMap;
  mounts: Mount[];
  logPath: string;
  /** Absent or RUNTIME_DEFAULT: an older runtime. */
  stopSignal?: string;
  user?: { linux: { uid: string; gid: string; supplementalGroups: string[] } | null } | null;
  /** What is in force. */
  resources?: { linux: LinuxContainerResources | null } | null;
}
export interface Image {
  id: string;
  repoTags: string[];
  repoDigests: string[];
  size: string;
  uid: Int64Value | null;
  username: string;
  spec: ImageSpec | null;
  pinned: boolean;
}
export interface AuthConfig {
  username?: string;
  password?: string;
  auth?: string;
  serverAddress?: string;
  identityToken?: string;
  registryToken?: string;
}
interface RuntimeCondition {
  type: string;
  status: boolean;
  reason: string;
  message: string;
}
export interface UInt64Value {
  value: string | number;
}
export interface FilesystemUsage {
  timestamp: Nanos;
  fsId: { mountpoint: string } | null;
  usedBytes: UInt64Value | null;
  inodesUsed: UInt64Value | null;
}
interface CriPsiData {
  /** Microseconds. */
  Total: string | number;
  Avg10: number;
  Avg60: number;
  Avg300: number;
}
export interface CriPsi {
  Full: CriPsiData | null;
  Some: CriPsiData | null;
}
interface CriCpuUsage {
  timestamp: Nanos;
  usageCoreNanoSeconds: UInt64Value | null;
  usageNanoCores: UInt64Value | null;
  psi?: CriPsi | null;
}
interface CriMemoryUsage {
  timestamp: Nanos;
  workingSetBytes: UInt64Value | null;
  availableBytes: UInt64Value | null;
  usageBytes: UInt64Value | null;
  rssBytes: UInt64Value | null;
  pageFaults: UInt64Value | null;
  majorPageFaults: UInt64Value | null;
  psi?: CriPsi | null;
}
interface CriIoUsage {
  timestamp: Nanos;
  psi?: CriPsi | null;
}
export interface CriInterfaceUsage {
  name: string;
  rxBytes: UInt64Value | null;
  rxErrors: UInt64Value | null;
  txBytes: UInt64Value | null;
  txErrors: UInt64Value | null;
}
export interface CriSandboxStats {
  attributes: { id: string; metadata: PodSandboxMetadata | null; labels: StringMap; annotations: StringMap } | null;
  linux: {
    cpu: CriCpuUsage | null;
    memory: CriMemoryUsage | null;
    network: { timestamp: Nanos; defaultInterface: CriInterfaceUsage | null; interfaces: CriInterfaceUsage[] } | null;
    process: { timestamp: Nanos; processCount: UInt64Value | null } | null;
    containers: CriContainerStats[];
    io?: CriIoUsage | null;
  } | null;
}
export interface CriMetricDescriptor {
  name: string;
  help: string;
  labelKeys: string[];
}
export interface CriMetric {
  name: string;
  /** 0: the runtime read it for this answer. */
  timestamp: Nanos;
  metricType: 'COUNTER' | 'GAUGE';
  labelValues: string[];
  value: UInt64Value | null;
}
export interface CriSandboxMetrics {
  podSandboxId: string;
  metrics: CriMetric[];
  containerMetrics: { containerId: string; metrics: CriMetric[] }[];
}
export interface CriContainerStats {
  attributes: { id: string; metadata: ContainerMetadata | null; labels: StringMap; annotations: StringMap } | null;
  cpu: CriCpuUsage | null;
  memory: CriMemoryUsage | null;
  writableLayer: FilesystemUsage | null;
  /** Absent: the runtime does not count it. */
  swap?: { timestamp: Nanos; swapAvailableBytes: UInt64Value | null; swapUsageBytes: UInt64Value | null } | null;
  io?: CriIoUsage | null;
}

type Empty = Record<never, never>;

/** Every unary CRI call this node makes: request and response by RPC name. */
export interface CriCalls {
  Version: { req: { version: string }; res: { version: string; runtimeName: string; runtimeVersion: string; runtimeApiVersion: string } };
  Status: {
    req: { verbose?: boolean };
    /** Handlers are named by runtimes that know of them. */
    res: {
      status: { conditions: RuntimeCondition[] } | null;
      info: StringMap;
      runtimeHandlers?: readonly { name: string; features?: { recursiveReadOnlyMounts: boolean; userNamespaces: boolean } | null }[];
      features?: { supplementalGroupsPolicy: boolean } | null;
    };
  };
  RuntimeConfig: { req: Empty; res: { linux: { cgroupDriver: 'SYSTEMD' | 'CGROUPFS' } | null } };
  UpdateRuntimeConfig: { req: { runtimeConfig: { networkConfig: { podCidr: string } } }; res: Empty };
  RunPodSandbox: { req: { config: PodSandboxConfig; runtimeHandler?: string }; res: { podSandboxId: string } };
  StopPodSandbox: { req: { podSandboxId: string }; res: Empty };
  RemovePodSandbox: { req: { podSandboxId: string }; res: Empty };
  PodSandboxStatus: { req: { podSandboxId: string; verbose?: boolean }; res: { status: PodSandboxStatus | null; info: StringMap } };
  ListPodSandbox: {
    req: { filter?: { id?: string; state?: { state: PodSandboxState }; labelSelector?: StringMap } };
    res: { items: PodSandbox[] };
  };
  CreateContainer: {
    req: { podSandboxId: string; config: ContainerConfig; sandboxConfig: PodSandboxConfig };
    res: { containerId: string };
  };
  StartContainer: { req: { containerId: string }; res: Empty };
  StopContainer: { req: { containerId: string; timeout: number | string }; res: Empty };
  RemoveContainer: { req: { containerId: string }; res: Empty };
  ListContainers: {
    req: { filter?: { id?: string; state?: { state: CriContainerState }; podSandboxId?: string; labelSelector?: StringMap } };
    res: { containers: CriContainer[] };
  };
  ContainerStatus: { req: { containerId: string; verbose?: boolean }; res: { status: CriContainerStatus | null; info: StringMap } };
  UpdateContainerResources: { req: { containerId: string; linux?: LinuxContainerResources }; res: Empty };
  /** What the sandbox may have in all. A runtime that refuses it refuses the change. */
  UpdatePodSandboxResources: {
    req: { podSandboxId: string; overhead?: LinuxContainerResources; resources: LinuxContainerResources };
    res: Empty;
  };
  /** `timeout`: seconds; 0 = the runtime's own. */
  CheckpointContainer: { req: { containerId: string; location: string; timeout: number | string }; res: Empty };
  ReopenContainerLog: { req: { containerId: string }; res: Empty };
  ExecSync: {
    req: { containerId: string; cmd: string[]; timeout: number | string };
    res: { stdout: Uint8Array; stderr: Uint8Array; exitCode: number };
  };
  Exec: {
    req: { containerId: string; cmd: string[]; tty: boolean; stdin: boolean; stdout: boolean; stderr: boolean };
    res: { url: string };
  };
  Attach: { req: { containerId: string; stdin: boolean; tty: boolean; stdout: boolean; stderr: boolean }; res: { url: string } };
  PortForward: { req: { podSandboxId: string; port: number[] }; res: { url: string } };
  ContainerStats: { req: { containerId: string }; res: { stats: CriContainerStats | null } };
  ListContainerStats: {
    req: { filter?: { id?: string; podSandboxId?: string; labelSelector?: StringMap } };
    res: { stats: CriContainerStats[] };
  };
  PodSandboxStats: { req: { podSandboxId: string }; res: { stats: CriSandboxStats | null } };
  ListPodSandboxStats: { req: { filter?: { id?: string; labelSelector?: StringMap } }; res: { stats: CriSandboxStats[] } };
  ListMetricDescriptors: { req: Empty; res: { descriptors: CriMetricDescriptor[] } };
  ListPodSandboxMetrics: { req: Empty; res: { podMetrics: CriSandboxMetrics[] } };
  ListImages: { req: { filter?: { image: ImageSpec } }; res: { images: Image[] } };
  ImageStatus: { req: { image: ImageSpec; verbose?: boolean }; res: { image: Image | null; info: StringMap } };
  PullImage: { req: { image: ImageSpec; auth?: AuthConfig; sandboxConfig?: PodSandboxConfig }; res: { imageRef: string } };
  RemoveImage: { req: { image: ImageSpec }; res: Empty };
  ImageFsInfo: { req: Empty; res: { imageFilesystems: FilesystemUsage[]; containerFilesystems: FilesystemUsage[] } };
}
export type CriMethod = keyof CriCalls;
export type CriRequest<M extends CriMethod> = CriCalls[M]['req'];
export type CriResponse<M extends CriMethod> = CriCalls[M]['res'];

/** One hint that something about a container or sandbox changed. Hints never carry truth (design: level-triggered). */
export interface RuntimeHint {
  kind: 'created' | 'started' | 'stopped' | 'deleted' | 'oom' | 'other';
  /** Container or sandbox id. */
  id: string;
  /** Pod UID when the stream names it (CRI GetContainerEvents does, containerd's own stream does not). */
  podUid?: string;
}

/** Labels and annotations by which containers and sandboxes are recognised after a restart. */
export const CRI_LABELS = {
  podName: 'io.kubernetes.pod.name',
  podNamespace: 'io.kubernetes.pod.namespace',
  podUid: 'io.kubernetes.pod.uid',
  containerName: 'io.kubernetes.container.name',
} as const;
export const CRI_ANNOTATIONS = {
  hash: 'io.kubernetes.container.hash',
  restartCount: 'io.kubernetes.container.restartCount',
  terminationMessagePath: 'io.kubernetes.container.terminationMessagePath',
  terminationMessagePolicy: 'io.kubernetes.container.terminationMessagePolicy',
  preStopHandler: 'io.kubernetes.container.preStopHandler',
  ports: 'io.kubernetes.container.ports',
  podDeletionGracePeriod: 'io.kubernetes.pod.deletionGracePeriod',
  podTerminationGracePeriod: 'io.kubernetes.pod.terminationGracePeriod',
  /** Our own: requests and limits that the container was made with. */
  resources: 'actorlet.dev/resources',
} as const;
