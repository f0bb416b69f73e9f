/**
 * The shape of KubeletConfiguration as data: JSON type of each field, whether it is a pointer field (keeps an explicit
 * zero or false) and what /configz leaves out. The decoder, defaulting, drop-in merging and the renderer all read it. Pure.
 */
import type { KubeletConfiguration } from '../config.ts';

export type FieldType =
  | { t: 'bool' | 'float' | 'string' | 'duration' | 'durationOrNs' }
  | { t: 'int'; min: number; max: number }
  | { t: 'list'; of: FieldType }
  | { t: 'map'; of: FieldType }
  | { t: 'object'; fields: Fields };

export interface Field {
  readonly type: FieldType;
  /** Explicit zero, false and '' are kept; otherwise they mean "unset" and take the default. */
  readonly pointer: boolean;
  /** Written even when empty. */
  readonly always: boolean;
}
export type Fields = Readonly<Record<string, Field>>;

/** Whole numbers beyond 2^53 cannot be held exactly; no field has a use for them. */
const int64: FieldType = { t: 'int', min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER };
const int32: FieldType = { t: 'int', min: -(2 ** 31), max: 2 ** 31 - 1 };
const uint32: FieldType = { t: 'int', min: 0, max: 2 ** 32 - 1 };
const bool: FieldType = { t: 'bool' };
const string: FieldType = { t: 'string' };
const duration: FieldType = { t: 'duration' };
const strings: FieldType = { t: 'list', of: string };
const stringMap: FieldType = { t: 'map', of: string };

const plain = (type: FieldType): Field => ({ type, pointer: false, always: false });
const ptr = (type: FieldType): Field => ({ type, pointer: true, always: false });
const always = (type: FieldType): Field => ({ type, pointer: false, always: true });
const object = (fields: Fields): FieldType => ({ t: 'object', fields });

const outputOptions = object({ splitStream: plain(bool), infoBufferSize: always(string) });

/** Top-level fields in the order of the versioned API. */
export const KUBELET_CONFIGURATION: { readonly [K in keyof KubeletConfiguration]: Field } = {
  enableServer: ptr(bool),
  staticPodPath: plain(string),
  podLogsDir: plain(string),
  syncFrequency: plain(duration),
  fileCheckFrequency: plain(duration),
  httpCheckFrequency: plain(duration),
  staticPodURL: plain(string),
  staticPodURLHeader: plain({ t: 'map', of: strings }),
  address: plain(string),
  port: plain(int32),
  readOnlyPort: plain(int32),
  tlsCertFile: plain(string),
  tlsPrivateKeyFile: plain(string),
  tlsCipherSuites: plain(strings),
  tlsCurvePreferences: plain({ t: 'list', of: int32 }),
  tlsMinVersion: plain(string),
  rotateCertificates: plain(bool),
  serverTLSBootstrap: plain(bool),
  authentication: plain(
    object({
      x509: plain(object({ clientCAFile: plain(string) })),
      webhook: plain(object({ enabled: ptr(bool), cacheTTL: plain(duration) })),
      anonymous: plain(object({ enabled: ptr(bool) })),
    }),
  ),
  authorization: plain(
    object({
      mode: plain(string),
      webhook: plain(object({ cacheAuthorizedTTL: plain(duration), cacheUnauthorizedTTL: plain(duration) })),
    }),
  ),
  registryPullQPS: ptr(int32),
  registryBurst: plain(int32),
  imagePullCredentialsVerificationPolicy: plain(string),
  preloadedImagesVerificationAllowlist: plain(strings),
  eventRecordQPS: ptr(int32),
  eventBurst: plain(int32),
  enableDebuggingHandlers: ptr(bool),
  enableContentionProfiling: plain(bool),
  healthzPort: ptr(int32),
  healthzBindAddress: plain(string),
  oomScoreAdj: ptr(int32),
  clusterDomain: plain(string),
  clusterDNS: plain(strings),
  streamingConnectionIdleTimeout: plain(duration),
  nodeStatusUpdateFrequency: plain(duration),
  nodeStatusReportFrequency: plain(duration),
  nodeLeaseDurationSeconds: plain(int32),
  imageMinimumGCAge: plain(duration),
  imageMaximumGCAge: plain(duration),
  imageGCHighThresholdPercent: ptr(int32),
  imageGCLowThresholdPercent: ptr(int32),
  volumeStatsAggPeriod: plain(duration),
  kubeletCgroups: plain(string),
  systemCgroups: plain(string),
  cgroupRoot: plain(string),
  cgroupsPerQOS: ptr(bool),
  cgroupDriver: plain(string),
  cpuManagerPolicy: plain(string),
  singleProcessOOMKill: ptr(bool),
  cpuManagerPolicyOptions: plain(stringMap),
  cpuManagerReconcilePeriod: plain(duration),
  memoryManagerPolicy: plain(string),
  topologyManagerPolicy: plain(string),
  topologyManagerScope: plain(string),
  topologyManagerPolicyOptions: plain(stringMap),
  qosReserved: plain(stringMap),
  runtimeRequestTimeout: plain(duration),
  hairpinMode: plain(string),
  maxPods: plain(int32),
  podCIDR: plain(string),
  podPidsLimit: ptr(int64),
  resolvConf: ptr(string),
  runOnce: plain(bool),
  cpuCFSQuota: ptr(bool),
  cpuCFSQuotaPeriod: ptr(duration),
  nodeStatusMaxImages: ptr(int32),
  maxOpenFiles: plain(int64),
  contentType: plain(string),
  kubeAPIQPS: ptr(int32),
  kubeAPIBurst: plain(int32),
  serializeImagePulls: ptr(bool),
  maxParallelImagePulls: ptr(int32),
  evictionHard: plain(stringMap),
  evictionSoft: plain(stringMap),
  evictionSoftGracePeriod: plain(stringMap),
  evictionPressureTransitionPeriod: plain(duration),
  evictionMaxPodGracePeriod: plain(int32),
  evictionMinimumReclaim: plain(stringMap),
  mergeDefaultEvictionSettings: ptr(bool),
  podsPerCore: plain(int32),
  enableControllerAttachDetach: ptr(bool),
  protectKernelDefaults: plain(bool),
  makeIPTablesUtilChains: ptr(bool),
  iptablesMasqueradeBit: ptr(int32),
  iptablesDropBit: ptr(int32),
  featureGates: plain({ t: 'map', of: bool }),
  failSwapOn: ptr(bool),
  memorySwap: plain(object({ swapBehavior: plain(string) })),
  containerLogMaxSize: plain(string),
  containerLogMaxFiles: ptr(int32),
  containerLogMaxWorkers: ptr(int32),
  containerLogMonitorInterval: ptr(duration),
  configMapAndSecretChangeDetectionStrategy: plain(string),
  systemReserved: plain(stringMap),
  kubeReserved: plain(stringMap),
  reservedSystemCPUs: plain(string),
  showHiddenMetricsForVersion: plain(string),
  systemReservedCgroup: plain(string),
  kubeReservedCgroup: plain(string),
  enforceNodeAllocatable: plain(strings),
  allowedUnsafeSysctls: plain(strings),
  volumePluginDir: plain(string),
  providerID: plain(string),
  kernelMemcgNotification: plain(bool),
  logging: plain(
    object({
      format: plain(string),
      flushFrequency: always({ t: 'durationOrNs' }),
      verbosity: always(uint32),
      vmodule: plain({ t: 'list', of: object({ filePattern: always(string), verbosity: always(uint32) }) }),
      options: plain(object({ text: plain(outputOptions), json: plain(outputOptions) })),
    }),
  ),
  enableSystemLogHandler: ptr(bool),
  enableSystemLogQuery: ptr(bool),
  shutdownGracePeriod: plain(duration),
  shutdownGracePeriodCriticalPods: plain(duration),
  shutdownGracePeriodByPodPriority: plain({
    t: 'list',
    of: object({ priority: always(int32), shutdownGracePeriodSeconds: always(int64) }),
  }),
  reservedMemory: plain({ t: 'list', of: object({ numaNode: always(int32), limits: always(stringMap) }) }),
  enableProfilingHandler: ptr(bool),
  enableDebugFlagsHandler: ptr(bool),
  seccompDefault: ptr(bool),
  memoryThrottlingFactor: ptr({ t: 'float' }),
  memoryReservationPolicy: plain(string),
  registerWithTaints: plain({ t: 'list', of: object({ key: always(string), value: plain(string), effect: always(string) }) }),
  registerNode: ptr(bool),
  tracing: ptr(object({ endpoint: ptr(string), samplingRatePerMillion: ptr(int32) })),
  localStorageCapacityIsolation: ptr(bool),
  containerRuntimeEndpoint: always(string),
  imageServiceEndpoint: plain(string),
  failCgroupV1: ptr(bool),
  userNamespaces: plain(object({ idsPerPod: ptr(int64) })),
  crashLoopBackOff: plain(object({ maxContainerRestartPeriod: ptr(duration) })),
};
