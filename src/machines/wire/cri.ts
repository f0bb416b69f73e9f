/**
 * CRI `runtime.v1` messages as plain data, in the shape that `process/protoFile.ts` gives: lower camel case, enums by name, 64-bit integers
 * as decimal strings (nanosecond times exceed 2^53), empty repeated fields as `[]`, empty maps as `{}`, absent messages as `null`
 * (responses) or missing (requests). This is the wire between the node and any runtime, real or simulated; numbers live in `proto/`.
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
