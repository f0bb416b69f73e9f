/** What the tree is made of, per actor, derived from the node's configuration. The `options.ts` of each layer has its part. */

import type { NodeConfig } from '../machines/config/config.ts';
import type { NodeFacts } from '../machines/nodeFacts.ts';
import type { SourceName } from '../machines/pod/runtime/seen.ts';
import { type AllocationOptions, allocationOptions, offered } from './allocation/options.ts';
import type { ProviderPlace } from './allocation/provider.ts';
import { type ApiLayerOptions, apiLayerOptions, declaredHere, nodeIdentity } from './api/options.ts';
import type { BuildInfo } from './edge/metrics/nodeMetrics.ts';
import { type EdgeOptions, edgeOptions } from './edge/options.ts';
import type { Inspect } from './edge/server.ts';
import { type Extension, faultsOf } from './extension.ts';
import type { CheckpointOptions } from './foundation/checkpoint.ts';
import { type PodsOptions, podsOptions, type StaticSourceOptions, staticSourceOptions } from './pods/options.ts';
import type { ApiSourceOptions } from './pods/sources/api.ts';
import { type ReclaimOptions, reclaimOptions } from './reclaim/options.ts';
import { type RuntimeOptions, runtimeOptions } from './runtime/options.ts';
import type { ObjectsOptions } from './services/objects/objects.ts';
import type { TokensOptions } from './services/objects/tokens.ts';
import { type ServicesOptions, servicesOptions } from './services/options.ts';

/** Options of a node that belongs to a cluster. */
export interface ApiOptions extends ApiLayerOptions {
  source: ApiSourceOptions;
  objects: ObjectsOptions;
  tokens: TokensOptions;
}

export interface TreeOptions
  extends EdgeOptions,
    RuntimeOptions,
    AllocationOptions,
    ServicesOptions,
    PodsOptions,
    StaticSourceOptions,
    ReclaimOptions {
  checkpoint: CheckpointOptions;
  extensions: readonly Extension[];
  /** Null in standalone mode. */
  api: ApiOptions | null;
}

/** What the node knows beside its configuration; of the ports, which of them there are. */
export interface TreeInput {
  facts(): NodeFacts;
  inspect: Inspect;
  build: BuildInfo;
  extensions: readonly Extension[];
  plugins?: boolean;
  devicePlugins?: boolean;
  dra?: boolean;
  podResources?: boolean;
  podsApi?: boolean;
  kernelLog?: boolean;
  inhibitor?: boolean;
  iptables?: boolean;
  observer?: boolean;
  host: ProviderPlace['host'];
}

export function treeOptions(config: NodeConfig, o: TreeInput): TreeOptions {
  const { facts, inspect, build } = o;
  const { nodeName } = facts();
  const api = config.flags.kubeconfig === '' ? null : apiOptions(config, o);
  const cluster = api !== null;
  const staticSources = staticSourceOptions(config, nodeName);
  const ports = { devicePlugins: o.devicePlugins === true, dra: o.dra === true };
  const allocation = allocationOptions(config, { facts, host: o.host, ...ports, cluster });
  return {
    checkpoint: { rootDir: config.flags.rootDir },
    extensions: o.extensions,
    ...edgeOptions(config, {
      ...{ nodeName, inspect, build, facts },
      faults: faultsOf(o.extensions),
      routes: o.extensions.flatMap(({ routes }) => routes ?? []),
      own: o.extensions.find(({ pages }) => pages !== undefined)?.pages ?? null,
      podResources: o.podResources === true,
      podsApi: o.podsApi === true,
    }),
    ...runtimeOptions(config, o.kernelLog === true),
    ...allocation,
    api,
    ...servicesOptions(config, {
      facts,
      plugins: o.plugins === true,
      iptables: o.iptables === true,
      observes: o.observer === true,
      cluster,
    }),
    ...podsOptions(config, {
      facts,
      sources: configuredSources({ ...staticSources, api }),
      identity: nodeIdentity(config, nodeName),
      declaredFeatures: declaredHere(config.gates),
      cluster,
      ...offered(allocation),
      // The kubelet of an observed node knows its plugins.
      ...(o.observer === true ? { extendedResources: true } : {}),
    }),
    ...staticSources,
    ...reclaimOptions(config, { facts, cluster, inhibitor: o.inhibitor === true }),
  };
}

function apiOptions(config: NodeConfig, o: TreeInput): ApiOptions {
  const { config: c, gates } = config;
  const facts = o.facts();
  const streams = gates.enabled('WatchListClient');
  return {
    ...apiLayerOptions(config, facts, { kubeletVersion: o.build.gitVersion, startedMs: o.inspect.started?.wallMs }),
    source: { nodeName: facts.nodeName, streams },
    // Anything else was refused when the configuration was checked.
    objects: {
      strategy: c.configMapAndSecretChangeDetectionStrategy as ObjectsOptions['strategy'],
      podsMax: c.maxPods,
      learn: o.inspect.secrets?.learn,
    },
    tokens: { podsMax: c.maxPods },
  };
}

/** The sources that cleaning up must wait for. */
function configuredSources(o: Pick<TreeOptions, 'fileSource' | 'httpSource' | 'api'>): SourceName[] {
  return [
    ...(o.fileSource === null ? [] : ['file' as const]),
    ...(o.httpSource === null ? [] : ['http' as const]),
    ...(o.api === null ? [] : ['api' as const]),
  ];
}
