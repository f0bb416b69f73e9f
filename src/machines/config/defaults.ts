/**
 * Built-in defaults (boot-and-node 3, values of 1.36): the v1beta1 defaults, with or without a configuration file, and
 * a whole default node configuration for simulation and tests. Pure.
 */

import type { Fields, Shape } from '../shape/shape.ts';
import type { KubeletConfiguration, KubeletFlags, NodeConfig } from './config.ts';
import { SIGNAL_FACTS, SIGNALS } from './evictionSignals.ts';
import { createFeatureGates } from './gates.ts';
import { KUBELET_CONFIGURATION } from './schema.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Hard eviction thresholds on Linux, in the order of their names. */
export const DEFAULT_EVICTION_HARD: Readonly<Record<string, string>> = Object.fromEntries(
  [...SIGNALS].sort().flatMap((signal) => {
    const { hard } = SIGNAL_FACTS[signal];
    return hard === undefined ? [] : [[signal, hard]];
  }),
);

/** Every field at its v1beta1 default; a fresh object each time. The functions below name the fields that are not empty, false or 0. */
export function defaultKubeletConfiguration(): KubeletConfiguration {
  return {
    ...(zeroes(KUBELET_CONFIGURATION) as KubeletConfiguration),
    ...sourcesDefaults(),
    ...serverDefaults(),
    ...clusterDefaults(),
    ...runtimeDefaults(),
    ...resourcesDefaults(),
    ...reclaimDefaults(),
    ...podsDefaults(),
    ...nodeDefaults(),
  };
}

/** What a field is that has no default. Null: a pointer that is left unset. */
function zeroOf(shape: Shape): unknown {
  if (shape.nullable) return null;
  switch (shape.t) {
    case 'object':
      return zeroes(shape.fields);
    case 'list':
      return [];
    case 'map':
      return {};
    case 'string':
      return '';
    case 'boolean':
      return false;
    default:
      return 0;
  }
}
function zeroes(fields: Fields): object {
  return Object.fromEntries(Object.entries(fields).map(([name, shape]) => [name, zeroOf(shape)]));
}

/** Where static pods come from, and how often pods are looked at. */
function sourcesDefaults() {
  return {
    podLogsDir: '/var/log/pods',
    syncFrequency: MINUTE,
    fileCheckFrequency: 20 * SECOND,
    httpCheckFrequency: 20 * SECOND,
  } satisfies Partial<KubeletConfiguration>;
}

/** What listens, and whom it lets in. */
function serverDefaults() {
  return {
    enableServer: true,
    address: '0.0.0.0',
    port: 10250,
    healthzPort: 10248,
    healthzBindAddress: '127.0.0.1',
    authentication: { x509: { clientCAFile: '' }, webhook: { enabled: true, cacheTTL: 2 * MINUTE }, anonymous: { enabled: false } },
    authorization: { mode: 'Webhook', webhook: { cacheAuthorizedTTL: 5 * MINUTE, cacheUnauthorizedTTL: 30 * SECOND } },
    streamingConnectionIdleTimeout: 4 * HOUR,
    enableDebuggingHandlers: true,
    enableSystemLogHandler: true,
    enableProfilingHandler: true,
    enableDebugFlagsHandler: true,
  } satisfies Partial<KubeletConfiguration>;
}

/** What the node says of itself to the API server, and how often it asks. */
function clusterDefaults() {
  return {
    registerNode: true,
    nodeStatusUpdateFrequency: 10 * SECOND,
    nodeStatusReportFrequency: 5 * MINUTE,
    nodeLeaseDurationSeconds: 40,
    nodeStatusMaxImages: 50,
    eventRecordQPS: 50,
    eventBurst: 100,
    contentType: 'application/vnd.kubernetes.protobuf',
    kubeAPIQPS: 50,
    kubeAPIBurst: 100,
    configMapAndSecretChangeDetectionStrategy: 'Watch',
    enableControllerAttachDetach: true,
  } satisfies Partial<KubeletConfiguration>;
}

/** The container runtime, its images and the logs that it writes. */
function runtimeDefaults() {
  return {
    containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
    runtimeRequestTimeout: 2 * MINUTE,
    registryPullQPS: 5,
    registryBurst: 10,
    serializeImagePulls: true,
    imageMinimumGCAge: 2 * MINUTE,
    imageGCHighThresholdPercent: 85,
    imageGCLowThresholdPercent: 80,
    containerLogMaxSize: '10Mi',
    containerLogMaxFiles: 5,
    containerLogMaxWorkers: 1,
    containerLogMonitorInterval: 10 * SECOND,
  } satisfies Partial<KubeletConfiguration>;
}

/** Cgroups, CPUs and memory, and what of them is kept from pods. */
function resourcesDefaults() {
  return {
    cgroupsPerQOS: true,
    cgroupDriver: 'cgroupfs',
    cpuManagerPolicy: 'none',
    cpuManagerReconcilePeriod: 10 * SECOND,
    memoryManagerPolicy: 'None',
    topologyManagerPolicy: 'none',
    topologyManagerScope: 'container',
    podPidsLimit: -1,
    cpuCFSQuota: true,
    cpuCFSQuotaPeriod: 100,
    memoryThrottlingFactor: 0.9,
    memoryReservationPolicy: 'None',
    enforceNodeAllocatable: ['pods'],
    failSwapOn: true,
  } satisfies Partial<KubeletConfiguration>;
}

/** When pods are evicted, and how the node shuts down. */
function reclaimDefaults() {
  return {
    evictionHard: { ...DEFAULT_EVICTION_HARD },
    evictionPressureTransitionPeriod: 5 * MINUTE,
    localStorageCapacityIsolation: true,
  } satisfies Partial<KubeletConfiguration>;
}

/** What pods may have and get. */
function podsDefaults() {
  return {
    maxPods: 110,
    resolvConf: '/etc/resolv.conf',
    hairpinMode: 'promiscuous-bridge',
    userNamespaces: { idsPerPod: 65_536 },
    volumePluginDir: '/usr/libexec/kubernetes/kubelet-plugins/volume/exec/',
    volumeStatsAggPeriod: MINUTE,
  } satisfies Partial<KubeletConfiguration>;
}

/** The process and its host. */
function nodeDefaults() {
  return {
    oomScoreAdj: -999,
    maxOpenFiles: 1_000_000,
    makeIPTablesUtilChains: true,
    iptablesMasqueradeBit: 14,
    iptablesDropBit: 15,
    logging: {
      format: 'text',
      flushFrequency: 5 * SECOND,
      verbosity: 0,
      vmodule: [],
      options: { text: { splitStream: false, infoBufferSize: '0' }, json: { splitStream: false, infoBufferSize: '0' } },
    },
  } satisfies Partial<KubeletConfiguration>;
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
    inspectActions: false,
    record: '',
    recordMaxMib: 64,
    recordInputs: '',
    recordInputsMaxMib: 256,
    recordInputsPrivate: false,
    deathsMax: 50,
    deathsMaxKib: 256,
    deathsLogLines: 100,
    deathsStuckAfter: 120_000,
  };
}

/** A complete node configuration without a configuration file, HTTPS server, cgroups and bundles of deaths; for simulation and tests. */
export function defaultNodeConfig(
  over: { flags?: Partial<KubeletFlags>; config?: Partial<KubeletConfiguration>; gates?: Readonly<Record<string, boolean>> } = {},
): NodeConfig {
  const flags = { ...defaultKubeletFlags(), deathsMax: 0, ...over.flags };
  if (flags.adminSocket === '') flags.adminSocket = `${flags.rootDir}/actorlet.sock`;
  const config = { ...defaultKubeletConfiguration(), enableServer: false, cgroupsPerQOS: false, ...over.config };
  return { flags, config, gates: createFeatureGates(over.gates ?? config.featureGates).gates };
}
