/**
 * What a node is configured with: the command line's own flags, the KubeletConfiguration (kubelet.config.k8s.io/v1beta1)
 * with every default filled in, and the feature gates. Types only; boot builds them, everybody else reads them.
 *
 * Field names are those of v1beta1. Durations are numbers in milliseconds under the same name (fractions for what is
 * shorter). `null` stands for a pointer field that was left unset and for which "unset" has a meaning of its own.
 */

/** A toleration-repelling mark the node registers with (v1 Taint without timeAdded). */
export interface ConfigTaint {
  key: string;
  value: string;
  effect: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute';
}

export interface X509Authentication {
  /** Path of the CA bundle that client certificates are checked with; '' = no client certificates. */
  clientCAFile: string;
}
export interface WebhookAuthentication {
  enabled: boolean;
  /** Milliseconds an answer is kept. */
  cacheTTL: number;
}
export interface AuthenticationConfig {
  x509: X509Authentication;
  webhook: WebhookAuthentication;
  anonymous: { enabled: boolean };
}
export interface AuthorizationConfig {
  mode: 'AlwaysAllow' | 'Webhook';
  /** Milliseconds. */
  webhook: { cacheAuthorizedTTL: number; cacheUnauthorizedTTL: number };
}
export interface LogOutputOptions {
  splitStream: boolean;
  /** A quantity of bytes, as written. */
  infoBufferSize: string;
}
export interface VModuleItem {
  filePattern: string;
  verbosity: number;
}
export interface LoggingConfig {
  format: 'text' | 'json';
  /** Milliseconds. */
  flushFrequency: number;
  verbosity: number;
  vmodule: readonly VModuleItem[];
  options: { text: LogOutputOptions; json: LogOutputOptions };
}
export interface MemoryReservation {
  numaNode: number;
  /** Resource name (memory, hugepages-...) to quantity. */
  limits: Readonly<Record<string, string>>;
}
export interface ShutdownGracePeriodByPodPriority {
  priority: number;
  shutdownGracePeriodSeconds: number;
}
export interface TracingConfig {
  /** OTLP gRPC endpoint; null = localhost:4317. */
  endpoint: string | null;
  samplingRatePerMillion: number | null;
}

/** KubeletConfiguration v1beta1 with all defaults filled in. Fields in the order of the versioned API. */
export interface KubeletConfiguration {
  enableServer: boolean;
  staticPodPath: string;
  podLogsDir: string;
  syncFrequency: number;
  fileCheckFrequency: number;
  httpCheckFrequency: number;
  staticPodURL: string;
  /** Secret: values never reach a log. */
  staticPodURLHeader: Readonly<Record<string, readonly string[]>>;
  address: string;
  port: number;
  /** 0 = no read-only server. */
  readOnlyPort: number;
  tlsCertFile: string;
  tlsPrivateKeyFile: string;
  tlsCipherSuites: readonly string[];
  /** By Go's numbers of key exchanges; empty: the library's own choice. */
  tlsCurvePreferences: readonly number[];
  tlsMinVersion: string;
  rotateCertificates: boolean;
  serverTLSBootstrap: boolean;
  authentication: AuthenticationConfig;
  authorization: AuthorizationConfig;
  /** Pulls per second; 0 = unlimited. */
  registryPullQPS: number;
  registryBurst: number;
  imagePullCredentialsVerificationPolicy: string;
  preloadedImagesVerificationAllowlist: readonly string[];
  eventRecordQPS: number;
  eventBurst: number;
  enableDebuggingHandlers: boolean;
  enableContentionProfiling: boolean;
  /** 0 = no healthz server. */
  healthzPort: number;
  healthzBindAddress: string;
  oomScoreAdj: number;
  clusterDomain: string;
  clusterDNS: readonly string[];
  streamingConnectionIdleTimeout: number;
  nodeStatusUpdateFrequency: number;
  nodeStatusReportFrequency: number;
  nodeLeaseDurationSeconds: number;
  imageMinimumGCAge: number;
  /** 0 = off. */
  imageMaximumGCAge: number;
  imageGCHighThresholdPercent: number;
  imageGCLowThresholdPercent: number;
  /** Negative = volume statistics are off. */
  volumeStatsAggPeriod: number;
  kubeletCgroups: string;
  systemCgroups: string;
  cgroupRoot: string;
  cgroupsPerQOS: boolean;
  cgroupDriver: string;
  cpuManagerPolicy: string;
  /** null = decided by the cgroup version: true on v1, false on v2. */
  singleProcessOOMKill: boolean | null;
  cpuManagerPolicyOptions: Readonly<Record<string, string>>;
  cpuManagerReconcilePeriod: number;
  memoryManagerPolicy: string;
  topologyManagerPolicy: string;
  topologyManagerScope: string;
  topologyManagerPolicyOptions: Readonly<Record<string, string>>;
  qosReserved: Readonly<Record<string, string>>;
  runtimeRequestTimeout: number;
  hairpinMode: string;
  maxPods: number;
  podCIDR: string;
  /** -1 = no limit. */
  podPidsLimit: number;
  /** '' = pods do not get the host's resolver configuration. */
  resolvConf: string;
  runOnce: boolean;
  cpuCFSQuota: boolean;
  cpuCFSQuotaPeriod: number;
  /** -1 = no cap, 0 = none. */
  nodeStatusMaxImages: number;
  maxOpenFiles: number;
  contentType: string;
  kubeAPIQPS: number;
  kubeAPIBurst: number;
  serializeImagePulls: boolean;
  /** null = no limit (when pulls are not serialised). */
  maxParallelImagePulls: number | null;
  evictionHard: Readonly<Record<string, string>>;
  evictionSoft: Readonly<Record<string, string>>;
  /** Signal to Go duration text. */
  evictionSoftGracePeriod: Readonly<Record<string, string>>;
  evictionPressureTransitionPeriod: number;
  evictionMaxPodGracePeriod: number;
  evictionMinimumReclaim: Readonly<Record<string, string>>;
  mergeDefaultEvictionSettings: boolean;
  podsPerCore: number;
  enableControllerAttachDetach: boolean;
  protectKernelDefaults: boolean;
  makeIPTablesUtilChains: boolean;
  iptablesMasqueradeBit: number;
  iptablesDropBit: number;
  featureGates: Readonly<Record<string, boolean>>;
  failSwapOn: boolean;
  memorySwap: { swapBehavior: string };
  containerLogMaxSize: string;
  containerLogMaxFiles: number;
  containerLogMaxWorkers: number;
  containerLogMonitorInterval: number;
  configMapAndSecretChangeDetectionStrategy: string;
  systemReserved: Readonly<Record<string, string>>;
  kubeReserved: Readonly<Record<string, string>>;
  reservedSystemCPUs: string;
  showHiddenMetricsForVersion: string;
  systemReservedCgroup: string;
  kubeReservedCgroup: string;
  enforceNodeAllocatable: readonly string[];
  allowedUnsafeSysctls: readonly string[];
  volumePluginDir: string;
  providerID: string;
  kernelMemcgNotification: boolean;
  logging: LoggingConfig;
  enableSystemLogHandler: boolean;
  enableSystemLogQuery: boolean;
  shutdownGracePeriod: number;
  shutdownGracePeriodCriticalPods: number;
  shutdownGracePeriodByPodPriority: readonly ShutdownGracePeriodByPodPriority[];
  reservedMemory: readonly MemoryReservation[];
  enableProfilingHandler: boolean;
  enableDebugFlagsHandler: boolean;
  /** Already joined with `--seccomp-default` by OR. */
  seccompDefault: boolean;
  memoryThrottlingFactor: number;
  /** `None` or `TieredReservation`; with the gate MemoryQoS. */
  memoryReservationPolicy: string;
  registerWithTaints: readonly ConfigTaint[];
  registerNode: boolean;
  tracing: TracingConfig | null;
  localStorageCapacityIsolation: boolean;
  /** `unix:///path`, or one of our own: `embedded://process`, `embedded://hollow`. Normalised: never a bare path. */
  containerRuntimeEndpoint: string;
  /** '' = the runtime endpoint. */
  imageServiceEndpoint: string;
  failCgroupV1: boolean;
  userNamespaces: { idsPerPod: number };
  /** null = no cap of its own (the kubelet's 300 s). */
  crashLoopBackOff: { maxContainerRestartPeriod: number | null };
}

/** What only the command line can say. Paths are absolute (against the working directory) where they are not ''. */
export interface KubeletFlags {
  config: string;
  configDir: string;
  /** '' = standalone mode. */
  kubeconfig: string;
  bootstrapKubeconfig: string;
  hostnameOverride: string;
  /** None, one, or a dual-stack pair. */
  nodeIPs: readonly string[];
  certDir: string;
  rootDir: string;
  nodeLabels: Readonly<Record<string, string>>;
  lockFile: string;
  exitOnLockContention: boolean;
  runtimeCgroups: string;
  podInfraContainerImage: string;
  imageCredentialProviderConfig: string;
  imageCredentialProviderBinDir: string;
  cloudProvider: string;
  cloudConfig: string;
  /** Milliseconds a dead container is kept before it may be collected. */
  minimumContainerTTLDuration: number;
  maximumDeadContainersPerContainer: number;
  /** Negative = unlimited. */
  maximumDeadContainers: number;
  registerSchedulable: boolean;
  experimentalMounterPath: string;
  experimentalAllocatableIgnoreEviction: boolean;
  /** Our own: path of the admin socket; default `<root-dir>/actorlet.sock`. */
  adminSocket: string;
  /** Our own: allows `actorctl inject`. */
  faultInjection: boolean;
  /** Our own: `HOST:PORT` of the inspection page; '' for none. */
  inspect: string;
  /** Our own: file of the recording; '' for none. */
  record: string;
  /** Our own: MiB of the recording's two segments together. */
  recordMaxMib: number;
}

export interface FeatureGates {
  /** The effective value. Throws on a name that is not registered: that is a programming error. */
  enabled(name: string): boolean;
  /** Every registered gate with its effective value, sorted by name; for the metric `kubernetes_feature_enabled`. */
  list(): readonly GateState[];
}
/** Stage as the reference names it; GA is the empty stage in some of its output, here it is spelled out. */
export type GateStage = 'ALPHA' | 'BETA' | 'GA' | 'DEPRECATED';
export interface GateState {
  name: string;
  stage: GateStage;
  enabled: boolean;
  default: boolean;
  locked: boolean;
}

/** Everything `createNode` is told. Never changed after boot. */
export interface NodeConfig {
  readonly flags: Readonly<KubeletFlags>;
  readonly config: Readonly<KubeletConfiguration>;
  readonly gates: FeatureGates;
}
