/**
 * KubeletConfiguration as one table: of each field its type, whether it is a pointer field (keeps an explicit zero or
 * false), what /configz leaves out, and what the rules of `src/boot/config` allow. The TypeScript type, the decoder,
 * defaulting, drop-in merging, the renderer and the JSON Schema for editors all come from it. Pure.
 */

import {
  about,
  bool,
  declared,
  duration,
  durationOrNs,
  type Fields,
  filled,
  integer,
  keyed,
  nullable,
  number,
  type ObjectOf,
  object,
  readonlyList,
  readonlyMap,
  type Shape,
  string,
  type Typed,
  text,
  within,
  words,
} from '../shape/shape.ts';
import { CIPHER_SUITES } from './cipherSuites.ts';
import { SIGNALS } from './evictionSignals.ts';
import { VERIFICATION_POLICIES } from './words.ts';

type Field = Shape & Typed<unknown>;

const int64 = integer();
const int32 = integer(-(2 ** 31), 2 ** 31 - 1);
const uint32 = integer(0, 2 ** 32 - 1);
const strings = readonlyList(string);
const stringMap = readonlyMap(string);

// All fields are there once the defaults are filled in.
const plain = <S extends Field>(type: S) => filled(type);
/** Explicit zero, false and '' are kept; otherwise they mean "unset" and take the default. */
const ptr = <S extends Field>(type: S) => ({ ...filled(type), pointer: true }) as const;
/** Written even when empty. */
const always = <S extends Field>(type: S) => ({ ...filled(type), always: true }) as const;

const INT32_MAX = 2 ** 31 - 1;
const PORT_MAX = 65_535;
export const TAINT_EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] as const;
export const RESERVABLE = ['cpu', 'memory', 'ephemeral-storage', 'pid'] as const;
export const ENFORCEMENTS = [
  'pods',
  'system-reserved',
  'kube-reserved',
  'system-reserved-compressible',
  'kube-reserved-compressible',
  'none',
] as const;
export const SWAP_BEHAVIORS = ['NoSwap', 'LimitedSwap'] as const;
const bySignal = keyed(SIGNALS, stringMap);
const byReservable = keyed(RESERVABLE, stringMap);

/** A number too, kept as the text that it is. */
const writtenQuantity = declared<string>({ t: 'quantity' });

const outputOptions = object({
  splitStream: plain(bool),
  infoBufferSize: about('A quantity of bytes, as written.', always(writtenQuantity)),
});

/** Top-level fields in the order of the versioned API. */
const TABLE = {
  enableServer: ptr(bool),
  staticPodPath: plain(string),
  podLogsDir: plain(string),
  syncFrequency: plain(duration()),
  fileCheckFrequency: plain(duration()),
  httpCheckFrequency: plain(duration()),
  staticPodURL: plain(string),
  staticPodURLHeader: about('Secret: values never reach a log.', plain(readonlyMap(strings))),
  address: plain(string),
  port: within(1, PORT_MAX, plain(int32)),
  readOnlyPort: about('0: no read-only server.', within(0, PORT_MAX, plain(int32))),
  tlsCertFile: plain(string),
  tlsPrivateKeyFile: plain(string),
  tlsCipherSuites: plain(readonlyList(text(...CIPHER_SUITES))),
  tlsCurvePreferences: about("By the numbers that Go gives key exchanges. Default: the library's own choice.", plain(readonlyList(int32))),
  tlsMinVersion: plain(text('', 'VersionTLS10', 'VersionTLS11', 'VersionTLS12', 'VersionTLS13')),
  rotateCertificates: plain(bool),
  serverTLSBootstrap: plain(bool),
  authentication: plain(
    object({
      x509: plain(
        object({
          clientCAFile: about('CA bundle that client certificates are checked with. Default: no client certificates.', plain(string)),
        }),
      ),
      webhook: plain(object({ enabled: ptr(bool), cacheTTL: about('How long an answer is kept.', plain(duration())) })),
      anonymous: plain(object({ enabled: ptr(bool) })),
    }),
  ),
  authorization: plain(
    object({
      mode: plain(words('AlwaysAllow', 'Webhook')),
      webhook: plain(object({ cacheAuthorizedTTL: plain(duration()), cacheUnauthorizedTTL: plain(duration()) })),
    }),
  ),
  registryPullQPS: about('Pulls per second; 0: no limit.', within(0, INT32_MAX, ptr(int32))),
  registryBurst: within(0, INT32_MAX, plain(int32)),
  imagePullCredentialsVerificationPolicy: plain(text('', ...VERIFICATION_POLICIES)),
  preloadedImagesVerificationAllowlist: plain(strings),
  eventRecordQPS: within(0, INT32_MAX, ptr(int32)),
  eventBurst: within(0, INT32_MAX, plain(int32)),
  enableDebuggingHandlers: ptr(bool),
  enableContentionProfiling: plain(bool),
  healthzPort: about('0: no healthz server.', within(0, PORT_MAX, ptr(int32))),
  healthzBindAddress: plain(string),
  oomScoreAdj: within(-1000, 1000, ptr(int32)),
  clusterDomain: plain(string),
  clusterDNS: plain(strings),
  streamingConnectionIdleTimeout: plain(duration()),
  nodeStatusUpdateFrequency: plain(duration()),
  nodeStatusReportFrequency: plain(duration()),
  nodeLeaseDurationSeconds: within(1, INT32_MAX, plain(int32)),
  imageMinimumGCAge: plain(duration()),
  imageMaximumGCAge: about('0s: off.', plain(duration())),
  imageGCHighThresholdPercent: within(0, 100, ptr(int32)),
  imageGCLowThresholdPercent: within(0, 100, ptr(int32)),
  volumeStatsAggPeriod: about('Negative: volume statistics are off.', plain(duration())),
  kubeletCgroups: plain(string),
  systemCgroups: plain(string),
  cgroupRoot: plain(string),
  cgroupsPerQOS: ptr(bool),
  cgroupDriver: plain(text('cgroupfs', 'systemd')),
  cpuManagerPolicy: plain(text('none', 'static')),
  singleProcessOOMKill: about('Default: true on cgroup v1, false on v2.', ptr(nullable(bool))),
  cpuManagerPolicyOptions: plain(stringMap),
  cpuManagerReconcilePeriod: plain(duration()),
  memoryManagerPolicy: plain(text('None', 'Static')),
  topologyManagerPolicy: plain(text('none', 'best-effort', 'restricted', 'single-numa-node')),
  topologyManagerScope: plain(text('container', 'pod')),
  topologyManagerPolicyOptions: plain(stringMap),
  qosReserved: plain(stringMap),
  runtimeRequestTimeout: plain(duration()),
  hairpinMode: plain(text('promiscuous-bridge', 'hairpin-veth', 'none')),
  maxPods: within(0, INT32_MAX, plain(int32)),
  podCIDR: plain(string),
  podPidsLimit: about('-1: no limit.', ptr(int64)),
  resolvConf: about("Empty: pods do not get the host's resolver configuration.", ptr(string)),
  runOnce: plain(bool),
  cpuCFSQuota: ptr(bool),
  cpuCFSQuotaPeriod: ptr(duration()),
  nodeStatusMaxImages: about('-1: no cap; 0: none.', within(-1, INT32_MAX, ptr(int32))),
  maxOpenFiles: within(0, Number.MAX_SAFE_INTEGER, plain(int64)),
  contentType: plain(string),
  kubeAPIQPS: within(0, INT32_MAX, ptr(int32)),
  kubeAPIBurst: within(0, INT32_MAX, plain(int32)),
  serializeImagePulls: ptr(bool),
  maxParallelImagePulls: about('Default: no limit, when pulls are not serialised.', ptr(nullable(int32))),
  evictionHard: plain(bySignal),
  evictionSoft: plain(bySignal),
  evictionSoftGracePeriod: about('Eviction signal to duration.', plain(bySignal)),
  evictionPressureTransitionPeriod: plain(duration()),
  evictionMaxPodGracePeriod: plain(int32),
  evictionMinimumReclaim: plain(bySignal),
  mergeDefaultEvictionSettings: ptr(bool),
  podsPerCore: within(0, INT32_MAX, plain(int32)),
  enableControllerAttachDetach: ptr(bool),
  protectKernelDefaults: plain(bool),
  makeIPTablesUtilChains: ptr(bool),
  iptablesMasqueradeBit: within(0, 31, ptr(int32)),
  iptablesDropBit: within(0, 31, ptr(int32)),
  featureGates: plain(readonlyMap(bool)),
  failSwapOn: ptr(bool),
  memorySwap: plain(object({ swapBehavior: plain(text('', ...SWAP_BEHAVIORS)) })),
  containerLogMaxSize: plain(string),
  containerLogMaxFiles: within(2, INT32_MAX, ptr(int32)),
  containerLogMaxWorkers: within(1, INT32_MAX, ptr(int32)),
  containerLogMonitorInterval: ptr(duration()),
  configMapAndSecretChangeDetectionStrategy: plain(text('Watch', 'Cache', 'Get')),
  systemReserved: plain(byReservable),
  kubeReserved: plain(byReservable),
  reservedSystemCPUs: plain(string),
  showHiddenMetricsForVersion: plain(string),
  systemReservedCgroup: plain(string),
  kubeReservedCgroup: plain(string),
  enforceNodeAllocatable: plain(readonlyList(text(...ENFORCEMENTS))),
  allowedUnsafeSysctls: plain(strings),
  volumePluginDir: plain(string),
  providerID: plain(string),
  kernelMemcgNotification: plain(bool),
  logging: plain(
    object({
      format: plain(words('text', 'json')),
      flushFrequency: always(durationOrNs),
      verbosity: always(uint32),
      vmodule: plain(readonlyList(object({ filePattern: always(string), verbosity: always(uint32) }))),
      options: plain(object({ text: plain(outputOptions), json: plain(outputOptions) })),
    }),
  ),
  enableSystemLogHandler: ptr(bool),
  enableSystemLogQuery: ptr(bool),
  shutdownGracePeriod: plain(duration()),
  shutdownGracePeriodCriticalPods: plain(duration()),
  shutdownGracePeriodByPodPriority: plain(readonlyList(object({ priority: always(int32), shutdownGracePeriodSeconds: always(int64) }))),
  reservedMemory: plain(
    readonlyList(
      object({
        numaNode: always(int32),
        limits: about('Resource name (memory, hugepages-...) to quantity.', always(readonlyMap(writtenQuantity))),
      }),
    ),
  ),
  enableProfilingHandler: ptr(bool),
  enableDebugFlagsHandler: ptr(bool),
  seccompDefault: about('Joined with --seccomp-default by OR.', ptr(bool)),
  memoryThrottlingFactor: ptr(number(0, 1)),
  memoryReservationPolicy: about('With feature gate MemoryQoS.', plain(text('None', 'TieredReservation'))),
  registerWithTaints: plain(readonlyList(object({ key: always(string), value: plain(string), effect: always(words(...TAINT_EFFECTS)) }))),
  registerNode: ptr(bool),
  tracing: ptr(
    nullable(
      object({
        endpoint: about('OTLP gRPC endpoint. Default localhost:4317.', ptr(nullable(string))),
        samplingRatePerMillion: ptr(nullable(int32)),
      }),
    ),
  ),
  localStorageCapacityIsolation: ptr(bool),
  containerRuntimeEndpoint: about('unix:///path/to.sock, embedded://process, embedded://oci or embedded://hollow.', always(string)),
  imageServiceEndpoint: about('Default: the runtime endpoint.', plain(string)),
  failCgroupV1: ptr(bool),
  userNamespaces: plain(object({ idsPerPod: ptr(int64) })),
  crashLoopBackOff: plain(object({ maxContainerRestartPeriod: about('Default: the 300 s of the kubelet.', ptr(nullable(duration()))) })),
} as const;

/** Decoded, with all defaults filled in: durations in milliseconds. */
export type KubeletConfigurationOf = ObjectOf<typeof TABLE>;
export type ConfigField = keyof KubeletConfigurationOf;
export const KUBELET_CONFIGURATION: Readonly<Record<ConfigField, Shape>> & Fields = TABLE;
