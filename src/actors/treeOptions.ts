/** What the tree is made of, per actor: every option in one place, derived from the node's configuration. */
import { type GroupDriver, groupPath, kubepodsName } from '../machines/allocation/cgroups/names.ts';
import type { CpuPlace } from '../machines/allocation/cpus/ledger.ts';
import { namesAddresses } from '../machines/api/nodeAddresses.ts';
import { cpuListSize, HUGE_PAGES_PREFIX } from '../machines/api/nodeCapacity.ts';
import type { KubeletConfiguration, NodeConfig } from '../machines/config.ts';
import { tlsVersion } from '../machines/edge/https/tls.ts';
import { quantityToInteger } from '../machines/pods/quantity.ts';
import type { NodeFacts } from '../machines/pods/types.ts';
import { thresholdsOf } from '../machines/reclaim/eviction/thresholds.ts';
import { DEFAULT_VERIFICATION, VERIFICATION_POLICIES } from '../machines/runtime/imagePuller/pullRecords.ts';
import type { AgentGroupsOptions } from './allocation/cgroups/agentGroups.ts';
import type { CgroupsOptions } from './allocation/cgroups/cgroups.ts';
import type { CpusOptions } from './allocation/cpus/cpus.ts';
import type { DevicesOptions } from './allocation/devices/devices.ts';
import type { CertificateOptions } from './api/certificates/certificate.ts';
import type { LeaseOptions } from './api/lease.ts';
import type { NodeStatusOptions } from './api/nodeStatus.ts';
import type { PodWritersOptions } from './api/podWriters.ts';
import type { AdminOptions } from './edge/admin.ts';
import type { HealthzOptions } from './edge/healthz.ts';
import type { FigureOptions } from './edge/https/figures.ts';
import type { HttpsOptions } from './edge/https/https.ts';
import type { BuildInfo } from './edge/nodeMetrics.ts';
import type { ReadOnlyOptions } from './edge/readOnly.ts';
import type { Inspect } from './edge/server.ts';
import type { CheckpointOptions } from './foundation/checkpoint.ts';
import type { InjectorOptions } from './foundation/injector/injector.ts';
import type { PodManagerOptions } from './pods/manager/podManager.ts';
import type { ConfigOptions } from './pods/podConfig/podConfig.ts';
import type { ApiSourceOptions } from './pods/sources/api.ts';
import type { FileSourceOptions } from './pods/sources/file.ts';
import type { HttpSourceOptions } from './pods/sources/http.ts';
import type { WorkersOptions } from './pods/workers/workers.ts';
import type { ContainerGcOptions } from './reclaim/containerGc.ts';
import type { EvictionOptions } from './reclaim/eviction/eviction.ts';
import type { HousekeepingOptions } from './reclaim/housekeeping.ts';
import type { ImageGcOptions } from './reclaim/imageGc/imageGc.ts';
import type { LogRotationOptions } from './reclaim/logRotation.ts';
import type { NodeShutdownOptions } from './reclaim/nodeShutdown/nodeShutdown.ts';
import { nodeShutdownOptions } from './reclaim/nodeShutdown/options.ts';
import type { CriLinkOptions } from './runtime/cri/link.ts';
import type { ImagePullerOptions } from './runtime/imagePuller/imagePuller.ts';
import type { VerificationOptions } from './runtime/imagePuller/pullRecords.ts';
import type { PlegOptions } from './runtime/pleg/pleg.ts';
import type { ObjectsOptions } from './services/objects/objects.ts';
import { objectSource } from './services/objects/source.ts';
import type { TokensOptions } from './services/objects/tokens.ts';
import type { PluginsOptions } from './services/plugins/plugins.ts';
import type { ProbesOptions } from './services/probes/probes.ts';
import type { VolumesOptions } from './services/volumes/volumes.ts';
import { configuredSources } from './tree.ts';

/** Of a node that belongs to a cluster. */
export interface ApiOptions {
  nodeStatus: NodeStatusOptions;
  lease: LeaseOptions;
  /** Those that this node gets from the cluster. */
  certificates: readonly CertificateOptions[];
  podWriters: PodWritersOptions;
  source: ApiSourceOptions;
  objects: ObjectsOptions;
  tokens: TokensOptions;
}

export interface TreeOptions {
  checkpoint: CheckpointOptions;
  /** Null unless the node was started with `--actorlet-fault-injection`. */
  injector: InjectorOptions | null;
  /** Null where it is switched off. */
  admin: AdminOptions | null;
  healthz: HealthzOptions | null;
  readOnly: ReadOnlyOptions | null;
  https: HttpsOptions | null;
  cri: CriLinkOptions;
  images: ImagePullerOptions;
  /** Null with `cgroupsPerQOS: false`. */
  cgroups: CgroupsOptions | null;
  /** Null where neither kubeletCgroups nor systemCgroups is set. */
  agentGroups: AgentGroupsOptions | null;
  pleg: PlegOptions;
  /** False where there is no kernel to listen to. */
  oomWatcher: boolean;
  /** Null under policy none. */
  cpus: CpusOptions | null;
  /** Null where device plugins cannot be spoken to. */
  devices: DevicesOptions | null;
  probes: ProbesOptions;
  /** False where the node keeps no chains in the packet filter of its host. */
  iptables: boolean;
  /** Null in standalone mode, and where plugins beside this node cannot be spoken to. */
  plugins: PluginsOptions | null;
  volumes: VolumesOptions;
  config: ConfigOptions;
  podManager: PodManagerOptions;
  workers: WorkersOptions;
  fileSource: FileSourceOptions | null;
  httpSource: HttpSourceOptions | null;
  /** Null in standalone mode. */
  api: ApiOptions | null;
  containerGc: ContainerGcOptions;
  imageGc: ImageGcOptions;
  /** Null where logs may grow for ever. */
  logRotation: LogRotationOptions | null;
  housekeeping: HousekeepingOptions;
  /** Null where no eviction threshold is set, and nobody has limits to be held to. */
  eviction: EvictionOptions | null;
  /** Null where no period of a shutdown is set, and where systemd-logind cannot be reached at all. */
  nodeShutdown: NodeShutdownOptions | null;
}

function verificationOptions({ config: c, flags, gates }: NodeConfig): VerificationOptions | null {
  if (!gates.enabled('KubeletEnsureSecretPulledImages')) return null;
  const policy = VERIFICATION_POLICIES.find((p) => p === c.imagePullCredentialsVerificationPolicy) ?? DEFAULT_VERIFICATION;
  return { policy, allowlist: c.preloadedImagesVerificationAllowlist, dir: `${flags.rootDir}/image_manager` };
}

/** First wait of the crash back-off (pod lifecycle 5.12); with its gate on, 1 s up to 60 s. */
const BACKOFF_BASE_MS = 10_000;

export function treeOptions(
  config: NodeConfig,
  o: {
    facts(): NodeFacts;
    inspect: Inspect;
    build: BuildInfo;
    injector: InjectorOptions | null;
    plugins?: boolean;
    devicePlugins?: boolean;
    kernelLog?: boolean;
    inhibitor?: boolean;
    iptables?: boolean;
    cpuPlace?: CpuPlace | null;
  },
): TreeOptions {
  const { config: c, flags, gates } = config;
  const facts = o.facts();
  const nodeName = facts.nodeName;
  const reduced = gates.enabled('ReduceDefaultCrashLoopBackOffDecay');
  const decoding = { nodeName, preventApiReferences: gates.enabled('PreventStaticPodAPIReferences') };
  const fileSource = c.staticPodPath === '' ? null : { path: c.staticPodPath, checkFrequencyMs: c.fileCheckFrequency, ...decoding };
  const httpSource =
    c.staticPodURL === ''
      ? null
      : {
          url: c.staticPodURL,
          headers: Object.fromEntries(Object.entries(c.staticPodURLHeader).map(([k, v]) => [k, [...v]])),
          checkFrequencyMs: c.httpCheckFrequency,
          ...decoding,
        };
  const api = flags.kubeconfig === '' ? null : apiOptions(config, facts, { build: o.build, startedMs: o.inspect.started?.wallMs });
  const sources = configuredSources({ fileSource, httpSource, api });
  return {
    checkpoint: { rootDir: flags.rootDir },
    injector: o.injector,
    admin:
      flags.adminSocket === ''
        ? null
        : {
            socketPath: flags.adminSocket,
            inspect: o.inspect,
            podLogsDir: c.podLogsDir,
            faults: o.injector === null ? null : o.injector.activeFaults,
          },
    healthz: c.healthzPort === 0 ? null : { host: c.healthzBindAddress, port: c.healthzPort },
    readOnly:
      c.readOnlyPort === 0
        ? null
        : {
            host: c.address,
            port: c.readOnlyPort,
            ...figureOptions(config, { nodeName, inspect: o.inspect, build: o.build, facts: o.facts }),
          },
    https: c.enableServer ? httpsOptions(config, { nodeName, inspect: o.inspect, build: o.build, facts: o.facts }) : null,
    cri: { runtimeRequestTimeoutMs: c.runtimeRequestTimeout },
    images: {
      runtimeRequestTimeoutMs: c.runtimeRequestTimeout,
      serializeImagePulls: c.serializeImagePulls,
      maxParallelImagePulls: c.maxParallelImagePulls,
      registryPullQPS: c.registryPullQPS,
      registryBurst: c.registryBurst,
      verification: verificationOptions(config),
    },
    cgroups: cgroupsOptions(config, o.facts),
    agentGroups:
      c.kubeletCgroups === '' && c.systemCgroups === '' ? null : { kubeletCgroups: c.kubeletCgroups, systemCgroups: c.systemCgroups },
    pleg: { runtimeRequestTimeoutMs: c.runtimeRequestTimeout },
    oomWatcher: o.kernelLog === true,
    cpus: cpusOptions(config, o.cpuPlace ?? null),
    devices: o.devicePlugins === true ? { rootDir: flags.rootDir, cluster: api !== null } : null,
    probes: { runtimeRequestTimeoutMs: c.runtimeRequestTimeout, podsMax: c.maxPods },
    iptables: o.iptables === true && c.makeIPTablesUtilChains,
    plugins: o.plugins === true && api !== null ? { rootDir: flags.rootDir } : null,
    volumes: { facts: o.facts, podsMax: c.maxPods, syncFrequencyMs: c.syncFrequency, objects: api === null ? null : objectSource },
    config: { sources },
    podManager: {
      sources,
      podsMax: Number(facts.allocatable.pods ?? c.maxPods),
      allocatable: facts.allocatable,
      identity: nodeIdentity(config, nodeName),
      allowedUnsafeSysctls: c.allowedUnsafeSysctls,
      podGroups: c.cgroupsPerQOS,
      cluster: api !== null,
      allocators: { devices: o.devicePlugins === true, cpus: Boolean(o.cpuPlace) },
    },
    workers: {
      facts: o.facts,
      podsMax: c.maxPods,
      syncFrequencyMs: c.syncFrequency,
      backoffBaseMs: reduced ? 1_000 : BACKOFF_BASE_MS,
      backoffMaxMs: c.crashLoopBackOff.maxContainerRestartPeriod ?? (reduced ? 60_000 : 300_000),
    },
    fileSource,
    httpSource,
    api,
    containerGc: {
      policy: {
        minAgeMs: flags.minimumContainerTTLDuration,
        maxPerPodContainer: flags.maximumDeadContainersPerContainer,
        maxContainers: flags.maximumDeadContainers,
      },
      podLogsDir: c.podLogsDir,
      containerLogsDir: facts.containerLogsDir,
    },
    imageGc: {
      policy: {
        minAgeMs: c.imageMinimumGCAge,
        maxAgeMs: c.imageMaximumGCAge,
        highPercent: c.imageGCHighThresholdPercent,
        lowPercent: c.imageGCLowThresholdPercent,
      },
      sandboxImage: flags.podInfraContainerImage,
    },
    logRotation: rotationOptions(c),
    housekeeping: { rootDir: flags.rootDir },
    eviction: evictionOptions(config, o.facts, api !== null),
    nodeShutdown: o.inhibitor === true ? nodeShutdownOptions(config, api !== null) : null,
  };
}

function cpusOptions({ config: c, flags, gates }: NodeConfig, place: CpuPlace | null): CpusOptions | null {
  if (place === null) return null;
  const quotaLifted = gates.enabled('DisableCPUQuotaWithExclusiveCPUs');
  return { rootDir: flags.rootDir, place, everyMs: c.cpuManagerReconcilePeriod, quotaLifted };
}

/** Path of the group of all pods; undefined where there is none, or the runtime has not said its driver. */
function podsGroup({ cgroupsPerQOS, cgroupRoot }: KubeletConfiguration, driver: GroupDriver | undefined): string | undefined {
  return cgroupsPerQOS && driver !== undefined ? groupPath(kubepodsName(cgroupRoot), driver) : undefined;
}

function cgroupsOptions({ config: c, gates }: NodeConfig, facts: () => NodeFacts): CgroupsOptions | null {
  if (!c.cgroupsPerQOS) return null;
  const { capacity } = facts();
  const { cpuCFSQuota, podPidsLimit, systemReservedCgroup, kubeReservedCgroup } = c;
  const pages = Object.entries(capacity).filter(([name]) => name.startsWith(HUGE_PAGES_PREFIX));
  return {
    root: c.cgroupRoot,
    driver: () => facts().cgroupDriver,
    rules: {
      ...{ cpuCFSQuota, cpuCFSQuotaPeriodMs: c.cpuCFSQuotaPeriod, podPidsLimit },
      ...(gates.enabled('MemoryQoS') ? { memoryFloors: c.memoryReservationPolicy === 'TieredReservation' } : {}),
      quotaLifted: c.cpuManagerPolicy === 'static' && gates.enabled('DisableCPUQuotaWithExclusiveCPUs'),
    },
    // Looked at by the rules: a percentage.
    qosReservedPercent: c.qosReserved.memory === undefined ? null : Number.parseInt(c.qosReserved.memory, 10),
    reservations: {
      enforceNodeAllocatable: c.enforceNodeAllocatable,
      kubeReserved: c.kubeReserved,
      // A list of CPUs is what is reserved of them, whatever else was said.
      systemReserved: reservedCpus(c.reservedSystemCPUs, c.systemReserved),
      ...(c.reservedSystemCPUs === ''
        ? {}
        : { kubeReserved: Object.fromEntries(Object.entries(c.kubeReserved).filter(([k]) => k !== 'cpu')) }),
    },
    machine: {
      cpus: quantityToInteger(capacity.cpu),
      memoryBytes: quantityToInteger(capacity.memory),
      hugePages: Object.fromEntries(pages.map(([name, bytes]) => [name.slice(HUGE_PAGES_PREFIX.length), quantityToInteger(bytes)])),
    },
    systemReservedCgroup,
    kubeReservedCgroup,
  };
}

function reservedCpus(list: string, reserved: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return list === '' ? reserved : { ...reserved, cpu: String(cpuListSize(list)) };
}

/** A negative size is no rotation. */
function rotationOptions(c: KubeletConfiguration): LogRotationOptions | null {
  const maxBytes = quantityToInteger(c.containerLogMaxSize);
  if (maxBytes <= 0) return null;
  return {
    podLogsDir: c.podLogsDir,
    maxBytes,
    filesMax: c.containerLogMaxFiles,
    workers: c.containerLogMaxWorkers,
    everyMs: c.containerLogMonitorInterval,
  };
}

function evictionOptions({ config: c, flags }: NodeConfig, facts: () => NodeFacts, cluster: boolean): EvictionOptions | null {
  const { thresholds, unseen } = thresholdsOf(c);
  // Only pods of the API are ever evicted.
  const limits = cluster && c.localStorageCapacityIsolation;
  if (thresholds.length + unseen.length === 0 && !limits) return null;
  return {
    thresholds,
    unseen,
    transitionMs: c.evictionPressureTransitionPeriod,
    maxGraceSeconds: c.evictionMaxPodGracePeriod,
    watchMemory: c.kernelMemcgNotification,
    limits,
    rootDir: flags.rootDir,
    podLogsDir: c.podLogsDir,
    podsGroup: () => podsGroup(c, facts().cgroupDriver),
    cluster,
  };
}

const HOST_LOGS_DIR = '/var/log';

/** Files of the serving certificate: those given, the one a cluster signs, or those that the boot makes. */
export function servingFiles(config: Pick<NodeConfig, 'config' | 'flags'>): { certFile: string; keyFile: string } {
  const { config: c, flags } = config;
  if (c.tlsCertFile !== '') return { certFile: c.tlsCertFile, keyFile: c.tlsPrivateKeyFile };
  const current = `${flags.certDir}/kubelet-server-current.pem`;
  if (c.serverTLSBootstrap) return { certFile: current, keyFile: current };
  return { certFile: `${flags.certDir}/kubelet.crt`, keyFile: `${flags.certDir}/kubelet.key` };
}

type FigureInput = Pick<FigureOptions, 'nodeName' | 'inspect' | 'build'> & { facts(): NodeFacts };
function figureOptions(config: NodeConfig, { facts, ...o }: FigureInput): FigureOptions {
  const { config: c, flags, gates } = config;
  return {
    ...o,
    systemGroups: () => ({
      kubelet: c.kubeletCgroups,
      runtime: flags.runtimeCgroups,
      misc: c.systemCgroups,
      pods: podsGroup(c, facts().cgroupDriver) ?? '',
    }),
    rootDir: flags.rootDir,
    podLogsDir: c.podLogsDir,
    syncFrequencyMs: c.syncFrequency,
    runtimeRequestTimeoutMs: c.runtimeRequestTimeout,
    volumeStats: { periodMs: c.volumeStatsAggPeriod, health: gates.enabled('CSIVolumeHealth') },
    pressure: gates.enabled('KubeletPSI'),
  };
}

function httpsOptions(config: NodeConfig, o: FigureInput): HttpsOptions {
  const { config: c, gates } = config;
  const { authentication, authorization } = c;
  return {
    ...figureOptions(config, o),
    ...servingFiles(config),
    host: c.address,
    port: c.port,
    signedByCluster: c.serverTLSBootstrap && c.tlsCertFile === '',
    clientCaFile: authentication.x509.clientCAFile,
    minVersion: tlsVersion(c.tlsMinVersion),
    cipherSuites: c.tlsCipherSuites,
    curves: c.tlsCurvePreferences,
    authentication: {
      webhook: { enabled: authentication.webhook.enabled, cacheTtlMs: authentication.webhook.cacheTTL },
      anonymous: authentication.anonymous.enabled,
    },
    authorization: {
      mode: authorization.mode,
      allowedTtlMs: authorization.webhook.cacheAuthorizedTTL,
      deniedTtlMs: authorization.webhook.cacheUnauthorizedTTL,
    },
    fineGrained: gates.enabled('KubeletFineGrainedAuthz'),
    hostLogsDir: HOST_LOGS_DIR,
    debugging: c.enableDebuggingHandlers,
    checkpoints: gates.enabled('ContainerCheckpoint'),
    statusz: gates.enabled('ComponentStatusz'),
    flagz: gates.enabled('ComponentFlagz'),
    systemLogs: c.enableSystemLogHandler,
    systemLogQuery: c.enableSystemLogQuery && gates.enabled('NodeLogQuery'),
    profiling: c.enableProfilingHandler,
    debugFlags: c.enableDebugFlagsHandler,
  };
}

function certificateOptions({ config: c, flags, gates }: NodeConfig, nodeName: string): CertificateOptions[] {
  const both = { nodeName, dir: flags.certDir, dnsOnly: gates.enabled('AllowDNSOnlyNodeCSR') };
  const client = c.rotateCertificates || flags.bootstrapKubeconfig !== '';
  const serving = c.serverTLSBootstrap && c.enableServer && c.tlsCertFile === '';
  return [
    ...(client ? [{ ...both, use: 'client' as const, rotate: c.rotateCertificates }] : []),
    ...(serving ? [{ ...both, use: 'serving' as const, rotate: true }] : []),
  ];
}

function nodeIdentity({ config: c, flags }: NodeConfig, name: string): NodeStatusOptions['identity'] {
  return {
    name,
    hostname: name,
    labels: flags.nodeLabels,
    taints: c.registerWithTaints,
    schedulable: flags.registerSchedulable,
    providerID: c.providerID,
    externalCloud: flags.cloudProvider === 'external',
    providedIPs: flags.cloudProvider === 'external' && namesAddresses(flags.nodeIPs) ? flags.nodeIPs.join(',') : '',
    controllerAttachDetach: c.enableControllerAttachDetach,
  };
}

function apiOptions(config: NodeConfig, facts: NodeFacts, o: { build: BuildInfo; startedMs: number | undefined }): ApiOptions {
  const { config: c, flags } = config;
  const { nodeName } = facts;
  const leaseMs = c.nodeLeaseDurationSeconds * 1000;
  const timeoutMs = Math.min(c.nodeStatusUpdateFrequency, leaseMs);
  const streams = config.gates.enabled('WatchListClient');
  return {
    nodeStatus: {
      identity: nodeIdentity(config, nodeName),
      register: c.registerNode,
      updateFrequencyMs: c.nodeStatusUpdateFrequency,
      reportFrequencyMs: c.nodeStatusReportFrequency,
      timeoutMs,
      // Where nobody named them, the cloud's controller says them alone.
      addresses: flags.cloudProvider === 'external' && !namesAddresses(flags.nodeIPs) ? [] : facts.hostIPs,
      capacity: facts.capacity,
      allocatable: facts.allocatable,
      needed: c.localStorageCapacityIsolation ? ['ephemeral-storage'] : [],
      kubeletVersion: o.build.gitVersion,
      swapBytes: facts.memoryControl?.swapBytes ?? 0,
      startedMs: o.startedMs,
      port: c.enableServer ? c.port : 0,
      imagesMax: c.nodeStatusMaxImages,
    },
    lease: { nodeName, durationMs: leaseMs, timeoutMs },
    certificates: certificateOptions(config, nodeName),
    podWriters: { podsMax: c.maxPods },
    source: { nodeName, streams },
    // Anything else was refused when the configuration was checked.
    objects: { strategy: c.configMapAndSecretChangeDetectionStrategy as ObjectsOptions['strategy'], podsMax: c.maxPods, streams },
    tokens: { podsMax: c.maxPods },
  };
}
