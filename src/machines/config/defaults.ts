/**
 * Built-in defaults (boot-and-node 3, values of 1.34): the v1beta1 defaults, with or without a configuration file, and
 * a whole default node configuration for simulation and tests. Pure.
 */
import type { KubeletConfiguration, KubeletFlags, NodeConfig } from '../config.ts';
import { createFeatureGates } from './gates.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Hard eviction thresholds on Linux. */
export const DEFAULT_EVICTION_HARD: Readonly<Record<string, string>> = {
  'imagefs.available': '15%',
  'imagefs.inodesFree': '5%',
  'memory.available': '100Mi',
  'nodefs.available': '10%',
  'nodefs.inodesFree': '5%',
};

/** Every field at its v1beta1 default; a fresh object each time. */
export function defaultKubeletConfiguration(): KubeletConfiguration {
  return {
    enableServer: true,
    staticPodPath: '',
    podLogsDir: '/var/log/pods',
    syncFrequency: MINUTE,
    fileCheckFrequency: 20 * SECOND,
    httpCheckFrequency: 20 * SECOND,
    staticPodURL: '',
    staticPodURLHeader: {},
    address: '0.0.0.0',
    port: 10250,
    readOnlyPort: 0,
    tlsCertFile: '',
    tlsPrivateKeyFile: '',
    tlsCipherSuites: [],
    tlsMinVersion: '',
    rotateCertificates: false,
    serverTLSBootstrap: false,
    authentication: { x509: { clientCAFile: '' }, webhook: { enabled: true, cacheTTL: 2 * MINUTE }, anonymous: { enabled: false } },
    authorization: { mode: 'Webhook', webhook: { cacheAuthorizedTTL: 5 * MINUTE, cacheUnauthorizedTTL: 30 * SECOND } },
    registryPullQPS: 5,
    registryBurst: 10,
    imagePullCredentialsVerificationPolicy: '',
    preloadedImagesVerificationAllowlist: [],
    eventRecordQPS: 50,
    eventBurst: 100,
    enableDebuggingHandlers: true,
    enableContentionProfiling: false,
    healthzPort: 10248,
    healthzBindAddress: '127.0.0.1',
    oomScoreAdj: -999,
    clusterDomain: '',
    clusterDNS: [],
    streamingConnectionIdleTimeout: 4 * HOUR,
    nodeStatusUpdateFrequency: 10 * SECOND,
    nodeStatusReportFrequency: 5 * MINUTE,
    nodeLeaseDurationSeconds: 40,
    imageMinimumGCAge: 2 * MINUTE,
    imageMaximumGCAge: 0,
    imageGCHighThresholdPercent: 85,
    imageGCLowThresholdPercent: 80,
    volumeStatsAggPeriod: MINUTE,
    kubeletCgroups: '',
    systemCgroups: '',
    cgroupRoot: '',
    cgroupsPerQOS: true,
    cgroupDriver: 'cgroupfs',
    cpuManagerPolicy: 'none',
    singleProcessOOMKill: null,
    cpuManagerPolicyOptions: {},
    cpuManagerReconcilePeriod: 10 * SECOND,
    memoryManagerPolicy: 'None',
    topologyManagerPolicy: 'none',
    topologyManagerScope: 'container',
    topologyManagerPolicyOptions: {},
    qosReserved: {},
    runtimeRequestTimeout: 2 * MINUTE,
    hairpinMode: 'promiscuous-bridge',
    maxPods: 110,
    podCIDR: '',
    podPidsLimit: -1,
    resolvConf: '/etc/resolv.conf',
    runOnce: false,
    cpuCFSQuota: true,
    cpuCFSQuotaPeriod: 100,
    nodeStatusMaxImages: 50,
    maxOpenFiles: 1_000_000,
    contentType: 'application/vnd.kubernetes.protobuf',
    kubeAPIQPS: 50,
    kubeAPIBurst: 100,
    serializeImagePulls: true,
    maxParallelImagePulls: null,
    evictionHard: { ...DEFAULT_EVICTION_HARD },
    evictionSoft: {},
    evictionSoftGracePeriod: {},
    evictionPressureTransitionPeriod: 5 * MINUTE,
    evictionMaxPodGracePeriod: 0,
    evictionMinimumReclaim: {},
    mergeDefaultEvictionSettings: false,
    podsPerCore: 0,
    enableControllerAttachDetach: true,
    protectKernelDefaults: false,
    makeIPTablesUtilChains: true,
    iptablesMasqueradeBit: 14,
    iptablesDropBit: 15,
    featureGates: {},
    failSwapOn: true,
    memorySwap: { swapBehavior: '' },
    containerLogMaxSize: '10Mi',
    containerLogMaxFiles: 5,
    containerLogMaxWorkers: 1,
    containerLogMonitorInterval: 10 * SECOND,
    configMapAndSecretChangeDetectionStrategy: 'Watch',
    systemReserved: {},
    kubeReserved: {},
    reservedSystemCPUs: '',
    showHiddenMetricsForVersion: '',
    systemReservedCgroup: '',
    kubeReservedCgroup: '',
    enforceNodeAllocatable: ['pods'],
    allowedUnsafeSysctls: [],
    volumePluginDir: '/usr/libexec/kubernetes/kubelet-plugins/volume/exec/',
    providerID: '',
    kernelMemcgNotification: false,
    logging: {
      format: 'text',
      flushFrequency: 5 * SECOND,
      verbosity: 0,
      vmodule: [],
      options: { text: { splitStream: false, infoBufferSize: '0' }, json: { splitStream: false, infoBufferSize: '0' } },
    },
    enableSystemLogHandler: true,
    enableSystemLogQuery: false,
    shutdownGracePeriod: 0,
    shutdownGracePeriodCriticalPods: 0,
    shutdownGracePeriodByPodPriority: [],
    reservedMemory: [],
    enableProfilingHandler: true,
    enableDebugFlagsHandler: true,
    seccompDefault: false,
    memoryThrottlingFactor: 0.9,
    registerWithTaints: [],
    registerNode: true,
    tracing: null,
    localStorageCapacityIsolation: true,
    containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
    imageServiceEndpoint: '',
    failCgroupV1: false,
    userNamespaces: { idsPerPod: 65_536 },
    crashLoopBackOff: { maxContainerRestartPeriod: null },
  };
}

export function defaultKubeletFlags(): KubeletFlags {
  return {
    config: '',
    configDir: '',
    kubeconfig: '',
    bootstrapKubeconfig: '',
    hostnameOverride: '',
    nodeIPs: [],
    certDir: '/var/lib/kubelet/pki',
    rootDir: '/var/lib/kubelet',
    nodeLabels: {},
    lockFile: '',
    exitOnLockContention: false,
    runtimeCgroups: '',
    podInfraContainerImage: 'registry.k8s.io/pause:3.10',
    imageCredentialProviderConfig: '',
    imageCredentialProviderBinDir: '',
    cloudProvider: '',
    cloudConfig: '',
    minimumContainerTTLDuration: 0,
    maximumDeadContainersPerContainer: 1,
    maximumDeadContainers: -1,
    registerSchedulable: true,
    experimentalMounterPath: '',
    experimentalAllocatableIgnoreEviction: false,
    adminSocket: '',
    faultInjection: false,
    inspect: '',
  };
}

/** A complete node configuration without a configuration file and without the HTTPS server; for simulation and tests. */
export function defaultNodeConfig(
  over: {
    flags?: Partial<KubeletFlags>;
    config?: Partial<KubeletConfiguration>;
    gates?: Readonly<Record<string, boolean>>;
    podGroups?: boolean;
  } = {},
): NodeConfig {
  const flags = { ...defaultKubeletFlags(), ...over.flags };
  if (flags.adminSocket === '') flags.adminSocket = `${flags.rootDir}/actorlet.sock`;
  const config = { ...defaultKubeletConfiguration(), enableServer: false, ...over.config };
  return { flags, config, gates: createFeatureGates(over.gates ?? config.featureGates).gates, podGroups: over.podGroups ?? false };
}
