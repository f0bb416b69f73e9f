/** What the servers of the node are made of, from its configuration. */
import { podGroup, podsGroup } from '../../machines/allocation/cgroups/names.ts';
import type { NodeConfig } from '../../machines/config/config.ts';
import { tlsVersion } from '../../machines/edge/https/tls.ts';
import type { NodeFacts } from '../../machines/nodeFacts.ts';
import type { AdminOptions } from './admin.ts';
import type { HealthzOptions } from './healthz.ts';
import type { HttpsOptions } from './https/https.ts';
import type { OwnPages } from './https/routes.ts';
import type { PodResourcesOptions } from './podResources.ts';
import type { PodsApiOptions } from './podsApi.ts';
import type { ReadOnlyOptions } from './readOnly.ts';
import type { FigureOptions } from './stats/figures.ts';

/** Null where it is switched off. */
export interface EdgeOptions {
  admin: AdminOptions | null;
  healthz: HealthzOptions | null;
  readOnly: ReadOnlyOptions | null;
  https: HttpsOptions | null;
  podResources: PodResourcesOptions | null;
  podsApi: PodsApiOptions | null;
}

const HOST_LOGS_DIR = '/var/log';

interface FigureInput extends Pick<FigureOptions, 'nodeName' | 'inspect' | 'build'> {
  facts(): NodeFacts;
}

interface EdgeInput extends FigureInput {
  faults: NonNullable<AdminOptions['faults']> | null;
  routes: NonNullable<AdminOptions['routes']>;
  own: OwnPages | null;
  podResources: boolean;
  podsApi: boolean;
}

export function edgeOptions(config: NodeConfig, { faults, routes, own, podResources, podsApi, ...o }: EdgeInput): EdgeOptions {
  const { config: c, flags, gates } = config;
  const figures = figureOptions(config, o);
  const readOnly = { ...figures, volumeStats: { ...figures.volumeStats, silent: c.enableServer } };
  return {
    admin: flags.adminSocket === '' ? null : adminOptions(config, { ...o, faults, routes }),
    healthz: c.healthzPort === 0 ? null : { host: c.healthzBindAddress, port: c.healthzPort },
    readOnly: c.readOnlyPort === 0 ? null : { host: c.address, port: c.readOnlyPort, ...readOnly },
    https: c.enableServer ? { ...httpsOptions(config, o), own } : null,
    podResources: podResources
      ? {
          rootDir: flags.rootDir,
          activeOnly: gates.enabled('KubeletPodResourcesListUseActivePods'),
          get: gates.enabled('KubeletPodResourcesGet'),
        }
      : null,
    podsApi: podsApi && gates.enabled('PodsAPI') ? { rootDir: flags.rootDir } : null,
  };
}

function adminOptions(config: NodeConfig, { faults, routes, ...o }: FigureInput & Pick<EdgeInput, 'faults' | 'routes'>): AdminOptions {
  const { adminSocket } = config.flags;
  const figures = figureOptions(config, o);
  return { socketPath: adminSocket, inspect: o.inspect, podLogsDir: figures.podLogsDir, faults, routes, figures };
}

/** Files of the serving certificate: those given, the one a cluster signs, or those that the boot makes. */
export function servingFiles(config: Pick<NodeConfig, 'config' | 'flags'>): { certFile: string; keyFile: string } {
  const { config: c, flags } = config;
  if (c.tlsCertFile !== '') return { certFile: c.tlsCertFile, keyFile: c.tlsPrivateKeyFile };
  const current = `${flags.certDir}/kubelet-server-current.pem`;
  if (c.serverTLSBootstrap) return { certFile: current, keyFile: current };
  return { certFile: `${flags.certDir}/kubelet.crt`, keyFile: `${flags.certDir}/kubelet.key` };
}

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
    podGroup: (pod) => podGroup(c, facts().cgroupDriver, pod),
    podsAtRoot: !c.cgroupsPerQOS,
    rootDir: flags.rootDir,
    podLogsDir: c.podLogsDir,
    syncFrequencyMs: c.syncFrequency,
    runtimeRequestTimeoutMs: c.runtimeRequestTimeout,
    volumeStats: {
      periodMs: c.volumeStatsAggPeriod,
      health: gates.enabled('CSIVolumeHealth'),
      quotas: gates.enabled('LocalStorageCapacityIsolationFSQuotaMonitoring'),
    },
    gates: gates.list(),
    pressure: gates.enabled('KubeletPSI'),
    fromCri: gates.enabled('PodAndContainerStatsFromCRI'),
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
    webSockets: gates.enabled('ExtendWebSocketsToKubelet'),
    statusz: gates.enabled('ComponentStatusz'),
    flagz: gates.enabled('ComponentFlagz'),
    systemLogs: c.enableSystemLogHandler,
    systemLogQuery: c.enableSystemLogQuery && gates.enabled('NodeLogQuery'),
    profiling: c.enableProfilingHandler,
    debugFlags: c.enableDebugFlagsHandler,
  };
}
