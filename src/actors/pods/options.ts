/** What the managers of pods and their sources are made of, from the configuration. */
import type { NodeConfig } from '../../machines/config/config.ts';
import type { NodeFacts } from '../../machines/nodeFacts.ts';
import type { SourceName } from '../../machines/pod/runtime/seen.ts';
import { BACKOFF_BASE_MS } from '../../machines/pods/workers/container/crashBackoff.ts';
import type { PodManagerOptions } from './manager/podManager.ts';
import type { ConfigOptions } from './podConfig/podConfig.ts';
import type { FileSourceOptions } from './sources/file.ts';
import type { HttpSourceOptions } from './sources/http.ts';
import type { WorkersOptions } from './workers/workers.ts';

export interface StaticSourceOptions {
  fileSource: FileSourceOptions | null;
  httpSource: HttpSourceOptions | null;
}
export interface PodsOptions {
  config: ConfigOptions;
  podManager: PodManagerOptions;
  workers: WorkersOptions;
}

export function staticSourceOptions({ config: c, gates }: NodeConfig, nodeName: string): StaticSourceOptions {
  const decoding = { nodeName, preventApiReferences: gates.enabled('PreventStaticPodAPIReferences') };
  const headers = () => Object.fromEntries(Object.entries(c.staticPodURLHeader).map(([k, v]) => [k, [...v]]));
  return {
    fileSource: c.staticPodPath === '' ? null : { path: c.staticPodPath, checkFrequencyMs: c.fileCheckFrequency, ...decoding },
    httpSource:
      c.staticPodURL === '' ? null : { url: c.staticPodURL, headers: headers(), checkFrequencyMs: c.httpCheckFrequency, ...decoding },
  };
}

export function podsOptions(
  config: NodeConfig,
  o: Pick<PodManagerOptions, 'identity' | 'cluster' | 'allocates' | 'fixed' | 'extendedResources' | 'declaredFeatures'> & {
    facts(): NodeFacts;
    sources: readonly SourceName[];
  },
): PodsOptions {
  const { config: c } = config;
  const { facts, sources, identity, cluster, allocates, fixed, extendedResources, declaredFeatures } = o;
  const { allocatable } = facts();
  return {
    config: { sources },
    podManager: {
      sources,
      podsMax: Number(allocatable.pods ?? c.maxPods),
      allocatable,
      identity,
      allowedUnsafeSysctls: c.allowedUnsafeSysctls,
      podGroups: c.cgroupsPerQOS,
      cluster,
      allocates,
      fixed,
      extendedResources,
      declaredFeatures,
    },
    workers: { facts, podsMax: c.maxPods, syncFrequencyMs: c.syncFrequency, ...crashBackoff(config) },
  };
}

function crashBackoff({ config: c, gates }: NodeConfig): Pick<WorkersOptions, 'backoffBaseMs' | 'backoffMaxMs'> {
  // Of the gate: 1 s up to 60 s.
  const reduced = gates.enabled('ReduceDefaultCrashLoopBackOffDecay');
  return {
    backoffBaseMs: reduced ? 1_000 : BACKOFF_BASE_MS,
    backoffMaxMs: c.crashLoopBackOff.maxContainerRestartPeriod ?? (reduced ? 60_000 : 300_000),
  };
}
