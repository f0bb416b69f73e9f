/** What the actors that free resources of the node are made of, from its configuration. */
import { podGroup, podsGroup } from '../../machines/allocation/cgroups/names.ts';
import type { KubeletConfiguration, NodeConfig } from '../../machines/config/config.ts';
import { quantityToInteger } from '../../machines/kube/quantity.ts';
import type { NodeFacts } from '../../machines/nodeFacts.ts';
import { thresholdsOf } from '../../machines/reclaim/eviction/thresholds.ts';
import type { ContainerGcOptions } from './containerGc.ts';
import type { EvictionOptions } from './eviction/eviction.ts';
import type { HousekeepingOptions } from './housekeeping.ts';
import type { ImageGcOptions } from './imageGc/imageGc.ts';
import type { LogRotationOptions } from './logRotation.ts';
import type { NodeShutdownOptions } from './nodeShutdown/nodeShutdown.ts';
import { nodeShutdownOptions } from './nodeShutdown/options.ts';

export interface ReclaimOptions {
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

export function reclaimOptions(
  config: NodeConfig,
  { facts, cluster, inhibitor }: { facts(): NodeFacts; cluster: boolean; inhibitor: boolean },
): ReclaimOptions {
  const { config: c, flags } = config;
  return {
    containerGc: {
      policy: {
        minAgeMs: flags.minimumContainerTTLDuration,
        maxPerPodContainer: flags.maximumDeadContainersPerContainer,
        maxContainers: flags.maximumDeadContainers,
      },
      podLogsDir: c.podLogsDir,
      containerLogsDir: facts().containerLogsDir,
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
    eviction: evictionOptions(config, facts, cluster),
    nodeShutdown: inhibitor ? nodeShutdownOptions(config, cluster) : null,
  };
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

function evictionOptions({ config: c, flags, gates }: NodeConfig, facts: () => NodeFacts, cluster: boolean): EvictionOptions | null {
  const { thresholds, unseen, conflicting } = thresholdsOf(c);
  // Only pods of the API are ever evicted.
  const limits = cluster && c.localStorageCapacityIsolation;
  if (thresholds.length + unseen.length + conflicting.length === 0 && !limits) return null;
  return {
    thresholds,
    unseen,
    conflicting,
    fromCri: gates.enabled('PodAndContainerStatsFromCRI'),
    separateDisks: gates.enabled('KubeletSeparateDiskGC'),
    transitionMs: c.evictionPressureTransitionPeriod,
    maxGraceSeconds: c.evictionMaxPodGracePeriod,
    watchMemory: c.kernelMemcgNotification,
    limits,
    rootDir: flags.rootDir,
    podLogsDir: c.podLogsDir,
    podsGroup: () => podsGroup(c, facts().cgroupDriver),
    podGroup: (pod) => podGroup(c, facts().cgroupDriver, pod),
    cluster,
  };
}
